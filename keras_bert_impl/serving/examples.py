"""Classify and Regress: signatures that take serialized tf.train.Examples, asked over REST or gRPC.

The SavedModels that this library exports have none: their signatures take texts, and are asked with Predict.
"""

import numpy as np

from keras_bert_impl.serving.errors import invalid
from keras_bert_impl.serving.signatures import find_signature

CLASSIFY, REGRESS = "tensorflow/serving/classify", "tensorflow/serving/regress"


async def classify(manager, servable, signature_name, examples, seconds=None):
    """The classes of each example.

    Args:
        manager: ModelManager.
        servable: what `manager.using` gave.
        signature_name: "" for the default.
        examples: list of serialized tf.train.Examples.
        seconds: how long to wait, at most.

    Returns: for each example a list of (label, score); the label is "" if the model names none.
    Raises: ServingError.
    """
    outputs = await ask(manager, servable, signature_name, examples, CLASSIFY, ("classes", "scores"), seconds)
    shown = outputs["scores"] if "scores" in outputs else outputs["classes"]
    labels = outputs.get("classes", np.full(shown.shape, b"", object))
    scores = outputs.get("scores", np.zeros(shown.shape, np.float32))
    if labels.ndim != 2 or labels.shape != scores.shape or len(labels) != len(examples):
        raise invalid(f"The model returned classes {labels.shape} and scores {scores.shape}, not one row per example.")
    return [
        [(label.decode("utf-8", "replace"), float(score)) for label, score in zip(*row, strict=True)]
        for row in zip(labels, scores, strict=True)
    ]


async def regress(manager, servable, signature_name, examples, seconds=None):
    """The value of each example, a list of floats; arguments and errors as for `classify`."""
    outputs = await ask(manager, servable, signature_name, examples, REGRESS, ("outputs",), seconds)
    values = outputs["outputs"]
    if values.size != len(examples):
        raise invalid(f"The model returned values {values.shape}, not one for each of {len(examples)} examples.")
    return [float(value) for value in values.ravel()]


async def ask(manager, servable, signature_name, examples, method, names, seconds):
    """The outputs of a signature for examples. Raises ServingError unless it is one for this method."""
    signature = find_signature(servable, signature_name)
    if signature.method_name != method:
        raise invalid(
            f"Expected {method.rpartition('/')[2]} signature method_name to be {method}. Was: {signature.method_name}. "
            "A signature that takes texts is asked with predict."
        )
    if len(signature.inputs) != 1 or not set(names) & set(signature.outputs):
        raise invalid(f"Signature {signature.name} needs one input, and an output named {' or '.join(names)}.")
    serialized = np.empty(len(examples), object)
    serialized[:] = examples
    return await manager.ask(servable, {next(iter(signature.inputs)): serialized}, signature.name, seconds)
