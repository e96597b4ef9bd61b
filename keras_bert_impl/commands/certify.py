"""Computes the same fifty texts on every backend and in every export, and writes what came out into the model card.

    keras-bert certify runs/classifier/model

The certificate is certificate.json beside the weights, and a table in README.md: the hashes of the weights and of the
ids, the norm of a gradient, and the largest difference of an output to the first backend's. Each backend computes in a
process of its own. If the checkpoint has a certificate already, the same command repeats it: it compares what this
machine computes with what is written there, and says what differs. A difference above 1e-4 is an error.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import typing

import numpy as np

from keras_bert_impl import checkpoints, startup
from keras_bert_impl.checkpoints import model_card
from keras_bert_impl.checkpoints.hub import in_one_line
from keras_bert_impl.commands import certified_outputs
from keras_bert_impl.commands.certificate_texts import TEXTS
from keras_bert_impl.commands.certified_outputs import Outputs
from keras_bert_impl.console import progress, say
from keras_bert_impl.export import export_litert, export_onnx, export_openvino, export_saved_model
from keras_bert_impl.export.opened import open_rows, rows_of
from keras_bert_impl.json_files import read_json, write_json
from keras_bert_impl.models.answers import softmax
from keras_bert_impl.options.certify import CertifyConfig as CertifyConfig

FILE = "certificate.json"
TOLERANCE = 1e-4  # absolute, of float32 outputs; of the norm of the gradient, relative
STORED = 64  # numbers of each text's output that the certificate holds
BACKENDS = ("tensorflow", "jax", "torch")
EXPORTS = {
    "saved_model": (export_saved_model, "tensorflow_text"),
    "onnx": (export_onnx, "onnxruntime"),
    "openvino": (export_openvino, "openvino"),
    "litert": (export_litert, "ai_edge_litert"),
}
# The output of an export that is the one of the certificate.
OF_EXPORT = {
    "classify": "logits",
    "regress": "value",
    "label_words": "logits",
    "choose": "logits",
    "next_sentence": "logits",
    "fill_mask": "logits",
    "vector": "vector",
    "embed": "mean_pooled",
}
WORDS_ALONE = "its answers are words, not the numbers of the model"
PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"


class NotRun(Exception):
    """Why a backend or an export computed nothing, which is no failure."""


class Run(typing.NamedTuple):
    """How one backend or export did.

    Fields:
        name: such as "jax" or "onnx".
        status: PASSED, FAILED or NOT_RUN.
        why: of a failure, or of what was not run.
        version: of the package that computed.
        ids: whether the ids of all texts are the reference's; None for a graph that takes strings.
        gradient_norm, weights_sha256: of a backend.
        difference: the largest to the reference's outputs.
        text: the number of the text that has it, from 1.
        left_out: the number of texts that were not compared, since such an export cuts them otherwise.
    """

    name: str
    status: str
    why: str = ""
    version: str = ""
    ids: bool | None = None
    gradient_norm: float | None = None
    weights_sha256: str | None = None
    difference: float | None = None
    text: int | None = None
    left_out: int = 0


def run(config):
    """Writes or repeats a certificate, and returns its content.

    Raises: ValueError if an output differs, after everything has been computed.
    """
    directory = checkpoints.local_directory(config.model)
    is_fixed = checkpoints.is_packaged(config.model) or checkpoints.published_repository(config.model) is not None
    task, model = certified_outputs.open_model(directory)
    names = [*BACKENDS, *(EXPORTS if config.exports else ())]
    first, reference = None, None
    found_of = {name: Run(name, NOT_RUN, why) for name in names if (why := why_not(name, task))}
    for one in found_of.values():
        say(f"  {described(one)}")
    jobs = [name for name in names if name not in found_of]
    for name in progress(jobs, f"{len(TEXTS)} texts on each backend and in each export"):
        if name in EXPORTS and reference is None:
            break
        try:
            found = of_backend(name, directory) if name in BACKENDS else of_export(name, task, model, directory)
        except NotRun as reason:
            one = Run(name, NOT_RUN, str(reason))
        except RuntimeError as error:
            one = Run(name, FAILED, str(error))
        else:
            if reference is None:
                first, reference = name, found
            one = compared(name, task, found, reference)
        found_of[name] = one
        say(f"  {described(one)}")
    if reference is None:
        whys = "; ".join(f"{name}: {found_of[name].why}" for name in BACKENDS)
        raise ValueError(f"No backend computed the texts: {whys}")
    runs = [found_of[name] for name in names]
    content = certificate(task, first, reference, runs)
    earlier = directory / FILE
    if earlier.is_file() and not config.overwrite:
        report_repetition(differences(read_json(earlier), content), earlier)
    elif is_fixed:
        say("  A checkpoint of the hub or of the package stays as it is: nothing was written.")
    else:
        write_json(directory / FILE, content)
        add_to_card(directory, content)
    if bad := [one for one in runs if one.status == FAILED]:
        raise ValueError("Not the same everywhere: " + "; ".join(f"{one.name}: {one.why}" for one in bad))
    return content


def why_not(name, task):
    """Why a backend or an export cannot compute the texts of a task on this machine; None if it may."""
    package = name if name in BACKENDS else EXPORTS[name][1]
    if importlib.util.find_spec(package) is None:
        return f"{package} is not installed"
    return WORDS_ALONE if name == "saved_model" and task in ("label_words", "answer") else None


def of_backend(name, directory):
    """The Outputs of a checkpoint on a backend, computed by a process of its own.

    Raises: RuntimeError with the last line of the process if it fails.
    """
    root = str(pathlib.Path(__file__).parents[2])
    environment = {**os.environ, "KERAS_BACKEND": name, "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "outputs.npz")
        command = [sys.executable, "-m", certified_outputs.__name__, str(directory), str(path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the process failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
        return certified_outputs.read(path)


def of_export(name, task, model, directory):
    """The Outputs of an export that is made of the model in a temporary directory.

    Raises: NotRun if this machine lacks a tool, or the format cannot hold such a model; RuntimeError if the export
        fails.
    """
    export, _ = EXPORTS[name]
    tokenizer, length = certified_outputs.model_tokenizer(model, directory), certified_outputs.longest_row(model)
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder, name)
        try:
            export(model, target, tokenizer, length)
        except (ImportError, ValueError) as error:
            raise NotRun(in_one_line(error)) from error
        if name == "saved_model":
            return outputs_of_saved_model(target, task, model, tokenizer)
        return outputs_of_rows(target, name, task, model, tokenizer)


def outputs_of_rows(target, name, task, model, tokenizer):
    """The Outputs of an export that takes rows, made of texts by the file tokenizer.json beside it. Where both texts of
    a pair have to be cut, the `tokenizers` library divides an odd number of tokens otherwise: they are left out."""
    from tokenizers import Tokenizer

    encoder = Tokenizer.from_file(str(target / "tokenizer.json"))
    compute = open_rows(target, name, "float32", os.cpu_count())
    first, second = certified_outputs.texts_for(task, tokenizer.mask_texts[0])
    texts = first if second is None else list(zip(first, second, strict=True))
    step, ids, outputs = len(texts) // len(TEXTS), [], []
    for place in range(0, len(texts), step):
        row = rows_of(encoder.encode_batch(texts[place : place + step]))
        count = int(row["padding_mask"][0].sum())
        row = certified_outputs.finished_row(task, row, tokenizer.mask_id)
        found = compute(row)
        if task == "answer":
            array = np.stack([found["start_logits"], found["end_logits"]], axis=-1)
        else:
            array = found[OF_EXPORT[task]]
        ids.append(certified_outputs.ids_in(row))
        outputs.append(array[0][:count] if task in ("label_words", "answer") else array[0])
    return Outputs(ids, outputs, cut_texts(task, model, tokenizer, task == "next_sentence"))


def cut_texts(task, model, tokenizer, are_left_out):
    """Of each text whether it is longer than a row, for an export that cuts such ones otherwise; else False."""
    if not are_left_out:
        return [False] * len(TEXTS)
    return certified_outputs.rows_of(task, tokenizer, certified_outputs.longest_row(model))[2]


def outputs_of_saved_model(target, task, model, tokenizer):
    """The Outputs of a SavedModel, which takes strings: its ids are within the graph. Of filled masks the outputs are
    pairs, the ids of the best words and their probabilities."""
    from keras_bert_impl.startup import leave_accelerators_to_the_backend

    leave_accelerators_to_the_backend()
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  the operations of the tokenizer

    serve = tf.saved_model.load(str(target)).signatures["serving_default"]
    first, second = certified_outputs.texts_for(task, tokenizer.mask_texts[0])
    step, outputs = len(first) // len(TEXTS), []
    for place in range(0, len(first), step):
        texts = {"text": tf.constant(first[place : place + 1])}
        if task == "next_sentence":
            texts["text_pair"] = tf.constant(second[place : place + 1])
        elif task == "choose":
            texts["endings"] = tf.constant([second[place : place + step]])
        found = {name: array.numpy() for name, array in serve(**texts).items()}
        if task == "fill_mask":
            outputs.append(np.stack([found["token_ids"][0, 0], found["probabilities"][0, 0]]).astype("float64"))
        else:
            outputs.append(np.atleast_1d(found[OF_EXPORT[task]][0]))
    # Longer texts than a row are read whole by such a graph; the certificate is about rows.
    reads_whole = getattr(model, "long_texts", "cut") != "cut"
    return Outputs(None, outputs, cut_texts(task, model, tokenizer, reads_whole))


def compared(name, task, found, reference):
    """The Run of some Outputs beside those of the reference."""
    problem, is_export = "", found.weights_sha256 is None
    kept = [place for place, is_cut in enumerate(found.is_cut) if not (is_export and is_cut)]
    apart = [difference_of(name, task, found.outputs[place], reference.outputs[place]) for place in kept]
    largest, where = float(np.max(apart)), kept[int(np.argmax(apart))] + 1  # both find NaN first
    if not largest <= TOLERANCE:
        problem = f"the outputs of text {where} differ by {largest:.2g}, more than {TOLERANCE:g}"
    other = [] if found.ids is None else [place for place in kept if found.ids[place] != reference.ids[place]]
    ids = None if found.ids is None else not other
    if other:
        problem = f"text {other[0] + 1} has other ids"
    if not is_export:
        norms = found.gradient_norm, reference.gradient_norm
        if not abs(norms[0] - norms[1]) <= TOLERANCE * abs(norms[1]):
            problem = f"the norm of the gradient is {norms[0]:.6g} instead of {norms[1]:.6g}"
        if found.weights_sha256 != reference.weights_sha256:
            problem = "it has read other weights"
    status = FAILED if problem else PASSED
    more = (found.gradient_norm, found.weights_sha256, largest, None if found is reference else where)
    more = (*more, len(TEXTS) - len(kept))
    return Run(name, status, problem, version_of(name), ids, *more)


def difference_of(name, task, array, wanted):
    """The largest absolute difference of one text's outputs; of filled masks in a SavedModel, of probabilities."""
    array, wanted = np.asarray(array), np.asarray(wanted)
    if name == "saved_model" and task == "fill_mask":
        wanted, array = softmax(np.ravel(wanted))[array[0].astype(int)], array[1]
    if array.size != wanted.size:
        return float("inf")
    return float(np.abs(np.ravel(array).astype("float64") - np.ravel(wanted)).max(initial=0.0))


