"""The options of `keras-bert predict`."""

import dataclasses
import typing


@dataclasses.dataclass
class PredictConfig:
    """Runs a trained checkpoint on a file of new texts.

    Args:
        model: checkpoint directory, or the run directory of a fine-tuning.
        input: file with texts, or - for standard input.
        output: file to write, .jsonl or .csv; - is JSON Lines on standard output.
        task: task to run; auto is the one that the checkpoint was trained for.
        format: format of the input; auto chooses by the file's extension, and text for standard input. text has a text
            in each line; csv, tsv and jsonl have named columns; conll has a word in each line; squad is SQuAD's JSON.
        text_column: column of the text.
        pair_column: column of a second text, if there is one.
        question_column: column of the question, for question answering.
        context_column: column of the context, for question answering.
        endings_column: column of the choices, a list in JSON, for multiple choice.
        words_column: column of the words, a list in JSON, to label words; without it, entities are found in the text.
        top_k: number of classes, answers, or words for each mask, the most probable first; if a text can have several
            classes, all are given.
        bad_rows: what to do with malformed lines: stop at the first, or skip and count them.
        batch_size: number of texts in a batch.
    """

    model: str
    input: str = "-"
    output: str = "-"
    task: typing.Literal[
        "auto", "classify", "regress", "label_words", "answer", "choose", "next_sentence", "fill_mask", "embed"
    ] = "auto"
    format: typing.Literal["auto", "text", "csv", "tsv", "jsonl", "conll", "squad"] = "auto"
    text_column: str = "text"
    pair_column: str = "text_pair"
    question_column: str = "question"
    context_column: str = "context"
    endings_column: str = "endings"
    words_column: str = "words"
    top_k: int = 1
    bad_rows: typing.Literal["stop", "skip"] = "stop"
    batch_size: int = 32
