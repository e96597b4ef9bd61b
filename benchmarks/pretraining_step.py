"""A masked-LM training step: ours, KerasHub's and Hugging Face's, each in a process of its own, one after the other.

    python benchmarks/pretraining_step.py --output DIR                 # L4 H512 A8, 16 x 128 tokens, 20 predictions
    python benchmarks/pretraining_step.py --output DIR --rounds 3

Every setting is measured in every round and its median taken, so that a busy minute does not hit one side alone. Writes
step.md, a table with sequences a second and the share of the machine's matrix-product ceiling, and step.png. What
cannot run, a compiler that is missing for one, is shown with its error.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

VOCABULARY, LAYERS, WIDTH, HEADS, INNER = 30522, 4, 512, 8, 2048
ROWS, LENGTH, PREDICTIONS = 16, 128, 20
KERAS = [(backend, dtype) for backend in ("tensorflow", "jax", "torch") for dtype in ("float32", "mixed_bfloat16")]
# Side, backend, precision, compiled. JAX always compiles.
SETTINGS = [
    *((side, *setting, jit) for side in ("ours", "keras_hub") for setting in KERAS for jit in (False, True)
      if (setting[0] == "jax") == jit or setting[0] == "tensorflow"),
    ("transformers", "torch", "float32", False),
    ("transformers", "torch", "bfloat16", False),
    ("transformers", "torch", "bfloat16", True),
]  # fmt: skip


def batch():
    random = np.random.default_rng(0)
    return {
        "token_ids": random.integers(1000, VOCABULARY, (ROWS, LENGTH)).astype("int32"),
        "segment_ids": np.zeros((ROWS, LENGTH), "int32"),
        "padding_mask": np.ones((ROWS, LENGTH), "int32"),
        "mask_positions": np.sort(random.permuted(np.tile(np.arange(LENGTH), (ROWS, 1)), axis=1)[:, :PREDICTIONS]),
        "mask_ids": random.integers(1000, VOCABULARY, (ROWS, PREDICTIONS)).astype("int32"),
        "mask_weights": np.ones((ROWS, PREDICTIONS), "float32"),
    }


def our_step(precision, jit):
    import keras

    from keras_bert_impl import BertConfig, BertEncoder, BertPretrainer
    from keras_bert_impl.optimization import BertAdamW

    config = BertConfig(
        VOCABULARY, hidden_size=WIDTH, num_layers=LAYERS, num_heads=HEADS, intermediate_size=INNER,
        hidden_dropout_rate=0.1, attention_dropout_rate=0.1,
    )  # fmt: skip
    model = BertPretrainer(BertEncoder(config, dtype=keras.dtype_policies.get(precision)), next_sentence=False)
    model.compile(optimizer=BertAdamW(1e-4), jit_compile=jit)
    arrays = batch()
    labels = {name: arrays.pop(name) for name in ("mask_ids", "mask_weights")}
    arrays["mask_positions"] = arrays["mask_positions"].astype("int32")
    return lambda: model.train_on_batch(arrays, labels)


def keras_hub_step(precision, jit):
    import keras
    import keras_hub

    backbone = keras_hub.models.BertBackbone(
        VOCABULARY, num_layers=LAYERS, num_heads=HEADS, hidden_dim=WIDTH, intermediate_dim=INNER, dropout=0.1,
        max_sequence_length=512, dtype=precision,
    )  # fmt: skip
    model = keras_hub.models.BertMaskedLM(backbone, preprocessor=None)
    # As its own compile() has it, with decay and clipping as BERT is trained.
    model.compile(
        optimizer=keras.optimizers.AdamW(1e-4, weight_decay=0.01, global_clipnorm=1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=jit,
    )
    arrays = batch()
    labels, weights = arrays.pop("mask_ids"), arrays.pop("mask_weights")
    arrays["mask_positions"] = arrays["mask_positions"].astype("int32")
    return lambda: model.train_on_batch(arrays, labels, sample_weight=weights)


def transformers_step(precision, jit):
    import torch
    import transformers

    config = transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=INNER,
    )  # fmt: skip
    net = transformers.BertForMaskedLM(config).train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0.01)
    run = torch.compile(net) if jit else net
    arrays = batch()
    labels = np.full((ROWS, LENGTH), -100)
    np.put_along_axis(labels, arrays["mask_positions"], arrays["mask_ids"], axis=1)
    inputs = {"input_ids": arrays["token_ids"], "attention_mask": arrays["padding_mask"], "labels": labels}
    inputs = {name: torch.from_numpy(np.asarray(array, "int64")) for name, array in inputs.items()}

    def step():
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            loss = run(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


STEPS = {"ours": our_step, "keras_hub": keras_hub_step, "transformers": transformers_step}


def measure(side, precision, jit, steps):
    """Median seconds of a step."""
    step = STEPS[side](precision, jit)
    for _ in range(4):
        step()
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def measure_apart(setting, steps):
    """`measure` in another process: (seconds, None), or (None, the last line of its error)."""
    side, backend, precision, jit = setting
    command = [sys.executable, __file__, "--setting", side, precision, str(int(jit)), "--steps", str(steps)]
    environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or ["failed"])[-1][:120]
    return json.loads(done.stdout.splitlines()[-1]), None


def ceilings():
    """Operations a second of the best matrix product of TensorFlow and torch, by type."""
    code = (
        "from keras_bert_impl.flops import matrix_product_ceiling as c; import json;"
        "print(json.dumps({d: c(d) for d in ('float32', 'bfloat16')}))"
    )
    found = []
    for backend in ("tensorflow", "torch"):
        environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
        output = subprocess.run(
            [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, check=True
        ).stdout
        found.append(json.loads(output.splitlines()[-1]))
    return {dtype: max(one[dtype] for one in found) for dtype in ("float32", "bfloat16")}


def name_of(setting):
    side, backend, precision, jit = setting
    side = {"ours": "keras_bert_impl", "keras_hub": "KerasHub", "transformers": "transformers"}[side]
    return f"{side}, {backend} {precision.removeprefix('mixed_')}{', compiled' if jit else ''}"


def table(results, top):
    """Lines of Markdown, the fastest first."""
    from keras_bert_impl import BertConfig
    from keras_bert_impl.flops import training_flops

    config = BertConfig(VOCABULARY, hidden_size=WIDTH, num_layers=LAYERS, num_heads=HEADS, intermediate_size=INNER)
    flops = training_flops(config, ROWS, LENGTH, PREDICTIONS)
    lines = [
        f"Matrix products: {top['float32'] / 1e9:.0f} GFLOP/s in float32, {top['bfloat16'] / 1e9:.0f} in bfloat16.",
        "",
        "| setting | ms a step | sequences/s | share of the ceiling of its type |",
        "| --- | --- | --- | --- |",
    ]
    timed = sorted((setting for setting in results if results[setting]["seconds"]), key=lambda s: median(results[s]))
    for setting in timed:
        seconds = median(results[setting])
        dtype = "bfloat16" if "bfloat16" in setting[2] else "float32"
        share = flops / seconds / top[dtype]
        lines.append(f"| {name_of(setting)} | {1000 * seconds:.0f} | {ROWS / seconds:.1f} | {share:.0%} |")
    lines += [
        f"| {name_of(setting)} | {results[setting]['error']} | | |" for setting in results if setting not in timed
    ]
    return [*lines, "", *ratios(results, timed)]


def ratios(results, timed):
    """Ours against the best of each peer, over all and by backend."""

    def best(side, backend=None):
        found = [s for s in timed if s[0] == side and backend in (None, s[1])]
        return min(found, key=lambda s: median(results[s])) if found else None

    pairs = [(best("ours"), best("keras_hub")), (best("ours"), best("transformers"))]
    pairs += [(best("ours", backend), best("keras_hub", backend)) for backend in ("tensorflow", "jax", "torch")]
    pairs = [(here, there, median(results[there]) / median(results[here])) for here, there in pairs if here and there]
    return [f"- {ratio:.2f} times as fast: {name_of(here)}, against {name_of(there)}" for here, there, ratio in pairs]


def median(result):
    return statistics.median(result["seconds"])


def plot(results, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    timed = sorted((s for s in results if results[s]["seconds"]), key=lambda s: -median(results[s]))
    colors = {"ours": "tab:blue", "keras_hub": "tab:orange", "transformers": "tab:gray"}
    figure, axis = plt.subplots(figsize=(8, 0.35 * len(timed) + 1), layout="constrained")
    rates = [ROWS / median(results[s]) for s in timed]
    bars = axis.barh([name_of(s) for s in timed], rates, color=[colors[s[0]] for s in timed])
    axis.bar_label(bars, fmt="%.1f", padding=3)
    axis.set(xlabel="sequences of 128 tokens a second", title=f"Masked-LM training step, L{LAYERS} H{WIDTH}, two cores")
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", default="runs/benchmarks")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--setting", nargs=3)
    arguments = parser.parse_args()
    if arguments.setting:
        side, precision, jit = arguments.setting
        print(json.dumps(measure(side, precision, jit == "1", arguments.steps)))
        return
    output = pathlib.Path(arguments.output)
    output.mkdir(parents=True, exist_ok=True)
    results = {setting: {"seconds": [], "error": None} for setting in SETTINGS}
    for number in range(arguments.rounds):
        for setting, result in results.items():
            if result["error"]:
                continue
            seconds, result["error"] = measure_apart(setting, arguments.steps)
            result["seconds"] += [] if seconds is None else [seconds]
            print(
                f"round {number + 1}: {name_of(setting)}: {result['error'] or f'{1000 * seconds:.0f} ms'}", flush=True
            )
    lines = table(results, ceilings())
    (output / "step.md").write_text("\n".join(lines) + "\n")
    plot(results, output / "step.png")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
