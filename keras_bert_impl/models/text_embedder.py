"""A vector for a text."""

import operator

import keras
import numpy as np
from keras import ops

from keras_bert_impl.checkpoints.sentence_transformers import modes_of
from keras_bert_impl.distribution import can_compile
from keras_bert_impl.embedding_losses import (
    CosineSimilarityLoss,
    EmbedDistillLoss,
    MultipleNegativesRankingLoss,
    TripletLoss,
    unit_vectors,
)
from keras_bert_impl.embedding_metrics import RankingAccuracy, SpearmanCorrelation, TripletAccuracy
from keras_bert_impl.encoders.asked import TEXT, Asked
from keras_bert_impl.kernels.gelu import activation_function
from keras_bert_impl.kernels.mini_batches import in_mini_batches
from keras_bert_impl.layers.dense import Dense
from keras_bert_impl.layers.dropout import DrawnSeed, Dropout, fixed_seeds
from keras_bert_impl.layers.last_token import last_token
from keras_bert_impl.models.answers import matches, of_length_one
from keras_bert_impl.models.compile_arguments import the_loss
from keras_bert_impl.models.task_model import TaskModel, check_has_four_layers
from keras_bert_impl.optimization import BertAdamW
from keras_bert_impl.preprocessing.column_rows import ColumnsPreprocessor, sizes_of_columns, text_numbers
from keras_bert_impl.preprocessing.labels import LabelRule, checked_labels
from keras_bert_impl.preprocessing.long_texts import checked_long_texts
from keras_bert_impl.preprocessing.texts import to_strings
from keras_bert_impl.retrieval import products
from keras_bert_impl.suggestions import one_of

