"""`BestWeights`: the model keeps the weights of its best epoch."""

import math

import keras

from keras_bert_impl import distribution


class BestWeights(keras.callbacks.Callback):
    """Keeps the weights of the best epoch, and gives them to the model at the end of `fit`.

    Ties are won by the earliest epoch. NaN is never the best.

    Args:
        score (function or str): function from the model to a number, computed after each epoch; or the name of a metric
            in the logs, such as "val_accuracy".
        mode (str, optional): "max" if larger scores are better, "min" if smaller ones are. Default: "max".
        name (str, optional): name of a function's score in the logs. Default: "score".

    Attributes:
        scores (list of float): the scores of the epochs so far.

    Raises: KeyError for another mode; in `fit`, KeyError for a name that is not in the logs, and ValueError if no score
        is a number.

    Example:
        >>> model = kbi.TextRegressor.from_pretrained("small_english")
        >>> best = kbi.callbacks.BestWeights("loss", mode="min")
        >>> history = model.fit(["Good.", "Bad."], [1.0, 0.0], callbacks=[best], verbose=0)
        >>> best.best_epoch()
        0
    """

    def __init__(self, score, mode="max", name="score"):
        super().__init__()
        self.score, self.sign, self.name = score, {"max": 1, "min": -1}[mode], name
        self.scores, self.weights = [], None

    def on_train_begin(self, logs=None):
        self.scores, self.weights = [], None

    def on_epoch_end(self, epoch, logs=None):
        if callable(self.score):
            logs[self.name] = value = float(self.score(self.model))
        else:
            value = float(logs[self.score])
        best = self.best_epoch()
        is_best = not math.isnan(value) and (best is None or self.sign * value > self.sign * self.scores[best])
        self.scores.append(value)
        if is_best:
            self.weights = [distribution.to_numpy(weight) for weight in self.model.weights]

    def best_epoch(self):
        """Returns the number of the best epoch, counted from 0 since training began; None if there is none yet."""
        numbers = [place for place, value in enumerate(self.scores) if not math.isnan(value)]
        return max(numbers, key=lambda place: self.sign * self.scores[place], default=None)

    def on_train_end(self, logs=None):
        if self.weights is None:
            raise ValueError(f"No epoch has a score that is a number: the scores are {self.scores}.")
        for weight, best in zip(self.model.weights, self.weights, strict=True):
            distribution.assign_whole(weight, best)

    def get_state(self):
        """For `ExactResume`."""
        return {"scores": self.scores}, self.weights or []

    def set_state(self, value, arrays):
        """For `ExactResume`."""
        self.scores, self.weights = value["scores"], arrays or None
