"""Attention of one layer within a window, beside attention to the whole row: time and memory at 512 to 8,192 tokens.

    python benchmarks/windows.py --output DIR                       # all three backends on this machine
    KERAS_BACKEND=jax python benchmarks/windows.py --output DIR --backends jax

Forward and backward pass of 4 heads of width 64 over one packed row of three sequences, with a window of 64 tokens to
either side, as in ModernBERT-base; float32 on a CPU, bfloat16 on an accelerator. "window" is what the layer chooses for
it, "whole row" what it chooses without a window, "plain" the form that keeps all probabilities. Each figure is taken in
a process of its own, so that its memory is its own: on a CPU what the process grows by in the first pass after one over
64 tokens, on an accelerator the most that was allocated. Writes windows.json, windows.md and windows.png.
"""

import argparse
import json
import os
import pathlib
import time

from in_turn import Setting, measure_apart, median_seconds

LENGTHS = (512, 1024, 2048, 4096, 8192)
HEADS, HEAD_WIDTH, WINDOW = 4, 64, 64
FORMS = ("window", "whole row", "plain")
SHORTEST = 64  # tokens, whose pass has fetched before what a pass of any length needs
MIB = 2**20
LOOKS = (("tab:blue", "o"), ("tab:orange", "s"), ("tab:gray", "^"), ("tab:green", "D"))


def inputs_of(length, form, dtype):
    """(AttentionInputs of packed rows, function of them that computes the mixed values)."""
    from keras_bert_impl.kernels import attention
    from keras_bert_impl.kernels.attention.device_check import random_inputs

    inputs, _ = random_inputs(1, length, HEADS, HEAD_WIDTH, "sequences", dtype)
    inputs = inputs._replace(window=None if form == "whole row" else WINDOW)
    return inputs, attention.by_ops if form == "plain" else attention.attend


def training_pass(inputs, attend):
    """A function that computes the form's values and the gradient of their sum of squares, and waits for them."""
    import keras

    from keras_bert_impl.kernels import attention

    def loss(array, mask, ids):
        mixed = attend(attention.of_fused(array, HEADS, mask=mask, sequence_ids=ids, window=inputs.window))
        return keras.ops.sum(keras.ops.square(keras.ops.cast(mixed, "float32")))

    arrays = inputs.fused, inputs.mask, inputs.sequence_ids
    if keras.backend.backend() == "jax":
        import jax

        compiled = jax.jit(jax.grad(loss)).lower(*arrays).compile()
        return lambda: compiled(*arrays).block_until_ready()
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        @tf.function(jit_compile=True)
        def gradient(*arrays):
            with tf.GradientTape() as tape:
                tape.watch(arrays[0])
                result = loss(*arrays)
            return tape.gradient(result, arrays[0])

        return lambda: gradient(*arrays).numpy()

    def backward():
        array = arrays[0].detach().requires_grad_()
        loss(array, *arrays[1:]).backward()
        return array.grad.flatten()[0].item()

    return backward


def measure(form, length, repeats=3):
    """{"seconds": median of a pass, "mib": memory that it needs beside its inputs}."""
    from keras_bert_impl.distribution import hardware

    is_cpu = not hardware.has_accelerator()
    dtype = "float32" if is_cpu else "bfloat16"
    training_pass(*inputs_of(SHORTEST, form, dtype))()
    run = training_pass(*inputs_of(length, form, dtype))
    grown = most_resident(run) if is_cpu else None
    seconds = median_seconds(run, warm=1, repeats=repeats)
    return {"seconds": seconds, "mib": (grown if is_cpu else hardware.peak_memory()) / MIB}


