"""A classifier from eight examples of each class: pairs for an embedder first, as SetFit (Tunstall et al. 2022), beside
fine-tuning and beside the embedder as it is.

    KERAS_BACKEND=torch python benchmarks/few_shot.py --model small_english --glue glue --seeds 5

Prints mean and standard deviation of the accuracy on at most 800 held-out rows over the seeds, which draw the examples:
SST-2, MRPC (the two sentences as one text), and from which of four Python packages a sentence of documentation is.
"""

import argparse
import csv
import itertools
import pathlib

import keras
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import keras_bert_impl as kbi
from keras_bert_impl.embedding_losses import CosineSimilarityLoss
from keras_bert_impl.optimization import BertAdamW
from keras_bert_impl.text.corpora import PythonDocsCorpus

COUNT, MOST, LENGTH = 8, 800, 64
RATE, EPOCHS = 1e-4, 3  # of the training on pairs


def glue(folder, name, columns, label):
    tables = [
        pd.read_csv(f"{folder}/{name}/{split}.tsv", sep="\t", quoting=csv.QUOTE_NONE) for split in ("train", "dev")
    ]
    return [([" ".join(row) for row in table[columns].values], table[label].tolist()) for table in tables]


def packages():
    documents = list(PythonDocsCorpus())
    rows = [
        (sentence, document.source) for document in documents for sentence in document.sentences if len(sentence) > 40
    ]
    rows = [rows[place] for place in np.random.default_rng(0).permutation(len(rows))[:4000]]
    texts, labels = map(list, zip(*rows, strict=True))
    return [(texts[:3000], labels[:3000]), (texts[3000:], labels[3000:])]


def trained_pairs(model, texts, labels):
    embedder = kbi.TextEmbedder.from_pretrained(model, sequence_length=LENGTH)
    pairs = list(itertools.combinations(range(len(texts)), 2))
    first, second = ([texts[pair[place]] for pair in pairs] for place in (0, 1))
    same = [float(labels[one] == labels[other]) for one, other in pairs]
    embedder.compile(optimizer=BertAdamW(RATE), loss=CosineSimilarityLoss())
    embedder.fit((first, second), same, batch_size=16, epochs=EPOCHS, verbose=0)
    return of_vectors(embedder, texts, labels)


def as_it_is(model, texts, labels):
    return of_vectors(kbi.TextEmbedder.from_pretrained(model, sequence_length=LENGTH), texts, labels)


def of_vectors(embedder, texts, labels):
    head = LogisticRegression(max_iter=1000).fit(embedder.embed(texts), labels)
    return lambda others: head.predict(embedder.embed(others))


def fine_tuned(model, texts, labels):
    names = sorted(map(str, set(labels)))
    classifier = kbi.TextClassifier.from_pretrained(model, class_names=names, sequence_length=LENGTH)
    numbers = [names.index(str(label)) for label in labels]
    classifier.compile(optimizer=BertAdamW(5e-5), loss="sparse_categorical_crossentropy")
    classifier.fit(texts, numbers, batch_size=8, epochs=20, verbose=0)
    kinds = np.array(sorted(set(labels), key=str))
    return lambda others: kinds[np.argmax(classifier.predict(others, verbose=0), axis=-1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="small_english")
    parser.add_argument("--glue", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    tasks = {
        "SST-2": glue(options.glue, "SST-2", ["sentence"], "label"),
        "MRPC": glue(options.glue, "MRPC", ["#1 String", "#2 String"], "Quality"),
        "packages": packages(),
    }
    methods = {"vectors as they are": as_it_is, "after training on pairs": trained_pairs, "fine-tuned": fine_tuned}
    for task, ((texts, labels), (others, truth)) in tasks.items():
        for name, method in methods.items():
            found = []
            for seed in range(options.seeds):
                keras.utils.set_random_seed(seed)
                order = np.random.default_rng(seed).permutation(len(texts))
                chosen = [
                    place for kind in sorted(set(labels)) for place in [p for p in order if labels[p] == kind][:COUNT]
                ]
                predict = method(options.model, [texts[place] for place in chosen], [labels[place] for place in chosen])
                found.append(np.mean(predict(others[:MOST]) == np.array(truth[:MOST])))
            print(
                f"{pathlib.Path(options.model).name}, {task}, {name}: {np.mean(found):.1%} ± {np.std(found):.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
