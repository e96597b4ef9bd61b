"""Runs keras-bert pretrain in one of several processes, and records every reading of a variable.

    KERAS_BACKEND=jax python tests/distributed_pretraining.py '{"data": "data", "output": "run"}' RECORD [killed]

Writes the paths of the variables that were read, in their order, to RECORD. A variable is an array of all processes:
what one of them computes from it alone, it may wait for for ever on a TPU slice, where all have to take part. On CPUs
it does not always wait, so that the records have to be compared. With `killed`, the process kills itself in its first
round.
"""

import json
import os
import pathlib
import signal
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import stand_in_bucket

from keras_bert_impl.callbacks import stop_on_bad_loss
from keras_bert_training import pretraining, pretraining_report


def main():
    options, record = json.loads(sys.argv[1]), []
    if "STAND_IN_BUCKETS" in os.environ:
        stand_in_bucket.register()
    inherited = keras.Variable.value

    def value(variable):
        record.append(variable.path)
        return inherited.fget(variable)

    class Killed(stop_on_bad_loss.StopOnBadLoss):
        def on_train_batch_end(self, batch, logs=None):
            super().on_train_batch_end(batch, logs)
            if batch == 3:
                os.kill(os.getpid(), signal.SIGKILL)

    keras.Variable.value = property(value)
    pretraining_report.baselines = lambda data: (
        dict.fromkeys(("next_sentence_majority", "unigram_masked_lm_accuracy", "bigram_masked_lm_accuracy"), 0.5)
        | {"unigram_masked_lm_perplexity": 2.0, "bigram_masked_lm_perplexity": 2.0}
    )
    if sys.argv[3:]:
        pretraining.StopOnBadLoss = Killed
    pretraining.run(pretraining.PretrainConfig(**options))
    pathlib.Path(sys.argv[2]).write_text("\n".join(record))


if __name__ == "__main__":
    main()
