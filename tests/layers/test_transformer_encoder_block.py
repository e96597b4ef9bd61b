import keras
import numpy as np
import pytest
from check_layer import check_layer
from keras import ops
from tiers import every_backend, full_on

from keras_bert_impl.layers import MultiHeadSelfAttention, TransformerEncoderBlock

VECTORS = np.random.default_rng(0).normal(size=(2, 5, 6)).astype("float32")


@every_backend
@full_on("jax")
def test_block_has_the_routine_properties():
    check_layer(lambda dtype: TransformerEncoderBlock(3, 7, dtype=dtype), VECTORS)


# As in ModernBERT: norms before attention and feed-forward, no biases, a gated activation.
MODERN = {"norm_first": True, "use_bias": False, "gated": True}


@pytest.mark.parametrize("options", [MODERN, {**MODERN, "normalizes_attention": False}], ids=str)
def test_block_of_other_parts_has_the_routine_properties(options):
    check_layer(lambda dtype: TransformerEncoderBlock(3, 7, dtype=dtype, **options), VECTORS)


def turned(vectors, angles):
    """Coordinates i and i + half of each vector turned by angle i of its place, one pair at a time."""
    outputs, half = vectors.copy(), vectors.shape[-1] // 2
    for pair in range(half):
        one, other = vectors[..., pair], vectors[..., pair + half]
        cosine, sine = np.cos(angles[:, pair]), np.sin(angles[:, pair])
        outputs[..., pair], outputs[..., pair + half] = one * cosine - other * sine, one * sine + other * cosine
    return outputs


@pytest.mark.parametrize("rematerialize", [False, True])
def test_parts_are_computed_in_their_order_with_turned_queries_and_keys(rematerialize):
    """Against the definition in NumPy, one head at a time."""
    block = TransformerEncoderBlock(3, 7, activation="relu", rematerialize=rematerialize, **MODERN)
    angles = np.random.default_rng(1).normal(size=(5, 1)).astype("float32")  # heads of two units have one pair
    positions = np.stack([np.cos(angles), np.sin(angles)], axis=1)[None]
    block(VECTORS, positions=positions)
    first_norm, second_norm = np.linspace(0.5, 1.5, 6), np.linspace(1.5, 0.5, 6)
    block.attention_norm.gamma.assign(first_norm)
    block.output_norm.gamma.assign(second_norm)
    outputs = ops.convert_to_numpy(block(VECTORS, positions=positions, training=True))

    def norm(vectors, scale):
        centred = vectors - vectors.mean(-1, keepdims=True)
        return centred / np.sqrt(vectors.var(-1, keepdims=True) + 1e-12) * scale

    fused, output, intermediate, last = (
        ops.convert_to_numpy(layer.kernel)
        for layer in (
            block.attention.query_key_value,
            block.attention.output_projection,
            block.intermediate,
            block.output_dense,
        )
    )
    query, key, value = np.split(norm(VECTORS, first_norm) @ fused, 3, axis=-1)
    heads = []
    for head in range(3):
        units = slice(2 * head, 2 * head + 2)
        products = turned(query[..., units], angles) @ turned(key[..., units], angles).transpose(0, 2, 1) / 2**0.5
        heads.append(ops.convert_to_numpy(ops.softmax(products)) @ value[..., units])
    attended = VECTORS + np.concatenate(heads, axis=-1) @ output
    values, gates = np.split(norm(attended, second_norm) @ intermediate, 2, axis=-1)
    np.testing.assert_allclose(outputs, attended + (np.maximum(values, 0) * gates) @ last, atol=1e-5)


def test_block_takes_another_attention_and_keeps_it_in_its_configuration():
    attention = MultiHeadSelfAttention(2, use_bias=False, name="attention")
    block = TransformerEncoderBlock(2, 7, attention=attention)
    block(VECTORS)
    assert block.attention is attention and [weight.name for weight in attention.weights] == ["kernel", "kernel"]
    copy = TransformerEncoderBlock.from_config(block.get_config())
    copy(VECTORS)
    assert [(weight.path, weight.shape) for weight in copy.weights] == [
        (weight.path, weight.shape) for weight in block.weights
    ]


@pytest.mark.filterwarnings("error:.*does not support masking")
@pytest.mark.parametrize("layer", [TransformerEncoderBlock(3, 7, norm_first=True), MultiHeadSelfAttention(3)], ids=str)
def test_tokens_that_an_embedding_masks_are_not_attended_to(layer):
    embedding, ids = keras.layers.Embedding(9, 6, mask_zero=True), np.array([[3, 1, 4, 0, 0], [5, 2, 6, 5, 3]])
    layer = type(layer).from_config(layer.get_config())
    model = keras.Sequential([embedding, layer])
    whole, alone = model(ids), model(ids[:1, :3])
    np.testing.assert_allclose(ops.convert_to_numpy(whole)[:1, :3], ops.convert_to_numpy(alone), atol=1e-5)
    np.testing.assert_allclose(model.predict(ids, verbose=0), ops.convert_to_numpy(whole), atol=1e-5)
