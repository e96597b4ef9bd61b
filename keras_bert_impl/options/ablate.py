"""The options of `keras-bert ablate`."""

import dataclasses
import typing


@dataclasses.dataclass
class AblateConfig:
    """Repeats an ablation study of the paper, and writes its table beside the paper's.

    Args:
        output: output directory.
        study: pretraining_tasks, model_size, small_sizes, steps, masking, directions, families, or the path of a YAML
            file.
        recipe: what all rows have in common: usual, short, or the path of a YAML file.
        short: the same as --recipe short: few steps of a very small model.
        data: directory that keras-bert prepare-data wrote, with pairs; default is to prepare the corpus in the output.
        input: text file, directory or glob to prepare; default is the docstrings of the installed Python, NumPy,
            TensorFlow and Keras.
        tasks: task of keras-bert finetune and its directory, such as sst-2=glue/SST-2; may be given several times.
            Default are three tasks made from the corpus: source of a sentence, whether a sentence follows another, and
            which words are names.
        steps: pre-training steps of each row; default is the recipe's.
        minutes: pre-training minutes of each row, instead of steps.
        seeds: fine-tuning runs for each row and task, with seeds 0, 1, ...
        pretraining_seeds: pre-training runs for each row, from which the fine-tuning runs start in turn. With 1,
            deviations are those of fine-tuning alone; with as many as seeds, of both.
        seed: random seed of the made tasks and of the first pre-training run; the next has seed + 1.
    """

    REMOTE: typing.ClassVar = {}

    output: str
    study: str
    recipe: str = "usual"
    short: bool = False
    data: str | None = None
    input: str | None = None
    tasks: list[str] = dataclasses.field(default_factory=list)
    steps: int | None = None
    minutes: float | None = None
    seeds: int = 3
    pretraining_seeds: int = 1
    seed: int = 0
