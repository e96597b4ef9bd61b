"""A small model, its data, and `fit` calls that are interrupted."""

import keras
import numpy as np
from conftest import QUICK_STEPS, WORDS

import keras_bert_impl as kbi

LENGTHS = (3, 20, 5, 40, 9, 2, 33, 14, 7, 25, 4, 11, 50, 6)
TEXTS = [" ".join(WORDS[5 + (row + place) % 10] for place in range(length)) for row, length in enumerate(LENGTHS)]
LABELS = [row % 3 for row in range(len(TEXTS))]


def build(kind=kbi.TextClassifier, optimizer=None, **options):
    """A new model with dropout, the same each time."""
    keras.utils.set_random_seed(3)
    config = kbi.BertConfig(len(WORDS), hidden_size=6, num_layers=1, num_heads=2, intermediate_size=7, max_length=64)
    classes = (3,) if kind is kbi.TextClassifier else ()
    model = kind(kbi.BertEncoder(config), *classes, tokenizer=kbi.WordPieceTokenizer(WORDS))
    optimizer = optimizer or kbi.optimization.BertAdamW(1e-2)
    chosen = {"weighted_metrics": ["accuracy"], **QUICK_STEPS, **options}
    model.compile(optimizer=optimizer, loss=model.loss, **chosen)
    return model


class Interrupt(keras.callbacks.Callback):
    """Raises KeyboardInterrupt after so many batches."""

    def __init__(self, batches):
        super().__init__()
        self.left = batches

    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def fit(directory, interruptions=(), data=(TEXTS, LABELS), build=build, callbacks=(), **arguments):
    """Fits a new model, again after each interruption, with a state saved after every second step.

    Args:
        interruptions: after how many batches of each of the processes it is interrupted.
        directory: of the state.
        data: the positional arguments of `fit`, or a function from the model to them.
        build: function that makes the model.
        callbacks: functions that make callbacks.
        arguments: of `fit`.

    Returns: the model of the last call.
    """
    for batches in (*interruptions, None):
        model = build()
        resume = kbi.callbacks.ExactResume(directory, every_steps=2)
        made = [*(make() for make in callbacks), *([Interrupt(batches)] if batches else [])]
        given = data(model) if callable(data) else data
        try:
            model.fit(*given, **{"batch_size": 3, "epochs": 2, "verbose": 0, **arguments}, callbacks=[resume, *made])
        except KeyboardInterrupt:
            continue
    return model


def assert_equal(model, other):
    """Asserts that two models have the same weights and histories, bit for bit."""
    for weight, array in zip(model.weights, other.get_weights(), strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(weight), array, err_msg=weight.path)
    assert model.history.history == other.history.history
    assert model.history.epoch == other.history.epoch


def as_new(model, weights):
    """A compiled model as it was when it was new."""
    model.set_weights(weights)
    model.optimizer.iterations.assign(0)
    return model


def loss_of(model, *data, **arguments):
    return np.ravel(model.evaluate(*data, verbose=0, **arguments))[0]
