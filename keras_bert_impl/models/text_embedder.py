"""A vector for a text."""

import keras
from keras import ops

from keras_bert_impl.models.pretrained import PretrainedMixin, check_vocabulary, checked_sequence_length
from keras_bert_impl.models.raw_text import RawTextMixin

POOLINGS = ("cls", "mean", "max", "last_four")


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertTextEmbedder(RawTextMixin, PretrainedMixin, keras.Model):
    """One vector a text, pooled from the vectors of its tokens; [CLS] and [SEP] count, padding does not.

    Args:
        encoder: a BertEncoder.
        tokenizer: a WordPieceTokenizer; with it `predict` takes texts.
        sequence_length: texts are cut to this many tokens; None means the encoder's `max_length`.
        pooling: "mean", as Sentence-BERT (Reimers & Gurevych 2019, section 3); "max"; "cls", the first token;
            "last_four", the first token's vectors of the last four layers, one after the other, the best of the
            feature-based approaches of Devlin et al. 2019, table 7.
        normalize: whether vectors have length 1, so that their product is the cosine.

    `from_pretrained` pools as the checkpoint says: one saved from here, or by sentence-transformers.

    Input:  dict of the encoder's inputs, or texts.
    Output: (batch, hidden_size), for "last_four" (batch, 4 * hidden_size), float32.
    Raises: ValueError for another pooling, for "last_four" of fewer layers, or as the other models.
    """

    head_arguments = ("pooling", "normalize")

    def __init__(
        self, encoder, tokenizer=None, sequence_length=None, pooling="mean", normalize=False, name="bert_text_embedder"
    ):
        check_vocabulary(tokenizer, encoder)
        if pooling == "last_four" and encoder.config.num_layers < 4:
            raise ValueError(f"pooling 'last_four' needs four layers; this encoder has {encoder.config.num_layers}.")
        num_layers = encoder.config.num_layers
        layers = range(num_layers - 4, num_layers) if pooling == "last_four" else [num_layers - 1]
        tokens = [encoder.get_layer(f"block_{index}").output for index in layers]
        tokens = [array[0] if isinstance(array, (list, tuple)) else array for array in tokens]
        vectors = TokenPooling(pooling, normalize, dtype="float32", name="pooling")(
            tokens, encoder.input["padding_mask"]
        )
        super().__init__(inputs=encoder.input, outputs=vectors, name=name)
        self.dtype_policy = encoder.dtype_policy
        # With its pooler, which no output here uses but a checkpoint holds.
        self.encoder = encoder
        self.tokenizer = tokenizer
        self.sequence_length = checked_sequence_length(sequence_length, encoder.config)
        self.pooling, self.normalize = pooling, normalize


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TokenPooling(keras.layers.Layer):
    """Vectors of tokens to one of the text; see BertTextEmbedder.

    Input:  list of (batch, length, width), one a layer; padding_mask (batch, length).
    Output: (batch, width times layers), float32.
    """

    def __init__(self, pooling, normalize=False, **kwargs):
        super().__init__(**kwargs)
        if pooling not in POOLINGS:
            raise ValueError(f"pooling {pooling!r} is unknown; known are {', '.join(POOLINGS)}.")
        self.pooling, self.normalize = pooling, normalize

    def call(self, layers, padding_mask):
        tokens = ops.cast(ops.concatenate(layers, axis=-1), "float32")  # (batch, length, width)
        real = ops.cast(padding_mask, "float32")[:, :, None]
        if self.pooling == "mean":
            # A row of nothing but padding, as the last batch of a mesh may hold, is 0 rather than not a number.
            vectors = ops.sum(tokens * real, axis=1) / ops.maximum(ops.sum(real, axis=1), 1.0)
        elif self.pooling == "max":
            vectors = ops.max(ops.where(real > 0, tokens, -1e9), axis=1)
        else:
            vectors = tokens[:, 0]
        return ops.normalize(vectors, axis=-1) if self.normalize else vectors

    def compute_output_shape(self, layers_shape, padding_mask_shape):
        return (padding_mask_shape[0], sum(shape[-1] for shape in layers_shape))

    def get_config(self):
        return {**super().get_config(), "pooling": self.pooling, "normalize": self.normalize}
