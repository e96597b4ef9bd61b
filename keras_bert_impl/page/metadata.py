"""What the page reads in the config.json that an export writes beside its SavedModel; any of it may be missing."""

from keras_bert_impl.page.entities import words_of
from keras_bert_impl.serving.text_checks import longest_row

# Of the tasks whose outputs do not show that a text was cut. Question answering reads passages of any length.
CUT_UNSEEN = ("classify", "rate", "next-sentence", "compare")


def names_of_classes(metadata, count):
    """The names of the classes in the config.json that an export writes; None if it does not have `count` of them."""
    names = metadata.get("id2label")
    if not isinstance(names, dict) or set(names) != {str(number) for number in range(count)}:
        return None
    return [str(names[str(number)]) for number in range(count)]


def is_cut(task, inputs, metadata):
    """Whether the model reads only the beginning of one of its texts, as far as the number of words shows it.

    A text has at least as many tokens as words: False says nothing. Always False for tasks not in CUT_UNSEEN.

    Args:
        task: name of the panel.
        inputs: lists of texts by name, equally long.
        metadata: what config.json holds.
    """
    length = longest_row(metadata)
    if task not in CUT_UNSEEN or length is None:
        return False
    control_tokens = 1 + len(inputs)  # [CLS], and a [SEP] after each text
    return any(
        control_tokens + sum(len(words_of(text)) for text in row) > length for row in zip(*inputs.values(), strict=True)
    )
