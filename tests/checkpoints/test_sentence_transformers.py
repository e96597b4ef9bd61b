"""Directories of sentence-transformers: each part of modules.json is read, or refused by name, and written back."""

import json
import warnings

import keras
import numpy as np
import pytest
from conftest import without

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints import huggingface, open_checkpoint
from keras_bert_impl.checkpoints.sentence_transformers import FLAGS


@pytest.fixture
def directory(small_config, small_tokenizer, tmp_path):
    """A checkpoint as transformers writes it, without information on pooling."""
    huggingface.save(kbi.BertEncoder(small_config), tmp_path / "model", small_tokenizer)
    return tmp_path / "model"


def describe(directory, pooling, *more, prefix="sentence_transformers.models", **files):
    """Writes modules.json with Transformer, Pooling and `more` modules, and the other files by their names."""
    kinds = [f"{prefix}.{kind}" for kind in ("Transformer", "Pooling")]
    kinds += [kind if "." in kind else f"{prefix}.{kind}" for kind in more]
    paths = ["", *(f"{place}_{kind.rsplit('.', 1)[-1]}" for place, kind in enumerate(kinds[1:], start=1))]
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": kind}
        for place, (path, kind) in enumerate(zip(paths, kinds, strict=True))
    ]
    (directory / "modules.json").write_text(json.dumps(modules))
    (directory / "1_Pooling").mkdir(exist_ok=True)
    (directory / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    for name, content in files.items():
        (directory / f"{name}.json").write_text(json.dumps(content))
    return directory


def flags(*modes):
    """A Pooling configuration as versions before 6 write it."""
    return {"word_embedding_dimension": 15, **{flag: mode in modes for flag, mode in FLAGS.items()}}


def test_every_way_of_pooling_is_the_formula_and_forgets_padding(small_config, small_batch):
    rows = without(small_batch, "mask_positions")
    encoder = kbi.BertEncoder(small_config)
    tokens = encoder.predict_on_batch(rows)["sequence_output"]
    # As sentence-transformers defines them, in the order of FLAGS; the second row has five tokens, two of padding.
    expected = [
        [
            *vectors[0],
            *vectors.max(axis=0),
            *vectors.mean(axis=0),
            *vectors.sum(axis=0) / np.sqrt(len(vectors)),
            *np.average(vectors, axis=0, weights=np.arange(1, len(vectors) + 1)),
            *vectors[-1],
        ]
        for vectors in (tokens[0], tokens[1, :5])
    ]
    found = kbi.TextEmbedder(encoder, pooling=list(FLAGS.values())).predict_on_batch(rows)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    last = kbi.TextEmbedder(encoder, pooling="lasttoken").predict_on_batch(rows)
    np.testing.assert_allclose(last, [tokens[0, -1], tokens[1, 4]], atol=1e-5)


@pytest.mark.parametrize(
    "pooling, expected",
    [
        (flags("mean", "max"), ("max", "mean")),  # joined in the library's order
        (flags("mean_sqrt_len_tokens"), "mean_sqrt_len_tokens"),
        (flags(), "mean"),  # as the library takes it
        ({"embedding_dimension": 15, "pooling_mode": ["mean", "cls"]}, ("mean", "cls")),
        ({**flags("cls"), "pooling_mode": "max"}, "max"),
    ],
)
def test_pooling_is_read_from_flags_and_from_names(pooling, expected, directory):
    settings = open_checkpoint(describe(directory, pooling)).read_pooling()
    assert settings == {"pooling": expected, "normalize": False}


@pytest.mark.parametrize("prefix", ["sentence_transformers.models", "sentence_transformers.base.modules.normalize"])
def test_normalize_is_read_under_every_name_of_the_library(prefix, directory):
    assert open_checkpoint(describe(directory, flags("mean"), "Normalize", prefix=prefix)).read_pooling()["normalize"]


@pytest.mark.parametrize("name", ["sentence_bert_config", "sentence_roberta_config"])  # the latter of older versions
def test_texts_are_cut_at_max_seq_length(name, directory):
    library = pytest.importorskip("sentence_transformers")
    describe(directory, flags("mean"), **{name: {"max_seq_length": 5, "do_lower_case": False}})
    model, texts = kbi.TextEmbedder.from_pretrained(directory), ["the cat sat on a mat", "the cat sat"]
    theirs = library.SentenceTransformer(str(directory), device="cpu")
    assert theirs.max_seq_length == model.sequence_length == 5
    np.testing.assert_allclose(model.predict(texts, verbose=0), theirs.encode(texts), atol=1e-5)
    assert kbi.TextClassifier.from_pretrained(directory, num_classes=2).sequence_length == 11
    kbi.TextEmbedder.from_pretrained(directory, sequence_length=7).save_pretrained(directory)
    assert kbi.TextEmbedder.from_pretrained(directory).sequence_length == 7
    assert not (directory / "sentence_roberta_config.json").exists()


PROMPTS = {"query": "a dog : ", "document": "the cat : ", "other": ""}


def embedder_of(directory, **arguments):
    """An embedder with weights so large that texts differ in their vectors."""
    model = kbi.TextEmbedder.from_pretrained(directory, **arguments)
    random = np.random.default_rng(4)
    for weight in model.weights:
        weight.assign(random.normal(size=weight.shape, scale=0.4))
    return model


def test_prompts_are_put_before_texts_as_by_sentence_transformers(directory, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    describe(directory, flags("mean"), "Normalize")
    model = embedder_of(directory, prompts=PROMPTS, sequence_length=9, pooling="mean", normalize=True)
    model.save_pretrained(tmp_path / "saved")
    again = kbi.TextEmbedder.from_pretrained(tmp_path / "saved")
    assert again.prompts == PROMPTS and kbi.TextEmbedder.from_config(again.get_config()).prompts == PROMPTS
    theirs = library.SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    query, corpus = "the cat sat", ["a mat", "the dog ran in the rain and sat on a red mat", ""]
    for prompt, expected in (
        ("query", theirs.encode_query(corpus)),
        ("document", theirs.encode_document(corpus)),
        ("other", theirs.encode(corpus, prompt_name="other")),
        (None, theirs.encode(corpus)),
    ):
        np.testing.assert_allclose(again.embed(corpus, prompt=prompt), expected, atol=1e-6)
    assert np.abs(again.embed(corpus, prompt="query") - again.embed(corpus)).max() > 0.01
    np.testing.assert_allclose(again.embed(corpus[0], prompt="query"), theirs.encode_query(corpus[0]), atol=1e-6)
    scores = theirs.encode_document(corpus) @ theirs.encode_query(query)
    found = again.search(query, corpus)
    assert [match.number for match in found] == np.argsort(-scores, kind="stable").tolist()
    np.testing.assert_allclose([match.score for match in found], np.sort(scores)[::-1], atol=1e-6)
    vectors = again.embed(corpus, prompt="document")
    assert [match.number for match in again.search(query, vectors)] == [match.number for match in found]


def test_vectors_are_compared_as_the_checkpoint_says(directory, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    describe(directory, flags("mean"), **{MODEL: {"similarity_fn_name": "dot"}})
    model = embedder_of(directory)
    model.save_pretrained(tmp_path / "saved")
    again = kbi.TextEmbedder.from_pretrained(tmp_path / "saved")
    theirs = library.SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    assert theirs.similarity_fn_name == again.similarity_function == "dot"
    texts = ["the cat sat", "a mat", "the dog ran in the rain and sat on a red mat"]
    expected = theirs.similarity(*[theirs.encode(texts)] * 2).numpy()
    np.testing.assert_allclose(again.similarity(texts, texts), expected, atol=1e-5)
    found = again.search(texts[0], texts)
    np.testing.assert_allclose([match.score for match in found], np.sort(expected[0])[::-1], atol=1e-5)
    again.similarity_function = "cosine"
    assert np.abs(again.similarity(texts, texts) - expected).max() > 0.01
    assert kbi.TextEmbedder.from_config(model.get_config()).similarity_function == "dot"


@pytest.mark.parametrize(("pooling", "normalize"), [("mean", False), (("mean", "cls"), True), ("last_four", True)])
def test_vectors_are_cut_as_by_sentence_transformers_and_stay_cut(
    pooling, normalize, small_config, small_tokenizer, tmp_path
):
    config = kbi.BertConfig(53, hidden_size=15, num_layers=4, num_heads=3, intermediate_size=7, max_length=11)
    whole = kbi.TextEmbedder(kbi.BertEncoder(config), small_tokenizer, 9, pooling, normalize)
    whole.save_pretrained(tmp_path / "whole")
    texts = ["the cat sat", "a mat", "the dog ran in the rain and sat on a red mat"]
    cut = kbi.TextEmbedder.from_pretrained(tmp_path / "whole", truncate_dim=np.int64(6))
    found = cut.embed(texts)
    if pooling != "last_four":
        library = pytest.importorskip("sentence_transformers")
        theirs = library.SentenceTransformer(str(tmp_path / "whole"), device="cpu", truncate_dim=6)
        expected = theirs.encode(texts, normalize_embeddings=normalize)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(cut.similarity(texts, texts), cosines(whole.embed(texts)[:, :6]), atol=1e-5)
    cut.save_pretrained(tmp_path / "cut")
    if pooling != "last_four":
        assert 'SentenceTransformer(".", truncate_dim=6)' in (tmp_path / "cut" / "README.md").read_text()
    again = kbi.TextEmbedder.from_pretrained(tmp_path / "cut")
    assert again.truncate_dim == 6 and again.output_shape == (None, 6)
    np.testing.assert_allclose(again.embed(texts), found, atol=1e-6)
    again = kbi.TextEmbedder.from_pretrained(tmp_path / "cut", truncate_dim=None)
    np.testing.assert_allclose(again.embed(texts), whole.embed(texts), atol=1e-6)
    with pytest.raises(ValueError, match="truncate_dim is 200"):
        kbi.TextEmbedder.from_pretrained(tmp_path / "whole", truncate_dim=200)


def cosines(vectors):
    vectors = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors @ vectors.T


def test_old_prompts_do_not_stay(directory):
    model = kbi.TextEmbedder.from_pretrained(describe(directory, flags("mean"), **{MODEL: {"prompts": PROMPTS}}))
    assert model.prompts == PROMPTS
    kbi.TextEmbedder(model.encoder, model.tokenizer).save_pretrained(directory)
    assert kbi.TextEmbedder.from_pretrained(directory).prompts is None


MODEL, TRANSFORMER, NORMALIZE = "config_sentence_transformers", "sentence_bert_config", "2_Normalize/config"


@pytest.mark.parametrize(
    "pooling, more, files, message",
    [
        (flags("mean"), ["Dense"], {}, "2_Dense.model.safetensors: the file is missing"),
        (flags("mean"), ["CNN"], {}, "the modules are .*CNN"),
        (flags("mean"), ["modeling_mine.Normalize"], {}, "the modules are .*modeling_mine"),
        ({"pooling_mode": "median"}, [], {}, "pooling_mode is 'median'"),
        ({**flags("mean"), "pooling_mode_median": True}, [], {}, "pooling_mode_median"),
        ({**flags("mean"), "include_prompt": False}, [], {}, "include_prompt"),
        (flags("mean"), [], {TRANSFORMER: {"transformer_task": "fill-mask"}}, "transformer_task"),
        (flags("mean"), [], {MODEL: {"default_prompt_name": "query"}}, "default_prompt_name"),
        (flags("mean"), [], {MODEL: {"truncate_dim": 7}}, "truncate_dim is 7"),
        (flags("mean"), [], {MODEL: {"similarity_fn_name": "euclidean"}}, "euclidean"),
    ],
)
def test_what_an_embedder_does_not_compute_is_refused_by_name(pooling, more, files, message, directory):
    describe(directory, pooling, *more, **files)
    with pytest.raises(ValueError, match=message):
        open_checkpoint(directory).read_pooling()


def test_what_is_refused_for_an_embedder_opens_for_who_needs_the_encoder_alone(directory):
    describe(directory, flags("mean"), "Dense")
    kbi.BertEncoder.from_pretrained(directory)
    kbi.TextEmbedder.from_pretrained(directory, pooling="max", normalize=False, sequence_length=7)


def test_lower_casing_for_a_cased_vocabulary_is_refused(small_config, directory):
    describe(directory, flags("mean"), sentence_bert_config={"max_seq_length": 5, "do_lower_case": True})
    open_checkpoint(directory).read_pooling()  # the vocabulary is lower-cased anyway
    path = directory / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "do_lower_case": False}))
    with pytest.raises(ValueError, match="cased vocabulary"):
        open_checkpoint(directory).read_pooling()