def most_resident(run):
    """The bytes by which the memory of this process grows at most in its first run (Linux): some backends keep what a
    run has needed."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # forgets the highest value so far
    before = resident("VmRSS")
    run()
    return resident("VmHWM") - before


def resident(name):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def table(found):
    """Lines of Markdown: a row for each length, time and memory of each form on each backend."""
    lines = []
    for backend, forms in found.items():
        lines += [f"### {backend}", "", f"| tokens | {' | '.join(forms)} |", f"| --- |{' --- |' * len(forms)}"]
        for length in LENGTHS:
            cells = [forms[form].get(length, {"error": "not measured"}) for form in forms]
            texts = [c.get("error") or f"{1000 * c['seconds']:,.0f} ms, {c['mib']:,.0f} MiB" for c in cells]
            lines.append(f"| {length:,} | {' | '.join(texts)} |")
        lines.append("")
    return lines


def plot(found, title, path):
    """Two rows of pictures, memory above and time below, one column for each backend."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(found), figsize=(4 * len(found) + 1, 6.5), squeeze=False, layout="constrained")
    for column, (backend, forms) in zip(axes.T, found.items(), strict=True):
        for axis, name, factor, label in zip(
            column, ("mib", "seconds"), (1, 1000), ("memory, MiB", "forward and backward, ms"), strict=True
        ):
            for (form, by_length), (color, marker) in zip(forms.items(), LOOKS, strict=False):
                good = {length: each[name] * factor for length, each in by_length.items() if "error" not in each}
                axis.plot(list(good), list(good.values()), color=color, marker=marker, label=form)
            axis.set(xscale="log", yscale="log", ylabel=label, xlabel="tokens")
            axis.set_xticks(LENGTHS, [f"{length:,}" for length in LENGTHS], minor=False)
            axis.minorticks_off()
            axis.grid(alpha=0.3)
            axis.spines[["top", "right"]].set_visible(False)
        column[0].set_title(backend)
    axes[0, 0].legend(frameon=False)
    figure.suptitle(title)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def by_length(script, forms, backends):
    """{backend: {form: {length: figures}}}, each measured by `script` in a process of its own; "tpu" is JAX in
    bfloat16, for a script that asks its compiler."""
    # Freed memory goes back at once, so that what is measured is what is in use.
    os.environ["MALLOC_MMAP_THRESHOLD_"] = "100000"
    found, start = {}, time.monotonic()
    for backend in backends:
        types = {"backend": "jax", "precision": "mixed_bfloat16"} if backend == "tpu" else {"backend": backend}
        for form in forms:
            for length in LENGTHS:
                try:
                    figures = measure_apart(script, Setting(form, variant=str(length), **types))
                except RuntimeError as error:  # for want of memory, for example
                    figures = {"error": str(error)}
                found.setdefault(backend, {}).setdefault(form, {})[length] = figures
                print(f"{time.monotonic() - start:5.0f} s  {backend}, {form}, {length} tokens: {figures}", flush=True)
    return found


def write(found, output, name, title):
    """Writes NAME.json, NAME.md and NAME.png of what `by_length` returned, and prints the table."""
    output = pathlib.Path(output)
    output.mkdir(parents=True, exist_ok=True)
    (output / f"{name}.json").write_text(json.dumps(found, indent=2) + "\n")
    (output / f"{name}.md").write_text("\n".join(table(found)) + "\n")
    plot(found, title, output / f"{name}.png")
    print("\n".join(table(found)))


def main(description, script, forms, measured, title):
    """The command line of a benchmark by length; `measured` takes a form, a number of tokens and a Keras dtype policy,
    and returns figures."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--output", default="runs/benchmarks", help="directory for the results")
    parser.add_argument("--backends", nargs="+", default=["tensorflow", "jax", "torch"])
    parser.add_argument("--setting", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.setting:
        form, _, precision, _, length = Setting(*json.loads(options.setting))
        print(json.dumps(measured(form, int(length), precision)))
        return
    write(by_length(script, forms, options.backends), options.output, pathlib.Path(script).stem, title)


if __name__ == "__main__":
    finding = "A window of 129 tokens: memory and time grow with the length, not with its square"
    main(__doc__, __file__, FORMS, lambda form, length, _: measure(form, length), finding)
