"""Evaluates a pre-trained model on held-out text: figures beside two baselines, and learning curves."""

import functools
import math
import statistics

import keras
import numpy as np
import scipy.sparse
import tensorboardX

from keras_bert_impl import distribution, plots
from keras_bert_impl.callbacks.training_figures import PERCENTILES
from keras_bert_impl.checkpoints import CardFacts, Figure, open_checkpoint, write_card
from keras_bert_impl.checkpoints.hub import origin_of
from keras_bert_impl.checkpoints.model_card import deviation_of_share
from keras_bert_impl.console import say
from keras_bert_impl.distribution import hardware
from keras_bert_impl.json_files import write_json
from keras_bert_training import report as page

# Tokens of the training split that the baselines count. With more tokens their accuracy hardly grows; with this number
# the memory for the counted pairs stays near 300 MB.
BASELINE_TOKENS = 10_000_000
COUNTED_AT_ONCE = 1_000_000


def write(model, data, rounds, directory):
    """Evaluates on the test split, writes evaluation.json and curves.png, prints and returns the figures."""
    history = rounds.history
    found = model.evaluate(data.for_fit("test"), return_dict=True, verbose=0)
    if not distribution.is_chief():
        return found
    report = {
        **held_out_figures(found, data),
        "minutes": history[-1]["minutes"],
        "steps": history[-1]["step"],
        "speed": speed(history, rounds.ceiling, rounds.ceiling_source, rounds.flops_per_token()),
    }
    print_figures(report)
    print_speed(report["speed"])
    curves_of(history, report).savefig(directory / "curves.png")
    write_json(directory / "evaluation.json", report)
    return report


def print_start(model, data):
    """Prints the figures of the checkpoint with which a run begins, on held-out text."""
    found = model.evaluate(data.for_fit("test"), return_dict=True, verbose=0)
    if distribution.is_chief():
        say("  before the first step:")
        print_figures(held_out_figures(found, data))


# Of an ELECTRA's discriminator.
DETECTION = ("detection_accuracy", "replaced_precision", "replaced_recall")
SPAN_BOUNDARY = ("span_boundary_loss", "span_boundary_accuracy")
# How far a student is from its teacher.
DISTILLATION = ("soft_target_loss", "cosine_loss", "hidden_state_loss")


def held_out_figures(found, data):
    """The figures of an evaluation.json: those that `evaluate` found, beside those of the baselines."""
    figures = {name: found[name] for name in (*DETECTION, *SPAN_BOUNDARY, *DISTILLATION) if name in found}
    if "masked_lm_loss" in found:
        figures |= {
            "masked_lm_accuracy": found["masked_lm_accuracy"],
            "masked_lm_perplexity": math.exp(found["masked_lm_loss"]),
            "next_sentence_accuracy": found.get("next_sentence_accuracy"),
            **baselines(data),
        }
    return {**figures, "pairs": data.pairs}


def print_figures(found):
    """Prints the held-out figures beside their baselines."""
    for figure in figures_of(found):
        form = "{:.4f}" if figure.name.endswith("loss") else "{:.1f}" if "perplexity" in figure.name else "{:.1%}"
        others = "".join(f"; {what} {form.format(value)}" for what, value in figure.baselines)
        say(f"  held-out text: {figure.title} {form.format(figure.value)}{others}")


SPEED = {
    "tokens_per_second": "{:,.0f} tokens/s",
    "flops_utilization": "{:.0%} of {ceiling}",
    "device_memory_gib": "{:.1f} GiB of a device",
}


def speed(history, ceiling, ceiling_source, flops_per_token):
    """How fast the training was: medians over its rounds of what `TrainingFigures` measured, the most memory, and what
    the devices can do at most, which is None if this process trained no round."""
    names = [name for name in history[-1] if name in SPEED or name.startswith("seconds_per_step")]
    found = {name: statistics.median(row[name] for row in history if name in row) for name in names}
    if ceiling is not None and "tokens_per_second" in found:  # the ceiling may have risen since the first rounds
        found["flops_utilization"] = found["tokens_per_second"] * flops_per_token / ceiling
    if "device_memory_gib" in found:
        found["device_memory_gib"] = max(row.get("device_memory_gib", 0.0) for row in history)
    return {**found, "device": hardware.device_kind(), "ceiling_tflops": ceiling and ceiling / 1e12,
            "ceiling_source": ceiling_source}  # fmt: skip


def print_speed(found):
    """Prints the figures of speed that there are."""
    ceiling = "the ceiling"  # of another process
    if found["ceiling_tflops"]:
        ceiling = f"{found['ceiling_tflops']:,.3g} TFLOP/s ({found['ceiling_source']})"
    if parts := [form.format(found[name], ceiling=ceiling) for name, form in SPEED.items() if name in found]:
        say(f"  speed: {', '.join(parts)}")
    shares = [share for share in PERCENTILES if f"seconds_per_step_p{share}" in found]
    if shares:
        percentiles = " / ".join(f"{found[f'seconds_per_step_p{share}'] * 1000:,.1f}" for share in shares)
        say(f"  ms a step: {percentiles} (percentiles {' / '.join(map(str, shares))})")


