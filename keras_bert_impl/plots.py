"""Plots of trainings, models, outputs and texts, as matplotlib figures.

    figure = kbi.plots.confusion(labels, predicted)
    figure.savefig("confusion.png")

Each function returns a `matplotlib.figure.Figure` and shows nothing; a notebook shows the last value of a cell. The
colours are Okabe and Ito's, which colour-blind people can tell apart, and no plot needs colour alone. A title states
the result.
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
    """Returns an empty figure and its axes in the style of these plots. pyplot does not show the figure.

    Args:
        columns (int, optional): number of columns of axes. Default: 1.
        rows (int, optional): number of rows of axes. Default: 1.
        width (float, optional): width of one panel in inches. Default: 4.4.
        height (float, optional): height of one panel in inches. Default: 3.6.
        options: further arguments of `matplotlib.pyplot.subplots`.

    Returns: (figure, array of axes (rows, columns)).
    """
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(rows, columns, figsize=(width * columns, height * rows), squeeze=False, **options)
    plt.close(figure)
    return figure, axes


def curves(runs, names=None):
    """Plots metrics of training (dashed) and validation over steps or epochs, one panel for each metric.

    Args:
        runs (History, list, dict, str or pathlib.Path): a training, or {label: training} to compare several. A training
            is the History that `fit` returns, or its `history`; a list with a dict of metrics for each epoch; or the
            directory of `keras-bert pretrain` or `finetune`.
        names (list of str, optional): metrics to plot, such as ["loss", "accuracy"]. Default: all.

    Returns: a `matplotlib.figure.Figure`.
    Raises: ValueError for a training without a complete epoch.

    Example:
        >>> epochs = [{"loss": 0.9, "val_loss": 1.0}, {"loss": 0.5, "val_loss": 0.7}]
        >>> figure = kbi.plots.curves(epochs)
        >>> figure.axes[0].get_title()
        'loss: 0.7'
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
    """Returns the metrics of a training, as `curves` plots them.

    Args:
        run (History, list, dict, str or pathlib.Path): a training, as in `curves`.

    Returns: dict of lists by the names of metrics, with "step" or "epoch" among them.
    Raises: ValueError for a training without a complete epoch.
    """
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
        raise ValueError("The run has no metrics yet: no epoch has finished.")
    count = len(next(iter(found.values())))
    return found if "step" in found else {"epoch": list(range(1, count + 1)), **found}


def confusion(labels, predicted, names=None):
    """Plots a confusion matrix: true classes in rows, predicted classes in columns.

    Args:
        labels (list): the class of each example, a name or a number.
        predicted (list): the predicted class of each example.
        names (list, optional): the classes in order. Default: those that occur, sorted.

    Returns: a `matplotlib.figure.Figure`.
    Raises: ValueError for a class that is not among the names.

    Example:
        >>> figure = kbi.plots.confusion(["yes", "no", "no"], ["yes", "no", "yes"])
        >>> figure.axes[0].get_title()
        '3 examples, 66.7% right'
    """
    found = dict.fromkeys([*labels, *predicted])
    names = sorted(found) if names is None else list(names)
    for one in found:
        one_of("class", one, names)
    return confusion_of_counts(confusion_matrix(list(labels), list(predicted), labels=names), names)


def confusion_of_counts(counts, names):
    """Plots a confusion matrix from counts.

    Args:
        counts (array): number of examples, (classes, classes), true classes in rows.
        names (list): names of the classes.

    Returns: a `matplotlib.figure.Figure`.
    """
    counts = np.asarray(counts)
    size = 2.2 + 0.8 * len(names)
    figure, ((axis,),) = panels(width=size + 1, height=size)
    ConfusionMatrixDisplay(counts, display_labels=names).plot(ax=axis, cmap="Blues", xticks_rotation=45, colorbar=False)
    axis.grid(visible=False)
    axis.set_title(f"{counts.sum():,} examples, {np.trace(counts) / max(counts.sum(), 1):.1%} right")
    return figure


