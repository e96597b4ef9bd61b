"""The options of `keras-bert compare-exports`."""

import dataclasses


@dataclasses.dataclass
class CompareConfig:
    """Prints size, speed and score of exports of one checkpoint, beside those of the first.

    Args:
        exports: directories of exports; the first is the one to compare with, usually in float32.
        task: name of a fine-tuning task, to score the exports on its dev set; not for SavedModels. For exports of
            vectors it can be sts-b, scored by the cosines of pairs.
        data: directory of the task's files.
        texts: file with a text on each line to measure speed with; default is the dev set, or three short sentences.
        threads: threads of each runtime; default is one for each core.
        rounds: how often each export is measured; medians count.
        seconds: how long each batch size is measured in a round.
    """

    exports: list[str]
    task: str | None = None
    data: str | None = None
    texts: str | None = None
    threads: int | None = None
    rounds: int = 3
    seconds: float = 5.0
