"""Evaluates a pre-trained model on held-out text: figures beside two baselines, and learning curves."""

import functools
import math

import keras
import matplotlib
import numpy as np
import tensorboardX

from keras_bert_impl import distribution
from keras_bert_impl.console import say
from keras_bert_impl.json_files import write_json

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# Tokens of the training split that the baselines count. With more tokens their accuracy hardly grows; with this number
# the memory for the counted pairs stays near 300 MB.
BASELINE_TOKENS = 10_000_000
COUNTED_AT_ONCE = 1_000_000


def write(model, data, history, directory):
    """Evaluates on the test split, writes evaluation.json and curves.png, prints and returns the figures."""
    found = model.evaluate(data.for_fit("test"), return_dict=True, verbose=0)
    if not distribution.is_chief():
        return found
    left_out = data.rows_left_out("test")
    if left_out:
        say(
            f"  {left_out:,} of {data.num_examples['test']:,} test rows are left out: they do not fill a batch for all "
            "devices"
        )
    report = {
        "masked_lm_accuracy": found["masked_lm_accuracy"],
        "masked_lm_perplexity": math.exp(found["masked_lm_loss"]),
        "next_sentence_accuracy": found.get("next_sentence_accuracy"),
        **baselines(data),
        "minutes": history[-1]["minutes"] if history else 0.0,
        "steps": history[-1]["step"] if history else 0,
    }
    print_figures(report)
    draw_curves(history, report, directory / "curves.png")
    write_json(directory / "evaluation.json", report)
    return report


def print_figures(report):
    """Prints the table of figures; next-sentence prediction has a column only if it was trained."""
    has_pairs = report["next_sentence_accuracy"] is not None
    title = f"{'next sentence':>15}" if has_pairs else ""
    say(f"  {'held-out text':<40}{'masked words':>14}{'perplexity':>12}{title}")
    for name, prefix in (
        ("this model", ""),
        ("most frequent word", "unigram_"),
        ("... given its left neighbour", "bigram_"),
    ):
        figures = [report.get(f"{prefix}{figure}") for figure in ("masked_lm_accuracy", "masked_lm_perplexity")]
        next_sentence = report["next_sentence_majority" if prefix else "next_sentence_accuracy"]
        next_sentence = f"{next_sentence:>15.1%}" if has_pairs else ""
        say(f"  {name:<40}{figures[0]:>14.1%}{figures[1]:>12.1f}{next_sentence}")


class TensorBoardLog(keras.callbacks.Callback):
    """After each round, writes losses and metrics, the figures of `Rounds` and some validation rows with the model's
    guesses for the masks to TensorBoard; unlike Keras' own callback without TensorFlow.
    """

    def __init__(self, data, rounds, directory, rows=4):
        super().__init__()
        self.data, self.rounds, self.rows = data, rounds, rows
        self.writers = {part: tensorboardX.SummaryWriter(str(directory / part)) for part in ("train", "validation")}

    @functools.cached_property
    def batch(self):
        """A batch of the validation split, the same rows in every round."""
        return next(self.data.arrays("validation", most_rows=self.data.batch_size))

    def on_epoch_end(self, epoch, logs=None):
        for name, value in {**(logs or {}), **self.rounds.figures}.items():
            part = "validation" if name.startswith("val_") else "train"
            self.writers[part].add_scalar(f"epoch_{name.removeprefix('val_')}", value, epoch)
        if distribution.num_processes() == 1:  # with several, all would have to take part in the prediction
            self.writers["train"].add_text("masked words", self.filled_masks(), epoch)
        for writer in self.writers.values():
            writer.flush()

    def filled_masks(self):
        inputs, labels = self.batch
        logits = self.model.predict_on_batch(inputs)["masked_lm_logits"]
        guesses = keras.ops.convert_to_numpy(logits).argmax(axis=-1)
        return filled_rows(self.data.tokenizer, inputs, labels, guesses, self.rows)


def filled_rows(tokenizer, inputs, labels, guesses, rows):
    """Markdown: rows with **guess** where the model is right, and **guess** (truth) where it is not."""
    lines = []
    for row in range(min(rows, len(guesses))):
        words = [tokenizer.vocabulary[index] for index in inputs["token_ids"][row] if index != tokenizer.pad_id]
        for column in np.nonzero(labels["mask_weights"][row])[0]:
            guess, truth = (tokenizer.vocabulary[ids[row][column]] for ids in (guesses, labels["mask_ids"]))
            shown = f"**{guess}**" if guess == truth else f"**{guess}** ({truth})"
            words[inputs["mask_positions"][row][column]] = shown
        lines.append(" ".join(words))
    return "\n\n".join(lines)


