"""The names that transformers gives to the arrays of its models, and ours: the files of exports have the former, so
that other programs open them."""

from keras import ops

INPUTS = {"input_ids": "token_ids", "token_type_ids": "segment_ids", "attention_mask": "padding_mask"}
OUTPUTS = {"sequence_output": "last_hidden_state", "pooled_output": "pooler_output", "vector": "sentence_embedding"}


def own_rows(model, arrays):
    """The inputs of a model, from those of a file; a masked LM scores words at all positions, as transformers' do."""
    rows = {ours: ops.cast(arrays[theirs], "int32") for theirs, ours in INPUTS.items()}
    if "mask_positions" in model.input:
        rows["mask_positions"] = ops.cumsum(ops.ones_like(rows["token_ids"]), axis=-1) - 1
    return rows


def file_outputs(outputs):
    """The outputs of a file, from those of `named_outputs`."""
    # A regression is a classifier of one class there.
    logits = {"logits": outputs["value"][:, None]} if "value" in outputs else {}
    return {**{OUTPUTS.get(name, name): array for name, array in outputs.items()}, **logits}


def own_outputs(outputs):
    """The outputs of `named_outputs`, from those of a file."""
    # These have outputs of tokens, or of one class, for other programs alone.
    others = {"sentence_embedding": "last_hidden_state", "value": "logits"}
    left_out = {other for name, other in others.items() if name in outputs}
    ours = {theirs: name for name, theirs in OUTPUTS.items()}
    return {ours.get(name, name): array for name, array in outputs.items() if name not in left_out}
