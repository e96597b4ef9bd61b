"""The command `keras-bert`: a subcommand for each job, of which only the one that is asked for is imported."""

import importlib
import importlib.metadata
import os
import sys
import typing


class Command(typing.NamedTuple):
    """A subcommand: where its configuration and its `run` are, what it does, and the environment it needs."""

    module: str
    configuration: str
    does: str
    environment: typing.Mapping[str, str] = {}
    positional: tuple[str, ...] = ()  # options that may stand first as plain words


# The TPU compiler is loaded without its chips: without these it looks for them, and for the cloud around them.
WITHOUT_CHIPS = {
    "KERAS_BACKEND": "jax",
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_STDERR_LOG_LEVEL": "3",  # what fails is reported by the command itself
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # there is no chip that two processes could not share
}
COMMANDS = {
    "quickstart": Command("commands.quickstart", "QuickstartConfig", "text to a served classifier, all the steps once"),
    "prepare-data": Command(
        "training.data_preparation",
        "PrepareConfig",
        "text to a vocabulary and pre-training examples",
        {"KERAS_BACKEND": "tensorflow"},
    ),
    "pretrain": Command("training.pretraining", "PretrainConfig", "pre-training examples to a checkpoint"),
    "finetune": Command("training.finetuning", "FinetuneConfig", "a checkpoint and a task's files to a fine-tuned one"),
    "fill-mask": Command("commands.fill_mask", "FillMaskConfig", "the likeliest words for each [MASK] of a sentence"),
    "evaluate": Command(
        "commands.evaluate", "EvaluateConfig", "predictions to the official scripts' figures", positional=("task",)
    ),
    "convert": Command(
        "commands.convert", "ConvertConfig", "a checkpoint of one format to another", positional=("source", "target")
    ),
    "export": Command("commands.export", "ExportConfig", "a checkpoint to a SavedModel that takes strings"),
    "plan-tpu": Command(
        "commands.plan_tpu", "PlanConfig", "what a recipe takes on a TPU, from the TPU compiler", WITHOUT_CHIPS
    ),
}


def main(arguments=None):
    """Runs the command line; exits with 2 for a command line that is wrong, 1 for a run that failed."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    name, *options = arguments or ["--help"]
    if name in ("-h", "--help"):
        print(overview())
    elif name == "--version":
        print(f"keras_bert_impl {importlib.metadata.version('keras_bert_impl')}")
    elif name not in COMMANDS:
        print(f"error: there is no command {name!r}.\n\n{overview()}", file=sys.stderr)
        sys.exit(2)
    else:
        run_command(name, options)


def overview():
    """The list of commands, for `--help`."""
    lines = [f"  {name:<14}{command.does}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: keras-bert COMMAND [options]",
            "",
            "BERT in Keras 3: from raw text to a pre-trained encoder, fine-tuning and a SavedModel that takes strings.",
            "",
            *lines,
            "",
            "keras-bert COMMAND --help lists a command's options. KERAS_BACKEND=tensorflow, jax or torch says what",
            "computes; without it, the first of them that is installed.",
        ]
    )


def run_command(name, options):
    """Imports the module of a command and runs it, in an environment that is as it has to be."""
    command = COMMANDS[name]
    missing = {key: value for key, value in command.environment.items() if os.environ.get(key) != value}
    if missing:
        # Keras is imported already, with a backend that cannot be changed: the command starts anew with another.
        os.execve(
            sys.executable,
            [sys.executable, "-m", "keras_bert_impl", name, *options],
            {**os.environ, **missing},
        )
    from keras_bert_impl.training import runs

    module = importlib.import_module(f"keras_bert_impl.{command.module}")
    runs.main(getattr(module, command.configuration), module.run, options, f"keras-bert {name}", command.positional)
