# %% [markdown]
# # Search your texts, then improve the search
#
# An embedder turns each text into a vector, and the nearest vectors answer a question. Pairs of questions and texts from
# your own collection make it better.

# %%
import random
import warnings

import keras_bert_impl as kbi  # before keras
import keras
import numpy as np
from keras_bert_impl.retrieval import mine_hard_negatives, retrieval_scores

warnings.filterwarnings("ignore", message=".*truncated to that length")  # one text of code is longer than it looks

# %% [markdown]
# ## The collection
#
# `FOLDER` is a folder of `.txt` files. With `None`, each text is what the documentation says about a module of Python,
# SciPy or scikit-learn. The first sentence of a text is its question, and the next three, up to 40 words, are the text to
# find.

# %% tags=["parameters"]
FOLDER = None
TEXTS = 800
EPOCHS = 2

# %%
random.seed(0)
packages = ["python", "scipy", "sklearn"]
corpus = kbi.corpora.PythonDocsCorpus(packages) if FOLDER is None else kbi.corpora.open_corpus(FOLDER)
documents = [document for document in corpus if len(document.sentences) >= 4]
documents = random.sample(documents, min(TEXTS, len(documents)))
names = [document.name for document in documents]
questions = [document.sentences[0] for document in documents]
texts = [" ".join(" ".join(document.sentences[1:4]).split()[:40]) for document in documents]
print(f"{len(texts):,} texts, for example {names[0]}:\n{questions[0]}\n{texts[0]}")

# %% [markdown]
# ## Search
#
# `small_english` is in the package. Better embedders take the same lines, such as
# `"hf://sentence-transformers/all-MiniLM-L6-v2"`. Each text is embedded once; keep the vectors.

# %%
keras.utils.set_random_seed(0)
embedder = kbi.TextEmbedder.from_pretrained("small_english", sequence_length=128)
vectors = embedder.embed_documents(texts)  # (texts, width)
np.save("vectors.npy", vectors)


def show(question, vectors):
    print(question)
    for match in embedder.search(question, vectors, top_k=3):
        print(f"    {match.score:.2f}  {names[match.number]:36} {texts[match.number][:60]}")


for question in ["send an electronic mail", "numbers drawn at random", "group similar points into clusters"]:
    show(question, vectors)

# %% [markdown]
# ## A map
#
# The two axes are the directions in which the vectors differ most.

# %% alt="Scatter plot of vectors in three colours. Python's modules form a cloud of their own; those of SciPy and scikit-learn overlap."
labels = [name.split(".")[0] if name.split(".")[0] in packages else "python" for name in names]
kbi.plots.vectors(vectors, labels)

# %% [markdown]
# ## How good is it?
#
# The second half of the questions is the test. `recall@10` is the share of texts that are among the first ten results.
# `mrr@10` is the mean of one over the position of the right text.

# %%
half = len(texts) // 2
relevant = [[number] for number in range(half, len(texts))]


def scores_of(embedder):
    found = embedder.search(questions[half:], texts, top_k=10)
    scores = retrieval_scores(found, relevant)
    return {name: round(scores[name], 3) for name in ("recall@10", "mrr@10")}


print(scores_of(embedder))

# %% [markdown]
# ## Train on your own pairs
#
# The first half of the questions, with their texts, is the training data. The other texts of a batch serve as wrong
# answers. Hard negatives are added: texts that the embedder itself confuses with the right one.

# %%
columns = mine_hard_negatives(embedder, questions[:half], texts[:half])
embedder.compile(
    optimizer=kbi.optimization.BertAdamW(5e-5),
    loss=kbi.embedding_losses.MultipleNegativesRankingLoss(),
)
embedder.fit(columns, batch_size=32, epochs=EPOCHS, verbose=2)
print(scores_of(embedder))

# %% [markdown]
# ## Search again
#
# The old vectors belong to the old model, so all texts are embedded anew.

# %%
vectors = embedder.embed_documents(texts)
show("send an electronic mail", vectors)

# %% [markdown]
# ## Save
#
# sentence-transformers opens the directory. `keras-bert serve --model docs=my_embedder` answers OpenAI's client. A
# [reranker](../docs/reranking.md) orders the results more exactly.

# %%
embedder.save_pretrained("my_embedder")
