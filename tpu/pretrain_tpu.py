"""Pre-trains on TPUs with TensorFlow's TPUStrategy: training/pretrain.py on the chips of one TPU.

    python tpu/pretrain_tpu.py --config training/recipes/bert_base/phase_128.yaml --data data --output runs/base_128
    python tpu/pretrain_tpu.py --tpu my-tpu ...     # a TPU by name; this machine's own is 'local', in Colab, too

tpu/README.md says why we recommend tpu/pretrain_jax_tpu.py.
"""

from on_tpu import pretrain

if __name__ == "__main__":
    pretrain("tensorflow", "tpu")