def modules_elsewhere(directory):
    modules = json.loads((directory / "modules.json").read_text())
    modules[1]["path"] = "../elsewhere"
    return json.dumps(modules)


@pytest.mark.parametrize("content", ["[1]", '[{"type": "x"}]', "[" * 10**5, modules_elsewhere])
def test_a_list_of_modules_that_is_damaged_or_leads_out_of_its_directory_is_named(content, directory):
    describe(directory, flags("mean"))
    (directory / "modules.json").write_text(content if isinstance(content, str) else content(directory))
    with pytest.raises(ValueError, match=r"modules\.json"):
        open_checkpoint(directory).read_pooling()


@pytest.mark.parametrize("pooling, normalize", [(("mean", "cls"), False), ("last_four", True)])
def test_a_saved_embedder_comes_back_and_leaves_nothing_of_the_one_before(
    pooling, normalize, small_tokenizer, tmp_path
):
    config = kbi.BertConfig(53, hidden_size=15, num_layers=4, num_heads=3, intermediate_size=7, max_length=11)
    encoder = kbi.BertEncoder(config)
    arguments = {"tokenizer": small_tokenizer, "sequence_length": 7}
    for before in ("weightedmean", "last_four"):
        kbi.TextEmbedder(encoder, pooling=before, normalize=not normalize, **arguments).save_pretrained(tmp_path)
    model = kbi.TextEmbedder(encoder, pooling=pooling, normalize=normalize, **arguments)
    model.save_pretrained(tmp_path)
    assert (tmp_path / "modules.json").is_file() == (pooling != "last_four")
    again = kbi.TextEmbedder.from_pretrained(tmp_path)
    assert (again.pooling, again.normalize, again.sequence_length) == (pooling, normalize, 7)
    texts = ["the cat sat on a mat in rain", "dog"]
    np.testing.assert_allclose(again.predict(texts, verbose=0), model.predict(texts, verbose=0), atol=1e-6)