def certificate(task, first, reference, runs):
    """The content of certificate.json; `reference` are the Outputs of the backend `first`."""
    return {
        "keras_bert_impl": startup.VERSION,
        "task": task,
        "machine": f"{platform.system()} {platform.machine()}",
        "reference": first,
        "tolerance": TOLERANCE,
        "texts_sha256": hashlib.sha256(json.dumps(TEXTS).encode()).hexdigest(),
        "weights_sha256": reference.weights_sha256,
        "ids_sha256": certified_outputs.hash_of_ids(reference.ids),
        "gradient_norm": reference.gradient_norm,
        "loss": f"{certified_outputs.LOSS}, over the texts of at most {certified_outputs.SHORT} tokens",
        "runs": {one.name: {key: value for key, value in one._asdict().items() if key != "name"} for one in runs},
        "texts": [
            {"ids": ids, "numbers": int(array.size), "outputs": [round(float(n), 7) for n in np.ravel(array)[:STORED]]}
            for ids, array in zip(reference.ids, reference.outputs, strict=True)
        ],
    }


def version_of(name):
    """The version of the package that computes in a place, such as "torch 2.13.0"."""
    package = {"saved_model": "tensorflow", "litert": "ai-edge-litert", "onnx": "onnxruntime"}.get(name, name)
    return f"{package} {importlib.metadata.version(package)}"


