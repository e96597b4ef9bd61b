"""`keras-bert pretrain` on TPUs with JAX, on all chips of a TPU VM or of a slice.

    python tpu/pretrain_jax_tpu.py --config bert_base/phase_128 --data data --output runs/base_128

On a slice the same command is given on every host; see tpu/README.md. Where a model is too large for one chip,
`--distribution model_parallel --model_devices 4` takes the place of data_parallel.
"""

import os
import sys

os.environ["KERAS_BACKEND"] = "jax"

from keras_bert_impl.cli import main

if __name__ == "__main__":
    main(["pretrain", "--distribution", "data_parallel", *sys.argv[1:]])
