"""Fine-tuning here and with transformers on torch from one checkpoint: dev scores of several seeds, seconds per epoch.

    python benchmarks/finetune_parity.py --data DIR --tasks mrpc rte --output runs/parity

`--data` holds the folders glue/, squad/, ner/ and multiple_choice/. Both sides train on the same rows in the same
batches in the same order, with AdamW, warm-up over a tenth of the steps, linear decay and dropout 0.1, from the same
new head (transformers' own initial values are a seventh larger and learn faster in a few steps). They differ only in
the random numbers of dropout. Each training runs in a process of its own and its result is kept, so that the same
command resumes where it stopped. transformers' seconds are also measured in the way its examples train: rows in random
order, each batch padded to its longest row.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

# Of each task: folder, number of training rows (None: all), epochs, longest row, learning rate.
CASES = {
    "mrpc": ("glue/MRPC", 800, 3, 128, 1e-4),
    "rte": ("glue/RTE", 500, 3, 128, 1e-4),
    "cola": ("glue/CoLA", 1500, 3, 64, 1e-4),
    "sts-b": ("glue/STS-B", 800, 3, 128, 5e-5),
    "sst-2": ("glue/SST-2", 1200, 2, 64, 1e-4),
    "tydiqa": ("squad", 400, 3, 192, 3e-4),
    "wnut17": ("ner/wnut17", 600, 5, 96, 3e-4),
    "codah": ("multiple_choice/CODAH/fold_0", 300, 3, 64, 1e-4),
}
BATCH_SIZE, DROPOUT = 16, 0.1


def prepare(task_name, data, model, seed):
    """What both sides need: task, our model, and a sample of the training rows and the dev set as LengthBatches."""
    import keras

    from keras_bert_impl import checkpoints
    from keras_bert_training.finetuning import FinetuneConfig
    from keras_bert_training.finetuning_task import TASKS, read_splits
    from keras_bert_training.finetuning_trial import batches_of, build_task_model

    folder, sample, epochs, length, rate = CASES[task_name]
    task = dataclasses.replace(TASKS[task_name], test=())
    config = FinetuneConfig(
        str(pathlib.Path(data) / folder), model, "", task_name, epochs=epochs, batch_size=BATCH_SIZE, seed=seed,
        learning_rate=rate, dropout_rate=DROPOUT, sequence_length=length,
        precision=os.environ.get("PRECISION", "float32"),
    )  # fmt: skip
    if task_name == "tydiqa":
        # TyDi QA's own dev set is distributed without answers.
        task = dataclasses.replace(task, splits={**task.splits, "dev": squad_slice(config.data)})
    keras.utils.set_random_seed(seed)
    examples = read_splits(task, config, config.data)
    class_names = task.find_class_names(examples["train"])
    checkpoint = checkpoints.open_checkpoint(config.model)
    ours = build_task_model(config, task, class_names, checkpoint)
    rows = {
        name: task.featurize(ours.tokenizer, part, class_names, ours.sequence_length) for name, part in examples.items()
    }
    rows["train"] = sampled(rows["train"], sample)
    batches = {name: batches_of(config, part, ours) for name, part in rows.items()}
    return config, task, ours, examples, rows, batches, class_names


def squad_slice(folder, articles=3, paragraphs=15):
    """The path of a file with the first paragraphs of the first articles of SQuAD 1.1's dev set."""
    whole = json.loads((pathlib.Path(folder) / "dev-v1.1.json").read_text())
    part = [{**article, "paragraphs": article["paragraphs"][:paragraphs]} for article in whole["data"][:articles]]
    path = pathlib.Path(tempfile.mkdtemp()) / "squad_slice.json"
    path.write_text(json.dumps({**whole, "data": part}))
    return str(path)


def sampled(rows, count):
    """The same `count` examples for every seed."""
    if count is None or count >= len(rows):
        return rows
    places = np.random.default_rng(0).permutation(len(rows))[:count]
    choices = rows.choices or 1
    numbers = (places[:, None] * choices + np.arange(choices)).ravel()
    return dataclasses.replace(
        rows,
        first=[rows.first[number] for number in numbers],
        second=None if rows.second is None else [rows.second[number] for number in numbers],
        labels=rows.labels[places],
        weights=None if rows.weights is None else rows.weights[places],
    )


