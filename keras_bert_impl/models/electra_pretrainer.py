"""Pre-training of ELECTRA and of DeBERTa's version 3: a generator replaces tokens, and a discriminator finds them."""

import pathlib

import keras
from keras import ops

from keras_bert_impl import checkpoints, losses
from keras_bert_impl.callbacks.flops import training_flops
from keras_bert_impl.encoders.epoch_loss import SumOfMeansModel
from keras_bert_impl.layers import ReplaceTokens, SampleTokens
from keras_bert_impl.models.masked_lm import MaskedLM
from keras_bert_impl.models.replaced_token_detector import ReplacedTokenDetector
from keras_bert_impl.optimization import ClipsToGlobalNorm

GENERATOR = "generator"  # the folder of the generator's checkpoint, within the discriminator's


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class ElectraPretrainer(SumOfMeansModel):
    """Pre-trains ELECTRA or DeBERTa-v3: a generator replaces tokens, and a discriminator learns to find them.

    A small masked language model, the generator, guesses the masked tokens, and one guess for each is drawn. The
    discriminator decides for every token whether it is the original (Clark et al. 2020, section 3.1). Both are trained
    together; no gradient passes through the guesses. In the papers all chosen tokens are [MASK]; Google's code for
    ELECTRA and `keras-bert pretrain` leave 15 % of them unchanged, without which a small generator learns only word
    frequencies for a long time.

    ELECTRA's generator is narrower and shares the embeddings. DeBERTa's (He et al. 2021, "DeBERTaV3", sections 3.1 and
    3.3) has fewer layers and the enhanced mask decoder. Its token embedding is shared without the discriminator's
    gradients: the discriminator's is the generator's plus a trained difference that starts at zero. Weight decay
    shrinks this difference. One optimizer clips the gradients of both models together.

    A `layer_decay` counts layers from the top of the deeper model. Frozen embeddings of the discriminator stay as they
    are, while the generator's are trained.

    Args:
        encoder (keras.Model): the `ElectraEncoder` or `DebertaV2Encoder` of the discriminator.
        tokenizer (Tokenizer): tokenizer, saved with checkpoints.
        generator_size (float, optional): size of the generator relative to the discriminator: its width and heads for
            ELECTRA, a quarter to a half in the paper; its layers for DeBERTa. Default: 1/4 for ELECTRA, 1/2 for
            DeBERTa.
        detection_weight (float, optional): weight of the discriminator's loss. Default: 50.0, as in the paper.
        seed (int, optional): random seed for drawing tokens. Default: None, a random one.

    Input:  dict of the encoder's inputs and `mask_positions` (batch, predictions), int32.
    Output: dict of `masked_lm_logits` (batch, predictions, vocabulary), `sampled_ids` (batch, predictions) and
            `detection_logits` (batch, length).
    Labels: those of `Pretrainer`, of which `mask_ids` and `mask_weights` are used.
    Raises: ValueError for an encoder of another family.

    Example:
        >>> tokenizer = kbi.checkpoints.open_checkpoint("small_english").tokenizer
        >>> shape = {"num_layers": 1, "hidden_size": 16, "num_heads": 4}
        >>> encoder = kbi.ElectraEncoder(kbi.ElectraConfig(vocabulary_size=8000, **shape))
        >>> model = kbi.ElectraPretrainer(encoder, tokenizer)
        >>> sorted(model.output)
        ['detection_logits', 'masked_lm_logits', 'sampled_ids']
    """

    def __init__(
        self, encoder, tokenizer, generator_size=None, detection_weight=50.0, seed=None, name="electra_pretrainer"
    ):
        check_has_generator(encoder)
        size = encoder.usual_generator_size if generator_size is None else generator_size
        masked_lm = MaskedLM(
            encoder.generator(size),
            tokenizer,
            enhanced_decoder=encoder.generator_has_decoder,
            name="generator",
        )
        detector = ReplacedTokenDetector(encoder, tokenizer, name="discriminator")
        inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in masked_lm.input}
        rows, positions = {name: inputs[name] for name in encoder.input}, inputs["mask_positions"]
        replace = ReplaceTokens(name="replace_tokens")
        logits = masked_lm(inputs)
        sampled = SampleTokens(seed, name="sample_tokens")(logits)
        detected = detector({**rows, "token_ids": replace(rows["token_ids"], positions, sampled)})
        outputs = {"masked_lm_logits": logits, "sampled_ids": sampled, "detection_logits": detected}
        super().__init__(inputs=inputs, outputs=outputs, name=name)
        self.dtype_policy = encoder.dtype_policy
        self.encoder, self.masked_lm, self.detector = encoder, masked_lm, detector
        self.detection_weight = float(detection_weight)
        self.part_weights = {"masked_lm_loss": 1.0, "detection_loss": self.detection_weight}
        names = ("masked_lm_loss", "masked_lm_accuracy", "detection_loss", "detection_accuracy")
        self.means = {name: keras.metrics.Mean(name=name) for name in (*names, "replaced_precision", "replaced_recall")}

    def compile(self, optimizer="rmsprop", **arguments):
        """Sets the optimizer; the loss is part of the model.

        Args:
            optimizer (str or keras.optimizers.Optimizer, optional): for DeBERTa one of this library's, which keep both
                embeddings together. Default: "rmsprop", Keras' default.
            arguments: further arguments of `keras.Model.compile`.

        Raises: ValueError for another optimizer with DeBERTa.
        """
        super().compile(optimizer=optimizer, **arguments)
        leader, follower = (encoder.token_embedding.embeddings for encoder in (self.masked_lm.encoder, self.encoder))
        if leader is follower:  # ELECTRA's
            return
        inner = getattr(self.optimizer, "inner_optimizer", self.optimizer)  # of one that scales the loss
        if not isinstance(inner, ClipsToGlobalNorm):
            raise ValueError(
                f"{type(inner).__name__} does not keep the embeddings of generator and discriminator together: compile "
                "with BertAdamW, BertStableAdamW or BertLamb of keras_bert_impl.optimization."
            )
        inner.let_follow(leader, follower)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The generator's loss plus the weighted one of the discriminator; also updates their metrics."""
        logits, ids, weights = y_pred["masked_lm_logits"], y["mask_ids"], ops.cast(y["mask_weights"], "float32")
        masked_lm = losses.masked_lm_loss(ids, weights, logits)
        self.record("masked_lm_loss", masked_lm, weights)
        self.record("masked_lm_accuracy", losses.accuracy(ids, logits, weights), weights)

        detected, tokens = y_pred["detection_logits"], ops.cast(x["padding_mask"], "float32")
        # A token that was drawn again is an original one (section 3.1).
        is_other = ops.not_equal(ops.cast(ids, "int32"), y_pred["sampled_ids"])
        is_replaced = replaced_tokens(x["mask_positions"], ops.cast(is_other, "float32") * weights, tokens)
        detection = losses.replaced_token_loss(is_replaced, detected, tokens)
        is_found = ops.cast(detected > 0, "float32")
        is_right = ops.cast(ops.equal(is_found, is_replaced), "float32")
        self.record("detection_loss", detection, tokens)
        for name, values, counted in (
            ("detection_accuracy", is_right, tokens),
            ("replaced_precision", is_replaced, is_found * tokens),
            ("replaced_recall", is_found, is_replaced),
        ):
            self.record(name, losses.weighted_mean(values, counted), counted)
        return masked_lm + self.detection_weight * detection

    def training_flops(self, rows, length, predictions):
        """The arithmetic of a training step; see `callbacks.flops.training_flops`."""
        width = self.encoder.config.hidden_size
        generator = training_flops(self.masked_lm.encoder, rows, length, predictions, self.masked_lm.enhanced_decoder)
        head = 3 * rows * 2 * length * width**2
        return generator + training_flops(self.encoder, rows, length, 0) + head

    def get_config(self):
        raise ValueError(
            "A .keras file cannot hold an ElectraPretrainer, whose two models share their embeddings: save_pretrained "
            "writes both as checkpoints, and callbacks.ExactResume keeps the state of a training."
        )

    def save_pretrained(self, directory):
        """Saves the discriminator and, in the folder `generator`, the generator, both with the tokenizer.

        They are Hugging Face's ElectraForPreTraining and ElectraForMaskedLM. For DeBERTa, the generator is a
        DebertaV2ForMaskedLM, and the discriminator has Microsoft's names of weights.

        Args:
            directory (str or pathlib.Path): created if it does not exist.
        """
        self.detector.save_pretrained(directory)
        self.masked_lm.save_pretrained(pathlib.Path(directory) / GENERATOR)

    def load_pretrained(self, directory):
        """Loads what `save_pretrained` wrote; a warning names weights that were not saved.

        Args:
            directory (str or pathlib.Path): the directory.

        Raises: ValueError if the models have other sizes.
        """
        checkpoints.load(self.detector, checkpoints.open_checkpoint(directory))
        # ELECTRA's shared embeddings are in both checkpoints, with the same values.
        checkpoints.load(self.masked_lm, checkpoints.open_checkpoint(pathlib.Path(directory) / GENERATOR))


def check_has_generator(encoder):
    """Raises ValueError if the family of an encoder has no generator that replaces tokens."""
    if not hasattr(encoder, "generator"):
        raise ValueError(
            f"{encoder.config.family} has no generator, which replaced-token detection needs: use ELECTRA or DeBERTa."
        )


def replaced_tokens(mask_positions, is_replaced, tokens):
    """(batch, predictions) 1 for a token that was replaced, else 0, as (batch, length), float32."""
    columns = ops.arange(ops.shape(tokens)[1], dtype=mask_positions.dtype)
    is_here = ops.cast(ops.equal(ops.expand_dims(mask_positions, -1), columns), "float32")
    return ops.sum(is_here * ops.expand_dims(is_replaced, -1), axis=1)
