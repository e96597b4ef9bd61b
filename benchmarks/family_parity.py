"""Largest differences between our outputs and those of transformers, for each family and head, in both directions.

    KERAS_BACKEND=jax python benchmarks/family_parity.py

Every weight is random, also biases and norms, which new models start with 0 and 1. The
checkpoints of transformers are opened here, and ours there, whose missing or unknown tensors are an error. The
encoder's figure is over its last hidden states, those of every layer, the attention of every head and the pooled
output; the larger figure of the two directions is printed. Prints a table in Markdown; the families and heads are those
of the tests, in a larger shape. Needs transformers.
"""

import dataclasses
import pathlib
import sys
import tempfile

import keras
import numpy as np

import keras_bert_impl as kbi

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))
from families import CONFIGS, encoder_of, rows_for
from models.test_heads import HEADS, HEADS_OF_FAMILIES, inputs_of, logits_of
from reference_models import masked_words, open_in_transformers, outputs_of, random_model

LARGER = {"vocabulary_size": 2000, "hidden_size": 192, "num_heads": 6, "intermediate_size": 512, "max_length": 64}
WIDTHS = {9: 64, 15: 192}  # of embeddings, by those of the tests
DEVIATION = 0.05  # of the weights, about that of trained ones


def config_of(form):
    """The configuration of a form of a family, in the larger shape."""
    config = CONFIGS[form]
    shape = {**LARGER, "num_layers": 2 * config.num_layers}
    if hasattr(config, "embedding_size"):
        shape["embedding_size"] = WIDTHS[config.embedding_size]
    for name in ("attention_window", "layer_types"):
        if isinstance(of_layers := getattr(config, name, None), tuple):
            shape[name] = 2 * of_layers
    if hasattr(config, "block_size"):  # so that the rows have blocks that see some others
        shape["block_size"] = 4
    return dataclasses.replace(config, **shape)


def rows_of(config):
    """Four rows of 48 tokens, one half empty and one of a single token."""
    random, lengths = np.random.default_rng(0), np.array([48, 48, 24, 1])
    is_token = np.arange(48) < lengths[:, None]
    batch = {
        "token_ids": random.integers(5, config.vocabulary_size, (4, 48)).astype("int32"),
        "segment_ids": np.where(is_token & (np.arange(48) >= lengths[:, None] // 2), 1, 0).astype("int32"),
        "padding_mask": is_token.astype("int32"),
        "mask_positions": np.zeros((4, 1), "int32"),
    }
    return rows_for(config, batch)


def difference(found, expected, tokens):
    """The largest difference; of outputs for each token, padding is left out."""
    if found.shape[:2] == tokens.shape:
        found, expected = found[tokens], expected[tokens]
    return float(np.abs(found - expected).max())


def of_encoder(config, folder):
    """Of an encoder."""
    rows, every = rows_of(config), {"return_hidden_states": True, "return_attention": True}
    name, outputs = f"{config.class_prefix()}Model", {"output_hidden_states": True, "output_attentions": True}
    theirs = random_model(name, config, folder / "theirs", DEVIATION, **outputs)
    encoder = encoder_of(config).from_pretrained(folder / "theirs", **every)
    encoder.save_pretrained(folder / "ours")
    again = open_in_transformers(name, folder / "ours")
    again.config.output_hidden_states = again.config.output_attentions = True
    ours, tokens = encoder.predict_on_batch(rows), rows["padding_mask"] == 1
    differences = []
    for model in (theirs, again):
        outputs = outputs_of(model, rows)
        differences.append(difference(ours["sequence_output"], outputs["last_hidden_state"], tokens))
        for layer, states in enumerate(outputs["hidden_states"]):
            differences.append(difference(ours["hidden_states"][:, layer], states, tokens))
        for layer, probabilities in enumerate(outputs["attentions"]):
            # (batch, heads, length, length) as (batch, length, heads, length)
            found, expected = ours["attention_probabilities"][:, layer].swapaxes(1, 2), probabilities.swapaxes(1, 2)
            differences.append(difference(found, expected, tokens))
        if "pooled_output" in encoder.output:
            differences.append(difference(ours["pooled_output"], outputs["pooler_output"], tokens))
    return max(differences)


def of_masked_lm(config, folder):
    """Of a masked LM, at all tokens; of an XLNet, whose predicted tokens see only others, at a third of them."""
    rows, name = rows_of(config), f"{config.class_prefix()}ForMaskedLM"
    theirs = random_model(name, config, folder / "theirs", DEVIATION)
    model = kbi.MaskedLM.from_pretrained(folder / "theirs")
    model.save_pretrained(folder / "ours")
    step = 3 if encoder_of(config).tokens_of_predictions[0] else 1
    positions = np.tile(np.arange(0, 48, step, dtype="int32"), (4, 1))
    found, tokens = model.predict_on_batch({**rows, "mask_positions": positions}), rows["padding_mask"][:, ::step] == 1
    again = open_in_transformers(name, folder / "ours")
    return max(difference(found, masked_words(model, rows, positions), tokens) for model in (theirs, again))


def of_head(kind, form, config, folder):
    """Of a head for fine-tuning."""
    task, ours, fields, _ = HEADS[kind]
    rows, name = rows_of(config), form.split(",")[0] + task
    theirs = random_model(name, config, folder / "theirs", DEVIATION, **fields)
    model = ours.from_pretrained(folder / "theirs")
    model.save_pretrained(folder / "ours")
    inputs, tokens = inputs_of(kind, rows), rows["padding_mask"] == 1
    found, again = model.predict_on_batch(inputs), open_in_transformers(name, folder / "ours")
    return max(difference(found, logits_of(kind, other, inputs), tokens) for other in (theirs, again))


def main():
    heads = ["encoder", "masked_lm", *HEADS]
    print(f"| {keras.backend.backend()} | {' | '.join(head.replace('_', ' ') for head in heads)} |")
    print(f"| --- |{' --- |' * len(heads)}")
    for form in CONFIGS:
        config, cells = config_of(form), []
        for head in heads:
            with tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                if head == "encoder":
                    cells.append(f"{of_encoder(config, folder):.1e}")
                elif head == "masked_lm":
                    cells.append(f"{of_masked_lm(config, folder):.1e}")
                elif (form, head) in HEADS_OF_FAMILIES:
                    cells.append(f"{of_head(head, form, config, folder):.1e}")
                else:
                    cells.append("")
        print(f"| {form} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
