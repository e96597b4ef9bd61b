"""What the encoders of all families have in common, held against transformers."""

import dataclasses
import functools
import json

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS
from families import CONFIGS, FAMILIES, encoder_of, every_config, every_family, of_tokens, rows_for
from reference_models import masked_words, open_in_transformers, outputs_of, random_model
from tiers import every_backend, full_but, once

import keras_bert_impl as kbi
from keras_bert_impl.encoders import count_parameters
from keras_bert_impl.encoders.trainable import enable_lora, freeze_layers, merge_lora
from keras_bert_impl.optimization import layer_rates

# Each has layers or tables that no other one has.
SOME = ("Bert", "Electra", "Longformer", "BigBird", "ModernBert", "DebertaV2", "XLNet", "Albert")


def with_first(first, **where):
    """All configurations, of which `make test` runs only these."""
    return pytest.mark.parametrize("config", full_but(CONFIGS.values(), *map(CONFIGS.get, first), **where), ids=CONFIGS)


families_first, some_families = with_first(FAMILIES), with_first(SOME)


@functools.cache
def built(config):
    """An encoder whose weights no test changes."""
    return encoder_of(config)(config)


@every_backend
@with_first(FAMILIES, on=("tensorflow", "jax"))
def test_every_hidden_state_and_attention_is_that_of_transformers(config, small_batch, tmp_path):
    rows = rows_for(config, small_batch)
    theirs = random_model(
        f"{config.class_prefix()}Model", config, tmp_path, output_hidden_states=True, output_attentions=True
    )
    encoder = encoder_of(config).from_pretrained(tmp_path, return_hidden_states=True, return_attention=True)
    assert encoder.config == config
    encoder.save_pretrained(tmp_path / "ours")
    again = open_in_transformers(f"{config.class_prefix()}Model", tmp_path / "ours").state_dict()
    for name, tensor in theirs.state_dict().items():
        np.testing.assert_array_equal(again[name], tensor, err_msg=name)
    theirs = outputs_of(theirs, rows)
    ours = encoder.predict_on_batch(rows)
    # All with the length as the second axis.
    pairs = [
        (ours["sequence_output"], theirs["last_hidden_state"]),
        (np.moveaxis(ours["hidden_states"], 2, 1), np.stack(theirs["hidden_states"], axis=2)),
        (np.moveaxis(ours["attention_probabilities"], 3, 1), np.moveaxis(np.stack(theirs["attentions"], axis=1), 3, 1)),
    ]
    for found, expected in pairs:
        np.testing.assert_allclose(of_tokens(rows, found), of_tokens(rows, expected), atol=1e-5)
    assert ("pooled_output" in ours) == (theirs.get("pooler_output") is not None)
    if "pooled_output" in ours:
        np.testing.assert_allclose(ours["pooled_output"], theirs["pooler_output"], atol=1e-5)


@pytest.mark.parametrize(
    "config",
    [config for config in map(CONFIGS.get, FAMILIES) if "num_segments" in config.to_dict()],
    ids=lambda config: config.family,
)
def test_with_one_segment_pairs_are_computed_as_by_transformers_without_segments(config, small_batch, tmp_path):
    config = dataclasses.replace(config, num_segments=1)
    rows = rows_for(config, small_batch)
    assert rows["segment_ids"].any()
    theirs = random_model(f"{config.class_prefix()}Model", config, tmp_path)
    without_segments = {**rows, "segment_ids": np.zeros_like(rows["segment_ids"])}
    expected = outputs_of(theirs, without_segments)["last_hidden_state"]
    ours = encoder_of(config).from_pretrained(tmp_path).predict_on_batch(rows)["sequence_output"]
    np.testing.assert_allclose(of_tokens(rows, ours), of_tokens(rows, expected), atol=1e-5)


@families_first
def test_masked_words_are_guessed_as_by_transformers(config, small_batch, tmp_path):
    rows, positions = rows_for(config, small_batch), small_batch["mask_positions"]
    name = f"{config.class_prefix()}ForMaskedLM"

    theirs = random_model(name, config, tmp_path / "theirs")
    model = kbi.MaskedLM.from_pretrained(tmp_path / "theirs")
    found = model.predict_on_batch({**rows, "mask_positions": positions})[positions > 0]
    np.testing.assert_allclose(found, masked_words(theirs, rows, positions)[positions > 0], atol=1e-5)
    model.save_pretrained(tmp_path / "ours")
    again = open_in_transformers(name, tmp_path / "ours")
    np.testing.assert_allclose(found, masked_words(again, rows, positions)[positions > 0], atol=1e-5)