OTHER_KINDS = {"Reranker": kbi.Reranker, "encoder": lambda encoder, tokenizer: encoder}


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_another_model_in_the_place_of_an_embedder_leaves_none_of_its_files(
    kind, small_config, small_tokenizer, tmp_path
):
    """sentence-transformers opens a directory by modules.json, whatever else is there."""
    encoder = kbi.BertEncoder(small_config)
    kbi.TextEmbedder(encoder, small_tokenizer, normalize=True, prompts={"query": "a"}).save_pretrained(tmp_path)
    for name in ("2_Dense/model.safetensors", "2_Dense/config.json", "1_notes/config.json", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    model = OTHER_KINDS[kind](encoder, small_tokenizer)
    with pytest.warns(UserWarning, match="removed: .*1_Pooling"):
        huggingface.save(model, tmp_path, small_tokenizer)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    of_model = {"README.md", "config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"}
    assert left == of_model | {"1_notes/config.json", "notes.txt"}
    assert not list(tmp_path.glob("[0-9]_[A-Z]*")), "nor empty folders"
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        huggingface.save(model, tmp_path, small_tokenizer)  # a second time there is nothing to say


def test_a_regressor_in_the_place_of_a_cross_encoder_is_not_opened_as_one(small_config, small_tokenizer, tmp_path):
    encoder = kbi.BertEncoder(small_config)
    kbi.Reranker(encoder, small_tokenizer).save_pretrained(tmp_path)
    settings = {"activation_fn": "torch.nn.modules.linear.Identity", "model_type": "CrossEncoder"}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(settings))
    with pytest.warns(UserWarning, match=r"is not one\. Its files were removed: config_sentence_transformers.json"):
        kbi.TextRegressor(encoder, small_tokenizer).save_pretrained(tmp_path)
    assert not open_checkpoint(tmp_path).read_ranking()
    assert "text-ranking" not in (tmp_path / "README.md").read_text()