def train_here(task_name, data, model, seed):
    import keras

    from keras_bert_impl.batching import predict_rows
    from keras_bert_training.finetuning_trial import compile_for

    config, task, ours, examples, rows, batches, class_names = prepare(task_name, data, model, seed)
    compile_for(ours, config, task, config.epochs * batches["train"].num_batches)
    seconds = []

    class Clock(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            # Keras reads batches once before it trains, which starts another epoch of ours.
            batches["train"].start_epoch(epoch)
            self.start = time.perf_counter()

        def on_epoch_end(self, epoch, logs=None):
            seconds.append(time.perf_counter() - self.start)

    history = ours.fit(batches["train"], epochs=config.epochs, shuffle=False, verbose=0, callbacks=[Clock()])
    figures = task.score(examples["dev"], rows["dev"], predict_rows(ours, batches["dev"]), class_names)
    # The fastest epoch: the first one includes compilation.
    return {
        "score": figures[task.main_metric],
        "seconds": min(seconds),
        "losses": history.history["loss"],
        "rows": len(rows["train"]),
    }


def train_there(task_name, data, model, seed):
    import torch

    config, task, ours, examples, rows, batches, class_names = prepare(task_name, data, model, seed)
    torch.manual_seed(seed)
    net = their_model(task_name, model, class_names)
    copy_head(ours, net)
    steps = config.epochs * batches["train"].num_batches
    optimizer, schedule = their_optimizer(net, steps, config.learning_rate)
    seconds, losses = [], []
    for epoch in range(config.epochs):
        batches["train"].start_epoch(epoch)
        start, total = time.perf_counter(), 0.0
        for index in range(batches["train"].num_batches):
            total += their_step(net, optimizer, batches["train"][index], rows["train"])
            schedule.step()
        seconds.append(time.perf_counter() - start)
        losses.append(total / batches["train"].num_batches)
    outputs = [None] * len(rows["dev"])
    net.eval()
    with torch.no_grad():
        for index, places in enumerate(batches["dev"].plan):
            inputs = batches["dev"][index][0]
            found = net(**their_inputs(inputs))
            logits = their_logits(found).numpy()
            for place, row in zip(places, logits, strict=True):
                outputs[place] = row
    figures = task.score(examples["dev"], rows["dev"], outputs, class_names)
    usual = float("inf")  # one seed is enough
    if seed == 0:
        usual = seconds_of_usual_epoch(task_name, model, class_names, rows["train"], batches["train"])
    return {"score": figures[task.main_metric], "seconds": min(seconds), "losses": losses, "usual_seconds": usual}


def their_model(task_name, directory, class_names):
    import transformers

    kind = {"tydiqa": "QuestionAnswering", "wnut17": "TokenClassification", "codah": "MultipleChoice"}
    arguments = {"hidden_dropout_prob": DROPOUT, "attention_probs_dropout_prob": DROPOUT}
    if task_name not in ("tydiqa", "codah"):
        arguments["num_labels"] = len(class_names or [0])
    model_class = getattr(transformers, f"BertFor{kind.get(task_name, 'SequenceClassification')}")
    return model_class.from_pretrained(directory, **arguments)


def copy_head(ours, net):
    """Gives `net` the weights of our new head."""
    import torch

    head = net.qa_outputs if hasattr(net, "qa_outputs") else net.classifier
    of_encoder = {weight.path for weight in ours.encoder.weights}
    kernel, bias = (torch.from_numpy(keras_array(weight)) for weight in ours.weights if weight.path not in of_encoder)
    with torch.no_grad():
        head.weight.copy_(kernel.T)
        head.bias.copy_(bias)


def keras_array(weight):
    import keras

    return keras.ops.convert_to_numpy(weight.value).copy()


def their_optimizer(net, steps, rate):
    import torch

    plain = [p for name, p in net.named_parameters() if name.endswith("bias") or "LayerNorm" in name]
    decayed = [p for name, p in net.named_parameters() if not (name.endswith("bias") or "LayerNorm" in name)]
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=rate, eps=1e-6)
    warmup = int(0.1 * steps)

    def share(step):
        return max(0.0, min((step + 1) / max(warmup, 1), (steps - step) / (steps - warmup)))

    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)


def their_inputs(inputs):
    import torch

    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids", "padding_mask": "attention_mask"}
    return {names[name]: torch.from_numpy(np.asarray(array)).long() for name, array in inputs.items()}


