# %% [markdown]
# # Plots: training, results, attention
#
# `kbi.plots` shows what a model learned, where it errs and what its attention looks at. Each function draws one figure.

# %%
import random
import warnings

import keras_bert_impl as kbi  # before keras
import keras
import numpy as np

warnings.filterwarnings("ignore", message=".*newly initialised")  # heads that are trained below, and unused poolers

# %% tags=["parameters"]
SENTENCES = 900
EPOCHS = 4

# %% [markdown]
# ## Something to look at
#
# Three libraries' sentences, which a classifier is to tell apart. `small_english` is in the package.

# %%
random.seed(0)
classes = ["keras", "matplotlib", "sklearn"]
rows = {name: [] for name in classes}
for module in kbi.corpora.PythonDocsCorpus(classes):
    rows[module.source] += [(text, module.source) for text in module.sentences if 8 <= len(text.split()) <= 30]
rows = [row for of_class in rows.values() for row in random.sample(of_class, SENTENCES // 3)]
texts, labels = (list(column) for column in zip(*random.sample(rows, len(rows))))
cut = len(texts) * 4 // 5


def classifier_at(learning_rate):
    keras.utils.set_random_seed(0)
    classifier = kbi.TextClassifier.from_pretrained("small_english", class_names=classes, sequence_length=80)
    classifier.optimizer.learning_rate = learning_rate
    return classifier


# %% [markdown]
# ## Lengths of texts
#
# The line shows how long a model's sequences have to be.

# %% alt="Histogram of text lengths in tokens, with a line at the sequence length of 80."
classifier = classifier_at(3e-4)
kbi.plots.lengths(classifier, texts)

# %% [markdown]
# ## Curves of several runs
#
# A run is the result of `fit`, or the output directory of `keras-bert pretrain` or `finetune`.

# %% alt="Line plots of accuracy and loss for two learning rates, on training and validation data."
histories = {}
for name, model in (("rate 3e-4", classifier), ("rate 3e-5", classifier_at(3e-5))):
    histories[name] = model.fit(
        texts[:cut], labels[:cut], validation_data=(texts[cut:], labels[cut:]), epochs=EPOCHS, verbose=0
    )
kbi.plots.curves(histories)

# %% [markdown]
# ## Confusion
#
# Rows are the true labels, columns the predicted ones.

# %% alt="Confusion matrix of three classes: keras, matplotlib and sklearn."
answers = classifier.classify(texts[cut:], top_k=None)
kbi.plots.confusion(labels[cut:], [best.label for best, *_ in answers], names=classes)

# %% [markdown]
# ## Reliability
#
# Points below the diagonal mean that the model is too sure.

# %% alt="Reliability diagram: the share of right predictions over their probability, next to the diagonal."
probabilities = [[dict(answer)[name] for name in classes] for answer in answers]
kbi.plots.reliability([classes.index(label) for label in labels[cut:]], probabilities, bins=5)

# %% [markdown]
# ## A map of vectors
#
# The texts of the test, by the two directions in which their vectors differ most.

# %% alt="Scatter plot of the test texts' vectors, one colour for each of three classes."
trained = kbi.TextEmbedder(classifier.encoder, tokenizer=classifier.tokenizer)
kbi.plots.vectors(trained.embed(texts[cut:]), labels[cut:])

# %% [markdown]
# ## Attention: all heads
#
# In each square, rows are the tokens that attend, columns those attended to. A dark diagonal next to the middle is a head
# for neighbours. A dark column is a head that looks at one token, often `[CLS]` at the left or `[SEP]` at the right.

# %% alt="Sixteen squares, one for each head of four layers, with the attention between the tokens of a sentence."
bert = kbi.TextEmbedder.from_pretrained("small_english")
TEXT = "Nobody told the new driver that the last train had left."
kbi.plots.attention(bert, TEXT)

# %% [markdown]
# ## One head
#
# The head that looks most at the token before. An encoder with `return_attention=True` gives the numbers.

# %% alt="The attention of one head as a labelled square. Most tokens attend to the token before them."
encoder = kbi.encoder_from_pretrained("small_english", return_attention=True)
seen = keras.ops.convert_to_numpy(encoder(bert.tokenizer(TEXT))["attention_probabilities"])[0]
before = np.diagonal(seen, offset=-1, axis1=2, axis2=3).mean(axis=-1)  # (layers, heads)
layer, head = np.unravel_index(before.argmax(), before.shape)
kbi.plots.attention(bert, TEXT, layer=int(layer), head=int(head))

# %% [markdown]
# Where a head looks is not why a model answers as it does. For that, use
# [`contributions`](../docs/plots.md).
#
# ## A quantity by length
#
# The memory of a training step on one text, from [long texts](../docs/long_texts.md).

# %% alt="Line plot of memory by sequence length for BERT, Longformer and BigBird. BERT takes least at 8192 tokens."
kbi.plots.by_length({
    "BERT": {2048: 172, 4096: 339, 8192: 671},
    "Longformer": {2048: 213, 4096: 419, 8192: 831},
    "BigBird": {2048: 293, 4096: 588, 8192: 1179},
})  # fmt: skip
