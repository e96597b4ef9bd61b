"""Functions from rows of ids to named outputs, one for each kind of model, in `keras.ops`: what runtimes without
strings serve.

`served(model)` gives the function, and `arrays_of` its inputs. All outputs are float32, and padding does not change
them.
"""

from keras import ops

from keras_bert_impl import features, models
from keras_bert_impl.encoders.encoder import Encoder


def served(model):
    """The function to export: from a dict of the arrays of `arrays_of` to a dict of named outputs."""
    name_outputs = OUTPUTS[kind_of(model)]
    return lambda rows: name_outputs(model, model(rows, training=False), rows)


def kind_of(model):
    """The class among those of OUTPUTS that a model belongs to, or inherits from."""
    return next(kind for kind in OUTPUTS if isinstance(model, kind))


def arrays_of(model):
    """The names of the axes of each input by its name, in the order of `features.ENCODER_INPUTS`; all are int32."""
    axes = ("batch", "choices", "length") if isinstance(model, models.MultipleChoice) else ("batch", "length")
    arrays = dict.fromkeys(features.ENCODER_INPUTS, axes)
    return {**arrays, "mask_positions": ("batch", "masks")} if isinstance(model, models.MaskedLM) else arrays


def classes(model, logits, rows):
    """`logits` and `probabilities` over the last axis; with multi_label the sigmoid of each logit."""
    is_multi_label = getattr(model, "multi_label", False)
    return {"logits": logits, "probabilities": ops.sigmoid(logits) if is_multi_label else ops.softmax(logits)}


def vectors(model, outputs, rows):
    """The encoder's outputs, and `mean_pooled` (batch, hidden_size), the mean over all tokens of a text."""
    outputs = {name: ops.cast(array, "float32") for name, array in outputs.items()}
    weights = ops.expand_dims(ops.cast(rows["padding_mask"], "float32"), -1)  # (batch, length, 1)
    # A row of padding only, which a server may add to fill a batch, gives zeros and not NaN.
    count = ops.maximum(ops.sum(weights, axis=1), 1.0)
    return {**outputs, "mean_pooled": ops.sum(outputs["sequence_output"] * weights, axis=1) / count}


# Functions of the model, its outputs and the rows.
OUTPUTS = {
    models.TextClassifier: classes,
    models.TextRegressor: lambda model, outputs, rows: {"value": outputs[:, 0]},
    models.TokenClassifier: classes,
    models.MultipleChoice: classes,
    models.QuestionAnswerer: lambda model, logits, rows: {
        "start_logits": logits[:, :, 0],
        "end_logits": logits[:, :, 1],
    },
    # The probability that the second text follows the first.
    models.NextSentencePredictor: lambda model, logits, rows: {
        "logits": logits,
        "probability": ops.softmax(logits)[:, 0],
    },
    models.MaskedLM: lambda model, logits, rows: {"logits": logits},
    models.TextEmbedder: lambda model, outputs, rows: {"vector": outputs},
    Encoder: vectors,
}
