"""The options of `keras-bert evaluate`."""

import dataclasses
import typing


@dataclasses.dataclass
class EvaluateConfig:
    """Scores a file of predictions as the official scripts do.

    Args:
        task: squad.
        dataset: a SQuAD file with answers.
        predictions: JSON file that maps question ids to answer texts.
        null_odds: JSON file that maps question ids to numbers that are higher if no answer is more probable; with it,
            the best thresholds on these numbers are also reported.
        null_threshold: questions with higher null odds count as unanswered; 1.0 in the official script.
    """

    task: typing.Literal["squad"]
    dataset: str
    predictions: str
    null_odds: str | None = None
    null_threshold: float = 1.0
