"""Names that are known, and what a misspelt one was meant to be."""

import difflib

# Options of transformers' scripts, and ours for the same, whose spellings are too far apart to be found by that.
MEANINGS = {
    "gradient_checkpointing": "rematerialize",
    "max_seq_length": "sequence_length",
    "model_name_or_path": "model",
    "num_train_epochs": "epochs",
    "per_device_train_batch_size": "batch_size",
}


def did_you_mean(name, known):
    """A question for the end of a message, with the known name that means the same, or is most like `name`; empty if
    none does or is."""
    same = [MEANINGS[name]] if MEANINGS.get(name) in known else []
    close = same or difflib.get_close_matches(str(name), list(known), 1)
    return f" Did you mean {close[0]}?" if close else ""


def one_of(name, value, known):
    """`value`, of an argument of this name. Raises ValueError if it is none of `known`."""
    if value not in known:
        raise ValueError(f"{name} {value!r} is unknown; known are {', '.join(map(str, known))}.")
    return value