@pytest.mark.parametrize("name", ["Albert", "Albert, two groups of two", "BigBird", "Ernie, with tasks and gelu"])
def test_both_heads_of_pretraining_are_those_of_transformers(name, small_batch, tmp_path):
    config, positions = CONFIGS[name], small_batch["mask_positions"]
    rows, name = rows_for(config, small_batch), f"{config.class_prefix()}ForPreTraining"
    theirs = random_model(name, config, tmp_path / "theirs")
    model = kbi.Pretrainer.from_pretrained(tmp_path / "theirs")
    found = model.predict_on_batch({**rows, "mask_positions": positions})
    model.save_pretrained(tmp_path / "ours")
    for other in (theirs, open_in_transformers(name, tmp_path / "ours")):
        outputs = outputs_of(other, rows)
        expected = np.take_along_axis(outputs["prediction_logits"], positions[..., None], axis=1)
        np.testing.assert_allclose(found["masked_lm_logits"], expected, atol=1e-5)
        pairs = outputs["sop_logits"] if config.model_type == "albert" else outputs["seq_relationship_logits"]
        np.testing.assert_allclose(found["next_sentence_logits"], pairs, atol=1e-5)


@families_first
def test_a_packed_row_gives_what_its_sequences_give_alone(config, small_batch):
    encoder, packed = built(config), encoder_of(config)(config, packed=True)
    packed.set_weights(encoder.get_weights())
    ids = rows_for(config, small_batch)["token_ids"][:1]
    inputs = {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": np.array([[1, 1, 1, 1, 1, 1, 0]], "int32"),
        "position_ids": np.array([[0, 1, 2, 0, 1, 2, 0]], "int32"),
        "sequence_ids": np.array([[1, 1, 1, 2, 2, 2, 0]], "int32"),
    }
    found = packed.predict_on_batch(inputs)["sequence_output"]
    for part in (slice(0, 3), slice(3, 6)):
        alone = {name: inputs[name][:, part] for name in ("token_ids", "segment_ids", "padding_mask")}
        np.testing.assert_allclose(found[:, part], encoder.predict_on_batch(alone)["sequence_output"], atol=1e-5)


@some_families
def test_a_keras_file_holds_encoder_and_head(config, small_batch, tmp_path):
    rows, model = rows_for(config, small_batch), kbi.TextClassifier(encoder_of(config)(config), 3)
    model.save(tmp_path / "model.keras")
    reloaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(reloaded.predict_on_batch(rows), model.predict_on_batch(rows), atol=1e-6)
    assert type(reloaded.encoder) is encoder_of(config) and reloaded.encoder.config == config


@every_config
def test_a_built_encoder_has_the_parameters_that_its_configuration_counts(config):
    assert built(config).count_params() == count_parameters(config)


@every_family
def test_an_encoder_opens_by_its_config_and_not_as_one_of_another_family(config, tmp_path):
    """RoBERTa's tensors, as those of others, have the names and shapes of BERT's."""
    built(config).save_pretrained(tmp_path)
    assert type(kbi.encoder_from_pretrained(tmp_path)) is encoder_of(config)
    other = kbi.DistilBertEncoder if config.model_type != "distilbert" else kbi.BertEncoder
    with pytest.raises(ValueError, match=f"is a {config.family}, not a {other.config_class.family}"):
        other.from_pretrained(tmp_path)
    content = json.loads((tmp_path / "config.json").read_text())
    del content["model_type"]
    (tmp_path / "config.json").write_text(json.dumps(content))
    if config.model_type == "bert":
        assert type(kbi.encoder_from_pretrained(tmp_path)) is kbi.BertEncoder
        return
    with pytest.raises(ValueError, match="model_type None of "):
        kbi.encoder_from_pretrained(tmp_path)


