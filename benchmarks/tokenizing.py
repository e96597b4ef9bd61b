"""Text to WordPiece ids in a tf.data graph: ours, KerasHub's, and tensorflow_text's own tokenizers.

    python benchmarks/tokenizing.py --output DIR

The default corpus, batches of 256 sentences, as many parallel calls as there are cores, MiniLM's uncased vocabulary.
Ours gives Google's ids. FastBertTokenizer by itself differs from them on some characters, KerasHub's tokenizer on
accents and invisible characters.
"""

import time

from in_turn import OURS, Case, Setting, Target, main
from sentence_vectors import checkpoint

BATCH, REPEATS = 256, 5


def sentences():
    from keras_bert_impl.text.corpora import PythonDocsCorpus

    return [sentence for document in PythonDocsCorpus() for sentence in document.sentences]


def our_tokenizer():
    from keras_bert_impl import WordPieceTokenizer
    from keras_bert_impl.preprocessing.graphs.wordpiece import WordPiece

    return WordPiece(WordPieceTokenizer.from_pretrained(checkpoint()))


def keras_hub_tokenizer():
    import keras_hub

    return keras_hub.models.BertTokenizer(f"{checkpoint()}/vocab.txt", lowercase=True)


def bert_tokenizer():
    import tensorflow_text

    tokenizer = tensorflow_text.BertTokenizer(f"{checkpoint()}/vocab.txt", lower_case=True)
    return lambda texts: tokenizer.tokenize(texts).merge_dims(1, 2)


def fast_tokenizer():
    import tensorflow_text

    with open(f"{checkpoint()}/vocab.txt", encoding="utf-8") as file:
        words = file.read().split("\n")[:-1]
    return tensorflow_text.FastBertTokenizer(words, lower_case_nfd_strip_accents=True).tokenize


TOKENIZERS = {
    OURS: our_tokenizer,
    "KerasHub": keras_hub_tokenizer,
    "tensorflow_text BertTokenizer": bert_tokenizer,
    "tensorflow_text FastBertTokenizer": fast_tokenizer,
}


def measure(setting):
    """Megabytes of text per second, from the fastest of some passes."""
    import tensorflow as tf

    texts = sentences()
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    rows = tf.data.Dataset.from_tensor_slices(texts).batch(BATCH)
    rows = rows.cache()  # so that the time to make batches is not measured
    for _ in rows:
        pass
    ids = rows.map(TOKENIZERS[setting.side](), num_parallel_calls=tf.data.AUTOTUNE)
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in ids:
            pass
        seconds.append(time.perf_counter() - start)
    return megabytes / min(seconds)


def case():
    settings = [Setting(side, precision="") for side in TOKENIZERS]
    targets = [Target("KerasHub", 3.0), Target("tensorflow_text FastBertTokenizer", 0.8)]
    return Case("Text to WordPiece ids in tf.data", "MB", settings, targets, measure)


if __name__ == "__main__":
    main(case(), __file__)
