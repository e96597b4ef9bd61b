"""The text that `small_english`, the model in the package, was trained on, as one folder of files for prepare-data.

    python benchmarks/small_english_corpus.py --novels FOLDER --wordnet FOLDER --output CORPUS

All of it may be passed on: `--novels`, a folder of public-domain books as `.txt` files (Project Gutenberg's, their
licence text removed); `--wordnet`, the folder with WordNet 3.0's data.noun, data.verb, data.adj and data.adv (in
Debian's package wordnet-base /usr/share/wordnet), whose definitions become sentences; and the docstrings of PACKAGES,
those of them that are installed. Prints the characters of each.
"""

import argparse
import pathlib
import re
import shutil
import warnings

PACKAGES = (
    *("python", "numpy", "tensorflow", "keras", "scipy", "pandas", "sklearn", "matplotlib", "networkx", "sympy"),
    *("torch", "jax", "transformers"),
)
# What stands before the definition of a word: `Paris is the capital ...`, `To run is to move ...`.
FORMS = {"noun": "{word} is {gloss}", "verb": "To {word} is to {gloss}", "adj": "{word} means {gloss}"}
FORMS["adv"] = FORMS["adj"]


def docstrings():
    """Documents of the packages, each a list of sentences."""
    from keras_bert_impl.text.corpora import PythonDocsCorpus

    with warnings.catch_warnings():
        warnings.simplefilter("default")  # which names the packages that are not installed
        yield from (document.sentences for document in PythonDocsCorpus(PACKAGES))


def definitions(folder):
    """Documents of WordNet's synsets: a definition, the other words for the same, and the examples of their use."""
    for part, form in FORMS.items():
        for line in (pathlib.Path(folder) / f"data.{part}").read_text(encoding="utf-8").splitlines():
            if line.startswith("  "):  # the licence
                continue
            fields, gloss = line.split(" | ", 1)
            fields = fields.split()
            words = [
                re.sub(r"\(\w+\)$", "", word).replace("_", " ") for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2]
            ]
            examples = [text.strip() for text in re.findall(r'"([^"]+)"', gloss) if " " in text.strip()]
            gloss = re.sub(r'"[^"]*"?', "", gloss).strip(" ;:,-")
            sentences = [form.format(word=words[0], gloss=gloss)] if gloss else []
            if len(words) > 1:
                sentences.append(f"{words[0]} is the same as {' or '.join(words[1:])}")
            yield [sentence[0].upper() + sentence[1:] + "." for sentence in sentences] + [
                text if text[-1] in ".?!" else text + "." for text in examples
            ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("novels", "wordnet", "output"):
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()
    output = pathlib.Path(arguments.output)
    output.mkdir(parents=True)
    books = sorted(pathlib.Path(arguments.novels).glob("*.txt"))
    for path in books:
        shutil.copy(path, output)
    print(f"{len(books)} books, {sum(path.stat().st_size for path in books):,} bytes")
    for name, documents in (("docstrings", docstrings()), ("wordnet", definitions(arguments.wordnet))):
        text = "".join("\n".join(sentences) + "\n\n" for sentences in documents if sentences)
        (output / f"{name}.txt").write_text(text, encoding="utf-8")
        print(f"{name}, {len(text.encode()):,} bytes")


if __name__ == "__main__":
    main()
