"""Models of Hugging Face transformers with random weights, to compare with."""

import numpy as np
import pytest

from keras_bert_impl.encoders import FAMILIES


def random_model(class_name, config, directory, deviation=0.2, **their_fields):
    """A transformers model in the shape of a configuration of its family, saved to `directory`.

    Every weight is random: initial biases of 0 and norms of 1 would hide that one is mistaken for another. Their
    standard deviation is large, as the widths of the tests are small.
    """
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(5)
    their_config = getattr(transformers, type(config).__name__)(
        **{**config.to_huggingface(), **their_fields}, attn_implementation="eager"
    )
    model = class_of(class_name)(their_config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            is_norm = "layernorm.weight" in name.lower().replace("_", "")
            weight.normal_(1.0 if is_norm else 0.0, deviation)
    model.save_pretrained(directory)
    return model


def class_of(name):
    """The class of transformers that we call so, by families and tasks, like XLNetForMaskedLM."""
    transformers = pytest.importorskip("transformers")
    of_families = {
        family.config_class.class_prefix() + task: family.class_name(task)
        for family in FAMILIES
        for task in family.class_ends
    }
    return getattr(transformers, of_families.get(name, name))


def open_in_transformers(class_name, directory):
    """The checkpoint as transformers opens it, after asserting that it finds each tensor and no others; but the pooler
    that a BigBird has beside the dense layer of its classifier, and does not use."""
    model, found = class_of(class_name).from_pretrained(
        directory, attn_implementation="eager", output_loading_info=True
    )
    unused = {"bert.pooler.weight", "bert.pooler.bias"} if class_name == "BigBirdForSequenceClassification" else set()
    assert set(found["missing_keys"]) <= unused and not found["unexpected_keys"] and not found["mismatched_keys"]
    return model.eval()


def outputs_of(model, batch, **arguments):
    """The outputs of a transformers model for our arrays, with labels as keywords: NumPy arrays by name."""
    torch = pytest.importorskip("torch")
    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids", "padding_mask": "attention_mask"}
    if getattr(model.config, "type_vocab_size", 0) < 2 and model.config.model_type != "xlnet":
        del names["segment_ids"]  # for a family without segments, or with a single one
    inputs = {theirs: batch[ours] for ours, theirs in names.items()} | arguments
    if model.config.model_type == "big_bird" and not is_sparse(model.config, inputs["input_ids"].shape[-1]):
        # It would replace its layers by these while it computes, and lose their attention.
        getattr(model, model.base_model_prefix, model).set_attention_type("original_full")
    with torch.no_grad():
        outputs = model(
            **{
                name: torch.as_tensor(array, dtype=torch.float if np.asarray(array).dtype == "float32" else torch.long)
                for name, array in inputs.items()
            }
        )
    # A tuple holds one tensor for each layer; XLNet's memory is None.
    found = {
        name: [array.numpy() for array in found] if isinstance(found, tuple) else found.numpy()
        for name, found in outputs.items()
        if name != "mems"
    }
    if model.config.model_type == "longformer" and "attentions" in found and "global_attentions" not in found:
        found["attentions"] = list(map(whole_attention, found["attentions"]))
    if model.config.model_type == "big_bird":
        length = batch["token_ids"].shape[1]
        for name, cut in (("hidden_states", np.s_[:, :length]), ("attentions", np.s_[:, :, :length, :length])):
            if name in found:  # filled up to whole blocks
                found[name] = [array[cut] for array in found[name]]
        if "attentions" in found and not model.training:
            found["attentions"] = [summed_shares(array, model.config) for array in found["attentions"]]
    return found


def summed_shares(probabilities, config):
    """A BigBird's probabilities outside training, (batch, heads, length, length): all random blocks are the first one,
    and transformers gives the share of one of them."""
    size, length = config.block_size, probabilities.shape[-1]
    if not is_sparse(config, length):
        return probabilities
    whole = probabilities.copy()
    whole[:, :, size : (length - 1) // size * size, :size] *= 1 + config.num_random_blocks
    return whole


def is_sparse(config, length):
    """Whether the blocks of a row of a BigBird see only some others."""
    return config.attention_type == "block_sparse" and length > (5 + 2 * config.num_random_blocks) * config.block_size


def whole_attention(windowed):
    """Probabilities of a window around each query, (batch, heads, length, window + 1), as those of the whole row,
    (batch, heads, length, length)."""
    batch, heads, length, width = windowed.shape
    whole = np.zeros((batch, heads, length, length + width - 1), windowed.dtype)
    for query in range(length):
        whole[:, :, query, query : query + width] = windowed[:, :, query]
    return whole[..., width // 2 : width // 2 + length]


def masked_words(model, rows, positions):
    """The logits of a transformers model at masked positions, (batch, predictions, vocabulary)."""
    if model.config.model_type != "xlnet":
        return np.take_along_axis(outputs_of(model, rows)["logits"], positions[..., None], axis=1)
    # No token sees one that is predicted, and each is predicted by a query at its place. But in the first column, 0 is
    # padding.
    is_real = (positions > 0) | (np.arange(positions.shape[1]) == 0)
    is_here = (positions[..., None] == np.arange(rows["token_ids"].shape[1])) & is_real[..., None]
    is_hidden = np.repeat(is_here.any(axis=1)[:, None], rows["token_ids"].shape[1], axis=1)
    return outputs_of(model, rows, perm_mask=is_hidden, target_mapping=is_here.astype("float32"))["logits"]


def check_sequences_of_a_packed_row(alone, packed, rows):
    """Asserts that two Pretrainers of equal weights give the same for the first tokens of two rows, and for these in
    one row."""
    first, second = ({name: array[row : row + 1, :n] for name, array in rows.items()} for row, n in ((0, 4), (1, 5)))
    row = {name: np.concatenate([first[name], second[name]], axis=1) for name in first}
    row["position_ids"] = np.array([[0, 1, 2, 3, 0, 1, 2, 3, 4]], "int32")
    row["sequence_ids"] = np.array([[1] * 4 + [2] * 5], "int32")
    row["mask_positions"] = np.array([[2, 7]], "int32")
    found = packed.predict_on_batch(row)["masked_lm_logits"]
    for rows, position, place in ((first, 2, 0), (second, 3, 1)):
        rows["mask_positions"] = np.array([[position]], "int32")
        expected = alone.predict_on_batch(rows)["masked_lm_logits"]
        np.testing.assert_allclose(found[:, place : place + 1], expected, atol=1e-5)
