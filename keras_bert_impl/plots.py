"""Pictures of runs, models, outputs and texts, as matplotlib figures.

    figure = kbi.plots.confusion(labels, predicted)
    figure.savefig("confusion.png")

Each function returns a `matplotlib.figure.Figure` and shows nothing: a notebook shows the last value of a cell. The
colours are Okabe and Ito's, which people see apart who do not see all colours, and no picture needs colour alone. A
title says what was found.
"""

import json
import pathlib

import keras
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator
from sklearn.calibration import calibration_curve
from sklearn.decomposition import PCA
from sklearn.metrics import ConfusionMatrixDisplay, confusion_matrix

from keras_bert_impl.kernels.gradients import gradient
from keras_bert_impl.models import TextClassifier, TextRegressor
from keras_bert_impl.preprocessing.texts import to_strings
from keras_bert_impl.suggestions import one_of

COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000", "#F0E442")
MARKERS = "osD^vPX*"
TOKENS_OF_LINE = 40  # in a picture of a text
STYLE = {
    "figure.constrained_layout.use": True,
    "figure.dpi": 110,
    "axes.prop_cycle": plt.cycler(color=COLORS),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
}


def panels(columns=1, rows=1, width=4.4, height=3.6, **options):
    """(figure, axes (rows, columns)) in the style of all pictures. The figure does not belong to pyplot, which would
    show it."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(rows, columns, figsize=(width * columns, height * rows), squeeze=False, **options)
    plt.close(figure)
    return figure, axes


def curves(runs, names=None):
    """Figures of training over its steps or epochs, dashed, and of validation; one panel for each figure.

    Args:
        runs: a run, or {label: run} to compare several. A run is what `fit` returns, a list of dicts of figures, or the
            directory of `keras-bert pretrain` or `finetune`.
        names: the figures to draw, such as ["loss", "accuracy"]; None for all that some run has.
    """
    runs = runs if isinstance(runs, dict) and not _is_history(runs) else {"": runs}
    rows = {label: history_of(run) for label, run in runs.items()}
    known = list(dict.fromkeys(name.removeprefix("val_") for of_run in rows.values() for name in of_run))
    known = [name for name in known if name not in ("step", "epoch")]
    names = names or known
    figure, axes = panels(len(names))
    for axis, name in zip(axes[0], names, strict=True):
        for place, (label, found) in enumerate(rows.items()):
            look = {"color": COLORS[place % len(COLORS)], "markersize": 4}
            over = "step" if "step" in found else "epoch"
            for key, style, kind in ((name, "--", "training"), (f"val_{name}", "-", "validation")):
                if key in found:
                    marker = MARKERS[place % len(MARKERS)] if len(found[key]) < 30 else None
                    legend = " ".join(word for word in (label, kind) if word)
                    axis.plot(found[over], found[key], style, marker=marker, label=legend, **look)
            axis.set_xlabel(over)
            axis.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
        axis.set_title(_finding_of_curve(rows, name))
        axis.legend()
    return figure


def history_of(run):
    """The figures of a run, as lists by their names, "step" or "epoch" among them; see `curves`."""
    if isinstance(run, str | pathlib.Path):
        path = pathlib.Path(run, "history.json")
        if path.is_file():
            run = json.loads(path.read_text(encoding="utf-8"))
        else:  # of `keras-bert finetune`
            found = json.loads(path.with_name("metrics.json").read_text(encoding="utf-8"))
            run = [{"loss": row["loss"], f"val_{found['main_metric']}": row["value"]} for row in found["history"]]
    found = getattr(run, "history", run)
    if isinstance(found, list):
        numbers = [{name: value for name, value in row.items() if isinstance(value, int | float)} for row in found]
        names = [name for name in (numbers[0] if numbers else {}) if all(name in row for row in numbers)]
        found = {name: [row[name] for row in numbers] for name in names}
    if not found or not len(next(iter(found.values()))):
        raise ValueError("The run has no figures yet: it has finished no epoch.")
    count = len(next(iter(found.values())))
    return found if "step" in found else {"epoch": list(range(1, count + 1)), **found}


def confusion(labels, predicted, names=None):
    """How often each class was taken for each: labels in rows, predictions in columns.

    Args:
        labels: a class for each example, a name or a number.
        predicted: the same.
        names: the classes in order, as labels and predictions name them; None for those that occur, sorted.

    Raises: ValueError for a class that is none of the names.
    """
    found = dict.fromkeys([*labels, *predicted])
    names = sorted(found) if names is None else list(names)
    for one in found:
        one_of("class", one, names)
    return confusion_of_counts(confusion_matrix(list(labels), list(predicted), labels=names), names)


def confusion_of_counts(counts, names):
    """The same of a matrix of counts, (classes, classes)."""
    counts = np.asarray(counts)
    size = 2.2 + 0.8 * len(names)
    figure, ((axis,),) = panels(width=size + 1, height=size)
    ConfusionMatrixDisplay(counts, display_labels=names).plot(ax=axis, cmap="Blues", xticks_rotation=45, colorbar=False)
    axis.grid(visible=False)
    axis.set_title(f"{counts.sum():,} examples, {np.trace(counts) / max(counts.sum(), 1):.1%} right")
    return figure


def reliability(labels, probabilities, bins=10, names=None):
    """Whether probabilities are shares: of predictions with a probability of 0.8, about 80 % should be right.

    Args:
        labels: for each example the number of its class, or its name.
        probabilities: (examples, classes), or (examples,) for the second of two classes.
        bins: number of bins, each with as many examples.
        names: of the classes, in the order of the probabilities; needed for labels that are names.

    Raises: ValueError for logits or NaN, or labels that are no classes.

    The title has the expected calibration error (Guo et al. 2017, "On Calibration of Modern Neural Networks"), the mean
    distance of the shares from the probabilities.
    """
    probabilities = np.asarray(probabilities, "float64")
    if probabilities.ndim == 1:
        probabilities = np.stack([1 - probabilities, probabilities], axis=1)
    labels = list(labels)
    if any(isinstance(label, str) for label in labels):
        labels = [list(names).index(label) for label in labels]
    labels = np.asarray(labels)
    if not np.allclose(probabilities.sum(axis=1), 1, atol=1e-3) or probabilities.min(initial=0) < 0:
        raise ValueError(
            "The probabilities of an example do not sum to 1: `predict` gives logits, of which softmax is taken; NaN "
            "means that training diverged."
        )
    if labels.shape != probabilities.shape[:1] or not np.isin(labels, np.arange(probabilities.shape[1])).all():
        raise ValueError(
            f"Labels are {labels[:3].tolist()}, ..., expected numbers from 0 to {probabilities.shape[1] - 1} for "
            f"{len(probabilities):,} examples."
        )
    is_right, sure = probabilities.argmax(axis=1) == labels, probabilities.max(axis=1)
    shares, means = calibration_curve(is_right, sure, n_bins=bins, strategy="quantile")
    edges = np.quantile(sure, np.linspace(0, 1, bins + 1))
    counts = np.bincount(np.searchsorted(edges[1:-1], sure), minlength=bins)
    error = np.average(np.abs(shares - means), weights=counts[counts > 0])
    figure, ((axis,),) = panels()
    axis.plot([0, 1], [0, 1], ":", color="gray", label="as sure as right")
    axis.plot(means, shares, "o-", color=COLORS[0], label=f"{len(labels):,} examples")
    least = 1 / probabilities.shape[1]
    axis.set(xlabel="probability of the predicted class", ylabel="share of them that is right", xlim=(least, 1))
    direction = "too sure" if np.average(means - shares, weights=counts[counts > 0]) > 0 else "not sure enough"
    axis.set_title(f"Probabilities are off by {error:.1%}, {direction}" if error >= 0.0005 else "As sure as right")
    axis.legend()
    return figure


def lengths(model, texts):
    """How many tokens texts have, those of a row's control tokens included, beside the model's `sequence_length`.

    Args:
        model: a model with a tokenizer, such as a TextClassifier.
        texts: a list of texts.

    The title tells how many texts are longer than a row, and what is padding if each batch of 32 is as long as its
    longest text: in the order of the texts, and sorted by length as `fit` has them.
    """
    control = model.tokenizer.template.num_control(is_pair=False)
    counts = np.array([len(ids) for ids in model.tokenizer.ids_batch(to_strings(texts))]) + control
    limit = model.sequence_length
    cut = np.minimum(counts, limit)
    figure, ((axis,),) = panels(width=6)
    axis.hist(counts, bins=min(60, max(10, len(set(counts.tolist())))), color=COLORS[0])
    axis.axvline(limit, color=COLORS[4], linestyle="--", label=f"sequence_length {limit}")
    axis.set(xlabel="tokens", ylabel="texts")
    axis.set_title(
        f"{np.mean(counts > limit):.1%} of {len(counts):,} texts have more than {limit} tokens; "
        f"padding {_padding(cut):.0%}, by length {_padding(np.sort(cut)):.0%}",
        fontsize="medium",
    )
    axis.legend()
    return figure


def vectors(found, labels=None):
    """A map of vectors: their two directions of most variance (principal components).

    Args:
        found: (texts, width), such as `TextEmbedder.embed` returns.
        labels: a class for each, which gets a colour and a marker; or None.

    """
    found = np.asarray(found, "float64")
    labels = [""] * len(found) if labels is None else list(labels)
    analysis = PCA(2).fit(found)
    places = analysis.transform(found)
    figure, ((axis,),) = panels(width=5.5, height=4.5)
    for number, label in enumerate(dict.fromkeys(labels)):
        is_of = np.array([one == label for one in labels])
        look = {"color": COLORS[number % len(COLORS)], "marker": MARKERS[number % len(MARKERS)]}
        axis.scatter(*places[is_of].T, s=18, alpha=0.7, label=label or None, **look)
    shares = analysis.explained_variance_ratio_
    axis.set(xlabel=f"{shares[0]:.0%} of the variance", ylabel=f"{shares[1]:.0%} of the variance")
    axis.set_title(f"{len(found):,} vectors; the map shows {shares.sum():.0%} of how they differ")
    if any(labels):
        axis.legend()
    return figure


def attention(model, text, layer=None, head=None):
    """What the tokens of a text see: the attention of one head, or of all heads of one layer or of all layers.

    Args:
        model: an encoder's head with a tokenizer, such as a MaskedLM, or a TextEmbedder.
        text: a text of few words.
        layer: number of a layer from 0; None for all.
        head: number of a head from 0, of that layer; None for all.

    Rows are the tokens that see, columns those that are seen; each row sums to 1.
    """
    probabilities, tokens = attention_of(model, text)
    layers, heads = (
        list(range(count)) if number is None else [number]
        for number, count in zip((layer, head), probabilities.shape[:2], strict=True)
    )
    is_one = len(layers) == len(heads) == 1
    size = max(3.8, 0.32 * len(tokens)) if is_one else 1.3
    figure, axes = panels(len(heads), len(layers), width=size + (1 if is_one else 0), height=size)
    for axis, (number, part) in zip(axes.flat, ((a, b) for a in layers for b in heads), strict=True):
        axis.imshow(probabilities[number, part], cmap="Blues", vmin=0, vmax=1)
        axis.grid(visible=False)
        if is_one:
            axis.set_xticks(range(len(tokens)), tokens, rotation=90)
            axis.set_yticks(range(len(tokens)), tokens)
            continue
        axis.set(xticks=[], yticks=[])
        if part == heads[0]:
            axis.set_ylabel(f"layer {number}", fontsize="small")
        if number == layers[0]:
            axis.set_title(f"head {part}", fontsize="small")
    shown = probabilities[np.ix_(layers, heads)]
    distance = np.abs(np.subtract.outer(np.arange(len(tokens)), np.arange(len(tokens))))
    far = (shown * distance).sum(axis=-1).mean()
    what = f"Layer {layers[0]}, head {heads[0]}:\n" if is_one else f"{shown.shape[0] * shown.shape[1]} heads: "
    figure.suptitle(
        f"{what}tokens look {far:.1f} tokens away on average, {np.mean(shown[..., 0]):.0%} of it to {tokens[0]}",
        fontsize="medium",
    )
    return figure


def attention_of(model, text):
    """(probabilities (layers, heads, length, length), the tokens of the row): see `attention`."""
    rows, encoder = model.rows([text]), model.encoder
    tokens = _tokens_of(model, rows)
    if not encoder.return_attention:
        kind, options = type(encoder), encoder.get_config()
        options = {**options, "return_attention": True, "name": "encoder_with_attention"}
        seeing = kind.from_config(options)
        seeing.set_weights(encoder.get_weights())
        encoder = seeing
    found = encoder({name: rows[name] for name in encoder.input})["attention_probabilities"]
    return keras.ops.convert_to_numpy(found)[0, :, :, : len(tokens), : len(tokens)], tokens


def contributions(model, text, target=None):
    """The tokens of a text, coloured by what they contribute to an output: gradient times input (Shrikumar et al. 2016,
    "Not Just a Black Box"). Blue speaks for it, orange against it.

    Args:
        model: a TextClassifier or TextRegressor with a tokenizer.
        text: a text.
        target: name or number of a class; None for the likeliest one.

    Raises: ValueError for another kind of model.
    """
    values, tokens, name = contributions_of(model, text, target)
    shares = values / (np.abs(values).max() or 1.0)
    lines = -(-len(tokens) // TOKENS_OF_LINE)
    width = max(4.0, 0.45 * min(len(tokens), TOKENS_OF_LINE))
    figure, axes = panels(rows=lines, width=width, height=2.4)
    for line, axis in enumerate(axes[:, 0]):
        part = slice(line * TOKENS_OF_LINE, (line + 1) * TOKENS_OF_LINE)
        count = len(tokens[part])
        axis.bar(range(count), shares[part], color=[COLORS[0] if share >= 0 else COLORS[1] for share in shares[part]])
        axis.axhline(0, color="gray", linewidth=0.8)
        axis.set_xticks(range(count), tokens[part], rotation=60, ha="right")
        axis.set(ylabel="gradient x input", ylim=(-1.1, 1.1))
        if lines > 1:
            axis.set_xlim(-0.8, TOKENS_OF_LINE - 0.2)
    axes[0, 0].set_title(f"Most for {name}: {tokens[int(np.argmax(values))]}")
    return figure


def contributions_of(model, text, target=None):
    """(values (length,), tokens, the output's name): see `contributions`."""
    if not isinstance(model, TextClassifier | TextRegressor):
        raise ValueError(f"A {type(model).__name__} has no score of a class: give a TextClassifier or TextRegressor.")
    arrays = model.rows([text])
    tokens = _tokens_of(model, arrays)
    rows = {name: keras.ops.convert_to_tensor(array) for name, array in arrays.items()}
    embedding = model.encoder.token_embedding
    embedded = embedding(rows["token_ids"])
    rest = {name: tensor for name, tensor in model.input.items() if name != "token_ids"}
    after = keras.Model([embedding.output, *rest.values()], model.output)
    given = [rows[name] for name in rest]
    logits = keras.ops.convert_to_numpy(after([embedded, *given]))[0]
    names = getattr(model, "class_names", None) or [str(number) for number in range(len(logits))]
    if target is None:
        target = int(np.argmax(logits))
    place = list(names).index(target) if isinstance(target, str) else int(target)
    values = keras.ops.convert_to_numpy(embedded)
    slopes = gradient(lambda x: after([x, *given])[0, place], values)
    return (slopes * values).sum(axis=-1)[0, : len(tokens)], tokens, names[place]


def by_length(found, unit="MiB", title=None):
    """A quantity by the tokens of a row, on logarithmic axes: {what: {tokens: value}}. Raises ValueError if there is no
    value."""
    figure, ((axis,),) = panels(width=5.5)
    for place, (name, values) in enumerate(found.items()):
        axis.plot(list(values), list(values.values()), marker=MARKERS[place % len(MARKERS)], label=name)
    ticks = sorted({tokens for values in found.values() for tokens in values})
    axis.set(xscale="log", yscale="log", xlabel="tokens", ylabel=unit)
    axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks], minor=False)
    axis.minorticks_off()
    least = min(found, key=lambda name: found[name][max(found[name])])
    axis.set_title(title or f"At {ticks[-1]:,} tokens {least} takes least")
    axis.legend()
    return figure


def _is_history(run):
    """Whether a dict holds the figures of one run, lists of numbers, and not runs."""
    first = next(iter(run.values()), None)
    return isinstance(first, list | tuple | np.ndarray) and bool(len(first)) and np.isscalar(first[0])


def _finding_of_curve(rows, name):
    """The best value of a figure, and whose it is if there are several runs."""
    key = f"val_{name}" if any(f"val_{name}" in found for found in rows.values()) else name
    is_loss = any(word in name for word in ("loss", "error", "perplexity", "seconds", "minutes"))
    best = {label: (min if is_loss else max)(found[key]) for label, found in rows.items() if key in found}
    label = (min if is_loss else max)(best, key=best.get)
    words = name.replace("_", " ")
    return f"{words}: {best[label]:.3g}" + (f", {label}" if label else "")


def _tokens_of(model, rows):
    """The tokens of a single row."""
    count = int(rows["padding_mask"].sum())
    return [model.tokenizer.id_to_token(int(number)) for number in rows["token_ids"][0, :count]]


def _padding(counts):
    batches = np.split(counts, range(32, len(counts), 32))
    return 1 - counts.sum() / sum(len(batch) * batch.max() for batch in batches)
