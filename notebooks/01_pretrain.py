# %% [markdown]
# # Pre-train your own BERT
#
# A BERT learns a language by guessing hidden words. Here a folder of text becomes a vocabulary, a small model and its
# answers, in a few minutes on a CPU.

# %%
import random
import warnings

import keras_bert_impl as kbi  # before keras
import keras

# %% [markdown]
# ## The text
#
# `TEXT` is a file, a folder or a pattern such as `books/*.txt`. With `None`, the notebook reads the docstrings of the
# installed Python packages. Whole documents are held out for testing.

# %% tags=["parameters"]
TEXT = None
PASSAGES = 12_000
EPOCHS = 5

# %%
random.seed(0)
passages = {"train": [], "test": []}
for document in kbi.corpora.open_corpus(TEXT):
    split = "train" if kbi.corpora.split_of(document.name) == "train" else "test"
    words = " ".join(document.sentences).split()
    passages[split] += [" ".join(words[start : start + 45]) for start in range(0, len(words), 45)]
train = random.sample(passages["train"], min(PASSAGES, len(passages["train"])))
test = random.sample(passages["test"], min(PASSAGES // 20, len(passages["test"])))
print(f"{len(train):,} passages to train on, {len(test):,} held out. One of them:\n{test[0]}")

# %% [markdown]
# ## The vocabulary
#
# Rare words are split into subword tokens. `##` continues a word.

# %%
tokenizer = kbi.WordPieceTokenizer(kbi.tokenizers.learn_vocabulary(train, 4000))
print(tokenizer.encode("Tokenizers split unforeseeable words.").tokens)

# %% [markdown]
# ## The model
#
# ModernBERT is a newer BERT, which learns more in a few minutes. Its initial weights are three times as large as usual,
# because so narrow a model otherwise learns slowly.

# %%
keras.utils.set_random_seed(0)
config = kbi.ModernBertConfig.from_name(
    "modernbert_tiny",
    vocabulary_size=tokenizer.vocabulary_size,
    pad_id=tokenizer.pad_id,
    initializer_range=0.06,
)
masked_lm = kbi.MaskedLM(kbi.ModernBertEncoder(config), tokenizer=tokenizer, sequence_length=64)
print(f"{masked_lm.count_params():,} parameters")

# %% [markdown]
# ## Training
#
# `fit` takes strings. It hides 15 % of the tokens, different ones in each epoch.

# %%
steps = EPOCHS * -(-len(train) // 32)
schedule = kbi.optimization.WarmupLinearDecay(3e-3, steps // 10, steps)
masked_lm.compile(
    optimizer=kbi.optimization.BertAdamW(schedule, beta_2=0.98),
    loss=masked_lm.loss,
    weighted_metrics=["accuracy"],
)
warnings.filterwarnings("ignore", message=".*were truncated to that length")  # the ends of long passages are not needed
history = masked_lm.fit(train, validation_data=test, batch_size=32, epochs=EPOCHS, verbose=2)

# %% alt="Two line plots over five epochs. The accuracy on masked tokens rises to about 0.33 and the loss falls to 3.9, for held-out text as for training text."
kbi.plots.curves(history)

# %% [markdown]
# Is that good? Always guessing the most frequent token gives a baseline:

# %%
ids = [number for row in tokenizer.ids_batch(test) for number in row]
most = max(set(ids), key=ids.count)
print(f"always {tokenizer.id_to_token(most)!r}: {ids.count(most) / len(ids):.1%} right")
print(f"this model: {history.history['val_accuracy'][-1]:.1%} right")

# %% [markdown]
# ## Fill masks

# %%
text = "Returns a [MASK] of integers."
for guess in masked_lm.fill_mask(text, top_k=4)[0]:
    print(f"{guess.probability:4.0%}  {text.replace('[MASK]', guess.token)}")

# %% [markdown]
# ## Save
#
# The directory is a Hugging Face checkpoint. `kbi.TextClassifier.from_pretrained("my_bert", class_names=[...])` fine-tunes
# it, as in [the next notebook](02_classifier.ipynb). For more text and hours of training, use the
# [two commands](../docs/training.md).

# %%
masked_lm.save_pretrained("my_bert")
print(kbi.MaskedLM.from_pretrained("my_bert").fill_mask("Returns a [MASK] of integers.", top_k=1))
