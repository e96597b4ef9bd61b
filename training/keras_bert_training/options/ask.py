"""The options of `keras-bert ask`."""

import dataclasses


@dataclasses.dataclass
class AskConfig:
    """Answers one question after the other: typed ones until Ctrl-D, piped ones in a line each.

    Args:
        model: checkpoint directory, or the run directory of a fine-tuning; default is small_english, the model in the
            package, which fills in masks.
        text: what is asked; two texts, such as a text and an ending, are separated by a tab. Without it, texts are read
            from standard input, where an empty line asks nothing.
        context: for questions, the text in which their answers are.
        context_file: for questions, a file with this text.
        top_k: number of classes, answers, or words for each mask, the likeliest first; of classes of which a text may
            have several, all are given.
    """

    model: str | None = None
    text: str | None = None
    context: str | None = None
    context_file: str | None = None
    top_k: int = 3
