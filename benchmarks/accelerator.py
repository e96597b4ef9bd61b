"""What a GPU or TPU does with this library, in ten minutes and on one page: `accelerator.json` and `accelerator.txt`.

    KERAS_BACKEND=jax   python benchmarks/accelerator.py --output DIR
    KERAS_BACKEND=torch python benchmarks/accelerator.py --output DIR --peer
    KERAS_BACKEND=jax   python benchmarks/accelerator.py --output DIR --distribution data_parallel    # all devices

On a slice, give the command on every host, with an output directory that they share. The page holds: the devices that
were joined, the checks of `accelerator_checks.py` on that very device, the seconds of a training step and its share of
the device's peak (with dropout 0 and 0.1, with 1 and 20 steps an execution), the host's part of a step, memory, and the
time to save and to restore a state. `--peer` adds Hugging Face's step under torch. Needs no TensorFlow. Each part runs
in a process of its own, so that its memory is its own; a part that fails, for example because it does not fit into
memory, is one line. Without an accelerator, try it with `--size bert_tiny --lengths 16 --rows 2 --steps 4`.

    python benchmarks/accelerator.py --output DIR --public

measures what others have published instead, on JAX and torch, `public.json` and `public.txt`: each figure is written as
soon as it is known. After nine minutes (`--minutes`) it ends; the same command goes on with what is missing. `--small`
tries it on a CPU.
"""

import argparse
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import warnings

import accelerator_public
from accelerator_page import page

# Rows of a device that fit into 80 GB, by size and length; a quarter of them is tried where a step fails.
ROWS = {("bert_base", 128): 256, ("bert_base", 512): 64, ("bert_large", 128): 128, ("bert_large", 512): 32}
GIB = 2**30


def devices(options):
    """Which devices there are, and what their matrix products reach beside the published peak."""
    import keras

    from keras_bert_impl import distribution
    from keras_bert_impl.callbacks.flops import matrix_product_ceiling, published_peak
    from keras_bert_impl.distribution import hardware
    from keras_bert_training.runs import versions

    kind = hardware.device_kind()
    larger = {"size": 8192, "chained": 16} if kind != "cpu" else {}
    found = {"backend": keras.backend.backend(), "device": kind, "versions": versions()}
    found |= {"processes": distribution.num_processes(), "devices": distribution.num_processors()}
    peak = published_peak(kind)
    found["published_tflops"] = peak and peak / 1e12
    for dtype in ("float32", "bfloat16"):
        found[f"{dtype}_tflops"] = matrix_product_ceiling(dtype, **larger) / 1e12
    return found


def checks(options):
    """The difference of each kernel from its formula."""
    from accelerator_checks import CHECKS

    found = {}
    for name, check in CHECKS.items():
        difference, allowed, *chosen = check()
        found[name] = {
            "difference": float(difference),
            "allowed": allowed,
            "is_right": bool(difference <= allowed),
            "chosen": "".join(chosen),
        }
    return found


def model_of(options, dropout, together, **shape):
    """Our model of a size with this dropout, compiled to execute so many steps together."""
    import pretraining_step
    from keras_bert_impl import BertConfig
    from keras_bert_impl.optimization import BertAdamW

    shape = {"vocabulary_size": 30522, "hidden_dropout_rate": dropout, "attention_dropout_rate": dropout, **shape}
    config = BertConfig.from_name(options["size"], **shape)
    model = pretraining_step.our_model(config, options["precision"], True)
    model.compile(optimizer=BertAdamW(1e-4), jit_compile=True, steps_per_execution=together)
    return model


def same_batch(batch, steps):
    """A dataset of a batch for each step."""
    import keras

    class Batches(keras.utils.PyDataset):
        num_batches = steps

        def __getitem__(self, index):
            return batch

    return Batches()


def timed_fit(model, batch, steps, callbacks=()):
    """(seconds of the first `fit`, which compiles; seconds of a step, the median of three more) on the same batch."""

    def fit():
        model.fit(same_batch(batch, steps), epochs=1, shuffle=False, verbose=0, callbacks=list(callbacks))

    return timed(fit, steps)


def timed(run, steps):
    """(seconds of the first call of `run`, which compiles; seconds of a step, of which it takes so many, the median of
    three more)."""
    from in_turn import median_seconds

    start = time.perf_counter()
    run()
    return time.perf_counter() - start, median_seconds(run, warm=0, repeats=3) / steps


def timed_loop(train, steps):
    """`timed` for a function that trains one step of torch and returns the loss."""

    def run():
        for _ in range(steps):
            loss = train()
        return loss.item()  # waits for the device

    return timed(run, steps)