def reliability(labels, probabilities, bins=10, names=None):
    """Plots whether probabilities are calibrated: about 80 % of the predictions with probability 0.8 should be right.

    The title has the expected calibration error (Guo et al. 2017, "On Calibration of Modern Neural Networks"), the mean
    distance between probability and accuracy.

    Args:
        labels (list or array): for each example the number of its class, or its name.
        probabilities (array): (examples, classes), or (examples,) for the second of two classes.
        bins (int, optional): number of bins, each with equally many examples. Default: 10.
        names (list of str, optional): names of the classes in the order of the probabilities, for labels that are
            names. Default: None.

    Returns: a `matplotlib.figure.Figure`.
    Raises: ValueError for logits or NaN, or for labels that are no classes.

    Example:
        >>> figure = kbi.plots.reliability([1, 0, 1, 1], [0.9, 0.2, 0.6, 0.4], bins=2)
        >>> figure.axes[0].get_title()
        'Probabilities are off by ...%, ...'
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
            "The probabilities of an example do not sum to 1. `predict` gives logits: apply softmax first. NaN means "
            "that training diverged."
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
    """Plots how many tokens texts have, and how many texts are above the model's `sequence_length`.

    Control tokens are counted. The title also gives the padding in batches of 32: in the order of the texts, and sorted
    by length, as `fit` sorts them.

    Args:
        model (keras.Model): a model with a tokenizer, such as a TextClassifier.
        texts (list): texts.

    Returns: a `matplotlib.figure.Figure`.

    Example:
        >>> model = kbi.MaskedLM.from_pretrained("small_english")
        >>> figure = kbi.plots.lengths(model, ["A cat sleeps.", "A dog rests on the mat."])
        >>> figure.axes[0].get_xlabel()
        'tokens'
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
    """Plots a map of vectors: their first two principal components.

    Args:
        found (array): vectors (texts, width), such as those of `TextEmbedder.embed`.
        labels (list, optional): a class for each vector, shown by colour and marker. Default: None.

    Returns: a `matplotlib.figure.Figure`.

    Example:
        >>> figure = kbi.plots.vectors(np.random.default_rng(0).normal(size=(9, 4)))
        >>> figure.axes[0].get_title()
        '9 vectors; the map shows ...% of how they differ'
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
    """Plots attention: which tokens of a text attend to which, for one head, or for all heads of one layer or all
    layers.

    Rows are the tokens that attend, columns those attended to; each row sums to 1.

    Args:
        model (keras.Model): a model over an encoder with a tokenizer, such as a MaskedLM or a TextEmbedder.
        text (str): a short text.
        layer (int, optional): number of a layer, from 0. Default: None, all.
        head (int, optional): number of a head, from 0. Default: None, all.

    Returns: a `matplotlib.figure.Figure`.

    Example:
        >>> model = kbi.MaskedLM.from_pretrained("small_english")
        >>> figure = kbi.plots.attention(model, "A cat [MASK].", layer=0, head=1)
        >>> figure.get_suptitle()
        'Layer 0, head 1:\\ntokens look ... tokens away on average, ...% of it to [CLS]'
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
    """Returns the attention that `attention` plots.

    Args:
        model (keras.Model): a model over an encoder with a tokenizer.
        text (str): a text.

    Returns: (probabilities (layers, heads, length, length), tokens of the text, a list of str).
    """
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
    """Plots how much each token of a text contributes to an output: blue for it, orange against it.

    The contribution is gradient times input (Shrikumar et al. 2016, "Not Just a Black Box").

    Args:
        model (keras.Model): a TextClassifier or TextRegressor with a tokenizer.
        text (str): a text.
        target (str or int, optional): name or number of a class. Default: the most probable one.

    Returns: a `matplotlib.figure.Figure`.
    Raises: ValueError for another kind of model.

    Example:
        >>> classes = ["no", "yes"]
        >>> model = kbi.TextClassifier.from_pretrained("small_english", class_names=classes)
        >>> figure = kbi.plots.contributions(model, "A wonderful film.", target="yes")
        >>> figure.axes[0].get_title()
        'Most for yes: ...'
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
    """Returns the contributions that `contributions` plots; arguments and errors are those of `contributions`.

    Returns: (values (length,), tokens, a list of str, name of the output).
    """
    if not isinstance(model, TextClassifier | TextRegressor):
        raise ValueError(f"A {type(model).__name__} has no scores of classes: pass a TextClassifier or TextRegressor.")
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
    """Plots a quantity, such as memory or time, by the number of tokens, on logarithmic axes.

    Args:
        found (dict): values as {name: {number of tokens: value}}.
        unit (str, optional): label of the y axis. Default: "MiB".
        title (str, optional): title. Default: it says which name has the smallest value for its longest input.

    Returns: a `matplotlib.figure.Figure`.
    Raises: ValueError if there is no value.

    Example:
        >>> memory = {"BERT": {128: 1, 512: 9}, "BigBird": {128: 2, 512: 5}}
        >>> figure = kbi.plots.by_length(memory)
        >>> figure.axes[0].get_title()
        'At 512 tokens BigBird takes least'
    """
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
