"""Pre-trains on TPUs with JAX: training/pretrain.py, on all chips of a TPU VM or of a slice.

    python tpu/pretrain_jax_tpu.py --config training/recipes/bert_base/phase_128.yaml --data data --output runs/base_128

On a slice the same command is given on every host; see tpu/README.md. Options are those of training/pretrain.py, whose
`--distribution model_parallel --model_devices 4` takes the place of data_parallel where a model is too large for one
chip.
"""

from on_tpu import pretrain

if __name__ == "__main__":
    pretrain("jax", "data_parallel")
