"""The default corpus as pre-training rows, for benchmarks that read them."""

import pathlib
import subprocess
import sys

TRAINING = pathlib.Path(__file__).resolve().parent.parent / "training"


def prepared(directory, length, packed, batch_size):
    """The PretrainingData of rows of a length, made in `directory` unless they are there."""
    command = [sys.executable, str(TRAINING / "prepare_data.py"), "--output", str(directory)]
    command += ["--sequence_length", str(length), *(["--packed"] if packed else [])]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    sys.path.insert(0, str(TRAINING))
    from pretrain import PretrainConfig
    from pretraining_data import PretrainingData

    return PretrainingData(PretrainConfig(data=str(directory), output="", batch_size=batch_size))