def baselines(data):
    """Accuracy and perplexity of predicting a masked word without a network, from counts over at most BASELINE_TOKENS
    tokens of the training split, with rows from all its files.

    The unigram baseline always predicts the most frequent token of the training split. The bigram baseline predicts
    the token that most often followed the left neighbour as the model sees it ([MASK] if the neighbour is masked,
    too); for a neighbour that was never seen it falls back to the unigram. Probabilities are smoothed: add-one for the
    unigram, and (count + 10 * unigram) / (total + 10) for the bigram.
    """
    size, mask_id = data.tokenizer.vocabulary_size, data.tokenizer.mask_id
    pairs, counts = training_bigrams(data)
    unigram = np.bincount(pairs % size, counts, size) + 1.0
    unigram /= unigram.sum()
    totals = np.bincount(pairs // size, counts, size)
    best = np.full(size, unigram.argmax())
    order = np.argsort(counts, kind="stable")  # so that the most frequent pair is written last
    best[pairs[order] // size] = pairs[order] % size

    hits, bits, labels = {"unigram": [], "bigram": []}, {"unigram": [], "bigram": []}, []
    for inputs, targets in data.arrays("test"):
        chosen = targets["mask_weights"] > 0
        word = targets["mask_ids"][chosen]
        positions = np.maximum(inputs["mask_positions"] - 1, 0)
        neighbour = np.take_along_axis(inputs["token_ids"], positions, 1)[chosen]
        hits["unigram"].append(word == unigram.argmax())
        hits["bigram"].append(word == np.where(neighbour == mask_id, unigram.argmax(), best[neighbour]))
        key = neighbour.astype("int64") * size + word
        place = np.minimum(np.searchsorted(pairs, key), len(pairs) - 1)
        seen = np.where(pairs[place] == key, counts[place], 0)
        bits["unigram"].append(np.log(unigram[word]))
        bits["bigram"].append(np.log((seen + 10 * unigram[word]) / (totals[neighbour] + 10)))
        sequences = targets.get("next_sentence_weights", np.ones_like(targets["next_sentence_labels"]))
        labels.append(targets["next_sentence_labels"][sequences > 0])
    share_random = np.concatenate(labels).mean()
    report = {"next_sentence_majority": float(max(share_random, 1 - share_random))}
    report["baseline_tokens"] = int(counts.sum())
    for name in hits:
        report[f"{name}_masked_lm_accuracy"] = float(np.concatenate(hits[name]).mean())
        report[f"{name}_masked_lm_perplexity"] = float(np.exp(-np.concatenate(bits[name]).mean()))
    return report


def training_bigrams(data):
    """Counts the pairs of neighbouring tokens in the unmasked training split: (pairs, counts), where a pair is
    left * vocabulary_size + right. Pairs are distinct and sorted; special tokens occur only on the left."""
    tokenizer, most_rows = data.tokenizer, -(-BASELINE_TOKENS // data.sequence_length)
    pairs, counts, waiting = np.zeros(0, np.int64), np.zeros(0, np.int64), []
    for rows in data.unmasked_rows("train", most_rows):
        left, right = rows[:, :-1].astype(np.int64), rows[:, 1:]
        is_word = ~np.isin(right, (tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id))
        waiting.append((left * tokenizer.vocabulary_size + right)[is_word])
        if sum(map(len, waiting)) >= COUNTED_AT_ONCE:
            pairs, counts, waiting = *counted(pairs, counts, waiting), []
    return counted(pairs, counts, waiting)


def counted(pairs, counts, more):
    """(pairs, counts) after adding the pairs in `more`, a list of arrays."""
    found, times = np.unique(np.concatenate([pairs[:0], *more]), return_counts=True)
    everything, places = np.unique(np.concatenate([pairs, found]), return_inverse=True)
    return everything, np.bincount(places, np.concatenate([counts, times]), len(everything)).astype(np.int64)


def draw_curves(history, report, path):
    """Draws losses and accuracies over the steps, for training and validation, with the baselines as lines."""
    steps = [row["step"] for row in history]
    panels = (
        ("masked_lm_loss", "Masked-LM loss (nats per token)", None),
        ("masked_lm_accuracy", "Masked-LM accuracy", report["bigram_masked_lm_accuracy"]),
        ("next_sentence_accuracy", "Next-sentence accuracy", report["next_sentence_majority"]),
    )
    panels = [panel for panel in panels if history and panel[0] in history[0]]
    figure, axes = plt.subplots(1, len(panels), figsize=(4.4 * len(panels), 3.8), layout="constrained")
    for axis, (name, title, baseline) in zip(axes, panels, strict=True):
        axis.plot(steps, [row[name] for row in history], label="training", color="tab:blue")
        axis.plot(steps, [row[f"val_{name}"] for row in history], label="validation", color="tab:orange")
        if baseline is not None:
            label = "left neighbour" if name == "masked_lm_accuracy" else "always the same"
            axis.axhline(baseline, color="gray", linestyle="--", label=f"baseline: {label}")
        axis.set(title=title, xlabel="step", ylim=None if baseline is None else (0, 1))
        axis.grid(alpha=0.3)
        axis.legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)
