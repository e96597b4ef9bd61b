"""Small task files, made of words that the tests' vocabulary has."""

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
