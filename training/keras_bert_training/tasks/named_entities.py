"""A label for every word, in CoNLL-style files: named entities (Devlin et al. 2019, section 5.3), parts of speech."""

import dataclasses
import pathlib
import typing

import numpy as np

from keras_bert_impl.batching import Rows
from keras_bert_impl.json_files import written_whole
from keras_bert_impl.losses import WeightedCrossEntropy
from keras_bert_impl.models import FeatureTagger, TokenClassifier
from keras_bert_impl.preprocessing.entities import are_entities
from keras_bert_impl.preprocessing.labelled_words import IGNORED, of_first_pieces, rows_of_pieces, split_words
from keras_bert_training.tasks import Task
from keras_bert_training.tasks.conll import Sentence, label_names, read_conll
from keras_bert_training.tasks.scores import refuse_nan
from keras_bert_training.tasks.tag_scores import entity_scores, word_scores


class LabelledSentences(typing.NamedTuple):
    """Labelled sentences."""

    sentences: list[Sentence]

    @property
    def labels(self):
        """The labels of each sentence."""
        return [sentence.labels for sentence in self.sentences]

    def __len__(self):
        return len(self.sentences)


@dataclasses.dataclass(frozen=True)
class NamedEntities(Task):
    """A task of predicting a label for every word; `keras_bert_training/tasks/__init__.py` explains its parts.

    Labels with prefixes (B-PER, I-PER, O) are scored by entities, labels without (DT, NN) by words.

    Args:
        of Task: see there; each split is a file name.
        document_context: whether rows are filled with neighbouring sentences of the document.
        features: None fine-tunes; a key of `models.feature_tagger.FEATURES` trains a BiLSTM over the frozen encoder.
        units: number of units of that BiLSTM.
        main_metric: a key of `entity_scores`, or of `word_scores`; None means "f1" for entities, "accuracy" for words.
    """

    document_context: bool = False
    features: str | None = None
    units: int = 768  # section 5.3

    def read(self, directory, split, bad_rows):
        """The LabelledSentences of a split. Raises ValueError as `read_conll` does."""
        return LabelledSentences(read_conll(pathlib.Path(directory) / self.splits[split], bad_rows))

    def suited_to(self, train):
        """The task with the main figure for this kind of training labels. Raises ValueError as `are_entities` does."""
        usual = "f1" if are_entities(label_names(train.sentences)) else "accuracy"
        return dataclasses.replace(self, main_metric=self.main_metric or usual)

    def find_class_names(self, train):
        """The labels of the training file, "O" first."""
        return label_names(train.sentences)

    def build(self, encoder, tokenizer, class_names, sequence_length):
        """The model: a classifier over every token, or over a BiLSTM of the frozen encoder's features."""
        if self.features is not None:
            return FeatureTagger(
                encoder, len(class_names), self.features, self.units, tokenizer, sequence_length, class_names
            )
        return TokenClassifier(
            encoder, len(class_names), tokenizer=tokenizer, sequence_length=sequence_length, class_names=class_names
        )

    def loss(self):
        """Cross-entropy, the mean over first pieces: the other positions have weight 0."""
        return WeightedCrossEntropy()

    def featurize(self, tokenizer, examples, class_names, sequence_length):
        """One row for each sentence, labelled at the first piece of each word; a label that does not occur in the
        training set has weight 0.

        Raises: ValueError if a label has a prefix but those of the training file have none, or the other way round.
        """
        are_entities([*class_names, *label_names(examples.sentences)])
        documents = [sentence.document for sentence in examples.sentences] if self.document_context else None
        split = split_words(tokenizer, [sentence.words for sentence in examples.sentences])
        pieces = rows_of_pieces(split, tokenizer.template, sequence_length, documents)
        places = {name: place for place, name in enumerate(class_names)}
        labels = [[places.get(label, IGNORED) for label in labels] for labels in examples.labels]
        labels, _ = of_first_pieces(pieces, list(map(len, labels)), labels)
        classes, weights = np.maximum(labels, 0).astype("int32"), (labels != IGNORED).astype("float32")
        return Rows(pieces.ids, None, classes, weights, per_token=True, source=pieces, num_cut=pieces.num_cut)

    def score(self, examples, rows, outputs, class_names):
        """The figures of entities or of words, together and by label, and the words lost to truncation."""
        predicted = word_labels(examples, rows, outputs, class_names)
        scores = entity_scores if are_entities(class_names) else word_scores
        return {**scores(examples.labels, predicted), "words_lost": rows.source.lost}

    def write_predictions(self, directory, suffix, examples, rows, outputs, class_names):
        """Writes predictions{suffix}.conll: word, label and prediction, separated by tabs, as conlleval reads them."""
        lines = []
        for sentence, predicted in zip(
            examples.sentences, word_labels(examples, rows, outputs, class_names), strict=True
        ):
            lines += ["\t".join(cells) for cells in zip(sentence.words, sentence.labels, predicted, strict=True)] + [""]
        with written_whole(directory / f"predictions{suffix}.conll") as file:
            file.write("\n".join(lines) + "\n")


def word_labels(examples, rows, outputs, class_names):
    """The predicted label of every word, one list for each sentence, from logits (length, classes) of its row; "O" for
    words lost to truncation."""
    refuse_nan(outputs, "The logits of sentence")
    predicted = []
    for sentence, words, logits in zip(examples.sentences, rows.source.words, outputs, strict=True):
        labels = ["O"] * len(sentence.words)
        for position in np.flatnonzero(words != IGNORED):
            labels[words[position]] = class_names[int(logits[position].argmax())]
        predicted.append(labels)
    return predicted


# Table 7: F1 of fine-tuning on dev and test, and of the feature-based approach with BERT-base on dev.
PAPER_CONLL = {
    "BERT-base": {"f1": 96.4, "test f1": 92.4},
    "BERT-large": {"f1": 96.6, "test f1": 92.8},
    "features embeddings": {"f1": 91.0},
    "features second_to_last": {"f1": 95.6},
    "features last": {"f1": 94.9},
    "features weighted_sum_last_four": {"f1": 95.9},
    "features concat_last_four": {"f1": 96.1},
    "features weighted_sum_all": {"f1": 95.5},
}

TASKS = {
    "conll2003": NamedEntities(
        "conll2003",
        {"train": "eng.train", "dev": "eng.testa", "test": "eng.testb"},
        main_metric="f1",
        paper=PAPER_CONLL,
    ),
    "wnut17": NamedEntities(
        "wnut17",
        {"train": "wnut17train.conll", "dev": "emerging.dev.conll", "test": "emerging.test.annotated"},
        main_metric="f1",
    ),
    "ner": NamedEntities("ner", {"train": "train.txt", "dev": "dev.txt", "test": "test.txt"}),
}
