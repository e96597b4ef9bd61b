"""What the entry points for TPUs share: training/pretrain.py with a backend and a distribution."""

import os
import pathlib
import runpy
import sys


def pretrain(backend, distribution):
    """Runs training/pretrain.py with the command line's options, of which another `--distribution` wins."""
    os.environ["KERAS_BACKEND"] = backend
    training = pathlib.Path(__file__).resolve().parent.parent / "training"
    sys.path.insert(0, str(training))
    sys.argv[1:1] = ["--distribution", distribution]
    runpy.run_path(str(training / "pretrain.py"), run_name="__main__")