QUERY_PROMPTS, CORPUS_PROMPTS = ("query",), ("document", "passage", "corpus")  # of `search`, the first that there is
SIMILARITIES = ("cosine", "dot")
POOLINGS = ("cls", "mean", "max", "last_four", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TextEmbedder(TaskModel):
    """Turns texts into vectors: semantic search, clustering, duplicate detection.

    Open a checkpoint of this library or of sentence-transformers with `from_pretrained`. Use `embed` for vectors,
    `similarity` to compare texts, and `search` to find texts. The vector of a text is pooled from those of its tokens;
    [CLS] and [SEP] count, padding does not.

    Args:
        encoder (keras.Model): encoder of any family, such as a `BertEncoder`.
        tokenizer (Tokenizer, optional): tokenizer, needed for texts. Default: None, for token IDs only.
        sequence_length (int, optional): largest number of tokens in an input. Default: the encoder's `max_length`.
        pooling (str or list of str, optional): how to pool token vectors, see the pooling modes of `TextEmbedder`; the
            vectors of several modes are concatenated. Default: "mean" (Reimers & Gurevych 2019, section 3).
        normalize (bool, optional): whether vectors have length 1. Default: False.
        long_texts (str, optional): how to read texts above `sequence_length`. "cut" truncates them, "head_and_tail"
            keeps their beginning and end, "windows" averages over the whole text. In training on several texts in an
            example, they are always truncated. Default: "cut".
        prompts (dict of str, optional): prompts by name, put before a text by `embed` and `search`, as in {"query":
            "search_query: "}. `predict`, `fit` and exports do not use them. Default: None.
        similarity_function (str, optional): how `similarity` and `search` compare vectors, "cosine" or "dot". With
            "dot", long vectors count for more. Default: "cosine".
        truncate_dim (int, optional): number of leading dimensions to keep, for models trained with `MatryoshkaLoss`.
            With `normalize`, truncated vectors have length 1. Checkpoints keep it, but sentence-transformers takes it
            only as an argument. Default: None, all.
        dense (list of dict, optional): dense layers after pooling, as in LaBSE, each with `units`, `activation`
            (default "tanh") and `use_bias` (default True). Default: None.

    Pooling modes:

    - "mean", "max": mean or maximum over tokens;
    - "cls", "lasttoken": the first or the last token;
    - "mean_sqrt_len_tokens": sum divided by the square root of the number of tokens;
    - "weightedmean": mean in which token i has weight i, counted from 1 (Muennighoff 2022, "SGPT");
    - "last_four": the first token's vectors of the last four layers, concatenated, the best feature-based approach of
      Devlin et al. 2019, table 7. It cannot be combined with others.

    `from_pretrained` uses the checkpoint's pooling, normalization, prompts and similarity. A checkpoint with steps that
    are not supported raises ValueError, unless pooling, normalize and sequence_length are all given.

    `fit` trains on examples of two or more texts. Without a previous `compile`, `fit` and `evaluate` compile with AdamW
    at 2e-5 and the usual loss and metric for the data:

    | call                                                       | loss                           |
    | ---                                                        | ---                            |
    | `fit((first, second), similarity)`, -1 to 1                | `CosineSimilarityLoss`         |
    | `fit((anchors, positives))`                                | `MultipleNegativesRankingLoss` |
    | `fit((anchors, positives, negatives))`                     | `TripletLoss`                  |
    | the same with several columns of negatives                 | `MultipleNegativesRankingLoss` |
    | `fit(texts, vectors)`, those of a teacher                  | `EmbedDistillLoss`             |

    Examples are a tuple of columns, as above; a list with a tuple for each example; a two-dimensional array or a pandas
    DataFrame of texts; or a `tf.data.Dataset` of batches of columns.

    Input:  dict of the encoder's inputs, (batch, length), or texts; examples of several texts are (batch, columns,
            length).
    Output: (batch, hidden_size), float32; wider for several poolings or "last_four", and at most truncate_dim. For
            examples of several texts, (batch, columns, hidden_size).
    Raises: ValueError for an unknown pooling, for "last_four" in a list, for a truncate_dim below 1 or above the width,
        if the tokenizer does not fit the encoder, or if sequence_length is above its max_length.

    Example:
        >>> model = kbi.TextEmbedder.from_pretrained("small_english")
        >>> model.embed(["A cat sleeps.", "A dog rests."]).shape
        (2, 256)
        >>> corpus = ["We open at nine.", "Your money is returned within two weeks."]
        >>> model.search("How do I get a refund?", corpus, top_k=1)
        [Match(number=1, text='Your money is returned within two weeks.', score=0...)]
    """

    preprocessor_class = ColumnsPreprocessor
    preprocessor = None  # rows of several texts are made by `fit` alone
    asked = Asked("vector", {"serving_default": TEXT}, "vector")
    own_losses = "give one of keras_bert_impl.embedding_losses, such as CosineSimilarityLoss() for similarities"
    head_arguments = ("pooling", "normalize", "long_texts", "prompts", "similarity_function", "truncate_dim", "dense")
    counterpart = "Model"

    def __init__(
        self,
        encoder,
        tokenizer=None,
        sequence_length=None,
        pooling="mean",
        normalize=False,
        long_texts="cut",
        prompts=None,
        similarity_function="cosine",
        truncate_dim=None,
        dense=None,
        name="bert_text_embedder",
    ):
        pooling = checked_pooling(pooling)
        truncate_dim = None if truncate_dim is None else operator.index(truncate_dim)
        one_of("similarity_function", similarity_function, SIMILARITIES)
        if encoder.cls_is_last and {"cls", "last_four"} & set(modes_of(pooling)):
            raise ValueError(
                f"pooling {pooling!r} takes the first token, which is part of the text in {encoder.config.family}: "
                "use 'lasttoken', the vector of <cls>."
            )
        if pooling == "last_four":
            check_has_four_layers(encoder)
        tokens = encoder.hidden_states()[-4 if pooling == "last_four" else -1 :]
        dense = [{"activation": "tanh", "use_bias": True, **layer} for layer in dense or ()]
        vectors = TokenPooling(pooling, dtype="float32", name="pooling")(tokens, encoder.input["padding_mask"])
        for number, layer in enumerate(dense, start=1):
            activation = activation_function(layer["activation"])
            options = {"activation": activation, "use_bias": layer["use_bias"], "name": f"dense_{number}"}
            vectors = Dense(layer["units"], dtype="float32", **options)(vectors)
        if truncate_dim is not None and not 1 <= truncate_dim <= vectors.shape[-1]:
            raise ValueError(f"truncate_dim is {truncate_dim}, but vectors have {vectors.shape[-1]} numbers.")
        vectors = vectors if truncate_dim is None else vectors[:, :truncate_dim]
        vectors = unit_vectors(vectors) if normalize else vectors
        arguments = {"pooling": pooling, "normalize": normalize, "long_texts": checked_long_texts(long_texts)}
        arguments |= {"prompts": dict(prompts) if prompts else None, "similarity_function": similarity_function}
        arguments |= {"truncate_dim": truncate_dim, "dense": dense or None}
        super().__init__(encoder, tokenizer, sequence_length, vectors, name, **arguments)
        self.input_spec = None  # rows of several texts, (batch, columns, length), are inputs, too

    def call(self, inputs, training=None, mask=None):
        shape = ops.shape(keras.tree.flatten(inputs)[0])
        if len(shape) == 2:
            return super().call(inputs, training=training, mask=mask)
        flat = keras.tree.map_structure(lambda array: ops.reshape(array, (-1, shape[2])), inputs)
        size = getattr(the_loss(getattr(self, "loss", None)), "mini_batch_size", None)
        if training and size is not None:
            vectors = self._in_mini_batches(flat, size)
        else:
            vectors = super().call(flat, training=training, mask=mask)  # (batch * columns, width)
        return ops.reshape(vectors, (-1, shape[1], vectors.shape[-1]))

    def _in_mini_batches(self, rows, size):
        """The vectors of rows, (rows, width), computed for `size` rows at a time."""
        dropouts = [layer for layer in self._flatten_layers() if isinstance(layer, Dropout) and layer.rate]
        # Drawn here, since a generator that is used inside would draw again for the gradients.
        seeds = [DrawnSeed(layer.seed_generator) for layer in dropouts]

        def vectors_of(rows, number):
            with fixed_seeds(dropouts, [seed.of_part(number) for seed in seeds]):
                return super(TextEmbedder, self).call(rows, training=True)

        return in_mini_batches(vectors_of, rows, size)

    def compute_output_spec(self, inputs, training=None, mask=None):
        shape = keras.tree.flatten(inputs)[0].shape
        if len(shape) == 2:
            return super().compute_output_spec(inputs, training=training, mask=mask)
        return keras.KerasTensor((*shape[:2], self.outputs[0].shape[-1]), dtype=self.outputs[0].dtype)

    def checked_labels(self, sizes, labels, weights):
        """Labels and weights for the loss: similarities, (examples,), or without these the numbers of the texts,
        (examples, columns)."""
        if not self.compiled:
            columns = 1 if sizes.texts is None else sizes.texts.shape[1]
            self.compile(
                optimizer=BertAdamW(2e-5),  # Reimers & Gurevych 2019, section 3.1
                jit_compile="auto" if can_compile() else False,
                **objective_for(columns, labels),
            )
        loss = the_loss(getattr(self, "loss", None))
        if labels is None and getattr(loss, "takes_vectors", False):
            raise ValueError(f"{type(loss).__name__} takes the vectors of a teacher: fit(texts, vectors).")
        if labels is not None and getattr(loss, "takes_vectors", False):
            columns = () if sizes.texts is None or np.ndim(labels) < 3 else sizes.texts.shape[1:]
            shape = (len(sizes.tokens), *columns, self.output_shape[-1])
            return checked_labels(labels, weights, LabelRule(shape, None, "a number of a teacher's vector"), sizes)
        if sizes.texts is None:
            return super().checked_labels(sizes, labels, weights)
        kind, takes = type(loss).__name__, getattr(loss, "takes_similarities", None)
        if takes is not None and takes != (labels is not None):
            wanted = "the similarity of each pair" if takes else "no labels"
            raise ValueError(f"{kind} takes {wanted}: fit((first, second), similarity), or fit((anchors, positives)).")
        if labels is None:
            # One label stands for each row, so that only the weights are checked.
            return sizes.texts, checked_labels(sizes.texts[:, 0], weights, None, sizes)[1]
        scale = getattr(loss, "label_range", None)
        if scale is not None:
            low, high = scale
            why = f"but {kind} takes labels from {low:g} to {high:g}: CoSENTLoss takes any scale"
            scale = low, high, why
        rule = LabelRule((len(sizes.texts),), None, "the similarity of its pair", scale=scale)
        return checked_labels(labels, weights, rule, sizes)

    def checked_beside(self, x, labels, weights):
        if not isinstance(x, dict) or "token_ids" not in x:
            return labels, weights
        ids = ops.convert_to_numpy(x["token_ids"])
        if ids.ndim == 2:
            return super().checked_beside(x, labels, weights)
        numbers = text_numbers(ids.reshape(-1, ids.shape[2]).tolist())
        return self.checked_labels(sizes_of_columns(numbers.reshape(ids.shape[:2])), labels, weights)

    def named_outputs(self, vectors, rows=None):
        """`vector`, (batch, width)."""
        # The mean of several windows' vectors is shorter than they are.
        return {"vector": unit_vectors(vectors) if self.normalize else vectors}

    def of_texts(self, rows, outputs):
        vectors = super().of_texts(rows, outputs)
        return of_length_one(vectors) if rows.windows is not None and self.normalize else vectors

    def embed(self, texts, batch_size=32, prompt=None):
        """Returns the vectors of texts.

        Args:
            texts (str or list): a text, or several.
            batch_size (int, optional): number of texts in a batch. Default: 32.
            prompt (str, optional): name of one of `prompts`, which is put before each text. Default: None, no prompt.

        Returns: a float32 array (width,) for one text, (texts, width) for several.
        Raises: KeyError for a prompt that is not in `prompts`.
        """
        if prompt is not None:
            before = (self.prompts or {})[prompt]
            texts = before + texts if isinstance(texts, str) else [before + text for text in to_strings(texts)]
        vectors = self.predict(texts, batch_size=batch_size, verbose=0)
        return vectors[0] if isinstance(texts, str) else vectors

    def similarity(self, first, second, batch_size=32):
        """Returns the similarity of each text of `first` with each text of `second`.

        Args:
            first (str, list or array): a text, texts, or their vectors by `embed`, (width,) or (texts, width).
            second (str, list or array): likewise.
            batch_size (int, optional): number of texts in a batch. Default: 32.

        Returns: a float for two single texts or vectors, otherwise an array (texts of first, texts of second). The
            values are cosines, or dot products if `similarity_function` is "dot".

        Example:
            >>> model = kbi.TextEmbedder.from_pretrained("small_english")
            >>> model.similarity("A cat sleeps.", ["A cat rests.", "Stocks fell."]).shape
            (1, 2)
        """
        scores = self._compared(first, batch_size) @ self._compared(second, batch_size).T
        return float(scores[0, 0]) if is_one(first) and is_one(second) else scores

    def embed_queries(self, queries, batch_size=32):
        """Returns the vectors of queries, as `search` compares them with those of `embed_documents`.

        Queries get the prompt "query", documents the first of "document", "passage" and "corpus" that the model has.
        `encode_query` and `encode_document` of sentence-transformers do the same. Vectors have length 1, unless
        `similarity_function` is "dot".

        Args:
            queries (str, list or array): queries, or vectors to normalize.
            batch_size (int, optional): number of texts in a batch. Default: 32.

        Returns: a float32 array (queries, width).
        """
        return self._compared(queries, batch_size, self._prompt(QUERY_PROMPTS))

    def embed_documents(self, documents, batch_size=32):
        """Returns the vectors of texts to search in; see `embed_queries`.

        Args:
            documents (str, list or array): texts, or vectors to normalize.
            batch_size (int, optional): number of texts in a batch. Default: 32.

        Returns: a float32 array (documents, width).
        """
        return self._compared(documents, batch_size, self._prompt(CORPUS_PROMPTS))

    def _prompt(self, names):
        return next((name for name in names if name in (self.prompts or {})), None)

    def search(self, query, corpus, top_k=10, batch_size=32):
        """Finds the texts of a corpus that are most similar to a query.

        Args:
            query (str, list or array): a query, several, or their vectors.
            corpus (list or array): texts, or their vectors (texts, width) by `embed_documents` for repeated searches.
            top_k (int, optional): number of texts to return, fewer if the corpus has fewer. Default: 10.
            batch_size (int, optional): number of texts in a batch. Default: 32.

        Returns: a list of `Match` (`number`, `text`, `score`) for one query, the most similar first; a list of such
            lists for several.
        Raises: ValueError if the corpus is a single text or vector.
        """
        if is_one(corpus):
            raise ValueError("The corpus is one text or vector: pass a list of texts, or vectors (texts, width).")
        of_queries, of_corpus = self.embed_queries(query, batch_size), self.embed_documents(corpus, batch_size)
        texts = [None] * len(corpus) if is_vectors(corpus) else to_strings(corpus)
        found = [matches(scores, texts, top_k) for scores in products(of_queries, of_corpus)]
        return found[0] if is_one(query) else found

    def _compared(self, texts, batch_size, prompt=None):
        """The vectors of a text, texts or vectors whose products are their similarity, (texts, width)."""
        vectors = texts if is_vectors(texts) else self.embed(texts, batch_size, prompt)
        vectors = np.atleast_2d(np.asarray(vectors, "float32"))
        return vectors if self.similarity_function == "dot" else of_length_one(vectors)


def objective_for(columns, labels):
    """The arguments `loss` and `metrics` of `compile` for rows of so many texts, with similarities, vectors or None."""
    if np.ndim(labels) > 1 and np.shape(labels)[-1] > 1:
        return {"loss": EmbedDistillLoss(), "metrics": []}
    if labels is not None:
        return {"loss": CosineSimilarityLoss(), "metrics": [SpearmanCorrelation()]}
    if columns == 3:
        return {"loss": TripletLoss(), "metrics": [TripletAccuracy()]}
    return {"loss": MultipleNegativesRankingLoss(), "metrics": [RankingAccuracy()]}


def is_vectors(texts):
    """Whether `texts` are vectors, or one: an array of numbers, or a list of arrays or of lists of numbers."""
    if isinstance(texts, str) or not len(texts):
        return False
    array = texts if hasattr(texts, "dtype") and not isinstance(texts, list) else np.asarray(texts[:1])
    return np.asarray(array).dtype.kind in "fiu"


def is_one(texts):
    """Whether `texts` is one text or one vector."""
    return isinstance(texts, str) or (is_vectors(texts) and np.ndim(texts) == 1)


def checked_pooling(pooling):
    """`pooling` as one name or a tuple of several. Raises ValueError for one that is unknown or cannot be combined."""
    modes = modes_of(pooling)
    if not modes or not set(modes) <= set(POOLINGS) or (len(modes) > 1 and "last_four" in modes):
        raise ValueError(f"pooling {pooling!r}: give one of {', '.join(POOLINGS)}, or several without 'last_four'.")
    return modes[0] if len(modes) == 1 else modes


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TokenPooling(keras.layers.Layer):
    """Pools the vectors of tokens into one vector of the text; see TextEmbedder.

    Input:  list of (batch, length, width), one for each layer; padding_mask (batch, length).
    Output: (batch, width times layers times poolings), float32.
    """

    def __init__(self, pooling, **kwargs):
        super().__init__(**kwargs)
        self.pooling = checked_pooling(pooling)

    def call(self, layers, padding_mask):
        tokens = ops.cast(ops.concatenate(layers, axis=-1), "float32")  # (batch, length, width)
        real = ops.expand_dims(ops.cast(padding_mask, "float32"), -1)  # (batch, length, 1)
        vectors = [pool(tokens, real, mode) for mode in modes_of(self.pooling)]
        return ops.concatenate(vectors, axis=-1) if len(vectors) > 1 else vectors[0]

    def compute_output_shape(self, layers_shape, padding_mask_shape):
        return (padding_mask_shape[0], sum(shape[-1] for shape in layers_shape) * len(modes_of(self.pooling)))

    def get_config(self):
        return {**super().get_config(), "pooling": self.pooling}


def pool(tokens, real, mode):
    """Pools vectors of tokens, (batch, length, width), into one per row; `real` is 0 for padding, (batch, length, 1).

    A row of padding only, which the last batch of a mesh may hold, gives finite numbers, too.
    """
    count = ops.maximum(ops.sum(real, axis=1), 1.0)  # (batch, 1)
    if mode == "mean":
        return ops.sum(tokens * real, axis=1) / count
    if mode == "mean_sqrt_len_tokens":
        return ops.sum(tokens * real, axis=1) / ops.sqrt(count)
    if mode == "weightedmean":
        weights = real * ops.cumsum(ops.ones_like(real), axis=1)  # 1, 2, 3, ... along the row
        return ops.sum(tokens * weights, axis=1) / ops.maximum(ops.sum(weights, axis=1), 1.0)
    if mode == "max":
        return ops.amax(ops.where(real > 0, tokens, -1e9), axis=1)
    if mode == "lasttoken":
        return last_token(tokens, real[:, :, 0])
    return tokens[:, 0]  # "cls" and "last_four"
