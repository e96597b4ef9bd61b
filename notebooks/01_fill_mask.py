# %% [markdown]
# # Your text to fill-mask
#
# A model that lies in the package guesses hidden words. Then a folder of text becomes a vocabulary, a small encoder that
# has learnt to guess them, and answers. It is a ModernBERT, which learns more in a few minutes than a BERT of the same
# size. Everything runs on a CPU, and faster on a GPU; on Colab choose *Runtime > Change runtime type*.

# %%
# Installs the package where it is missing, as on Colab, and chooses the backend. The package is not on PyPI: replace
# ADDRESS with the address of its Git repository.
import importlib.util
import os
import subprocess
import sys

BACKEND = os.environ.setdefault("KERAS_BACKEND", "jax")  # or "tensorflow", "torch"
if importlib.util.find_spec("keras_bert_impl") is None:
    package = f"keras_bert_impl[{BACKEND},training] @ git+https://ADDRESS"
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", package], check=True)

# %%
import random

import keras_bert_impl as kbi  # isort: skip  before keras
import keras

# %% [markdown]
# ## 0. An answer first
#
# `small_english` has five million weights, and was trained on novels and API documentation. `fill_mask` gives the most
# probable words for each `[MASK]`.

# %%
SENTENCES = [
    "I have not seen him for many [MASK].",
    "Returns a [MASK] of integers.",
    "If the file does not exist, an error is [MASK].",
    "The shape of the [MASK] tensor.",
]


def ask(model):
    for text in SENTENCES:
        guesses = model.fill_mask(text)[0]
        print(f"{text:50}", *(f"{guess.token} {guess.probability:.0%}" for guess in guesses), sep="  ")


small_english = kbi.MaskedLM.from_pretrained("small_english")
ask(small_english)

# %% [markdown]
# ## 1. Text
#
# `TEXT` is a file, a folder or a glob of `.txt` or `.jsonl` files, also compressed. Without one, the docstrings of the
# installed Python packages are read: English that every machine has. A corpus consists of documents, and a document of
# sentences, which are cut into passages of 45 words. Whole documents are held out.

# %% tags=["parameters"]
TEXT = None
PASSAGES = 12_000
VOCABULARY_SIZE = 4000
EPOCHS = 5

# %%
random.seed(0)
train, test = [], []
for document in kbi.corpora.open_corpus(TEXT):
    part = train if kbi.corpora.split_of(document.name) == "train" else test
    words = " ".join(document.sentences).split()
    part += [" ".join(words[start : start + 45]) for start in range(0, len(words), 45)]  # about 64 tokens
train, test = random.sample(train, min(PASSAGES, len(train))), random.sample(test, min(PASSAGES // 20, len(test)))
print(f"{len(train):,} passages to train on, {len(test):,} held out, for example:")
print(*(f"  {passage[:90]}" for passage in test[:3]), sep="\n")

# %% [markdown]
# ## 2. A vocabulary
#
# Rare words are split into pieces. `##` continues a word.

# %%
tokenizer = kbi.WordPieceTokenizer(kbi.tokenizers.learn_vocabulary(train, VOCABULARY_SIZE))
print(tokenizer.encode("Tokenizers split unforeseeable words.").tokens)

# %% [markdown]
# ## 3. A model
#
# `kbi.BertConfig.from_name("bert_tiny", ...)` is the same size of BERT. Dropout is off: a few passes over the text leave
# little to learn by heart. The initial weights are three times as large as a BERT's: a narrow model is slow to use a
# word's neighbours with smaller ones.

# %%
keras.utils.set_random_seed(0)
config = kbi.ModernBertConfig.from_name(
    "modernbert_tiny",
    vocabulary_size=tokenizer.vocabulary_size,
    pad_id=tokenizer.pad_id,
    initializer_range=0.06,
)
masked_lm = kbi.MaskedLM(kbi.ModernBertEncoder(config), tokenizer=tokenizer, sequence_length=64)
print(f"{masked_lm.count_params():,} weights")

# %% [markdown]
# ## 4. Guess the hidden words
#
# `fit` takes strings, hides 15 % of the tokens, other ones in every epoch, and learns to guess them.

# %%
steps = EPOCHS * -(-len(train) // 32)
masked_lm.compile(
    optimizer=kbi.optimization.BertAdamW(kbi.optimization.WarmupLinearDecay(3e-3, steps // 10, steps), beta_2=0.98),
    loss=masked_lm.loss,
    weighted_metrics=["accuracy"],
)
history = masked_lm.fit(train, batch_size=32, epochs=EPOCHS, validation_data=test, verbose=2)
kbi.plots.curves(history)

# %% [markdown]
# Is that good? The most frequent token is right for a few percent of the hidden words.

# %%
ids = [number for row in tokenizer.ids_batch(test) for number in row]
most = max(set(ids), key=ids.count)
print(f"the most frequent token, {tokenizer.id_to_token(most)!r}, is right for {ids.count(most) / len(ids):.1%}")
print(f"this model for {history.history['val_accuracy'][-1]:.1%}")

# %% [markdown]
# ## 5. Ask it
#
# The same sentences. The first one comes from no documentation: a model knows what its text is about.

# %%
ask(masked_lm)

# %% [markdown]
# ## 6. Keep it
#
# The directory is a checkpoint of Hugging Face. Each head takes its encoder: a classifier is
# `kbi.TextClassifier.from_pretrained("my_bert", class_names=[...])`, as [the next notebook](02_classifier.ipynb) shows.
# For more text than fits into memory, for hours, and for several devices there are `keras-bert prepare-data` and
# `keras-bert pretrain`.

# %%
masked_lm.save_pretrained("my_bert")
print(kbi.MaskedLM.from_pretrained("my_bert").fill_mask("Returns a [MASK] of integers.", top_k=1))
