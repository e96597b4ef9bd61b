"""`keras-bert pretrain` on the chips of one TPU with TensorFlow's TPUStrategy.

    python tpu/pretrain_tpu.py --config bert_base/phase_128 --data data --output runs/base_128
    python tpu/pretrain_tpu.py --tpu my-tpu ...     # a TPU by name; 'local' is this machine's own, also in Colab

tpu/README.md explains why we recommend tpu/pretrain_jax_tpu.py.
"""

import os
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"

from keras_bert_impl.cli import main

if __name__ == "__main__":
    main(["pretrain", "--distribution", "tpu", *sys.argv[1:]])
