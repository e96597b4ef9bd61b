"""Writes a trained model as a SavedModel that takes strings, whichever backend trained it.

The graphs themselves are in `text_signatures`, which imports TensorFlow.
"""

from keras_bert_impl.export import export_files, row_samples
from keras_bert_impl.export.new_export import new_export


def export_saved_model(model, directory, tokenizer=None, sequence_length=None, overwrite=False, figures=None):
    """Writes a SavedModel that takes raw strings; TensorFlow and tensorflow_text alone load it.

    Unless stated otherwise, a signature takes `text`, (batch,) strings. Any string is accepted, including the empty one
    and invalid UTF-8. Single texts that are longer than a row are read as the model's `long_texts` says; where it has
    none, and in pairs, they are cut.

    TextClassifier, `serving_default`, and `pairs`, which also takes `text_pair`:
        `logits` and `probabilities` (batch, classes), `class_id` (batch,), `label` (batch,), the name of the class.
        With multi_label: `logits`, `probabilities` (batch, classes), the sigmoid for each class, and `labels` (batch,
        most), the names of the classes of probability above 0.5, the likeliest first, padded with ""
    MaskedLM, `serving_default`; a text without [MASK] has no guesses:
        `tokens`, `token_ids`, `probabilities` (batch, masks, 5), the likeliest first, where masks is the largest number
        of masks in a text; padded with "", the id of [PAD] and 0
    TextRegressor, `serving_default`, and `pairs`, which also takes `text_pair`:
        `value` (batch,)
    TokenClassifier, `serving_default`; words are separated by white space:
        `words`, `labels`, `probabilities` (batch, words), padded with ""; of texts of any length, as `tag` reads them
    MultipleChoice, `serving_default`, which also takes `endings`, (batch, choices) strings:
        `logits`, `probabilities` (batch, choices), `class_id` (batch,), the number of the likeliest ending
    NextSentencePredictor, `serving_default`, which also takes `text_pair`:
        `logits` (batch, 2), `probability` (batch,) that `text_pair` follows `text`
    QuestionAnswerer, `serving_default`, which takes `question` and `context`, of any length:
        `answer` (batch,), `begin` and `end`, its bytes in the context, `score`, `null_odds`, higher if no answer is
        likelier
    TextEmbedder, `serving_default`:
        `vector` (batch, width)
    An encoder, `serving_default`:
        `pooled_output`, if it has a pooler, and `mean_pooled` (batch, hidden_size), the mean over all tokens of the
        text, [CLS] and [SEP] included; `sequence_output` (batch, length, hidden_size); `token_ids`, `padding_mask`

    Each of these that takes only `text` in `serving_default` also has the signature `attention`:
        `tokens` (batch, length), padded with "", and `attention` (batch, layers, heads, length, length): the share of
        the attention of a token (fourth axis) that a token (fifth axis) receives; 0 in the rows of padding

    On JAX or torch, the SavedModel is written by a separate process that runs TensorFlow. Beside the model lie the
    files that `export_files.write` lists.

    Args:
        model: a model of one of these kinds.
        directory: target directory; it is written completely or not at all, and may be moved afterwards.
        tokenizer: a Tokenizer; None means the model's own, which an encoder does not have.
        sequence_length: longer texts are cut to this many tokens; None means the model's own, or an encoder's
            max_length.
        overwrite: whether to replace a SavedModel that is already there.
        figures: scores of the model, for config.json: a dict that JSON can hold.

    Raises: ValueError if the directory is not empty, or if the model is of another kind, has no tokenizer, takes fewer
        tokens, or is of a class that the TensorFlow process cannot import; ImportError without TensorFlow; RuntimeError
        if the TensorFlow process fails, with its error messages.
    """
    with new_export("saved_model", model, directory, tokenizer, sequence_length, overwrite) as (target, *settings):
        export_files.write(model, *settings, target, "saved_model", precision_of(model), figures)


def precision_of(model):
    """What a model computes in: the name of its encoder's dtype policy, or of the mode that Keras quantized it to."""
    return row_samples.quantization_of(model) or getattr(model, "encoder", model).dtype_policy.name
