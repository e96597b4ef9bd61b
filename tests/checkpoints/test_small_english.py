"""The model in the package: its files, its names, and that it says something."""

import pathlib
import re
import warnings

import keras
import numpy as np
import pytest
from tiers import every_backend, once, three_in_full

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints import hub
from keras_bert_impl.checkpoints.safetensors_file import open_safetensors

LARGEST = 12_000_000  # bytes, of all files together
FILES = {"NOTICE", "README.md", "config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"}
FILES |= {"modules.json", "sentence_bert_config.json", "1_Pooling/config.json"}  # of sentence-transformers
# A word that a reader of English expects.
SENTENCES = {
    "I have not seen him for many [MASK].": "years",
    "She came into the [MASK] and closed the door.": "room",
    "Returns a [MASK] of integers.": "list",
}


@once
def test_its_files_are_those_of_a_checkpoint_under_twelve_megabytes_and_name_no_path_of_a_machine():
    paths = [path for path in hub.PACKAGED_DIRECTORY.rglob("*") if path.is_file()]
    files = {path.relative_to(hub.PACKAGED_DIRECTORY).as_posix(): path for path in paths}
    assert set(files) == FILES
    assert sum(path.stat().st_size for path in files.values()) < LARGEST
    assert not re.search("/(tmp|root|home|work)/", files["README.md"].read_text(encoding="utf-8"))


@once
def test_every_number_of_the_file_is_kept_in_float32():
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    path = hub.PACKAGED_DIRECTORY / "model.safetensors"
    ours, theirs = open_safetensors(path), load_file(path)
    assert set(ours.kinds.values()) == {"BF16"} and set(ours.shapes) == set(theirs)
    for name, tensor in theirs.items():
        np.testing.assert_array_equal(ours.read(name), tensor.to(torch.float32).numpy(), err_msg=name)


@three_in_full
def test_its_logits_are_those_of_transformers():
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    model = kbi.MaskedLM.from_pretrained("small_english")
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(hub.PACKAGED_DIRECTORY).eval()
    ids = np.array([model.tokenizer.encode("I have not seen him for many [MASK].").ids])
    positions = np.arange(ids.shape[1])[None]
    rows = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1, "mask_positions": positions}
    logits = keras.ops.convert_to_numpy(model(rows))
    with torch.no_grad():
        expected = theirs(input_ids=torch.tensor(ids)).logits.numpy()
    np.testing.assert_allclose(logits, expected, atol=1e-5 * np.abs(expected).max())


@every_backend
def test_it_says_the_words():
    guesses = kbi.MaskedLM.from_pretrained("small_english").fill_mask(list(SENTENCES), top_k=3)
    for word, (of_text,) in zip(SENTENCES.values(), guesses, strict=True):
        assert word in [guess.token for guess in of_text]


@once
def test_its_vectors_tell_what_is_similar_and_sentence_transformers_has_the_same():
    texts = ["A man is playing a guitar.", "Someone plays music.", "The stock market fell.", "Shares lost value."]
    vectors = kbi.TextEmbedder.from_pretrained("small_english").embed(texts)
    similar = vectors @ vectors.T - 2 * np.eye(4)
    assert similar.argmax(axis=1).tolist() == [1, 0, 3, 2]
    library = pytest.importorskip("sentence_transformers")
    theirs = library.SentenceTransformer(str(hub.PACKAGED_DIRECTORY), device="cpu").encode(texts)
    np.testing.assert_allclose(vectors, theirs, atol=2e-2)  # theirs stay in the file's bfloat16


@once
def test_only_a_model_that_uses_the_missing_pooler_says_that_it_needs_training(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        embedder = kbi.TextEmbedder.from_pretrained("small_english")
        embedder.save_pretrained(tmp_path)
        kbi.TextEmbedder.from_pretrained(tmp_path)
    with pytest.warns(UserWarning, match="was saved before pooler had been trained"):
        kbi.BertEncoder.from_pretrained(tmp_path)


@once
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (kbi.TextEmbedder, {}),
        (kbi.TokenClassifier, {"num_classes": 3}),
        (kbi.Reranker, {}),
    ],
)
@pytest.mark.filterwarnings("ignore")  # of heads that are newly initialised
def test_every_model_opens_it_by_its_name(kind, options):
    model = kind.from_pretrained("small_english", **options)
    weight = next(one for one in model.weights if one.path.endswith("token_embedding/embeddings"))
    stored = open_safetensors(hub.PACKAGED_DIRECTORY / "model.safetensors")
    expected = stored.read("bert.embeddings.word_embeddings.weight")
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(weight), expected)


@once
def test_a_folder_of_its_name_comes_first(tmp_path, monkeypatch, small_config):
    monkeypatch.chdir(tmp_path)
    assert hub.local_directory("small_english") == hub.PACKAGED_DIRECTORY and hub.is_packaged("small_english")
    kbi.BertEncoder(small_config).save_pretrained("small_english")
    assert hub.local_directory("small_english") == pathlib.Path("small_english")
    assert not hub.is_packaged("small_english")
    assert kbi.BertEncoder.from_pretrained("small_english").config == small_config
