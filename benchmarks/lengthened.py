"""A sentence embedder that reads 512 tokens, made a Longformer: what it keeps at 512 tokens, and gains at 4,096.

    python benchmarks/lengthened.py --model DIR --texts FOLDER --output DIR
    python benchmarks/lengthened.py --model DIR --texts FOLDER --output DIR --long distilled=runs/long/encoder

`--model` is a checkpoint of BERT with the files of sentence-transformers, `--texts` a folder of long `.txt` files, and
each `--long` a Longformer that keras-bert distill --objective states made of the model.

Kept: the cosine of its vectors with the model's, for passages of several lengths. Gained: of documents of 4,000 tokens
the one that a passage of 50 tokens is from, the passage itself being taken out of its document, found by the cosine of
their vectors: the share of the passages for which the right document is the first, by where in the document they were.
Writes lengthened.json and lengthened.md.
"""

import argparse
import json
import pathlib

import numpy as np

LENGTHS = (128, 256, 384, 500)
DOCUMENT, PASSAGE = 4000, 50
WINDOWS = (512, 256, 128)


def texts_of(folder, tokenizer, count, length):
    """`count` runs of `length` tokens from as many files as there are, as lists of ids."""
    found = []
    for path in sorted(pathlib.Path(folder).glob("*.txt")):
        ids = tokenizer.ids_batch([path.read_text(encoding="utf-8", errors="replace")[20_000:200_000]])[0]
        found.append([ids[begin : begin + length] for begin in range(0, len(ids) - length, 2 * length)])
    return [texts[number] for number in range(max(map(len, found))) for texts in found if number < len(texts)][:count]


def vectors(model, ids, batch_size=8):
    """Unit vectors of rows of ids, each as long as its text; texts longer than a row in windows, or cut, by the
    model's `long_texts`."""
    from keras_bert_impl.batching import Rows, SortedBatches

    room, rows, counts = model.row_maker.room, [], []
    for one in ids:
        parts = [one[begin : begin + room] for begin in range(0, max(len(one) - room // 2, 1), max(room // 2, 1))]
        parts = parts if model.long_texts == "windows" else parts[:1]
        rows, counts = rows + parts, [*counts, len(parts)]
    batches = SortedBatches(model.tokenizer, Rows(rows), batch_size, model.sequence_length)
    outputs = batches.restore(model.predict(batches, verbose=0))
    begins = np.cumsum(counts) - counts
    means = np.add.reduceat(outputs, begins) / np.array(counts)[:, None]
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def embedder_of(path, sequence_length, **arguments):
    import keras_bert_impl as kbi

    return kbi.TextEmbedder.from_pretrained(
        path, pooling="mean", normalize=True, sequence_length=sequence_length, **arguments
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--texts", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--long", action="append", default=[], metavar="NAME=DIR")
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--passages", type=int, default=60, help="of each length")
    arguments = parser.parse_args()
    from keras_bert_impl.checkpoints import grow, lengthen, open_checkpoint

    short, in_windows = (embedder_of(arguments.model, 512, long_texts=how) for how in ("cut", "windows"))
    tokenizer = short.tokenizer
    long = {
        f"Longformer, window {window}": lengthen(open_checkpoint(arguments.model), 4096, window) for window in WINDOWS
    } | dict(each.split("=", 1) for each in arguments.long)
    documents = texts_of(arguments.texts, tokenizer, arguments.documents, DOCUMENT)
    random = np.random.default_rng(0)
    places = random.integers(0, DOCUMENT - PASSAGE, len(documents))
    queries = [ids[place : place + PASSAGE] for ids, place in zip(documents, places, strict=True)]
    rest = [[*ids[:place], *ids[place + PASSAGE :]] for ids, place in zip(documents, places, strict=True)]
    asked = vectors(short, queries)
    figures = {}

    def note(name, model):
        kept = {}
        for length in LENGTHS if model not in (short, in_windows) else ():
            passages = [ids[:length] for ids in documents[: arguments.passages]]
            kept[length] = float((vectors(short, passages) * vectors(model, passages)).sum(axis=1).mean())
        queried = asked if model in (short, in_windows) else vectors(model, queries)
        is_right = (queried @ vectors(model, rest, 2).T).argmax(axis=1) == np.arange(len(rest))
        early = places < 450
        figures[name] = {
            "kept": kept, "found": float(is_right.mean()), "early": float(is_right[early].mean()),
            "late": float(is_right[~early].mean()),
        }  # fmt: skip
        print(name, json.dumps(figures[name]), flush=True)

    note("the model, cut to 512 tokens", short)
    note("the model, in windows of 512", in_windows)
    for name, path in long.items():
        note(name, embedder_of(grow(open_checkpoint(path), max_length=4096), 4096))
    output = pathlib.Path(arguments.output)
    output.mkdir(parents=True, exist_ok=True)
    (output / "lengthened.json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    header = ["", *(f"cosine at {length}" for length in LENGTHS), "found", "in the first 450 tokens", "behind"]
    rows = [header, ["---"] * len(header)]
    for name, row in figures.items():
        kept = [f"{row['kept'][length]:.4f}" if row["kept"] else "" for length in LENGTHS]
        rows.append([name, *kept, *(f"{row[share]:.1%}" for share in ("found", "early", "late"))])
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"
    (output / "lengthened.md").write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
