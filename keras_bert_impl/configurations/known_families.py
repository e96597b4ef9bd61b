"""The families that are known, and what follows from a configuration: its encoder, shapes and counts of weights.

`families` registers them; nothing here or in `checkpoints` names one.
"""

import concurrent.futures
import functools
import math
import random
import types

import keras

from keras_bert_impl.suggestions import one_of

OF_CONFIG = {}  # Families by the class of their configurations


def register(families):
    """Makes families known."""
    OF_CONFIG.update({family.config_class: family for family in families})


def families_by_model_type():
    """Families by the values of model_type in config.json."""
    return {
        model_type: family
        for family in OF_CONFIG.values()
        for model_type in (family.config_class.model_type, *vars(family.config_class).get("other_model_types", ()))
    }


def family_of(config):
    """The Family of a configuration."""
    return OF_CONFIG[type(config)]


def family_of_name(name):
    """Returns the configuration class of a published size. Raises: ValueError naming the known sizes."""
    of_size = {size: config_class for config_class in OF_CONFIG for size in config_class.named_sizes}
    return of_size[one_of("size", name, of_size)]


def config_from_name(name, **fields):
    """Returns the configuration of a published size of any family; keyword arguments replace its fields.

    Raises: ValueError naming the known sizes.
    """
    return family_of_name(name).from_name(name, **fields)


def build_encoder(config, **arguments):
    """Builds the encoder of a configuration of any family; `arguments` are those of its constructor."""
    return family_of(config).encoder_class(config, **arguments)


def skeleton(config):
    """Builds an encoder without values: its weights have shapes and paths, and take no memory."""

    def build():
        with keras.StatelessScope(initialize_variables=False):
            return build_encoder(config, dtype="float32")

    # Layers draw their seeds from Python's generator, although nothing here has values: after `set_random_seed`, a
    # model has the same numbers whether or not shapes were asked for before.
    state = random.getstate()
    try:
        # Keras lists, for each thread, the variables that have no values yet, and would give them some later.
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            return thread.submit(build).result()
    finally:
        random.setstate(state)


@functools.lru_cache(maxsize=128)
def weight_shapes(config):
    """Returns the shape of every weight of an encoder by its path, from the configuration alone."""
    return types.MappingProxyType({weight.path: tuple(weight.shape) for weight in skeleton(config).weights})


def count_parameters(config):
    """Counts the parameters of an encoder, with its pooler if it has one: 109,482,240 for bert-base-uncased."""
    return sum(math.prod(shape) for shape in weight_shapes(config).values())
