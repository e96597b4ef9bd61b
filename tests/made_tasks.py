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


def write_parts_of_speech(folder):
    """Words with labels that have no prefixes: D for determiners, V for what is done, N and X for the rest."""
    kinds = {"the": "D", "a": "D", "sat": "V", "ran": "V", "is": "V", "cat": "N", "dog": "N", "mat": "N", "rain": "N"}
    lines = []
    for text in SENTENCES * 2:
        lines += [f"{word}\t{kinds.get(word, 'X')}" for word in text.split()] + [""]
    for split in ("train", "dev", "test"):
        write_lines(folder / f"{split}.txt", lines)
