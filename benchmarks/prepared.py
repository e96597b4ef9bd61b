"""The default corpus as pre-training rows, for benchmarks that read them."""

import subprocess
import sys


def prepared(directory, length, packed, batch_size):
    """The PretrainingData of rows of `length` tokens, which are prepared in `directory` if they are not there yet."""
    command = [sys.executable, "-m", "keras_bert_training", "prepare-data", "--output", str(directory)]
    command += ["--sequence_length", str(length), *(["--packed"] if packed else [])]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    from keras_bert_training.pretraining import PretrainConfig, open_data

    return open_data(PretrainConfig(data=str(directory), output="", batch_size=batch_size))
