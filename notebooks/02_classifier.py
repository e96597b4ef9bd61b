# %% [markdown]
# # A text classifier from a CSV file
#
# A table with a text and a label in each row becomes a classifier. Plots show what it does well and what it does not.

# %%
import random

import keras_bert_impl as kbi  # before keras
import keras
import pandas as pd

# %% [markdown]
# ## The table
#
# Set `TABLE` to a CSV file with the columns `text` and `label`. With `None`, this cell writes one: passages from the
# documentation of three libraries, whose names are the labels.

# %% tags=["parameters"]
TABLE = None
ROWS = 2400
EPOCHS = 3

# %%
random.seed(0)
if TABLE is None:
    TABLE = "passages.csv"
    rows = {"keras": [], "matplotlib": [], "pandas": []}
    modules = list(kbi.corpora.PythonDocsCorpus(list(rows)))
    for module in random.sample(modules, len(modules)):
        texts = [" ".join(module.sentences[start : start + 3]) for start in range(0, len(module.sentences), 3)]
        texts = [text for text in texts if 15 <= len(text.split()) <= 40]
        rows[module.source] += [(text, module.source, module.name) for text in texts[:12]]
    rows = [row for of_label in rows.values() for row in of_label[: ROWS // 3]]
    pd.DataFrame(rows, columns=["text", "label", "module"]).to_csv(TABLE, index=False)

table = pd.read_csv(TABLE)
print(table["label"].value_counts().to_string())
table.sample(5, random_state=0)

# %% [markdown]
# Training sees 60 % of the table. The validation set, 20 %, chooses the best epoch; the test set, 20 %, gives the final
# result. Texts of one module resemble each other, so a module goes whole into one of the three. Do the same with authors,
# patients or customers.

# %%
groups = list(table["module"].unique()) if "module" in table else list(table.index)
random.shuffle(groups)
fifth = len(groups) // 5
place = table["module"] if "module" in table else table.index.to_series()
validation, test = table[place.isin(groups[:fifth])], table[place.isin(groups[fifth : 2 * fifth])]
train = table[place.isin(groups[2 * fifth :])]
classes = sorted(table["label"].unique())
print(f"{len(train)} texts to train on, {len(validation)} for validation, {len(test)} for the test")

# %% [markdown]
# ## The model
#
# `small_english` is in the package. Larger checkpoints, such as `"bert-base-uncased"`, take the same lines and are
# usually better. The head for your classes is new; a warning says so.

# %%
keras.utils.set_random_seed(0)
classifier = kbi.TextClassifier.from_pretrained("small_english", class_names=classes, sequence_length=128)

# %% alt="Histogram of text lengths in tokens. Nearly all texts have 20 to 70 tokens; the sequence length is 128."
kbi.plots.lengths(classifier, train["text"].tolist())

# %% [markdown]
# ## Training
#
# The columns of the table go into `fit`.

# %%
steps = EPOCHS * -(-len(train) // 16)
classifier.compile(
    optimizer=kbi.optimization.BertAdamW(kbi.optimization.WarmupLinearDecay(2e-4, steps // 10, steps)),
    loss=classifier.loss,
    metrics=["accuracy"],
)
history = classifier.fit(
    train["text"],
    train["label"],
    validation_data=(validation["text"], validation["label"]),
    batch_size=16,
    epochs=EPOCHS,
    callbacks=[kbi.callbacks.BestWeights("val_accuracy")],
    verbose=2,
)

# %% alt="Two line plots over three epochs. The validation accuracy rises from 0.82 to 0.86; the training accuracy reaches 0.96."
kbi.plots.curves(history)

# %% [markdown]
# ## The test
#
# Rows of the matrix are the true labels, columns the predicted ones.

# %% alt="Confusion matrix of three classes: 88.4 % of 430 test examples are right. Most errors are texts taken for pandas."
answers = classifier.classify(test["text"], top_k=None)
predicted = [labels[0].label for labels in answers]
kbi.plots.confusion(test["label"], predicted, names=classes)

# %% [markdown]
# Do the probabilities mean what they say? When the model says 80 %, it should be right in 80 % of the cases.

# %% alt="Reliability diagram. The points are below the diagonal: the model is too sure, by 8.3 % on average."
probabilities = [[dict(labels)[name] for name in classes] for labels in answers]
kbi.plots.reliability([classes.index(label) for label in test["label"]], probabilities, bins=5)

# %% [markdown]
# Read the most confident errors. They often show what is wrong with the data.

# %%
wrong = [
    (labels[0].probability, labels[0].label, label, text)
    for labels, label, text in zip(answers, test["label"], test["text"])
    if labels[0].label != label
]
for probability, guess, label, text in sorted(wrong, reverse=True)[:5]:
    print(f"{label}, taken for {guess} ({probability:.0%}): {text[:80]}")

# %% [markdown]
# ## New texts

# %%
texts = ["Draws the bars of a histogram in the current figure.", "Joins two tables by a column."]
for text, (best,) in zip(texts, classifier.classify(texts)):
    print(f"{best.label} ({best.probability:.0%}): {text}")

# %% [markdown]
# ## Save
#
# The directory is a Hugging Face checkpoint. To export and serve it, see
# [Export, serve, ask](05_export_and_serve.ipynb).

# %%
classifier.save_pretrained("my_classifier")
print(kbi.TextClassifier.from_pretrained("my_classifier").classify(texts))