@every_family
def test_a_step_in_bfloat16_with_blocks_computed_twice_reaches_every_weight(config, small_batch):
    encoder = encoder_of(config)(config, rematerialize=True, dtype="mixed_bfloat16")
    model = kbi.TextClassifier(encoder, 3)
    # Of relative positions, all products are small at first: a rate of 1 would move a norm by less than its last bit.
    model.compile(optimizer=keras.optimizers.SGD(1000.0), loss=model.loss, **QUICK_STEPS)
    before = [keras.ops.convert_to_numpy(weight).copy() for weight in model.trainable_weights]
    model.train_on_batch(rows_for(config, small_batch), np.array([0, 2]))
    # Of a Longformer's last states only the first is read, which is a global token's: it has projections of its own.
    unread = f"block_{config.depth - 1}/attention/query_key_value/" if config.model_type == "longformer" else None
    for weight, old in zip(model.trainable_weights, before, strict=True):
        if unread and weight.path.startswith(unread):
            continue
        new = keras.ops.convert_to_numpy(weight)
        assert np.isfinite(new).all() and not np.array_equal(new, old), weight.path


@some_families
def test_blocks_computed_twice_give_the_gradients_of_those_computed_once(config, small_batch):
    config = dataclasses.replace(config, hidden_dropout_rate=0.0, attention_dropout_rate=0.0)
    rows, steps = rows_for(config, small_batch), []
    for rematerialize in (False, True):
        keras.utils.set_random_seed(3)
        model = kbi.TextClassifier(encoder_of(config)(config, rematerialize=rematerialize), 3, dropout_rate=0.0)
        model.compile(optimizer=keras.optimizers.SGD(1.0), loss=model.loss, **QUICK_STEPS)
        model.train_on_batch(rows, np.array([0, 2]))
        steps.append(model.get_weights())
    for one, other in zip(*steps, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@once
@every_config
def test_with_layer_decay_all_embeddings_learn_at_the_lowest_rate(config):
    paths = [weight.path for weight in built(config).trainable_weights]
    for path, rate in zip(paths, layer_rates(paths, 0.5), strict=True):
        group = path.split("/")[0]
        if group in ("pooler", "final_norm"):
            assert rate == 1
        elif not group.startswith("block_"):
            assert rate == 0.5**config.num_blocks, path


@some_families
def test_layers_are_frozen_and_get_low_rank_updates(config, small_batch):
    frozen, updated = (kbi.TextClassifier(encoder_of(config)(config), 3) for _ in range(2))
    freeze_layers(frozen, 1)
    above = {f"block_{index}" for index in range(1, config.num_blocks)}
    heads = {"classifier"} if config.model_type == "ultrabert" else {"pooler", "classifier"}
    above |= heads | ({"final_norm"} & {layer.name for layer in frozen.encoder.layers})
    assert {weight.path.split("/")[0] for weight in frozen.trainable_weights} == above
    enable_lora(updated, 2)
    of_blocks = [weight.path for weight in updated.trainable_weights if weight.path.startswith("block_")]
    assert of_blocks and all("lora" in path for path in of_blocks)
    rest = {weight.path for weight in updated.trainable_weights} - set(of_blocks)
    assert {path.split("/")[0] for path in rest} == heads
    rows = rows_for(config, small_batch)
    updated.compile(optimizer=keras.optimizers.SGD(1.0), loss=updated.loss, **QUICK_STEPS)
    updated.train_on_batch(rows, np.array([0, 2]))
    learnt = updated.predict_on_batch(rows)
    merge_lora(updated)
    np.testing.assert_allclose(updated.predict_on_batch(rows), learnt, atol=1e-5)


@once
def test_blocks_that_are_frozen_get_no_low_rank_updates():
    sizes = {"hidden_size": 6, "num_heads": 2, "intermediate_size": 7, "max_length": 8}
    model = kbi.TextClassifier(kbi.BertEncoder(kbi.BertConfig(11, num_layers=3, **sizes)), 2)
    freeze_layers(model, 2)
    enable_lora(model, 2)
    assert {weight.path.split("/")[0] for weight in model.trainable_weights} == {"block_2", "pooler", "classifier"}
    freeze_layers(model, 3)
    with pytest.raises(ValueError, match="LoRA needs a rank of at least 1, and blocks that are not frozen"):
        enable_lora(model, 2)


@pytest.mark.parametrize("form", ["google", "keras_hub"])
def test_formats_without_the_family_refuse_it(form, tmp_path):
    pytest.importorskip("tensorflow" if form == "google" else "h5py")
    module = __import__(f"keras_bert_impl.checkpoints.{form}", fromlist=["save"])
    with pytest.raises(ValueError, match="does not support RoBERTa: save it with save_pretrained"):
        module.save(built(CONFIGS["Roberta"]), tmp_path / "target")


@some_families
def test_a_masked_lm_whose_words_are_not_tied_has_a_table_of_its_own(config, small_batch, tmp_path):
    rows, name = rows_for(config, small_batch), f"{config.class_prefix()}ForMaskedLM"
    random_model(name, config, tmp_path / "untied", tie_word_embeddings=False)
    model = kbi.MaskedLM.from_pretrained(tmp_path / "untied")
    model.save_pretrained(tmp_path / "saved")
    model.save(tmp_path / "model.keras")
    positions = np.tile(np.arange(1, 4, dtype="int32"), (len(rows["token_ids"]), 1))
    expected = masked_words(open_in_transformers(name, tmp_path / "untied"), rows, positions)
    again, kept = kbi.MaskedLM.from_pretrained(tmp_path / "saved"), keras.saving.load_model(tmp_path / "model.keras")
    for found in (model, again, kept):
        logits = found.predict_on_batch({**rows, "mask_positions": positions})
        np.testing.assert_allclose(logits, expected, atol=1e-5)
    saved = masked_words(open_in_transformers(name, tmp_path / "saved"), rows, positions)
    np.testing.assert_allclose(saved, expected, atol=1e-5)
    encoder = encoder_of(config).from_pretrained(tmp_path / "untied")
    encoder.save_pretrained(tmp_path / "encoder")  # without a head, hence without a table
    assert kbi.MaskedLM(encoder).get_layer("masked_lm_head").decoder.embeddings.path.endswith("/decoder/embeddings")


# Keys that transformers 5 reads without an attribute of their name, and what it takes for them.
OLDER_KEYS = {"global_attn_every_n_layers": 3, "global_rope_theta": 160_000.0, "local_rope_theta": 10_000.0}
OLDER_KEYS["max_relative_positions"] = 11  # that is, max_position_embeddings
OLDER_KEYS["max_sequence_length"] = 512  # ours
OLDER_KEYS["random_blocks"] = "first_block"  # ours
# Of the heads and the layers of these configurations.
DERIVED_KEYS = {"layer_types": ["sliding_attention"] * 2}
# Keys whose values in transformers, where they are left out, are not supported here.
NEEDED_KEYS = {
    "deberta": {*kbi.DebertaConfig.architecture, "pos_att_type"},
    "deberta-v2": {*kbi.DebertaV2Config.architecture, "position_buckets", "pos_att_type"},
}


@every_family
def test_what_a_config_leaves_out_has_the_value_of_transformers(config, tmp_path):
    transformers, whole = pytest.importorskip("transformers"), config.to_huggingface()
    theirs = getattr(transformers, type(config).__name__)()
    needed = [theirs for _, theirs in type(config).huggingface_keys[:5]]
    highest = max(theirs.pad_token_id, getattr(theirs, "sep_token_id", None) or 0)
    whole["vocab_size"] = max(config.vocabulary_size, 1 + highest)
    for key in whole.keys() - {"model_type", *needed}:
        (tmp_path / "config.json").write_text(json.dumps({name: whole[name] for name in whole if name != key}))
        if key in NEEDED_KEYS.get(config.model_type, ()):
            with pytest.raises(ValueError, match=f"lacks {key}, without which transformers builds another"):
                type(config).from_huggingface(tmp_path / "config.json")
            continue
        found = type(config).from_huggingface(tmp_path / "config.json").to_huggingface()
        own = {"hidden_dropout_prob": 0.0} if "rms_norm_eps" in whole else {}
        derived = {**own, **DERIVED_KEYS, "num_key_value_heads": whole.get("num_attention_heads")}
        expected = {**derived, **OLDER_KEYS}.get(key, getattr(theirs, key, None))
        assert found[key] == expected, key
