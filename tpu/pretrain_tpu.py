"""Pre-trains on TPUs with TensorFlow's TPUStrategy: training/pretrain.py on the chips of one TPU.

    python tpu/pretrain_tpu.py --config training/recipes/bert_base/phase_128.yaml --data data --output runs/base_128
    python tpu/pretrain_tpu.py --tpu my-tpu ...     # a TPU by name; this machine's own is 'local', in Colab, too

tpu/README.md says why we recommend tpu/pretrain_jax_tpu.py.
"""

import os
import pathlib
import runpy
import sys

if __name__ == "__main__":
    os.environ["KERAS_BACKEND"] = "tensorflow"
    training = pathlib.Path(__file__).resolve().parent.parent / "training"
    sys.path.insert(0, str(training))
    sys.argv[1:1] = ["--distribution", "tpu"]  # a later one on the command line wins
    runpy.run_path(str(training / "pretrain.py"), run_name="__main__")
