"""`keras-bert pretrain` on TPUs with JAX, on all chips of a TPU VM or of a slice.

    python tpu/pretrain_jax_tpu.py --config bert_base/phase_128 --data data --output runs/base_128

On a slice, give the same command on every host; see tpu/README.md. If the model is too large for one chip, add
`--distribution model_parallel --model_devices 4`, which replaces data_parallel.
"""

import os

os.environ["KERAS_BACKEND"] = "jax"

from keras_bert_training.cli import main

if __name__ == "__main__":
    main(before=["pretrain", "--distribution", "data_parallel"])
