"""Stands in for the server's models: one of every kind that the page knows, whose outputs are small and fixed."""

import types

import numpy as np

from keras_bert_serving.limits import Limits

METADATA = {"id2label": {"0": "bad", "1": "fair", "2": "good"}}


class StandIn:
    """What `page.make_page` takes.

    Attributes:
        asked: (model, signature, inputs) of each request.
        loading: how many models it says are still being loaded.
        failure: an exception to raise instead of answering, or None.
        longest: how many tokens it says that it read of a longer text, or None.
    """

    def __init__(self, *names):
        self.models = [described(name) for name in names or KINDS]
        self.asked, self.failure, self.longest, self.limits, self.loading = [], None, None, Limits(), 0

    async def ask(self, model, inputs, signature="serving_default"):
        self.asked.append((model.name, signature, inputs))
        if self.failure is not None:
            raise self.failure
        return KINDS[model.name][signature](**inputs)

    async def cut_to(self, model, inputs, signature="serving_default"):
        return self.longest


def described(name):
    """What the server tells about a model: names of inputs and outputs, as its functions have them."""
    signatures = {
        signature: types.SimpleNamespace(
            inputs=dict.fromkeys(function.__code__.co_varnames[: function.__code__.co_argcount]),
            outputs=dict.fromkeys(function(**EXAMPLES[function.__name__])),
        )
        for signature, function in KINDS[name].items()
    }
    metadata = METADATA if name == "moods" else {}
    return types.SimpleNamespace(name=name, signatures=signatures, metadata=metadata)


def strings(rows):
    return np.array([[word.encode() for word in row] for row in rows], object)


def fill(text):
    masks = min(text[0].count("[MASK]"), 2)  # a third one would lie beyond what the model reads
    tokens = [["cat", "dog", "##s"], ["mat", "sofa", "hat"]][:masks]
    probabilities = [[0.7, 0.2, 0.004], [0.999, 0.0006, 0.0004]][:masks]
    return {
        "tokens": np.array([[[word.encode() for word in row] for row in tokens]], object).reshape(1, masks, 3),
        "token_ids": np.zeros((1, masks, 3), int),
        "probabilities": np.array([probabilities], "float32").reshape(1, masks, 3),
    }


def chosen(place, label, *probabilities):
    array = np.array([probabilities], "float32")
    names = {"class_id": np.array([place]), "label": strings([[label]])[0]}
    return {"logits": array, "probabilities": array, **names}


def classify(text):
    return chosen(2, "good", 0.1, 0.15, 0.75)


def classify_pair(text, text_pair):
    return chosen(0, "bad", 0.9, 0.06, 0.04)


def rate(text):
    return {"value": np.array([3.14159], "float32")}


def follow(text, text_pair):
    share = 0.92 if "door" in text_pair[0] else 0.11
    return {"logits": np.zeros((1, 2)), "probability": np.array([share], "float32")}


def answer(question, context):
    context = context[0].encode()
    begin = context.find(b"1937")
    begin, end = (begin, begin + 4) if begin >= 0 else (0, 0)
    found = {"answer": np.array([context[begin:end]], object), "begin": np.array([begin]), "end": np.array([end])}
    return {**found, "score": np.zeros(1), "null_odds": np.zeros(1)}


def label_words(text):
    words = text[0].split()
    names = {"Ada": "B-person", "Lovelace": "I-person", "London": "B-place"}
    labels = [names.get(word, "O") if place < 30 else "" for place, word in enumerate(words)]
    return {"words": strings([words]), "labels": strings([labels]), "probabilities": np.full((1, len(words)), 0.8)}


def embed(text):
    return {"vector": np.array([[len(line), 10.0, line.count("a")] for line in text], "float32")}


def choose(text, endings):
    probabilities = np.array([[0.2, 0.7, 0.1][: len(endings[0])]])
    return {"logits": probabilities, "probabilities": probabilities, "class_id": np.array([1])}


def attend(text):
    tokens = ["[CLS]", *text[0].split(), "[SEP]"]
    shares = np.zeros((1, 2, 3, len(tokens), len(tokens)))
    shares[..., 1] = 0.75  # every token looks at the second, and a little at the last
    shares[..., -1] += 0.25
    return {"tokens": strings([tokens]), "attention": shares}


KINDS = {
    "words": {"serving_default": fill, "attention": attend},
    "moods": {"serving_default": classify, "pairs": classify_pair},
    "stars": {"serving_default": rate},
    "stories": {"serving_default": follow},
    "passages": {"serving_default": answer},
    "names": {"serving_default": label_words},
    "vectors": {"serving_default": embed},
    "endings": {"serving_default": choose},
}
EXAMPLES = {
    **{name: {"text": ["a [MASK]"]} for name in ("fill", "classify", "rate", "label_words", "embed", "attend")},
    **{name: {"text": ["a"], "text_pair": ["b"]} for name in ("classify_pair", "follow")},
    "answer": {"question": ["a"], "context": ["b"]},
    "choose": {"text": ["a"], "endings": [["b", "c"]]},
}
