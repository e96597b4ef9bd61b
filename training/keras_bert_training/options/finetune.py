"""The options of `keras-bert finetune`."""

import dataclasses
import typing


@dataclasses.dataclass
class FinetuneConfig:
    """Fine-tunes a pre-trained checkpoint for a task.

    Args:
        data: directory with the task's files, for glue with a folder for each task. For tables of your own,
            question_answering and ner also datasets:owner/name/config for a dataset of the Hugging Face hub, or
            datasets: followed by a path.
        model: checkpoint directory to start from.
        output: run directory.
        task: name of a task; text_classification or text_regression for tables of your own; glue for all its tasks; or
            the path of a Python file that defines TASK.
        task_options: fields of the task to set, such as task_options.document_context=true, task_options.stride=64 or,
            for single texts above sequence_length, task_options.long_texts=windows.
        text_column: for tables of your own, the column of the text.
        pair_column: for tables of your own, the column of a second text, if there is one.
        label_column: for tables of your own, the column of the label; for a dataset of tokens on the hub, the column of
            the tags.
        bad_rows: what to do with malformed examples: stop at the first, or skip and count them; default is that of the
            task, stop for most.
        from_scratch: use only the checkpoint's shape and vocabulary and start from random weights, to see what
            pre-training contributes.
        epochs: number of passes over the training set; default is 3, or the paper's value for the task. The paper tries
            2 to 4.
        batch_size: number of examples in a batch; default is 32, or the paper's value for the task. The paper tries 16
            and 32.
        learning_rate: peak learning rate; default is 5e-5, or the paper's value for the task. The paper tries 5e-5 to
            2e-5.
        warmup_share: fraction of the steps in which the learning rate rises to its peak; then it decays linearly to 0.
        dropout_rate: dropout on hidden states and attention while fine-tuning.
        sequence_length: longer texts are truncated to this many tokens, unless task_options.long_texts says otherwise;
            default is 128, or 384 for question answering.
        seeds: number of trials, with the seeds seed, seed + 1, ...; the best on dev is kept, and mean and deviation are
            reported.
        search: try all combinations of the following three options and keep the best on dev, as the paper does.
        search_learning_rates: learning rates that search tries.
        search_batch_sizes: batch sizes that search tries.
        search_epochs: numbers of epochs that search tries.
        frozen_layers: number of lower blocks to freeze, together with the embeddings; 0 freezes nothing.
        layer_decay: factor of the learning rate from each block to the one below.
        lora_rank: rank of the low-rank updates (LoRA) that are trained in place of the blocks' kernels; 0 for none.
        class_weights: weight of each class in the loss, by its name, or balanced.
        patience: stop after this many epochs without a better result on dev.
        precision: Keras dtype policy: float32 or mixed_bfloat16.
        jit_compile: compile with XLA, or on torch with its own compiler: on, off, or auto, which means on for JAX, for
            torch on a GPU, and for TensorFlow if the model is small.
        seed: random seed for new weights, order of the examples and dropout.
        distribution: devices to train on: single; on TensorFlow mirrored (the GPUs of this machine) or multi_worker
            (the machines in TF_CONFIG); on JAX data_parallel (all devices of all processes) or model_parallel (each
            weight matrix is split over some of them). batch_size counts the examples of all devices together.
        devices: number of devices to use; without an accelerator, the number of virtual devices to divide the CPU into,
            for trials.
        model_devices: for model_parallel, the number of devices that share one copy of the model.
    """

    GROUPS: typing.ClassVar = {
        "the task's data": (
            *("task_options", "text_column", "pair_column", "label_column", "bad_rows"),
            "sequence_length",
        ),
        "training": (
            *("from_scratch", "epochs", "batch_size", "learning_rate", "warmup_share", "dropout_rate"),
            *("class_weights", "patience", "seed"),
        ),
        "several trials": ("seeds", "search", "search_learning_rates", "search_batch_sizes", "search_epochs"),
        "which weights learn": ("frozen_layers", "layer_decay", "lora_rank"),
        "speed and memory": ("precision", "jit_compile"),
        "devices": ("distribution", "devices", "model_devices"),
    }

    data: str
    model: str
    output: str
    task: str = "text_classification"
    task_options: dict[str, typing.Any] = dataclasses.field(default_factory=dict)
    text_column: str = "text"
    pair_column: str = "text_pair"
    label_column: str = "label"
    bad_rows: typing.Literal["stop", "skip"] | None = None
    from_scratch: bool = False
    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    warmup_share: float = 0.1
    dropout_rate: float = 0.1
    sequence_length: int | None = None
    seeds: int = 1
    search: bool = False
    search_learning_rates: list[float] = dataclasses.field(default_factory=lambda: [5e-5, 4e-5, 3e-5, 2e-5])
    search_batch_sizes: list[int] = dataclasses.field(default_factory=lambda: [16, 32])
    search_epochs: list[int] = dataclasses.field(default_factory=lambda: [2, 3, 4])
    frozen_layers: int = 0
    layer_decay: float = 1.0
    lora_rank: int = 0
    class_weights: dict[str, float] | typing.Literal["balanced"] | None = None
    patience: int | None = None
    precision: typing.Literal["float32", "mixed_bfloat16"] = "float32"
    jit_compile: typing.Literal["auto", "on", "off"] = "auto"
    seed: int = 0
    distribution: typing.Literal["single", "mirrored", "multi_worker", "data_parallel", "model_parallel"] = "single"
    devices: int | None = None
    model_devices: int = 1
