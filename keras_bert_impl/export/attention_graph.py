"""The attention probabilities of an encoder, also of one that was built without returning them."""

import keras

from keras_bert_impl.layers import TransformerEncoderBlock


class Attending(keras.layers.Layer):
    """A block of an encoder that also returns its attention probabilities.

    A layer of its own around the block: Keras cannot connect a layer that returned one tensor in one model and returns
    two in another.
    """

    def __init__(self, block):
        super().__init__(name=f"attending_{block.name}", dtype=block.dtype_policy)
        self.block = block

    def call(
        self, inputs, attention_mask=None, sequence_ids=None, attention_bias=None, window=None, positions=None,
        global_places=None, same_segment=None, training=False,
    ):  # fmt: skip
        return self.block(
            inputs,
            attention_mask=attention_mask,
            sequence_ids=sequence_ids,
            attention_bias=attention_bias,
            window=window,
            positions=positions,
            global_places=global_places,
            same_segment=same_segment,
            training=training,
            return_probabilities=True,
        )


def with_attention(encoder):
    """A model of an encoder's own layers, hence of its weights, that returns their attention probabilities.

    Input:  as the encoder's.
    Output: (batch, layers, heads, length, length), float32.
    """
    if "attention_probabilities" in encoder.output:
        return keras.Model(encoder.input, encoder.output["attention_probabilities"])
    probabilities = []

    def around_blocks(layer):
        return Attending(layer) if isinstance(layer, TransformerEncoderBlock) else layer

    def call(layer, *arguments, return_probabilities=False, **options):
        outputs = layer(*arguments, **options)
        if not isinstance(layer, Attending):
            return outputs
        probabilities.append(outputs[1])
        return outputs[0]

    same_layers = keras.models.clone_model(encoder, clone_function=around_blocks, call_function=call)
    return keras.Model(same_layers.input, keras.ops.stack(probabilities, axis=1))
