"""The options of `keras-bert export`."""

import dataclasses
import typing


@dataclasses.dataclass
class ExportConfig:
    """Writes a checkpoint as a SavedModel that takes raw strings, or in the format of another runtime.

    Args:
        model: checkpoint directory with config.json, model.safetensors and vocabulary.
        output: directory to write.
        format: saved_model for TensorFlow, onnx for ONNX Runtime, openvino, or litert; all but the first take token
            IDs, which the `tokenizers` library makes with the tokenizer.json of the export.
        task: task of the export; auto is the one that the checkpoint was trained for. embed gives the encoder's
            outputs, vector gives one vector for a text, pooled as the checkpoint specifies.
        precision: float32, or with onnx, openvino and litert float16, bfloat16, int8_weights or int8; if a format lacks
            one, the error names a format that has it. A SavedModel can be in bfloat16.
        calibration: for openvino with int8, a file with a few hundred typical texts, one on each line, with a tab
            between the two texts of a pair.
        figures: JSON file with metrics of the checkpoint, kept in the export's config.json; default is the metrics.json
            of the run that wrote the checkpoint, if there is one.
        sequence_length: longer texts are truncated to this many tokens; default is the number of positions of the
            model. Give the value used in training: a checkpoint does not hold it.
        overwrite: replace an export of this format that is already in the output directory.
    """

    model: str
    output: str
    format: typing.Literal["saved_model", "onnx", "openvino", "litert"] = "saved_model"
    task: typing.Literal[
        "auto",
        "classify",
        "regress",
        "label_words",
        "answer",
        "choose",
        "next_sentence",
        "fill_mask",
        "embed",
        "vector",
    ] = "auto"
    precision: typing.Literal["float32", "float16", "bfloat16", "int8_weights", "int8"] = "float32"
    calibration: str | None = None
    figures: str | None = None
    sequence_length: int | None = None
    overwrite: bool = False