def step(options, length, dropout, together):
    """A training step of the size: its seconds, share of the peak, and memory."""
    import pretraining_step
    from keras_bert_impl import distribution
    from keras_bert_impl.callbacks.flops import device_ceiling, training_flops
    from keras_bert_impl.distribution import hardware
    from keras_bert_impl.features import usual_predictions

    rows = (options["rows"] or ROWS.get((options["size"], length), 32)) * distribution.num_replicas()
    predictions = usual_predictions(length)
    model = model_of(options, dropout, together)
    batch = pretraining_step.batch(rows // distribution.num_processes(), length, predictions)
    first, seconds = timed_fit(model, batch, options["steps"])
    ceiling, source = device_ceiling(options["precision"].removeprefix("mixed_"))
    flops = training_flops(model.encoder, rows, length, predictions)
    share = flops / seconds / ceiling / distribution.num_processors()
    memory = hardware.peak_memory()
    return {
        **{"length": length, "rows": rows, "dropout": dropout, "steps_per_execution": together},
        **{"seconds_per_step": seconds, "tokens_per_second": rows * length / seconds, "share_of_peak": share},
        **{"peak": source, "seconds_of_first_fit": first, "memory_gib": memory and memory / GIB},
    }


def host(options, together):
    """What Python and the start of a step take: a step with as many layers and weights, so narrow that nothing else
    counts."""
    import pretraining_step

    narrow = {"hidden_size": 8, "num_heads": 2, "intermediate_size": 8, "vocabulary_size": 1100}
    model = model_of(options, 0.1, together, **narrow)
    batch = pretraining_step.batch(8, 8, 2, vocabulary=1100)
    return {"steps_per_execution": together, "seconds_per_step": timed_fit(model, batch, options["steps"])[1]}


def state(options):
    """Saving the state of a model of the size, and restoring it, by `callbacks.ExactResume`."""
    import pretraining_step
    from keras_bert_impl.callbacks import ExactResume

    batch = pretraining_step.batch(8, 16, 2)
    directory = pathlib.Path(options["output"]) / "state"  # which the hosts of a slice share
    clear(directory)  # of what an interrupted report has left
    for _ in range(2):  # the second `fit` finds the training complete: it restores, and trains nothing
        model, resume = model_of(options, 0.1, 1), ExactResume(directory, every_minutes=None)
        start = time.perf_counter()
        model.fit(batch[0], batch[1], batch_size=8, verbose=0, callbacks=[resume])
        if resume.seconds_to_save:
            saved = resume.seconds_to_save
    restored = time.perf_counter() - start
    size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    clear(directory)
    return {"seconds_to_save": saved, "seconds_to_restore": restored, "gigabytes": size / 1e9}


def clear(directory):
    """Removes a directory that all processes use, when all have come here."""
    from keras_bert_impl import distribution

    distribution.from_chief(0)
    with distribution.failing_together():
        if distribution.is_chief():
            shutil.rmtree(directory, ignore_errors=True)


def peer(options, length, dropout):
    """Hugging Face's step, compiled by torch, on one device."""
    import torch

    import pretraining_step
    from keras_bert_impl import BertConfig
    from keras_bert_impl.features import usual_predictions

    rows = options["rows"] or ROWS.get((options["size"], length), 32)
    config = BertConfig.from_name(
        options["size"], vocabulary_size=30522, hidden_dropout_rate=dropout, attention_dropout_rate=dropout
    )
    run = pretraining_step.transformers_training(
        config, *pretraining_step.batch(rows, length, usual_predictions(length)),
        options["precision"].removeprefix("mixed_"), True, "cuda" if torch.cuda.is_available() else "cpu",
    )  # fmt: skip

    _, seconds = timed_loop(run, options["steps"])
    return {"length": length, "rows": rows, "dropout": dropout, "seconds_per_step": seconds,
            "tokens_per_second": rows * length / seconds}  # fmt: skip


def public(options, number, side):
    """One of the published figures."""
    figure = accelerator_public.FIGURES[number]
    return accelerator_public.measure(figure, side, options["small"], options["steps"])


PARTS = {
    **{"devices": devices, "checks": checks, "step": step, "host": host, "state": state, "peer": peer},
    "public": public,
}


def plan(options):
    """(name of a part, its arguments) of everything that is measured, in order."""
    backend = os.environ.get("KERAS_BACKEND", "jax")
    executions = (1,) if backend == "torch" else (1, min(20, options["steps"]))
    yield from (("devices", {}), ("checks", {}))
    for length, dropout, together in itertools.product(options["lengths"], (0.0, 0.1), executions):
        yield "step", {"length": length, "dropout": dropout, "together": together}
    yield from (("host", {"together": together}) for together in executions)
    yield "state", {}
    if options["peer"]:
        for length, dropout in itertools.product(options["lengths"], (0.0, 0.1)):
            yield "peer", {"length": length, "dropout": dropout}


def measure_apart(name, arguments, options):
    """A part in a process of its own; {"error": last line} if it fails."""
    return found_by(started(name, arguments, options), arguments)


def started(name, arguments, options, backend=None):
    """The process of a part, which imports everything, and measures when it gets a line."""
    environment = {"KERAS_BACKEND": "jax", **os.environ, **({"KERAS_BACKEND": backend} if backend else {})}
    command = [sys.executable, __file__, "--part", json.dumps([name, arguments, options])]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command, env=environment, text=True, **pipes)


