"""Trains a small model with dropout under ExactResume; it is a program, since processes join only once.

    KERAS_BACKEND=jax python tests/distributed_states.py '{"distribution": "data_parallel", "steps": 4}' DIRECTORY

Options besides those of the devices: `steps`, after which training ends; `every_steps`, between two states; `kill`, the
step after which the process is killed while its state is being written; `private`, a directory of each process instead
of a shared one; `apart`, to fail if a whole array is sent to all processes. Prints a line of JSON: the step that it
resumed from and a hash of all variables, or the error.
"""

import functools
import hashlib
import json
import os
import pathlib
import signal
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import stand_in_bucket

from keras_bert_impl import BertConfig, BertEncoder, Pretrainer, distribution
from keras_bert_impl.callbacks import ExactResume
from keras_bert_impl.callbacks.saved_states import variables_of
from keras_bert_impl.callbacks.step_data import FunctionSteps
from keras_bert_impl.encoders.resumed_fit import ResumedFit
from keras_bert_impl.optimization import BertAdamW

ROWS, LENGTH, PREDICTIONS, VOCABULARY, STEPS_PER_EPOCH = 4, 8, 2, 32, 3


class Batches(keras.utils.PyDataset):
    """Random rows, a function of the step, of which a process gets its part."""

    def __init__(self, first_step):
        super().__init__()
        self.first_step = first_step

    @property
    def num_batches(self):
        return None

    def __getitem__(self, index):
        random = np.random.default_rng(self.first_step + index)
        token_ids = random.integers(5, VOCABULARY, (ROWS, LENGTH)).astype("int32")
        positions = np.tile(np.arange(1, PREDICTIONS + 1, dtype="int32"), (ROWS, 1))
        inputs = {"token_ids": token_ids, "segment_ids": 0 * token_ids, "padding_mask": 0 * token_ids + 1}
        inputs["mask_positions"] = positions
        labels = {"mask_ids": token_ids[:, 1 : PREDICTIONS + 1], "mask_weights": np.ones_like(positions, "float32")}
        labels["next_sentence_labels"] = token_ids[:, 5] % 2
        number, parts = distribution.part_of_batch()
        rows = slice(number * ROWS // parts, (number + 1) * ROWS // parts)
        return keras.tree.map_structure(lambda array: array[rows], (inputs, labels))


class KilledResume(ExactResume):
    """Kills the process when a state has been copied from the devices: it is then still being written."""

    def __init__(self, directory, at_step, **options):
        super().__init__(directory, **options)
        self.at_step = at_step

    def save(self):
        super().save()
        if self.step == self.at_step:
            os.kill(os.getpid(), signal.SIGKILL)


def train(options, directory):
    keras.utils.set_random_seed(1)
    config = BertConfig(
        VOCABULARY, hidden_size=16, num_layers=1, num_heads=4, intermediate_size=32, max_length=LENGTH,
    )  # fmt: skip
    model = Pretrainer(BertEncoder(config))
    model.compile(optimizer=BertAdamW(1e-2), jit_compile=keras.backend.backend() == "jax")
    saves = {"every_minutes": options.get("every_minutes"), "every_steps": options.get("every_steps")}
    kind = functools.partial(KilledResume, at_step=options["kill"]) if "kill" in options else ExactResume
    resume = kind(directory, **saves)
    data = FunctionSteps(Batches, STEPS_PER_EPOCH, is_checked=False)
    if options.get("apart"):
        # New variables are compared, too: Keras divides those from the start that are large for all processes together.
        model.optimizer.build(model.trainable_variables)
        refuse_to_compare()
    run = ResumedFit(lambda *a, **k: keras.Model.fit(model, *a, **k), model, data, [resume], verbose=0)
    begun = run.step
    run.train(STEPS_PER_EPOCH, options["steps"] // STEPS_PER_EPOCH)
    run.end()
    digest = hashlib.sha256()
    for variables in variables_of(model).values():
        for variable in variables:
            digest.update(np.ascontiguousarray(distribution.to_numpy(variable)).tobytes())
    return {"begun": begun, "step": resume.step, "hash": digest.hexdigest()}


def refuse_to_compare():
    """From now on, JAX must not send a whole array to all processes to compare it, as it does when a variable of a mesh
    is assigned a NumPy array: for an embedding table and 64 hosts, that takes gigabytes on every chip."""
    from jax.experimental import multihost_utils

    compare = multihost_utils.assert_equal

    def compare_small(tree, *more, **options):
        sizes = [np.size(array) for array in keras.tree.flatten(tree)]
        if max(sizes) > 16:
            raise ValueError(f"arrays of {sizes} elements are compared between processes")
        return compare(tree, *more, **options)

    multihost_utils.assert_equal = compare_small


def main():
    options, directory = json.loads(sys.argv[1]), sys.argv[2]
    if "STAND_IN_BUCKETS" in os.environ:
        stand_in_bucket.register()
    kind = {name: options[name] for name in ("distribution", "devices", "model_devices") if name in options}
    try:
        with distribution.distributed(distribution.Distribution(**kind)):
            if options.get("private"):
                directory = pathlib.Path(directory) / str(os.getpid())
            found = train(options, directory)
    except ValueError as error:
        found = {"error": str(error)}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
