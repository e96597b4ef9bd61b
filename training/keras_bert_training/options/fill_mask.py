"""The options of `keras-bert fill-mask`."""

import dataclasses


@dataclasses.dataclass
class FillMaskConfig:
    """Fills in masks with a pre-trained model.

    Args:
        model: checkpoint directory or a published name; default is small_english, the model in the package.
        text: a sentence with [MASK] for each word to guess; or several, as a YAML list. Without it, sentences are read
            from standard input: typed ones until Ctrl-D, or piped ones with one line of answers for each; an empty line
            gets no answer.
        top_k: number of guesses for each mask, or for all together.
        together: guess the words of all masks of a text together.
    """

    model: str | None = None
    text: str | list[str] | None = None
    top_k: int = 5
    together: bool = False
