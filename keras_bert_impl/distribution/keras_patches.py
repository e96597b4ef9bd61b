"""Fixes of Keras for several devices and processes, applied only to the versions that they were tested with."""

import functools

import keras

VERSIONS = ("3.15",)  # the versions whose trainer this was written for and tested with


@functools.cache
def make_multi_worker_fit_work():
    """Fixes a place in Keras' TensorFlow trainer where `fit` fails in several processes (keras issue 20585).

    It averages metrics along their first axis, which scalars do not have. `take_any_batch` fixes the other place.
    """
    import tensorflow as tf
    from keras.src.backend.tensorflow import trainer

    if not keras.__version__.startswith(VERSIONS):
        raise ValueError(
            f"--distribution multi_worker works around a bug of Keras {VERSIONS[0]} (keras issue 20585) and was not "
            f"tested with {keras.__version__}: install keras~={VERSIONS[0]}.0, or train with KERAS_BACKEND=jax and "
            "--distribution data_parallel, in the same number of processes."
        )
    reduce_per_replica = trainer.reduce_per_replica
    operations = {"auto": "MEAN", "mean": "MEAN", "sum": "SUM"}

    def reduce_scalars(values, strategy, reduction):
        is_multi_worker = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        if not is_multi_worker or reduction not in operations:
            return reduce_per_replica(values, strategy, reduction)
        return tf.nest.map_structure(lambda value: strategy.reduce(operations[reduction], value, axis=None), values)

    trainer.reduce_per_replica = reduce_scalars


@functools.cache
def take_any_batch():
    """Makes Keras' trainer take batches that several devices cannot share evenly, and the first batch among them."""
    if keras.__version__.startswith(VERSIONS):
        patches = {"tensorflow": (_build_from_a_share, _average_over_the_batch), "jax": (_compute_whole,)}
        for patch in patches.get(keras.backend.backend(), ()):
            patch()


def _build_from_a_share():
    """To infer shapes, Keras averages the first batch over the replicas of a strategy, which fails if their shares
    differ, and in several processes if the batch is a dictionary (keras issue 20585). One replica's share is enough.
    """
    import tensorflow as tf
    from keras.src.backend.tensorflow import trainer

    symbolic_build = trainer.TensorFlowTrainer._maybe_symbolic_build

    def build_from_a_share(self, iterator=None, data_batch=None):
        if iterator is not None and self._distribute_strategy is not None:
            batch = next(next(iter(iterator))[2])
            data_batch = tf.nest.map_structure(
                lambda v: self._distribute_strategy.experimental_local_results(v)[0], batch
            )
        symbolic_build(self, data_batch=data_batch)

    trainer.TensorFlowTrainer._maybe_symbolic_build = build_from_a_share


def _average_over_the_batch():
    """Keras' losses are means over the rows of each replica, which Keras averages: a row of a smaller share would have
    a larger weight. Here they are means over the rows of the batch, as on one device.
    """
    from keras.src.losses import loss

    from keras_bert_impl.distribution.replicas import adds_up_replicas, equal_share, sum_over_replicas

    reduce_of_one_device = loss.reduce_values

    def reduce_values(values, sample_weight=None, reduction="sum_over_batch_size"):
        if not adds_up_replicas() or reduction in (None, "none", "sum") or values.shape == ():
            return reduce_of_one_device(values, sample_weight, reduction)
        is_weighted = reduction == "mean_with_sample_weight" and sample_weight is not None
        divisor = keras.ops.sum(sample_weight if is_weighted else keras.ops.ones_like(values))
        return equal_share(keras.ops.divide_no_nan(keras.ops.sum(values), sum_over_replicas(divisor)))

    loss.reduce_values = reduce_values


def _compute_whole():
    """Keras refuses a batch whose rows a JAX mesh cannot share evenly (IndivisibleError). Each device computes it whole
    instead: figures and gradients are those of one device. In several processes, which have to put a batch together
    from equal parts, nothing is changed.
    """
    import jax
    from keras.src.backend.jax import trainer

    divided = trainer._distribute_data

    def divided_or_whole(data, layouts=None):
        mesh = keras.distribution.distribution()
        arrays = [array for array in keras.tree.flatten(data) if array is not None]
        if mesh is None or jax.process_count() > 1 or not any(len(array) % mesh.num_model_replicas for array in arrays):
            return divided(data, layouts)
        whole = jax.sharding.NamedSharding(mesh.device_mesh.backend_mesh, jax.sharding.PartitionSpec())
        return keras.tree.map_structure(lambda array: None if array is None else jax.device_put(array, whole), data)

    trainer._distribute_data = divided_or_whole


@functools.cache
def look_ahead_in_meshes():
    """Makes Keras start to copy the next batch to the devices of a JAX mesh before the present one is computed.

    Without a mesh Keras' JAX trainer does so itself; with one, it copies each batch only when the step needs it, and
    the devices wait. Another version of Keras is left as it is, since nothing but speed depends on this.
    """
    from keras.src.backend.jax import trainer

    if not keras.__version__.startswith(VERSIONS):
        return
    copied_when_needed = trainer.JAXEpochIterator._get_distributed_iterator

    def one_ahead(self, distribution):
        batches = copied_when_needed(self, distribution)
        following = next(batches, None)
        while following is not None:
            batch, following = following, next(batches, None)
            yield batch

    trainer.JAXEpochIterator._get_distributed_iterator = one_ahead
