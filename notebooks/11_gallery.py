# %% [markdown]
# # Gallery of pictures
#
# Every function of `kbi.plots`, with the code that draws it. The model is small and made here in a minute: the pictures
# show what they can show, not what a good model looks like.

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

import keras_bert_impl as kbi  # isort: skip  before keras
import keras

# %% tags=["parameters"]
SENTENCES = 1200
EPOCHS = 4

# %%
random.seed(0)
keras.utils.set_random_seed(0)
found = []
for document in kbi.corpora.PythonDocsCorpus(["python", "numpy", "keras"]):
    found += [(text, document.source) for text in document.sentences if len(text.split()) >= 6]
rows = random.sample(found, SENTENCES)
texts, labels = (list(column) for column in zip(*rows, strict=True))
tokenizer = kbi.WordPieceTokenizer(kbi.tokenizers.learn_vocabulary(texts, 2000))
classes = ["keras", "numpy", "python"]


def classifier_of(layers):
    config = kbi.BertConfig(tokenizer.vocabulary_size, hidden_size=64, num_layers=layers, num_heads=4, max_length=64)
    model = kbi.TextClassifier(kbi.BertEncoder(config), 3, tokenizer=tokenizer, class_names=classes)
    model.optimizer.learning_rate = 1e-3
    return model


# %% [markdown]
# ## Lengths of texts

# %%
classifier = classifier_of(2)
kbi.plots.lengths(classifier, texts)

# %% [markdown]
# ## Curves of a run, and of several
#
# A run is what `fit` returns, or the directory of a `keras-bert pretrain` or `finetune`.

# %%
histories = {}
for name, model in (("two layers", classifier), ("one layer", classifier_of(1))):
    histories[name] = model.fit(texts, labels, validation_split=0.2, epochs=EPOCHS, batch_size=32, verbose=0)
kbi.plots.curves(histories)

# %% [markdown]
# ## Confusion

# %%
cut = SENTENCES * 4 // 5
answers = classifier.classify(texts[cut:], top_k=None)
kbi.plots.confusion(labels[cut:], [best.label for best, *_ in answers], names=classes)

# %% [markdown]
# ## Reliability of probabilities

# %%
probabilities = [[dict(answer)[name] for name in classes] for answer in answers]
kbi.plots.reliability([classes.index(label) for label in labels[cut:]], probabilities)

# %% [markdown]
# ## Which tokens speak for a class

# %%
kbi.plots.contributions(classifier, "Returns the weights of the layer as an array.", target="keras")

# %% [markdown]
# ## Attention: all heads, and one

# %%
kbi.plots.attention(classifier, "Returns the weights of the layer.")

# %%
kbi.plots.attention(classifier, "Returns the weights of the layer.", layer=1, head=2)

# %% [markdown]
# ## A map of vectors

# %%
embedder = kbi.TextEmbedder(classifier.encoder, tokenizer=tokenizer)
kbi.plots.vectors(embedder.embed(texts[cut:]), labels[cut:])

# %% [markdown]
# ## A quantity by length
#
# The memory in MiB of a step over one long row, on torch, measured in [long texts](../docs/long_texts.md).

# %%
kbi.plots.by_length({
    "BERT": {2048: 172, 4096: 339, 8192: 671},
    "Longformer": {2048: 213, 4096: 419, 8192: 831},
    "BigBird": {2048: 293, 4096: 588, 8192: 1179},
})  # fmt: skip

# %% [markdown]
# ## A picture of your own in the same style

# %%
counts = [len(ids) for ids in tokenizer.ids_batch(texts)]
figure, axes = kbi.plots.panels(columns=3, width=3, height=2.4, sharey=True)
for axis, name in zip(axes[0], classes, strict=True):
    axis.hist([count for count, label in zip(counts, labels, strict=True) if label == name], bins=range(0, 60, 4))
    axis.set(title=name, xlabel="tokens")
figure