def described(one):
    """A Run in one line; only the reference has no text with the largest difference."""
    if one.status == NOT_RUN:
        return f"{one.name:<12}not run: {one.why}"
    shown = "the reference" if one.text is None else f"largest difference {one.difference:.1e}"
    norm = "" if one.gradient_norm is None else f", norm of the gradient {one.gradient_norm:.6g}"
    without = f", without {one.left_out} cut texts" if one.left_out else ""
    return f"{one.name:<12}{one.status}: {one.why or shown + norm + without}"


def differences(earlier, now):
    """What a repetition found otherwise than a certificate says, one sentence each."""
    if earlier.get("texts_sha256") != now["texts_sha256"]:
        return [f"it is about other texts, of keras_bert_impl {earlier.get('keras_bert_impl')}"]
    found = []
    if earlier["weights_sha256"] != now["weights_sha256"]:
        found.append("the weights are others")
    pairs = list(zip(earlier["texts"], now["texts"], strict=True))
    if other := [str(number) for number, (was, is_) in enumerate(pairs, 1) if was["ids"] != is_["ids"]]:
        found.append(f"the ids of {len(other)} texts are others: {', '.join(other[:10])}")
    apart = np.array([_difference_of_stored(was, is_) for was, is_ in pairs])
    if not apart.max() <= earlier["tolerance"]:
        found.append(f"the outputs of text {apart.argmax() + 1} differ by {apart.max():.2g}")
    norm, wanted = now["gradient_norm"], earlier["gradient_norm"]
    if not abs(norm - wanted) <= earlier["tolerance"] * abs(wanted):
        found.append(f"the norm of the gradient is {norm:.6g} instead of {wanted:.6g}")
    return found


