"""What the page can ask of a served model, and what it shows of the outputs: one panel for each kind of model.

Which panels a model gets follows from its signatures alone (`export_saved_model` lists those of every kind), so that
they fit whatever wrote the SavedModel.
"""

import base64
import typing

import numpy as np

from keras_bert_impl.models.answers import of_length_one
from keras_bert_impl.preprocessing.entities import are_entities, runs_of
from keras_bert_impl.text.tokenizers.words import word_spans

MOST_CHARACTERS = 20_000
# Attention is quadratic: BERT-base returns 144 matrices, 52 MB for a text of 300 tokens.
MOST_CHARACTERS_FOR_ATTENTION = 300
MOST_SENTENCES = 12
MASK = "[MASK]"


class FieldError(ValueError):
    """What is wrong with one field of the form, for the person who filled it in.

    Args:
        field: its name.
        message: what to do.
    """

    def __init__(self, field, message):
        super().__init__(message)
        self.field = field


class Panel(typing.NamedTuple):
    """A task of the page.

    Fields:
        task: its name in the address of the page.
        signature: the one that is asked.
        inputs, outputs: the names by which a model is recognized: exactly these inputs, and at least these outputs.
        request: a function from the fields of the form, texts by name, to the name of the signature and its inputs,
            lists of texts by name. Raises FieldError.
        answer: a function from the fields, the outputs and the model's metadata to what the page shows, as JSON.
    """

    task: str
    signature: str
    inputs: frozenset
    outputs: frozenset
    request: typing.Callable
    answer: typing.Callable

    def fits(self, signatures):
        """Whether a model with these signatures (objects with `inputs` and `outputs`, by name) has this panel."""
        found = signatures.get(self.signature)
        return found is not None and set(found.inputs) == self.inputs and self.outputs <= set(found.outputs)


def panels_of(signatures):
    """The panels of a model, by task."""
    return {panel.task: panel for panel in PANELS if panel.fits(signatures)}


def required(fields, name, what, most=MOST_CHARACTERS):
    """The text of a field. Raises FieldError if it is empty or too long."""
    text = fields.get(name, "")
    if not text.strip():
        raise FieldError(name, f"Write {what} first.")
    if len(text) > most:
        raise FieldError(name, f"This text has {len(text):,} characters; at most {most:,} can be shown here.")
    return text


def lines_of(fields, name, what):
    """The lines of a field that are not empty, 2 to MOST_SENTENCES. Raises FieldError."""
    lines = filled_lines(required(fields, name, what))
    if not 2 <= len(lines) <= MOST_SENTENCES:
        raise FieldError(
            name, f"Write 2 to {MOST_SENTENCES} lines; there {'is' if len(lines) == 1 else 'are'} {len(lines)}."
        )
    return lines


