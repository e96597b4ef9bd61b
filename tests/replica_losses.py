"""Trains small models with each loss on one device and on two parts of a CPU, which share 1 and 19 rows in batches of
8; it is a program, since TensorFlow divides the CPU only once.

    KERAS_BACKEND=tensorflow python tests/replica_losses.py [LOSS ...]

Prints as JSON the largest relative difference of each figure, and of the weights after the steps, {"loss, rows":
{figure: difference}}, and what dropout makes of 400 ones on each of the two parts in two steps.
"""

import json
import sys

import keras
import numpy as np
import tensorflow as tf

from keras_bert_impl import BertConfig, BertEncoder, Pretrainer, embedding_losses, layers, losses
from keras_bert_impl.encoders.keras_methods import AdaptedModel

random = np.random.default_rng(0)
X = random.normal(size=(19, 5)).astype("float32")
WEIGHTS = random.uniform(0.2, 3, 19).astype("float32")
CLASSES = random.integers(0, 3, 19)
SCORES = random.uniform(-1, 1, 19).astype("float32")
# Of words, of which some rows have many with a label and others none.
WORDS = np.where(np.arange(4) < random.integers(0, 5, (19, 1)), random.integers(0, 3, (19, 4)), -1)
TEXTS = np.arange(38).reshape(19, 2)
# The loss, the shape of an output, labels.
LOSSES = {
    "words": (losses.WeightedCrossEntropy(ignore_class=losses.NO_LABEL), (4, 3), WORDS),
    "cosine": (embedding_losses.CosineSimilarityLoss(), (2, 3), SCORES),
    "cosent": (embedding_losses.CoSENTLoss(), (2, 3), SCORES),
    "ranking": (embedding_losses.MultipleNegativesRankingLoss(), (2, 3), TEXTS),
    "triplet": (embedding_losses.TripletLoss(), (3, 3), CLASSES),
    "Keras' classes": (keras.losses.SparseCategoricalCrossentropy(from_logits=True), (3,), CLASSES),
    "Keras' mean of weights": (keras.losses.MeanSquaredError("mean_with_sample_weight"), (1,), SCORES),
}


def dense(loss, shape):
    inputs = keras.Input((5,))
    outputs = keras.layers.Reshape(shape)(keras.layers.Dense(int(np.prod(shape)))(inputs))
    model = AdaptedModel(inputs, outputs)
    model.compile(keras.optimizers.SGD(0.1), loss)
    return model


def pretrainer():
    config = BertConfig(
        20, hidden_size=4, num_layers=1, num_heads=2, intermediate_size=8, max_length=6, hidden_dropout_rate=0.0,
        attention_dropout_rate=0.0,
    )  # fmt: skip
    model = Pretrainer(BertEncoder(config))
    model.compile(keras.optimizers.SGD(0.1))
    return model


def masked_rows():
    token_ids = random.integers(5, 20, (19, 6))
    inputs = {"token_ids": token_ids, "segment_ids": 0 * token_ids, "padding_mask": 0 * token_ids + 1}
    inputs["mask_positions"] = np.tile([1, 3], (19, 1))
    labels = {"mask_ids": token_ids[:, [1, 3]], "next_sentence_labels": CLASSES % 2}
    labels["mask_weights"] = (WORDS[:, :2] >= 0).astype("float32")
    return inputs, labels


def found(made, data, rows):
    keras.utils.set_random_seed(1)
    data = keras.tree.map_structure(lambda array: None if array is None else array[:rows], data)
    model = made()
    figures = model.evaluate(*data[:2], sample_weight=data[2], batch_size=8, verbose=0, return_dict=True)
    x, y, weights = data
    validation = (x, y) if weights is None else data
    history = model.fit(
        x, y, batch_size=8, sample_weight=weights, shuffle=False, verbose=0, validation_data=validation
    ).history  # fmt: skip
    figures |= {f"fitted {name}": values[0] for name, values in history.items()}
    return figures | {"weights": np.concatenate([weight.ravel() for weight in model.get_weights()])}


def masks(strategy):
    with strategy.scope():
        dropout = layers.Dropout(0.5, seed=1)
    return [
        mask.numpy().tolist()
        for _ in range(2)
        for mask in strategy.experimental_local_results(strategy.run(lambda: dropout(tf.ones([400]), training=True)))
    ]


def main():
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], two)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    cases = {
        name: (lambda loss=loss, shape=shape: dense(loss, shape), (X, labels, WEIGHTS))
        for name, (loss, shape, labels) in LOSSES.items()
    }
    cases["pretraining"] = pretrainer, (*masked_rows(), None)
    differences = {}
    for name in sys.argv[1:] or cases:
        made, data = cases[name]
        for rows in (1, 19):
            alone = found(made, data, rows)
            with strategy.scope():
                shared = found(made, data, rows)
            differences[f"{name}, {rows}"] = {
                figure: float(np.abs((shared[figure] - value) / np.maximum(1, np.abs(value))).max())
                for figure, value in alone.items()
            }
    print(json.dumps({"differences": differences, "masks": masks(strategy)}))


if __name__ == "__main__":
    main()