def test_what_is_written_has_the_keys_of_the_library(small_config, tmp_path):
    kbi.TextEmbedder(kbi.BertEncoder(small_config), pooling="max", normalize=True).save_pretrained(tmp_path)
    modules = json.loads((tmp_path / "modules.json").read_text())
    assert [(module["path"], module["type"]) for module in modules] == [
        ("", "sentence_transformers.models.Transformer"),
        ("1_Pooling", "sentence_transformers.models.Pooling"),
        ("2_Normalize", "sentence_transformers.models.Normalize"),
    ]
    assert json.loads((tmp_path / "1_Pooling" / "config.json").read_text()) == flags("max")
    assert json.loads((tmp_path / "sentence_bert_config.json").read_text())["max_seq_length"] == 11
    assert not open_checkpoint(tmp_path).head_arguments


def test_dense_layers_behind_the_pooling_are_those_of_sentence_transformers(small_config, small_tokenizer, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    layers = [{"units": 9}, {"units": 7, "activation": "linear", "use_bias": False}]
    encoder = kbi.BertEncoder(small_config)
    model = kbi.TextEmbedder(encoder, small_tokenizer, 11, normalize=True, dense=layers)
    for weight in model.get_layer("dense_1").weights:
        weight.assign(np.random.default_rng(0).normal(size=weight.shape))
    model.save_pretrained(tmp_path / "ours")
    texts = ["the cat sat on a mat", "red rain", "a dog"]
    theirs = library.SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    assert [type(module).__name__ for module in theirs][1:] == ["Pooling", "Dense", "Dense", "Normalize"]
    expected = theirs.encode(texts)
    theirs.save(str(tmp_path / "theirs"))
    for place in ("ours", "theirs"):
        again = kbi.TextEmbedder.from_pretrained(tmp_path / place)
        assert [layer["units"] for layer in again.dense] == [9, 7]
        np.testing.assert_allclose(again.embed(texts), expected, atol=1e-6)
    model.save(tmp_path / "model.keras")
    np.testing.assert_allclose(keras.saving.load_model(tmp_path / "model.keras").embed(texts), expected, atol=1e-6)
    narrow = kbi.TextEmbedder.from_pretrained(tmp_path / "ours", truncate_dim=3).embed(texts)
    shorter = library.SentenceTransformer(str(tmp_path / "ours"), device="cpu", truncate_dim=3).encode(texts)
    shorter /= np.linalg.norm(shorter, axis=1, keepdims=True)
    np.testing.assert_allclose(narrow, shorter, atol=1e-6)
    with pytest.raises(ValueError, match="truncate_dim is 8, but vectors have 7 numbers"):
        kbi.TextEmbedder.from_pretrained(tmp_path / "ours", truncate_dim=8)
    whole = kbi.TextEmbedder.from_pretrained(tmp_path / "ours", pooling="mean", normalize=False, sequence_length=9)
    assert whole.dense is None and whole.output_shape == (None, 15)
    whole.save_pretrained(tmp_path / "ours")  # nothing is left of the dense layers
    assert kbi.TextEmbedder.from_pretrained(tmp_path / "ours").dense is None


def test_a_dense_layer_with_another_activation_is_refused(directory):
    describe(directory, flags("mean"), "Dense")
    (directory / "2_Dense").mkdir()
    settings = {"in_features": 15, "out_features": 4, "bias": True, "activation_function": "torch.nn.Softplus"}
    (directory / "2_Dense" / "config.json").write_text(json.dumps(settings))
    (directory / "2_Dense" / "model.safetensors").write_bytes((directory / "model.safetensors").read_bytes())
    with pytest.raises(ValueError, match=r"activation_function is 'torch\.nn\.Softplus', which TextEmbedder does not"):
        kbi.TextEmbedder.from_pretrained(directory)


def test_an_activation_that_sentence_transformers_does_not_have_is_refused(small_config, tmp_path):
    model = kbi.TextEmbedder(kbi.BertEncoder(small_config), dense=[{"units": 3, "activation": "mish"}])
    with pytest.raises(ValueError, match="activation 'mish'"):
        model.save_pretrained(tmp_path / "model")
    assert not (tmp_path / "model" / "config.json").exists()
