# %% [markdown]
# # Named entities (NER) from a CoNLL file
#
# A tagger finds names in a text and says what they are. It learns from a file with one word and its BIO label in each
# line.

# %%
import random
import re

import keras_bert_impl as kbi  # before keras
import keras

# %% [markdown]
# ## The files
#
# Set `TRAIN` and `TEST` to your own files in the CoNLL format. With `None`, the next cell writes two. Their text is the
# documentation of Python packages; the entities are its exceptions, classes and arguments, labelled by their spelling.
# All words are in lower case, so that capitals do not give names away. No name of the test file is in the training file.

# %% tags=["parameters"]
TRAIN = None
TEST = None
SENTENCES = 1000
EPOCHS = 3

# %%
KINDS = {
    "EXCEPTION": r"[A-Z]\w+(Error|Exception|Warning)",
    "CLASS": r"(?!NumPy|SciPy|TensorFlow|PyTorch|JavaScript)([A-Z][a-z]+){2,}",
    "ARGUMENT": r"[a-z]+(_[a-z]+)+",
}


def kind_of(word):
    return next((kind for kind, names in KINDS.items() if re.fullmatch(names, word)), None)


def write_conll(path, sentences):
    with open(path, "w", encoding="utf-8") as file:
        for words in sentences:
            for word in words:
                kind = kind_of(word)
                for number, part in enumerate(re.findall("_|[^_]+", word)):
                    label = f"{'I' if number else 'B'}-{kind}" if kind else "O"
                    file.write(f"{part.lower()} {label}\n")
            file.write("\n")


if TRAIN is None:
    random.seed(0)
    TRAIN, TEST = "train.txt", "test.txt"
    corpus = kbi.corpora.PythonDocsCorpus(["python", "keras", "sklearn", "matplotlib"])
    sentences = [re.findall(r"\w+|[^\w\s]", text) for document in corpus for text in document.sentences]
    sentences = [words for words in sentences if 6 <= len(words) <= 40]
    names = sorted({word for words in sentences for word in words if kind_of(word)})
    new = set(random.sample(names, len(names) // 3))
    parts = {"train": [], "test": []}
    for words in random.sample(sentences, len(sentences)):
        named = {word for word in words if kind_of(word)}
        if named and not named & new:
            parts["train"].append(words)
        elif named and named <= new:
            parts["test"].append(words)
    write_conll(TRAIN, parts["train"][:SENTENCES])
    write_conll(TEST, parts["test"][: SENTENCES // 4])

print(open(TRAIN, encoding="utf-8").read()[:260])

# %% [markdown]
# ## Read them


# %%
def read_conll(path):
    """Two lists with an entry for each sentence: its words, and their labels."""
    blocks = open(path, encoding="utf-8").read().strip().split("\n\n")
    rows = [[line.split() for line in block.splitlines()] for block in blocks]
    return [[row[0] for row in block] for block in rows], [[row[-1] for row in block] for block in rows]


words, labels = read_conll(TRAIN)
test_words, test_labels = read_conll(TEST)
classes = sorted({label for sentence in labels for label in sentence}, key=lambda label: (label != "O", label))
print(f"{len(words):,} sentences to train on, {len(test_words)} to test; labels {', '.join(classes)}")

# %% [markdown]
# ## Training
#
# `fit` takes words and labels. `small_english` is in the package. For names of people and places take a larger, cased
# checkpoint, such as `"bert-base-cased"`.

# %%
keras.utils.set_random_seed(0)
tagger = kbi.TokenClassifier.from_pretrained("small_english", class_names=classes, sequence_length=96)
tagger.optimizer.learning_rate = 3e-4  # default: 5e-5, for larger models
history = tagger.fit(words, labels, batch_size=16, epochs=EPOCHS, verbose=2)

# %% [markdown]
# ## The test
#
# F1 counts an entity if its words and its type are right. No name of the test file was seen in training.

# %%
for name, value in tagger.evaluate(test_words, test_labels, return_dict=True, verbose=0).items():
    print(f"{name} {value:.3f}")

# %% [markdown]
# ## New sentences

# %%
from IPython.display import HTML, display

COLOURS = {"CLASS": "#56B4E9", "EXCEPTION": "#E69F00", "ARGUMENT": "#8fd6b8"}


def coloured(text):
    """The text with its entities marked, as HTML."""
    html, end = "", 0
    for entity in tagger.tag(text):
        mark = f'<mark style="background:{COLOURS[entity.label]};color:black">{entity.text}</mark>'
        html += f"{text[end : entity.start]}{mark} <small>{entity.label.lower()} {entity.score:.0%}</small>"
        end = entity.end
    return html + text[end:]


texts = [
    "raises a connectionlosterror if retry_count is negative.",
    "the argument keep_order is ignored if a wordlist is given.",
    "returns an instance of the spamfilter class.",
]
display(HTML("<br>".join(map(coloured, texts))))

# %% [markdown]
# ## Save
#
# The checkpoint opens in `transformers`. The command line does the same with a folder of CoNLL files
# ([named entity recognition](../docs/named_entities.md)).

# %%
tagger.save_pretrained("my_tagger")
print(*kbi.TokenClassifier.from_pretrained("my_tagger").tag(texts[0]), sep="\n")
