"""`keras-bert pretrain` on the chips of one TPU with TensorFlow's TPUStrategy.

    python tpu/pretrain_tpu.py --config bert_base/phase_128 --data data --output runs/base_128
    python tpu/pretrain_tpu.py --tpu my-tpu ...     # a TPU by name; 'local' is this machine's own, also in Colab

This has never met a TPU, and it needs the set of versions in tpu/README.md, which explains why we recommend
tpu/pretrain_jax_tpu.py.
"""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"

from keras_bert_training.cli import main

if __name__ == "__main__":
    main(before=["pretrain", "--distribution", "tpu"])
