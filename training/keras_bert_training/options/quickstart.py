"""The options of `keras-bert quickstart`."""

import dataclasses
import typing

from keras_bert_training.options.recipes import RECIPES


@dataclasses.dataclass
class QuickstartConfig:
    """Tries small_english, then turns raw text into a pre-trained BERT, a fine-tuned classifier and a SavedModel.

    Args:
        output: output directory, with a folder for each corpus.
        corpus: text file, directory or glob; default is the docstrings of the installed Python, NumPy, TensorFlow and
            Keras.
        recipes: directory with prepare_data.yaml, pretrain.yaml and finetune.yaml.
        text_format: format of .txt files: lines, documents, running, paragraphs, or auto (see keras-bert prepare-data
            --help).
        text_field: key of the text in .jsonl.
        language: language of the text, two letters (ISO 639-1).
        minutes: minutes of pre-training; default is the recipe's five; another number has a folder of its own.
    """

    output: str = "runs/quickstart"
    corpus: str | None = None
    recipes: str = str(RECIPES / "quickstart")
    text_format: typing.Literal["auto", "lines", "documents", "running", "paragraphs"] = "auto"
    text_field: str = "text"
    language: str = "en"
    minutes: float | None = None
