"""Fixes of Keras for several devices and processes; one device is trained by Keras as it is."""

import functools

import keras


@functools.cache
def take_any_batch():
    """Makes Keras' trainer take batches that several devices cannot share evenly, and the first batch among them."""
    patches = {
        "tensorflow": (_build_from_a_share, _average_over_the_batch, _reduce_scalars),
        "jax": (_take_whole_batches, _compute_whole, _gather_predictions),
    }
    try:
        for patch in patches.get(keras.backend.backend(), ()):
            patch()
    except (AttributeError, ImportError) as error:
        raise RuntimeError(
            f"Several devices need names that Keras {keras.__version__} lacks ({error}): install keras~=3.15.0."
        ) from error


def _build_from_a_share():
    """To infer shapes, Keras averages the first batch over the replicas of a strategy, which fails if their shares
    differ, and in several processes if the batch is a dictionary (keras issue 20585). One replica's share is enough.
    """
    import tensorflow as tf
    from keras.src.backend.tensorflow import trainer

    symbolic_build = trainer.TensorFlowTrainer._maybe_symbolic_build

    def build_from_a_share(self, iterator=None, data_batch=None):
        strategy = self.distribute_strategy
        if iterator is None or strategy.num_replicas_in_sync == 1:
            return symbolic_build(self, iterator, data_batch)
        batch = next(next(iter(iterator))[2])
        share = tf.nest.map_structure(lambda value: strategy.experimental_local_results(value)[0], batch)
        return symbolic_build(self, data_batch=share)

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


def _reduce_scalars():
    """In several processes, Keras averages metrics along their first axis, which scalars do not have (keras issue
    20585)."""
    import tensorflow as tf
    from keras.src.backend.tensorflow import trainer

    reduce_per_replica = trainer.reduce_per_replica
    operations = {"auto": "MEAN", "mean": "MEAN", "sum": "SUM"}

    def reduce_scalars(values, strategy, reduction):
        is_multi_worker = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        if not is_multi_worker or reduction not in operations:
            return reduce_per_replica(values, strategy, reduction)
        return tf.nest.map_structure(lambda value: strategy.reduce(operations[reduction], value, axis=None), values)

    trainer.reduce_per_replica = reduce_scalars


def _take_whole_batches():
    """Of several processes, Keras takes the arrays that each gives to `fit` for its part of them, and `predict` would
    return each row once for each process. Here arrays are whole, as lists of texts are, and only datasets are parts.

    With a mesh, Keras copies each batch to the devices only when the step needs it; here one is copied ahead.
    """
    from keras.src.backend.jax import trainer
    from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter

    from keras_bert_impl.distribution.replicas import batch_of_all, check_same_batch

    def distributed(self):
        for number, batch in enumerate(self.data_adapter.get_jax_iterator()):
            batch = batch_of_all(batch) if isinstance(self.data_adapter, ArrayDataAdapter) else batch
            if number == 0:
                check_same_batch(batch)
            yield trainer._distribute_data(batch)

    def one_ahead(self, distribution):
        batches = distributed(self)
        following = next(batches, None)
        while following is not None:
            batch, following = following, next(batches, None)
            yield batch

    if not hasattr(trainer.JAXEpochIterator, "_get_distributed_iterator"):
        raise AttributeError("JAXEpochIterator._get_distributed_iterator")
    trainer.JAXEpochIterator._get_distributed_iterator = one_ahead


def _compute_whole():
    """Keras refuses a batch whose rows a JAX mesh cannot share evenly (IndivisibleError). Each device computes it whole
    instead: figures and gradients are those of one device.

    Of several processes, Keras takes what each gives for its part of a batch, unless it is a `WholeBatch`.
    """
    import jax
    from keras.src.backend.jax import trainer

    from keras_bert_impl.distribution.replicas import WholeBatch, spread

    divided = trainer._distribute_data

    def divided_or_whole(data, layouts=None):
        mesh = keras.distribution.distribution()
        arrays = [array for array in keras.tree.flatten(data) if array is not None]
        is_known = mesh is not None and (jax.process_count() == 1 or isinstance(arrays[0], WholeBatch))
        if not is_known:
            return divided(data, layouts)
        is_even = not any(len(array) % mesh.num_model_replicas for array in arrays)
        return keras.tree.map_structure(lambda array: None if array is None else spread(array, is_even), data)

    trainer._distribute_data = divided_or_whole


def _gather_predictions():
    """Each of several JAX processes holds the outputs of its rows, which Keras' `predict` cannot join: here it holds
    all outputs."""
    from keras.src.backend.jax import trainer

    from keras_bert_impl.distribution.divided_state import whole

    predict_step = trainer.JAXTrainer.predict_step

    def whole_predict_step(self, state, data):
        outputs, others = predict_step(self, state, data)
        is_shared = keras.distribution.distribution() is not None
        return keras.tree.map_structure(whole, outputs) if is_shared else outputs, others

    trainer.JAXTrainer.predict_step = whole_predict_step
