"""The options of `keras-bert plan-tpu`."""

import dataclasses


@dataclasses.dataclass
class PlanConfig:
    """Asks the TPU compiler what a recipe needs on TPUs, on a machine without a TPU.

    Args:
        topology: TPU generation and shape of a slice, such as v5e:4x4; several are separated by commas.
        recipe: folder or file of the package's recipes, such as bert_large.
        global_batch: number of examples in a batch, over all chips; default is the recipe's.
        vocabulary_size: number of words in the vocabulary.
        model_devices: number of chips that share one copy of the model, as with --distribution model_parallel.
        shard_optimizer: as in keras-bert pretrain.
        gradient_checkpointing: as in keras-bert pretrain.
        search: instead, find the largest number of examples that fits on a chip, with and without gradient
            checkpointing.
        output: JSON file to write the results to.
    """

    topology: str = "v5e:4x4"
    recipe: str = "bert_base"
    global_batch: int | None = None
    vocabulary_size: int = 30522
    model_devices: int = 1
    shard_optimizer: bool = False
    gradient_checkpointing: bool = False
    search: bool = False
    output: str | None = None
