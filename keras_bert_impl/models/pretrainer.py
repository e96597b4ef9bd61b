"""BERT with the two heads of pre-training."""

import keras
from keras import ops

from keras_bert_impl import checkpoints, losses
from keras_bert_impl.callbacks.flops import training_flops
from keras_bert_impl.checkpoints import build_filled
from keras_bert_impl.configurations.initialization import kernel_initializer
from keras_bert_impl.encoders import build_encoder
from keras_bert_impl.encoders.epoch_loss import SumOfMeansModel
from keras_bert_impl.encoders.layer_records import layer_records, restore_layer_records, without_layer_records
from keras_bert_impl.kernels.cross_entropy import as_kept
from keras_bert_impl.layers import Dense, GatherPositions, SpanBoundaryHead


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Pretrainer(SumOfMeansModel):
    """Pre-trains an encoder from scratch, on masked words and next sentences.

    `fit` and `evaluate` take (inputs, labels), two dicts of arrays named as in `features`; data that `keras-bert
    prepare-data` wrote are read by `TrainingBatches` and `read_training_data`. Both heads of BERT share the encoder
    (Devlin et al. 2019, section 3.1). The loss is the sum of their losses: `compile` needs only an optimizer.
    `save_pretrained` writes Hugging Face's BertForPreTraining or, without next_sentence, BertForMaskedLM; the weights
    of a span-boundary head are named `span_boundary_head.*`.

    Args:
        encoder (keras.Model): encoder of any family, such as a `BertEncoder`; the heads share its token embedding.
        next_sentence (bool, optional): whether to predict next sentences; False for data without pairs (Liu et al.
            2019). With ALBERT's labels, this head learns the order of sentences. Default: True.
        span_boundary (bool, optional): whether to predict masked spans also from the two tokens around them, for data
            with masked spans (Joshi et al. 2020, section 3.2; `layers.SpanBoundaryHead`). Default: False.
        enhanced_decoder (bool, optional): whether words are predicted by DeBERTa's enhanced mask decoder, as in
            `MaskedLM`. Default: False.
        permuted (dict, optional): settings of permuted language modelling, which predicts each word from those before
            it in a random order. For MPNet: `{"mask_id": ...}` and other arguments of `layers.PermutedRows` (Song et
            al. 2020). For XLNet: `{}` or `{"seed": ...}` (Yang et al. 2019). The data are then not masked.
            Default: None, masked words.

    Input:  dict of the encoder's inputs and `mask_positions` (batch, predictions), int32; for a packed encoder also
            `cls_positions` (batch, sequences).
    Output: dict of float32 arrays: `masked_lm_logits` (batch, predictions, vocabulary); with next_sentence
            `next_sentence_logits` (batch, 2), packed (batch, sequences, 2); with span_boundary `span_boundary_logits`
            (batch, predictions, vocabulary) and `is_within_span` (batch, predictions).
    Labels: dict of `mask_ids` and `mask_weights` (batch, predictions) and, with next_sentence, `next_sentence_labels`
            (batch,), packed (batch, sequences), there with `next_sentence_weights`.

    Example:
        >>> config = kbi.BertConfig(num_layers=1, hidden_size=8, num_heads=2)
        >>> model = kbi.Pretrainer(kbi.BertEncoder(config))
        >>> model.compile(kbi.optimization.BertAdamW(1e-4))
        >>> inputs = {name: np.ones((2, 5), "int32") for name in model.encoder.input}
        >>> inputs["mask_positions"] = np.array([[1], [3]])
        >>> labels = {"mask_ids": np.array([[7], [8]]), "mask_weights": np.ones((2, 1))}
        >>> labels["next_sentence_labels"] = np.array([0, 1])
        >>> history = model.fit(inputs, labels, verbose=0)
        >>> sorted(history.history)[:2]
        ['loss', 'masked_lm_accuracy']
    """

    def __init__(
        self,
        encoder,
        next_sentence=True,
        span_boundary=False,
        enhanced_decoder=False,
        permuted=None,
        name="bert_pretrainer",
    ):
        config, policy = encoder.config, encoder.dtype_policy
        initializer = kernel_initializer(config)
        mask_positions = keras.Input((None,), dtype="int32", name="mask_positions")
        if permuted is not None:
            states, predicted = encoder.permuted_states(encoder.input, mask_positions, **permuted)
        else:
            states, predicted = encoder.masked_states(encoder.input, mask_positions)
        if enhanced_decoder:
            states = encoder.decoded_states()
        masked_lm_logits = encoder.masked_lm_head()(states, predicted)
        inputs = {**encoder.input, "mask_positions": mask_positions}
        outputs = {"masked_lm_logits": masked_lm_logits}
        if span_boundary:
            found = SpanBoundaryHead(
                encoder.token_embedding,
                activation=config.activation,
                layer_norm_epsilon=config.layer_norm_epsilon,
                initializer=initializer.clone(),
                dtype=policy,
                name="span_boundary_head",
            )(encoder.output["sequence_output"], mask_positions)
            outputs |= {"span_boundary_logits": found["logits"], "is_within_span": found["is_within"]}
        if next_sentence:
            if encoder.packed:
                inputs["cls_positions"] = keras.Input((None,), dtype="int32", name="cls_positions")
                # Gathered as the masked-LM head does: (batch, sequences, hidden_size)
                gathered = GatherPositions(dtype=policy, name="cls_vectors")(
                    encoder.output["sequence_output"], inputs["cls_positions"]
                )
                pooled = encoder.pool(gathered)
            else:
                pooled = encoder.pooled(encoder.output, encoder.input)  # (batch, hidden_size)
            outputs["next_sentence_logits"] = Dense(
                2, kernel_initializer=initializer.clone(), dtype="float32", name="next_sentence_head"
            )(pooled)
        super().__init__(inputs=inputs, outputs=outputs, name=name)
        self.dtype_policy = encoder.dtype_policy
        # Not tracked as a layer: without next_sentence the pooler must not be among the weights of this model.
        object.__setattr__(self, "encoder", encoder)
        self.next_sentence, self.span_boundary = next_sentence, span_boundary
        self.enhanced_decoder, self.permuted = enhanced_decoder, permuted
        self.counterpart = "ForPreTraining" if next_sentence else "ForMaskedLM"  # as of TaskModel
        tasks = ["masked_lm", *["next_sentence"] * next_sentence, *["span_boundary"] * span_boundary]
        names = [f"{task}_{figure}" for task in tasks for figure in ("loss", "accuracy")]
        self.means = {name: keras.metrics.Mean(name=name) for name in names}
        self.part_weights = {f"{task}_loss": 1.0 for task in tasks}

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Returns the sum of the losses of all heads, and updates their metrics."""
        loss = self._masked_lm_loss(y, y_pred)
        loss = loss + self._span_boundary_loss(y, y_pred) if self.span_boundary else loss
        return loss + self._next_sentence_loss(y, y_pred) if self.next_sentence else loss

    def _masked_lm_loss(self, y, y_pred):
        logits, labels, weights = y_pred["masked_lm_logits"], y["mask_ids"], y["mask_weights"]
        # The rows of predictions that the head makes: three axes would be a copy on a TPU, padded to rows of eight.
        logits = as_kept(ops.reshape(logits, (-1, logits.shape[-1])), self.compute_dtype)
        labels, weights = ops.reshape(labels, (-1,)), ops.reshape(weights, (-1,))
        masked_lm = losses.masked_lm_loss(labels, weights, logits)
        self._update("masked_lm", masked_lm, losses.accuracy(labels, logits, weights), weights)
        return masked_lm

    def _span_boundary_loss(self, y, y_pred):
        logits, labels = y_pred["span_boundary_logits"], y["mask_ids"]
        weights = ops.cast(y["mask_weights"], "float32") * y_pred["is_within_span"]
        loss = losses.masked_lm_loss(labels, weights, logits)
        self._update("span_boundary", loss, losses.accuracy(labels, logits, weights), weights)
        return loss

    def _next_sentence_loss(self, y, y_pred):
        logits, labels = y_pred["next_sentence_logits"], y["next_sentence_labels"]
        sequences = y.get("next_sentence_weights", ops.ones_like(labels))
        next_sentence = losses.next_sentence_loss(labels, logits, sequences)
        self._update("next_sentence", next_sentence, losses.accuracy(labels, logits, sequences), sequences)
        return next_sentence

    def _update(self, task, loss, accuracy, weights):
        """Adds this batch's values to the means of a task."""
        self.record(f"{task}_loss", loss, weights)
        self.record(f"{task}_accuracy", accuracy, weights)

    def training_flops(self, rows, length, predictions):
        """The arithmetic of a training step; see `callbacks.flops.training_flops`."""
        predictions *= 1 + self.span_boundary  # each head transforms its vectors and scores the vocabulary
        length += predictions * self.encoder.tokens_of_predictions[self.permuted is not None]
        return training_flops(self.encoder, rows, length, predictions, self.enhanced_decoder)

    def get_config(self):
        plain = ("next_sentence", "span_boundary", "enhanced_decoder", "permuted", "name")
        encoder = keras.saving.serialize_keras_object(self.encoder)
        return {"encoder": encoder, **{name: getattr(self, name) for name in plain}, **layer_records(self)}

    @classmethod
    def from_config(cls, config):
        arguments = {
            **without_layer_records(config),
            "encoder": keras.saving.deserialize_keras_object(config["encoder"]),
        }
        if arguments.get("permuted"):  # of which earlier versions had more
            known = arguments["encoder"].permuted_arguments
            arguments["permuted"] = {name: one for name, one in arguments["permuted"].items() if name in known}
        return restore_layer_records(cls(**arguments), config)

    @classmethod
    def from_pretrained(cls, path, report=False, next_sentence=True, span_boundary=False, **arguments):
        """Opens a checkpoint to pre-train it further.

        Args:
            path (str or pathlib.Path): a checkpoint directory, "hf://owner/name", or a name that `list_pretrained`
                prints.
            report (bool, optional): whether to print the tensors used, left over and newly initialised. Default: False.
            next_sentence (bool, optional): as in the constructor. Default: True.
            span_boundary (bool, optional): as in the constructor. Default: False.
            arguments: arguments of the encoder, such as `packed` and `dtype`.

        Returns: the model, not compiled. Heads that the checkpoint does not have start from random weights.
        Raises: ValueError if the checkpoint is damaged or cannot be reached.
        """
        checkpoint = checkpoints.open_checkpoint(path)

        def build():
            return cls(build_encoder(checkpoint.config, **arguments), next_sentence, span_boundary)

        return build_filled(build, checkpoint, report=report)

    def load_pretrained(self, path):
        """Loads a checkpoint into this model. Heads that the checkpoint does not have keep their values.

        Args:
            path (str or pathlib.Path): as in `from_pretrained`.
        """
        checkpoints.load(self, checkpoints.open_checkpoint(path))
