"""Opens exports of rows in their own runtimes: each function returns one from a dict of rows to a dict of outputs."""

import importlib.util
import os
import pathlib
import threading

from keras_bert_impl.user_warnings import warn_user

ON_WINDOWS = (
    " (tensorflow-text does not exist for Windows: save the model with save_pretrained, and export the checkpoint "
    "under WSL or Linux)"
)


def require(format_name, extra, packages):
    """Raises ImportError that names the packages that are missing and the command that installs them."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        remark = ON_WINDOWS if "tensorflow_text" in missing else ""
        raise ImportError(
            f"{format_name} needs {' and '.join(missing)} to be installed: pip install 'keras_bert_impl[{extra}]'"
            f"{remark}."
        )


def saturates():
    """Whether this processor adds products of bytes in sixteen bits, which overflow: weights then get seven bits.

    x86 without VNNI (before Cascade Lake and Zen 4) does. With eight bits, a small classifier's logits were off by 12 %
    of their range in ONNX Runtime, and by 19 % in OpenVINO. Linux alone says what its processor has.
    """
    path = pathlib.Path("/proc/cpuinfo")
    flags = set(path.read_text().split()) if path.is_file() else set()
    return "avx2" in flags and not flags & {"avx512_vnni", "avx_vnni"}


def warn_of_overflow(directory, export):
    """Warns of weights of eight bits whose products overflow on this processor; `export` is what config.json says."""
    if export["precision"] == "int8" and export["format"] in ("onnx", "openvino"):
        if export.get("weight_bits", 8) == 8 and saturates():
            warn_user(
                f"{directory} has 8-bit weights, whose products overflow on this processor, so its outputs would be "
                "wrong. Make the export on this kind of machine, or use another precision."
            )


def open_onnx(directory, threads=None, precision=None):
    """ONNX Runtime on the CPU, with a number of threads; None lets it choose."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or 0
    session = onnxruntime.InferenceSession(
        pathlib.Path(directory, "onnx/model.onnx"), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return lambda rows: dict(zip(names, session.run(None, rows), strict=True))


def open_openvino(directory, threads=None, precision="float32"):
    """OpenVINO on the CPU; several threads may call the function. It would compute in bfloat16 by default where the
    processor can."""
    import openvino

    # Weights are read, not mapped: a file that is overwritten in place would end the process (SIGBUS).
    options = {"INFERENCE_PRECISION_HINT": "bf16" if precision == "bfloat16" else "f32", "ENABLE_MMAP": False}
    options |= {"INFERENCE_NUM_THREADS": threads} if threads else {}
    compiled = openvino.compile_model(pathlib.Path(directory, "openvino/openvino_model.xml"), "CPU", options)
    names = [output.get_any_name() for output in compiled.outputs]
    of_thread = threading.local()

    def run(rows):
        if not hasattr(of_thread, "request"):
            of_thread.request = compiled.create_infer_request()  # a request holds the arrays of one call
        outputs = of_thread.request.infer(rows).values()
        # Copies: the arrays of a request change with the next one.
        return {name: array.copy() for name, array in zip(names, outputs, strict=True)}

    return run


def open_litert(directory, threads=None, precision=None):
    """LiteRT's interpreter on the CPU; several threads may call the function, one after the other."""
    from ai_edge_litert.interpreter import Interpreter

    path = str(pathlib.Path(directory, "model.tflite"))
    interpreter = Interpreter(path, num_threads=threads or os.cpu_count())
    signature, lock = interpreter.get_signature_runner(), threading.Lock()

    def run(rows):
        with lock:  # two threads at once would end the process
            return signature(**rows)

    return run