class TensorBoardLog(keras.callbacks.Callback):
    """After each round, writes losses, metrics and the figures of `Rounds` to TensorBoard; unlike Keras' own callback
    without TensorFlow, and without computing the learning rate in the process that writes, from an array of all
    processes: on a TPU slice, it would wait for ever."""

    def __init__(self, rounds, directory):
        super().__init__()
        self.rounds = rounds
        parts = ("train", "validation") if distribution.is_chief() else ()
        self.writers = {part: tensorboardX.SummaryWriter(str(directory / part)) for part in parts}

    def on_epoch_end(self, epoch, logs=None):
        if not self.writers:
            return
        for name, value in {**(logs or {}), **self.rounds.figures}.items():
            part = "validation" if name.startswith("val_") else "train"
            self.writers[part].add_scalar(f"epoch_{name.removeprefix('val_')}", value, epoch)
        for writer in self.writers.values():
            writer.flush()

    def close(self):
        """Ends the thread of each writer, which would go on to write to its file while the process does something
        else."""
        for writer in self.writers.values():
            writer.close()


def filled_rows(model, data, rows=4):
    """Rows of the test split with a model's guesses for their masks; [] for a model that predicts no words. All
    processes compute, and not more than these rows: the logits of 4,096 rows of 128 tokens are 10 GB on every device.

    Returns: for each row a list of its pieces: dicts of `truth`, and `guess`, None for a piece that was not masked.
    """
    batch = next(data.arrays("test", most_rows=data.batch_size))
    inputs, labels = keras.tree.map_structure(lambda array: array[:rows], batch)
    outputs = distribution.outputs_of_batch(model, inputs)
    if "masked_lm_logits" not in outputs:
        return []
    inputs = {**inputs, "mask_positions": data.predicted_positions(inputs)}
    return rows_with_guesses(data.tokenizer, inputs, labels, outputs["masked_lm_logits"].argmax(axis=-1))


def rows_with_guesses(tokenizer, inputs, labels, guesses):
    """`filled_rows` of guesses that have been made, (rows, predictions)."""
    found = []
    for row in range(len(guesses)):
        ids = [index for index in inputs["token_ids"][row] if index != tokenizer.pad_id]
        pieces = [{"truth": tokenizer.piece_text(index), "guess": None} for index in ids]
        for column in np.nonzero(labels["mask_weights"][row])[0]:
            guess, truth = (tokenizer.piece_text(ids[row][column]) for ids in (guesses, labels["mask_ids"]))
            pieces[inputs["mask_positions"][row][column]] = {"truth": truth, "guess": guess}
        found.append(pieces)
    return found


@functools.lru_cache(maxsize=1)
def baselines(data):
    """Accuracy and perplexity of predicting a masked word without a network, from counts over at most BASELINE_TOKENS
    tokens of the training split, with rows from all its files.

    The unigram baseline always predicts the most frequent token of the training split. The bigram baseline predicts
    the token that most often followed the left neighbour as the model sees it ([MASK] if the neighbour is masked,
    too); for a neighbour that was never seen it falls back to the unigram. Probabilities are smoothed: add-one for the
    unigram, and (count + 10 * unigram) / (total + 10) for the bigram.
    """
    counts = training_bigrams(data)
    unigram = counts.sum(axis=0) + 1.0
    unigram /= unigram.sum()
    totals = counts.sum(axis=1)
    best = np.where(totals > 0, counts.argmax(axis=1), unigram.argmax())
    best[data.tokenizer.mask_id] = unigram.argmax()

    hits, bits, labels = {"unigram": [], "bigram": []}, {"unigram": [], "bigram": []}, []
    for inputs, targets in data.arrays("test"):
        chosen = targets["mask_weights"] > 0
        word = targets["mask_ids"][chosen]
        positions = np.maximum(data.predicted_positions(inputs) - 1, 0)
        neighbour = np.take_along_axis(inputs["token_ids"], positions, 1)[chosen]
        hits["unigram"].append(word == unigram.argmax())
        hits["bigram"].append(word == best[neighbour])
        bits["unigram"].append(np.log(unigram[word]))
        bits["bigram"].append(np.log((counts[neighbour, word] + 10 * unigram[word]) / (totals[neighbour] + 10)))
        sequences = targets.get("next_sentence_weights", np.ones_like(targets["next_sentence_labels"]))
        labels.append(targets["next_sentence_labels"][sequences > 0])
    share_random = np.concatenate(labels).mean()
    report = {
        "next_sentence_majority": float(max(share_random, 1 - share_random)),
        "baseline_tokens": int(counts.sum()),
        "test_predictions": sum(map(len, hits["unigram"])),
    }
    for name in hits:
        report[f"{name}_masked_lm_accuracy"] = float(np.concatenate(hits[name]).mean())
        report[f"{name}_masked_lm_perplexity"] = float(np.exp(-np.concatenate(bits[name]).mean()))
    return report


