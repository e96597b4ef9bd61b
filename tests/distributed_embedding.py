"""Trains a small TextEmbedder on anchors and positives; it is a program, since devices are set up only once.

    KERAS_BACKEND=jax python tests/distributed_embedding.py '[{"distribution": "data_parallel"}, {}]' out.json

Writes for each training the losses of each epoch for each kind of loss, the figures of an evaluation, and how many
replicas there were.
"""

import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras

from keras_bert_impl import BertConfig, BertEncoder, TextEmbedder, WordPieceTokenizer, distribution
from keras_bert_impl.embedding_losses import CoSENTLoss, MultipleNegativesRankingLoss
from keras_bert_impl.embedding_metrics import RankingAccuracy, SpearmanCorrelation
from keras_bert_impl.optimization import BertAdamW

WORDS = ["cat", "dog", "mat", "rain", "red", "blue", "good", "bad"]
ANCHORS = [f"{first} {second}" for first in WORDS for second in WORDS][:24]
POSITIVES = [f"{text.split()[1]} {text.split()[0]} cat" for text in ANCHORS]
SIMILARITIES = [number % 7 / 7 for number in range(24)]


def train(loss, metric, labels):
    keras.utils.set_random_seed(1)
    config = BertConfig(
        13, hidden_size=16, num_layers=1, num_heads=4, intermediate_size=32, max_length=8,
        hidden_dropout_rate=0.0, attention_dropout_rate=0.0, initializer_range=0.5,
    )  # fmt: skip
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])
    model = TextEmbedder(BertEncoder(config), tokenizer)
    model.compile(optimizer=BertAdamW(1e-2), loss=loss, metrics=[metric], jit_compile=keras.backend.backend() == "jax")
    history = model.fit((ANCHORS, POSITIVES), labels, batch_size=8, epochs=3, verbose=0).history
    found = model.evaluate((ANCHORS, POSITIVES), labels, batch_size=8, verbose=0, return_dict=True)
    return {"losses": history["loss"], "kernel": distribution.to_numpy(model.weights[8]).tolist(), **found}


def found_with(options):
    with distribution.distributed(distribution.Distribution(**options)):
        return {
            "ranking": train(MultipleNegativesRankingLoss(), RankingAccuracy(), None),
            "cosent": train(CoSENTLoss(), SpearmanCorrelation(), SIMILARITIES),
            "replicas": distribution.num_replicas(),
        }


def main():
    pathlib.Path(sys.argv[2]).write_text(json.dumps([found_with(options) for options in json.loads(sys.argv[1])]))


if __name__ == "__main__":
    main()