def filled_lines(text):
    """The lines of a text that are not empty, without white space around them."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def texts_of(most=MOST_CHARACTERS, signature="serving_default", **wanted):
    """The request with the texts of fields, of which each has to be filled: what they are by their names."""
    return lambda fields: (signature, {name: [required(fields, name, what, most)] for name, what in wanted.items()})


def guesses(fields, outputs, metadata):
    """For each [MASK]: words and probabilities, the likeliest first; and how many masks the model did not reach."""
    tokens, probabilities = text_array(outputs["tokens"])[0], outputs["probabilities"][0]
    masks = [
        [{"name": token, "probability": float(value)} for token, value in zip(*row, strict=True)]
        for row in zip(tokens.tolist(), probabilities, strict=True)
        if row[0][0]
    ]
    return {"masks": masks, "unread_masks": fields["text"].count(MASK) - len(masks)}


def text_or_pair(fields):
    """The request for classes of a text, or of two texts if the second field is filled."""
    text = required(fields, "text", "a text")
    if not fields.get("text_pair", "").strip():
        return "serving_default", {"text": [text]}
    return "pairs", {"text": [text], "text_pair": [required(fields, "text_pair", "the second text")]}


def classes(fields, outputs, metadata):
    """Every class with its probability, the likeliest first, and the names of those that the model chooses."""
    probabilities = outputs["probabilities"][0]
    names = names_of_classes(metadata, len(probabilities))
    if "labels" in outputs:
        chosen = [name for name in text_array(outputs["labels"])[0].tolist() if name]
    else:
        chosen = [text_array(outputs["label"])[0]]
        names = names or [f"class {number}" for number in range(len(probabilities))]
        names[int(np.argmax(probabilities))] = chosen[0]  # the only name that a model without metadata tells
    names = names or [f"class {number}" for number in range(len(probabilities))]
    order = np.argsort(-probabilities, kind="stable")
    shown = [{"name": names[place], "probability": float(probabilities[place])} for place in order]
    return {"classes": shown, "chosen": chosen, "several": "labels" in outputs}


def names_of_classes(metadata, count):
    """The names of the classes in the config.json that an export writes; None if it does not have `count` of them."""
    names = metadata.get("id2label")
    if not isinstance(names, dict) or set(names) != {str(number) for number in range(count)}:
        return None
    return [str(names[str(number)]) for number in range(count)]


def number(name):
    """The answer of a model whose output of this name is a number for the texts."""
    return lambda fields, outputs, metadata: {name: float(outputs[name][0])}


def answer_in_context(fields, outputs, metadata):
    """The passage in three parts, of which the second is the answer, "" if there is none."""
    passage, begin, end = fields["context"].encode(), int(outputs["begin"][0]), int(outputs["end"][0])
    before, answer, after = (
        part.decode("utf-8", "replace") for part in (passage[:begin], passage[begin:end], passage[end:])
    )
    return {"before": before, "answer": answer, "after": after}


def text_in_words(fields):
    """The request for the entities of a text."""
    # Words as `tag` cuts them: the SavedModel itself parts them only at white space.
    words = words_of(required(fields, "text", "a text"))
    return "serving_default", {"text": [" ".join(word for word, _, _ in words)]}


def entities(fields, outputs, metadata):
    """The text in parts, those that are entities with label and probability; and how many words were not read."""
    labels, words = text_array(outputs["labels"])[0].tolist(), words_of(fields["text"])
    if len(labels) != len(words):
        raise ValueError(f"The model returned {len(labels)} labels for {len(words)} words.")
    names = names_of_classes(metadata, len(metadata.get("id2label") or ()))
    parts = marked_parts(fields["text"], words, labels, outputs["probabilities"][0], names)
    return {"parts": parts, "unread_words": labels.count("")}


def words_of(text):
    """The words of a text: list of (word, number of its first character, of the one after its last)."""
    return [(text[first:last], first, last) for first, last in word_spans(text)]


def marked_parts(text, words, labels, probabilities, class_names=None):
    """The text in parts that together are the whole text.

    Args:
        text: any text.
        words: as `words_of` returns them.
        labels: of the words; "" for a word that the model did not read.
        probabilities: of these labels.
        class_names: all labels that the model has; None if they are not known.

    Returns: list of dicts with `text`, and for an entity (or, if labels mark words instead, for a word) also `label`
        and `probability`, the mean over its words.
    """
    read = [label or "O" for label in labels]
    known = set(class_names or ()) | set(read)
    # A part-of-speech tagger labels every word. Without its classes, "O" stands for words that were not read.
    marks_words = not class_names and "" in labels and not are_entities(known - {"O"})
    names = known - {"O"} if marks_words else known
    parts, place = [], 0
    for label, first, last in runs_of(read, names):
        if not labels[first]:
            continue
        begin, end = words[first][1], words[last][2]
        if begin > place:
            parts.append({"text": text[place:begin]})
        share = float(np.mean(probabilities[first : last + 1]))
        parts.append({"text": text[begin:end], "label": label, "probability": share})
        place = end
    return [*parts, {"text": text[place:]}] if place < len(text) else parts


def sentences(fields):
    """The request for the vectors of the lines of the field, of which there are two or more."""
    return "serving_default", {"text": lines_of(fields, "sentences", "two sentences or more, one on each line")}


def cosines(name):
    """The answer of a model whose output of this name is a vector for each text."""

    def answer(fields, outputs, metadata):
        vectors = of_length_one(np.asarray(outputs[name], "float64"))
        return {"sentences": filled_lines(fields["sentences"]), "cosines": np.round(vectors @ vectors.T, 4).tolist()}

    return answer


def text_and_endings(fields):
    """The request for the likeliest of several endings of a text, one on each line."""
    text = required(fields, "text", "the beginning")
    endings = lines_of(fields, "endings", "two endings or more, one on each line")
    return "serving_default", {"text": [text], "endings": [endings]}


def likely_endings(fields, outputs, metadata):
    """Every ending with its probability, as they were written, and the number of the likeliest."""
    probabilities = outputs["probabilities"][0]
    endings = filled_lines(fields["endings"])
    shown = [
        {"name": ending, "probability": float(value)} for ending, value in zip(endings, probabilities, strict=True)
    ]
    return {"endings": shown, "chosen": int(outputs["class_id"][0])}


def attention(fields, outputs, metadata):
    """The tokens, and the attention of every head in 255ths, as base64 of bytes (layers, heads, length, length)."""
    weights = np.asarray(outputs["attention"][0], "float32")
    layers, heads, _, _ = weights.shape
    shares = np.rint(weights * 255).astype("uint8")
    return {
        "tokens": text_array(outputs["tokens"])[0].tolist(),
        "layers": layers,
        "heads": heads,
        "weights": base64.b64encode(shares.tobytes()).decode(),
    }


def text_array(array):
    """An array of bytes as one of str."""
    decode = np.vectorize(lambda value: value.decode("utf-8", "replace"), otypes=[object])
    return decode(array) if array.size else array.astype(object)


def panel(task, inputs, outputs, request, answer, signature="serving_default"):
    """A Panel, its names given as words."""
    return Panel(task, signature, frozenset(inputs.split()), frozenset(outputs.split()), request, answer)


MASKED_TEXT = texts_of(text=f"a sentence with {MASK} in it")
TWO_TEXTS = texts_of(text="the first text", text_pair="the second text")
QUESTION = texts_of(question="a question", context="a passage")
SHORT_TEXT = texts_of(MOST_CHARACTERS_FOR_ATTENTION, "attention", text="a sentence")
PANELS = (
    panel("fill-mask", "text", "tokens token_ids probabilities", MASKED_TEXT, guesses),
    panel("classify", "text", "probabilities class_id label", text_or_pair, classes),
    panel("classify", "text", "logits probabilities labels", text_or_pair, classes),
    panel("rate", "text", "value", text_or_pair, number("value")),
    panel("next-sentence", "text text_pair", "logits probability", TWO_TEXTS, number("probability")),
    panel("answer", "question context", "answer begin end", QUESTION, answer_in_context),
    panel("entities", "text", "words labels probabilities", text_in_words, entities),
    panel("compare", "text", "vector", sentences, cosines("vector")),
    panel("compare", "text", "mean_pooled", sentences, cosines("mean_pooled")),
    panel("choose", "text endings", "probabilities class_id", text_and_endings, likely_endings),
    panel("attention", "text", "tokens attention", SHORT_TEXT, attention, signature="attention"),
)
