"""Small task files, made of words from the tests' vocabulary."""

import json

SENTENCES = ["the cat sat", "a dog ran in rain", "the mat is good", "red dogs sat on a cat", "it is bad"]


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_ner(folder):
    lines = ["-DOCSTART- -X- -X- O", ""]
    for text in SENTENCES * 2:
        lines += [f"{word} NN {'B-ANIMAL' if word in ('cat', 'dog', 'dogs') else 'O'}" for word in text.split()] + [""]
    for split in ("train", "dev", "test"):
        write_lines(folder / f"{split}.txt", lines)


def write_parts_of_speech(folder):
    """Words with labels without prefixes: D for determiners, V for verbs, N and X for the rest."""
    kinds = {"the": "D", "a": "D", "sat": "V", "ran": "V", "is": "V", "cat": "N", "dog": "N", "mat": "N", "rain": "N"}
    lines = []
    for text in SENTENCES * 2:
        lines += [f"{word}\t{kinds.get(word, 'X')}" for word in text.split()] + [""]
    for split in ("train", "dev", "test"):
        write_lines(folder / f"{split}.txt", lines)


def write_mrpc(folder, count=10):
    head = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    pairs = [f"{n}\t{n}\t{SENTENCES[n % 5]}\t{SENTENCES[n % 3]}" for n in range(count)]
    for split in ("train", "dev"):
        write_lines(folder / f"{split}.tsv", [head, *(f"{n % 2}\t{pair}" for n, pair in enumerate(pairs))])
    write_lines(folder / "test.tsv", ["index" + head[7:], *(f"{n}\t{pair}" for n, pair in enumerate(pairs))])


def write_cola(folder):
    for split in ("train", "dev"):
        write_lines(folder / f"{split}.tsv", [f"gj04\t{n % 2}\t*\t{SENTENCES[n % 5]}" for n in range(9)])
    write_lines(folder / "test.tsv", ["index\tsentence", *(f"{n}\t{text}" for n, text in enumerate(SENTENCES))])


def write_stsb(folder):
    head = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2"
    rows = [f"{n}\tg\tf\ty\t{n}\tnone\tnone\t{SENTENCES[n % 5]}\t{SENTENCES[n % 3]}" for n in range(9)]
    for split in ("train", "dev"):
        write_lines(folder / f"{split}.tsv", [f"{head}\tscore", *(f"{row}\t{n / 2}" for n, row in enumerate(rows))])
    write_lines(folder / "test.tsv", [head, *rows])


def write_squad(folder, version="v1.1"):
    context = "the cat sat on a mat . the dog ran in red rain . " * 3
    questions = [
        {"id": f"q{n}", "question": "is it good", "answers": [{"text": text, "answer_start": context.index(text)}]}
        for n, text in enumerate(["cat", "a mat", "red rain", "dog ran"])
    ]
    if version == "v2.0":
        for question in questions:
            question["is_impossible"] = False
        questions.append({"id": "none", "question": "is it bad", "answers": [], "is_impossible": True})
    content = {"version": version, "data": [{"title": "t", "paragraphs": [{"context": context, "qas": questions}]}]}
    for split in ("train", "dev"):
        write_lines(folder / f"{split}-{version}.json", [json.dumps(content)])


def write_codah(folder):
    for split in ("train", "dev", "test"):
        rows = ["\t".join(["o", SENTENCES[n % 5], *SENTENCES[:4], str(n % 4)]) for n in range(7)]
        write_lines(folder / f"{split}.tsv", rows)
