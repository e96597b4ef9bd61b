"""The options of `keras-bert ask`."""

import dataclasses


@dataclasses.dataclass
class AskConfig:
    """Runs a model on one text after the other: typed ones until Ctrl-D, or piped ones, a line each.

    Args:
        model: checkpoint directory, or the run directory of a fine-tuning; default is small_english, the model in the
            package, which fills in masks.
        text: text to run the model on; two texts, such as a text and an ending, are separated by a tab. Without it,
            texts are read from standard input, where an empty line gets no answer.
        context: for questions, the text that holds the answers.
        context_file: for questions, a file with this text.
        top_k: number of classes, answers, or words for each mask, the most probable first; if a text can have several
            classes, all are given.
    """

    model: str | None = None
    text: str | None = None
    context: str | None = None
    context_file: str | None = None
    top_k: int = 3