def found_by(process, arguments, timeout=None):
    """What a process measures from now on. Raises subprocess.TimeoutExpired."""
    out, errors = process.communicate("measure\n", timeout)
    lines = [line for line in out.splitlines() if line.startswith("FOUND ")]
    if process.returncode or not lines:
        return {**arguments, "error": (errors.strip().splitlines() or ["no output"])[-1][:300]}
    return json.loads(lines[-1].removeprefix("FOUND "))


def measure_public(options):
    """Measures the figures of `accelerator_public` that `public.json` lacks, until the minutes are over."""
    output, start = pathlib.Path(options["output"]), time.monotonic()
    output.mkdir(parents=True, exist_ok=True)
    file, end = output / "public.json", start + options["minutes"] * 60
    found = json.loads(file.read_text()) if file.is_file() else {}
    parts = {"devices": ("devices", {}, "jax")}
    for number, figure in enumerate(accelerator_public.FIGURES):
        for side in figure.sides:
            backend = "jax" if side == accelerator_public.JAX else "torch"
            parts[f"{number} {side}"] = "public", {"number": number, "side": side}, backend
    missing = [key for key in parts if "error" in found.get(key, {"error": "not measured"})]
    # The next process imports while this one measures.
    processes = (started(*parts[key][:2], options, parts[key][2]) for key in missing)
    following = next(processes, None)
    for key in missing:
        process, following = following, next(processes, None)
        try:
            found[key] = found_by(process, {}, timeout=max(end - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            for each in filter(None, (process, following)):
                each.kill()
            print(f"{options['minutes']:g} minutes are over: the same command goes on at {key}", flush=True)
            break
        file.write_text(json.dumps(found, indent=2) + "\n")
        lines = accelerator_public.page(found)
        (output / "public.txt").write_text("\n".join(lines) + "\n")
        print(f"{time.monotonic() - start:5.0f} s  {key} {found[key]}", flush=True)
    print("\n".join(accelerator_public.page(found)))


def run_part(name, arguments, options):
    """Measures a part in this process, on the devices asked for, and prints it for the process that started it."""
    import pretraining_step  # noqa: F401 which imports what a part needs
    from keras_bert_impl import distribution

    sys.stdin.readline()
    choice = distribution.Distribution(distribution=options["distribution"], devices=options["devices"])
    with distribution.distributed(choice), warnings.catch_warnings(record=True) as warned:
        figures = PARTS[name](options, **arguments)
    # Also why a kernel was not used, which makes no result wrong.
    said = sorted({str(each.message) for each in warned if issubclass(each.category, UserWarning)})
    print("FOUND", json.dumps({**figures, "warnings": said} if said else figures), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="runs/accelerator", help="directory for the page")
    parser.add_argument("--size", default="bert_base", help="a published size of BERT")
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512], help="tokens of a row")
    parser.add_argument("--rows", type=int, help="rows of a device; default is what fits into 80 GB")
    parser.add_argument("--steps", type=int, default=40, help="steps of a measurement, a multiple of 20 but on torch")
    parser.add_argument("--precision", default="mixed_bfloat16", help="Keras dtype policy")
    parser.add_argument("--distribution", default="single", help="as of keras-bert pretrain")
    parser.add_argument("--devices", type=int, help="as of keras-bert pretrain")
    parser.add_argument("--peer", action="store_true", help="also Hugging Face's step under torch")
    parser.add_argument("--public", action="store_true", help="what others have published, instead")
    parser.add_argument("--minutes", type=float, default=9.0, help="of --public")
    parser.add_argument("--small", action="store_true", help="--public with tiny models, on a CPU")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = vars(parser.parse_args())
    part = options.pop("part")
    if part:
        run_part(*json.loads(part))
        return
    if options["public"]:
        measure_public(options)
        return
    found, start = {}, time.monotonic()
    for name, arguments in plan(options):
        figures = measure_apart(name, arguments, options)
        if name in ("step", "peer") and "error" in figures and options["rows"] is None:
            fewer = ROWS.get((options["size"], arguments["length"]), 32) // 4
            figures = measure_apart(name, arguments, {**options, "rows": fewer})
        found.setdefault(name, []).append(figures)
        print(f"{time.monotonic() - start:5.0f} s  {name} {found[name][-1]}", flush=True)
    output = pathlib.Path(options["output"])
    output.mkdir(parents=True, exist_ok=True)
    found["options"] = options
    (output / "accelerator.json").write_text(json.dumps(found, indent=2) + "\n")
    (output / "accelerator.txt").write_text("\n".join(page(found)) + "\n")
    print("\n".join(page(found)))


if __name__ == "__main__":
    main()
