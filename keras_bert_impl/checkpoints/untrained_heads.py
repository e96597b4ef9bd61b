"""Which heads of a model still have the values that they had when it was opened untrained: saves and cards say so.

Values are compared, by their hashes, rather than steps of `fit` counted: a loop of one's own trains, too, and so does
`set_weights`.
"""

import hashlib

from keras_bert_impl.distribution import to_numpy


def remember(model, heads):
    """Keeps the hashes of heads that are untrained.

    Args:
        model: an encoder or one of the models over it.
        heads: their names, the beginnings of the paths of their weights, such as "classifier". All processes must call
            this function, since each may hold a part of the weights.
    """
    model.untrained = tuple((head, _hash(model.weights, head)) for head in sorted(heads))


def untrained_heads(model, weights):
    """The names of the heads, the pooler included, that have not changed since `remember`, among the weights that are
    saved; called by all processes."""
    encoder = getattr(model, "encoder", model)
    remembered = {pair for part in (model, encoder) for pair in getattr(part, "untrained", ())}
    return sorted({head for head, before in remembered if _hash(weights, head) == before})


def _hash(weights, head):
    found = hashlib.sha256()
    for weight in weights:
        if weight.path.startswith(f"{head}/"):
            found.update(weight.path.encode())
            found.update(to_numpy(weight).tobytes())
    return found.hexdigest()