def _difference_of_stored(was, is_):
    if was["numbers"] != is_["numbers"]:
        return float("inf")
    return float(np.abs(np.array(was["outputs"]) - np.array(is_["outputs"])).max(initial=0.0))


def report_repetition(found, path):
    """Prints that a certificate was repeated. Raises ValueError naming what differs from it."""
    if found:
        raise ValueError(
            f"{path} says something else than this machine computes: {'; '.join(found)}. If the checkpoint was changed "
            "on purpose, write a new certificate with --overwrite."
        )
    say(f"  {path} is repeated: weights, ids, outputs and gradient are as it says.")


def add_to_card(directory, content):
    """Writes the certificate into README.md, unless somebody else has written that."""
    path = directory / model_card.FILE
    if not path.is_file():
        checkpoints.write_card(directory)
    if model_card.is_own(path):
        say(f"  {directory / FILE} written; {path} is not a card of ours and stays as it is.")
        return
    text = model_card.with_certificate(path.read_text(encoding="utf-8"), section_of(content))
    path.write_text(text, encoding="utf-8")
    say(f"  {directory / FILE} and {path} written.")


def section_of(content):
    """The certificate as Markdown."""
    rows = []
    for name, one in content["runs"].items():
        ids = {True: "same", False: "other", None: "in the graph" if one["status"] != NOT_RUN else ""}[one["ids"]]
        norm = "" if one["gradient_norm"] is None else f"{one['gradient_norm']:.6g}"
        difference = "" if one["difference"] is None else f"{one['difference']:.1e}"
        difference = "reference" if name == content["reference"] else difference
        status = one["status"] if not one["why"] else f"{one['status']}: {model_card.plain(one['why'])}"
        status += f", without {one['left_out']} cut texts" if one["left_out"] else ""
        rows.append([name, one["version"], ids, norm, difference, status])
    head = ["where", "version", "ids", "norm of the gradient", "largest difference", ""]
    run = sum(one["status"] != NOT_RUN for one in content["runs"].values())
    return "\n\n".join(
        [
            "## Certificate",
            f"The same {len(content['texts'])} texts were computed by {run} of {len(rows)} backends and exports, on "
            f"{content['machine']}, with keras_bert_impl {content['keras_bert_impl']}. Differences are absolute, of "
            f"float32 outputs, to those of {content['reference']}; at most {content['tolerance']:g} passes. The "
            f"gradient is that of {content['loss']}.",
            model_card.table(head, rows),
            f"- SHA-256 of the weights: `{content['weights_sha256']}`\n- SHA-256 of the ids: `{content['ids_sha256']}`",
            "`certificate.json` has ids and outputs. Anyone can repeat it: `keras-bert certify .` in this directory "
            "compares what your machine computes with it, and says what differs.",
        ]
    )
