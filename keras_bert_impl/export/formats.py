"""The formats of exports, a row of a table for each."""

import types
import typing

from keras_bert_impl.export import precisions, runtimes


class Format(typing.NamedTuple):
    """How an export in a format is written, opened and made smaller.

    `title` and `main_file` name it; `extra` of the package, and `packages`, have to be installed; `writer` is the
    backend and the module that write it (see `handover`); `open(directory, threads, precision)` gives a function from
    rows to outputs, dicts of arrays; `program` is what example.py installs, imports and does for such a function `run`;
    `convert(directory)` makes the main file of an ONNX file; `reduce(path, precision, calibration_rows)` rewrites it,
    in eight bits with `tools`; `lacks` says for each precision that there is not what to do instead.
    """

    title: str
    main_file: str
    extra: str
    packages: tuple
    writer: tuple
    open: typing.Callable | None = None
    program: tuple = ()
    reduce: typing.Callable | None = None
    tools: tuple = ()
    lacks: typing.Mapping = types.MappingProxyType({})
    convert: typing.Callable | None = None


def convert_to_openvino(directory):
    """Writes the ONNX file of a directory as an OpenVINO model, in float32."""
    import openvino

    model = openvino.convert_model(directory / FORMATS["onnx"].main_file)
    (directory / "openvino").mkdir(exist_ok=True)
    openvino.save_model(model, directory / FORMATS["openvino"].main_file, compress_to_fp16=False)


NO_BFLOAT16 = "{} has no kernels for bfloat16 on a CPU; OpenVINO has: format openvino."
ONNX_WRITER = ("torch", "keras_bert_impl.export.onnx_graph")
RUN_ONNX = """session = onnxruntime.InferenceSession(here / "onnx/model.onnx")
names = [output.name for output in session.get_outputs()]
run = lambda rows: dict(zip(names, session.run(None, rows)))"""
# By default OpenVINO computes in bfloat16 where the processor can.
RUN_OPENVINO = """hint = {"INFERENCE_PRECISION_HINT": "f32"}
run = openvino.compile_model(here / "openvino/openvino_model.xml", "CPU", hint)"""
RUN_LITERT = """interpreter = Interpreter(str(here / "model.tflite"))
signature = interpreter.get_signature_runner()
run = lambda rows: signature(**rows)"""
FORMATS = {
    "saved_model": Format(
        title="A SavedModel",
        main_file="saved_model.pb",
        extra="tensorflow",
        packages=("tensorflow", "tensorflow_text"),
        writer=("tensorflow", "keras_bert_impl.export.text_signatures"),
    ),
    "onnx": Format(
        title="An ONNX file",
        main_file="onnx/model.onnx",
        extra="onnx",
        packages=("torch", "onnx", "onnxscript", "onnxruntime"),
        writer=ONNX_WRITER,
        open=runtimes.open_onnx,
        program=("onnxruntime", "import onnxruntime", RUN_ONNX),
        reduce=precisions.reduce_onnx,
        tools=("onnxruntime", "onnx_ir"),
        lacks={"bfloat16": NO_BFLOAT16.format("ONNX Runtime")},
    ),
    "openvino": Format(
        title="An OpenVINO model",
        main_file="openvino/openvino_model.xml",
        extra="openvino",
        packages=("torch", "onnx", "onnxscript", "openvino"),
        writer=ONNX_WRITER,
        open=runtimes.open_openvino,
        program=("openvino", "import openvino", RUN_OPENVINO),
        reduce=precisions.reduce_openvino,
        tools=("nncf",),
        convert=convert_to_openvino,
    ),
    "litert": Format(
        title="A LiteRT file",
        main_file="model.tflite",
        extra="litert",
        packages=("tensorflow", "ai_edge_litert"),
        writer=("tensorflow", "keras_bert_impl.export.litert_graph"),
        open=runtimes.open_litert,
        program=("ai-edge-litert", "from ai_edge_litert.interpreter import Interpreter", RUN_LITERT),
        reduce=precisions.reduce_litert,
        tools=("ai_edge_quantizer",),
        lacks={
            "bfloat16": NO_BFLOAT16.format("LiteRT"),
            "float16": "LiteRT computes in float32 on a CPU anyway; int8_weights makes a smaller file, and the formats "
            "onnx and openvino have float16.",
        },
    ),
}