def their_logits(found):
    """Their logits, in the shape of ours."""
    import torch

    if hasattr(found, "start_logits"):
        return torch.stack([found.start_logits, found.end_logits], dim=-1)
    return found.logits


def their_step(net, optimizer, batch, rows):
    import torch

    net.train()
    inputs, labels, weights = (*batch, None)[:3]
    labels = torch.from_numpy(np.asarray(labels))
    if weights is not None:
        labels = torch.where(torch.from_numpy(weights) > 0, labels.long(), -100)
    if labels.dtype.is_floating_point:
        wanted = {"labels": labels[:, 0]}
    elif rows.labels.ndim == 2 and not rows.per_token:
        wanted = {"start_positions": labels[:, 0].long(), "end_positions": labels[:, 1].long()}
    else:
        wanted = {"labels": labels.long()}
    optimizer.zero_grad()
    loss = net(**their_inputs(inputs), **wanted).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def seconds_of_usual_epoch(task_name, model, class_names, rows, batches):
    """Seconds per epoch with rows in random order, each batch padded to its longest; from a third of them."""
    net = their_model(task_name, model, class_names)
    optimizer, _ = their_optimizer(net, 100, 1e-4)
    lengths = np.minimum(rows.lengths(batches.tokenizer.template), batches.sequence_length)
    order = np.random.default_rng(1).permutation(len(rows))
    plan = np.array_split(order, batches.num_batches)
    third = plan[: max(1, len(plan) // 3)]
    start = time.perf_counter()
    for places in third:
        length = int(lengths[places].max())
        batch = rows.packed(batches.tokenizer, batches.sequence_length, length, places)
        their_step(net, optimizer, batch[: 2 + (batch[2] is not None)], rows)
    return (time.perf_counter() - start) * len(plan) / len(third)


def measure(arguments, task, side, seed):
    """The result of one training, read from its file if it has been run before."""
    path = pathlib.Path(arguments.output) / f"{task}_{side}_{seed}.json"
    if path.is_file():
        return json.loads(path.read_text())
    environment = {**os.environ, "KERAS_BACKEND": "torch" if side == "theirs" else arguments.backend}
    if side == "bfloat16":
        environment["PRECISION"] = "mixed_bfloat16"
    command = [sys.executable, __file__, "--data", arguments.data, "--model", arguments.model]
    command += ["--output", arguments.output, "--tasks", task, "--side", side, "--seed", str(seed)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    path.write_text(json.dumps(found))
    print(f"{task} {side} {seed}: {found}", flush=True)
    return found


def table(arguments):
    """Lines of Markdown."""
    lines = [
        "| task | rows, epochs | dev, ours | ours, bfloat16 | transformers | s/epoch ours | bfloat16 | transformers, "
        "same batches | transformers, its usual batches |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for task in arguments.tasks:
        found = {
            side: [measure(arguments, task, side, seed) for seed in range(arguments.seeds)] for side in arguments.sides
        }
        rows = next((run["rows"] for runs in found.values() for run in runs if "rows" in run), "")
        cells = [task, f"{rows}, {CASES[task][2]}"]
        for side in ("ours", "bfloat16", "theirs"):
            scores = [100 * run["score"] for run in found.get(side, ())]
            cells.append(f"{statistics.mean(scores):.1f} ± {statistics.stdev(scores):.1f}" if scores else "")
        for side, key in (
            ("ours", "seconds"),
            ("bfloat16", "seconds"),
            ("theirs", "seconds"),
            ("theirs", "usual_seconds"),
        ):
            values = [run[key] for run in found.get(side, ())]
            # The minimum, since other work on the machine can only add to the time.
            cells.append(f"{min(values):.1f}" if values else "")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", required=True, help="checkpoint directory that both sides start from")
    parser.add_argument("--output", required=True)
    parser.add_argument("--tasks", nargs="+", default=list(CASES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--backend", default="tensorflow")
    parser.add_argument("--sides", nargs="+", default=["ours", "bfloat16", "theirs"])
    parser.add_argument("--side", choices=["ours", "bfloat16", "theirs"])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.side:
        train = train_there if arguments.side == "theirs" else train_here
        print(json.dumps(train(arguments.tasks[0], arguments.data, arguments.model, arguments.seed)))
        return
    pathlib.Path(arguments.output).mkdir(parents=True, exist_ok=True)
    print("\n".join(table(arguments)))


if __name__ == "__main__":
    main()
