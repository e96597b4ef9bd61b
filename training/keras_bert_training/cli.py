"""The command `keras-bert`: one subcommand for each job; only the module of the one that is run is imported, and only
after its options are parsed."""

import importlib.metadata
import os
import sys
import typing

from keras_bert_impl import startup
from keras_bert_impl.suggestions import did_you_mean


class Command(typing.NamedTuple):
    """A subcommand, whose options are the module of its name in `options`."""

    configuration: str  # its class there
    does: str
    module: str | None = None  # where its `run` is; None for the module of its name in `commands`
    environment: typing.Mapping[str, str] = {}  # that it needs
    positional: tuple[str, ...] = ()  # options whose values may be given first, as plain words


# The TPU compiler is used without TPU chips: without these variables it would look for chips, and for Google's cloud.
WITHOUT_CHIPS = {
    "KERAS_BACKEND": "jax",
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_STDERR_LOG_LEVEL": "3",  # what fails is reported by the command itself
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # without chips, processes cannot compete for one
}
COMMANDS = {
    "quickstart": Command("QuickstartConfig", "runs all steps, from text to a served classifier"),
    "prepare-data": Command(
        "PrepareConfig", "turns text into a vocabulary and pre-training examples", "data_preparation"
    ),
    "pretrain": Command("PretrainConfig", "trains a checkpoint on pre-training examples", "pretraining"),
    "distill": Command("DistillConfig", "trains a small student to imitate a checkpoint", "distillation"),
    "finetune": Command("FinetuneConfig", "trains a checkpoint further on a task's files", "finetuning"),
    "fill-mask": Command("FillMaskConfig", "prints the likeliest words for each [MASK]", positional=("model",)),
    "ask": Command("AskConfig", "answers one question after the other, typed or piped", positional=("model",)),
    "predict": Command("PredictConfig", "asks a trained checkpoint about new texts"),
    "evaluate": Command("EvaluateConfig", "scores predictions as the official scripts do", positional=("task",)),
    "convert": Command("ConvertConfig", "converts a checkpoint to another format", positional=("source", "target")),
    "export": Command("ExportConfig", "writes a SavedModel that takes strings, or ONNX, OpenVINO or LiteRT"),
    "serve": Command("ServeConfig", "serves models over REST and gRPC", environment={"KERAS_BACKEND": "tensorflow"}),
    "plan-tpu": Command("PlanConfig", "asks the TPU compiler what a recipe needs on TPUs", environment=WITHOUT_CHIPS),
}
# Packages whose modules have another name.
PACKAGES = {"sklearn": "scikit-learn", "yaml": "pyyaml"}
# On a busy machine the imports alone can take a minute: these commands, which take longer, announce them.
LONG = ("quickstart", "pretrain", "distill", "finetune")


def main(arguments=None, before=()):
    """Runs the command line, with the words of a script `before` it; exits with 2 if the command line is wrong, 1 if
    the run fails."""
    arguments = [*before, *(sys.argv[1:] if arguments is None else arguments)]
    name, *options = arguments or ["--help"]
    try:
        if name in COMMANDS:
            run_command(name, options)
        elif name in ("-h", "--help"):
            from keras_bert_training import runs

            with runs.closed_pipe_ends():
                print(overview())
        elif name == "--version":
            print(f"keras_bert_impl {startup.VERSION}")
        else:
            meant = did_you_mean(name, COMMANDS)
            print(f"error: there is no command {name!r}.{meant}\n\n{overview()}", file=sys.stderr)
            sys.exit(2)
    except ImportError as error:
        sys.exit(f"error: {error}{remedy_for(error.name)}")


def remedy_for(module):
    """How to install a missing module, by the first extra of this package that lists it; empty if none does."""
    if not module:
        return ""
    module = module.split(".")[0]
    # The module of tensorflow-serving-api is tensorflow_serving, that of grpcio grpc.
    wanted = PACKAGES.get(module, module.replace("_", "-"))
    try:
        requirements = importlib.metadata.requires("keras_bert_impl") or ()
    except importlib.metadata.PackageNotFoundError:  # a source tree on the path, which nothing has installed
        return ""
    for requirement in requirements:
        package, _, extra = requirement.replace("'", '"').partition('extra == "')
        if extra and package.startswith(wanted):
            return f": pip install 'keras_bert_impl[{extra[:-1]}]'"
    return ""


def overview():
    """The list of commands, for `--help`."""
    commands = "\n".join(f"  {name:<17}{command.does}" for name, command in COMMANDS.items())
    return f"""usage: keras-bert COMMAND [options]

BERT in Keras 3: from raw text to a pre-trained encoder, fine-tuning and a SavedModel that takes strings.

{commands}

keras-bert COMMAND --help lists a command's options. KERAS_BACKEND=tensorflow, jax or torch chooses the
backend; without it, the first of them that is installed is used."""


def options_of(name):
    """The configuration class of a command."""
    module = importlib.import_module(f"keras_bert_training.options.{name.replace('-', '_')}")
    return getattr(module, COMMANDS[name].configuration)


def run_command(name, options):
    """Parses the options of a command; then imports its module, and with it Keras, and runs it."""
    from keras_bert_training import runs

    def run(config):
        return run_of(name, options)(config)

    runs.main(options_of(name), run, options, f"keras-bert {name}", COMMANDS[name].positional)


def run_of(name, options=()):
    """The function `run` of a command's module; a command that needs another environment is started anew with it."""
    command = COMMANDS[name]
    missing = {key: value for key, value in command.environment.items() if os.environ.get(key) != value}
    if missing:
        # A program may have imported Keras, whose backend cannot be changed.
        os.execve(
            sys.executable,
            [sys.executable, "-m", "keras_bert_training", name, *options],
            {**os.environ, **missing},
        )
    if name in LONG and "keras" not in sys.modules:
        print(f"  importing Keras on {os.environ.get('KERAS_BACKEND', 'its own backend')}", flush=True)
    module = command.module or f"commands.{name.replace('-', '_')}"
    return importlib.import_module(f"keras_bert_training.{module}").run
