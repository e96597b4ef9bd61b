"""The state of the random generators that a backend keeps outside of a model's variables.

Keras keeps the state of dropout in variables (`keras.random.SeedGenerator`). On torch, it and our own dropout draw from
torch's generators instead; TensorFlow and JAX have nothing of the kind.
"""

import keras
import numpy as np


def random_state():
    """The state, as a dict of NumPy arrays; empty on TensorFlow and JAX."""
    if keras.backend.backend() != "torch":
        return {}
    import torch

    generators = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        generators |= {f"cuda:{place}": state for place, state in enumerate(torch.cuda.get_rng_state_all())}
    return {name: np.array(state) for name, state in generators.items()}


def restore_random_state(arrays):
    """Restores what `random_state` returned; the state of a device that is not here now is left out."""
    if keras.backend.backend() != "torch":
        return
    import torch

    for name, state in arrays.items():
        if name == "cpu":
            torch.set_rng_state(torch.from_numpy(np.array(state)))
        elif int(name.removeprefix("cuda:")) < torch.cuda.device_count():
            torch.cuda.set_rng_state(torch.from_numpy(np.array(state)), name)