def training_bigrams(data):
    """How often a token stands beside another in the unmasked training split: a sparse matrix, (left, right). Special
    tokens occur only on the left."""
    tokenizer, most_rows = data.tokenizer, -(-BASELINE_TOKENS // data.sequence_length)
    size = tokenizer.vocabulary_size
    counts, waiting = scipy.sparse.csr_array((size, size), dtype=np.int64), []
    for rows in data.unmasked_rows("train", most_rows):
        is_word = ~np.isin(rows[:, 1:], (tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id))
        waiting.append(np.stack([rows[:, :-1][is_word], rows[:, 1:][is_word]]))
        if sum(map(np.size, waiting)) >= 2 * COUNTED_AT_ONCE:
            counts, waiting = counts + counted(waiting, size), []
    return counts + counted(waiting, size)


def counted(pairs, size):
    """A list of arrays of pairs, (2, pairs), as such a matrix."""
    pairs = np.concatenate([np.zeros((2, 0), int), *pairs], axis=1)
    return scipy.sparse.csr_array((np.ones(pairs.shape[1], np.int64), tuple(pairs)), shape=(size, size))


BASELINES = {
    **{
        name: {
            "most frequent word": f"unigram_{name}",
            "most frequent word after its left neighbour": f"bigram_{name}",
        }
        for name in ("masked_lm_accuracy", "masked_lm_perplexity")
    },
    "next_sentence_accuracy": {"always the same": "next_sentence_majority"},
}
CURVES = ("masked_lm_loss", "masked_lm_accuracy", "next_sentence_accuracy", "detection_loss", "replaced_recall",
          "span_boundary_loss", *DISTILLATION)  # fmt: skip


def curves_of(history, report):
    """Losses and accuracies over the steps as a picture, for training and validation, with the baselines as lines."""
    names = [name for name in CURVES if name in history[0]]
    figure = plots.curves(history, names)
    for axis, name in zip(figure.axes, names, strict=True):
        for (label, key), style in zip(BASELINES.get(name, {}).items(), ("--", ":"), strict=False):
            if key in report:
                axis.axhline(report[key], color="gray", linestyle=style, label=f"baseline: {label}")
        axis.set_ylim(0 if name in BASELINES else None)
        axis.legend()
    return figure


def figures_of(found):
    """The `Figure` of each held-out figure of an evaluation.json, beside its baselines."""
    for name in (*BASELINES, *DETECTION, SPAN_BOUNDARY[1], *DISTILLATION):
        if found.get(name) is None:
            continue
        baselines = tuple((label, found[key]) for label, key in BASELINES.get(name, {}).items())
        count = found.get("test_predictions") if name == "masked_lm_accuracy" else None
        deviation, over = (deviation_of_share(found[name], count), f"{count:,} words") if count else (None, "")
        shown = name.replace("next_sentence", found["pairs"]) if name.startswith("next_sentence") else name
        yield Figure(shown, found[name], "test", deviation, over, baselines)


def write_pretraining(directory, config, data, found, masks):
    """Writes the card of the encoder of a pre-training, or of the student of a distillation, and the report of the run.
    `found` is the content of evaluation.json, `masks` are the `filled_rows` of held-out text."""
    teacher = getattr(config, "teacher", None)
    start = teacher or config.init
    base, origin = origin_of(start) if start else (None, None)
    notes = [
        f"{found['steps']:,} steps of {config.batch_size:,} examples of {data.sequence_length:,} tokens, in "
        f"{found['minutes']:.1f} minutes; pairs: {data.pairs.replace('_', ' ')}."
    ]
    if teacher or (start and not base):
        notes.append(f"A student of {origin}." if teacher else f"Training started from {origin}.")
    encoder = open_checkpoint(directory / "encoder").config
    if not start and encoder.has_position_table and encoder.max_length > data.sequence_length:
        notes.append(
            f"Positions from {data.sequence_length:,} on have learnt nothing: before longer texts, train on longer "
            "rows (--init, --sequence_length)."
        )
    corpus = data.corpus.get("train", {})
    counts = [(f"{name} of training text", corpus[name]) for name in ("documents", "words", "bytes") if name in corpus]
    counts += [(f"rows, {split}", number) for split, number in data.num_examples.items()]
    facts = CardFacts(
        languages=data.languages, base_model=base, data=counts, notes=notes, figures=list(figures_of(found))
    )
    write_card(directory / "encoder", facts)
    page.write(directory, "pretraining", facts, masks=masks)
