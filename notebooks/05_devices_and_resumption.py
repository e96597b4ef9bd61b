# %% [markdown]
# # Several devices, and a session that breaks off
#
# Pre-training takes hours, and Colab disconnects. This notebook divides each batch over the devices that are there, a TPU's
# eight cores, GPUs, or two that a CPU pretends to be, and then shows what happens when the process dies in the middle: the
# same lines, run again, go on from the last saved step, and end with the same weights, bit for bit.

# %%
# Installs the package where it is missing, as on Colab, and chooses the backend: JAX, which is the one for TPUs. The
# package is not on PyPI: replace ADDRESS with the address of its Git repository.
import importlib.util
import os
import subprocess
import sys

BACKEND = os.environ.setdefault("KERAS_BACKEND", "jax")
if importlib.util.find_spec("keras_bert_impl") is None:
    package = f"keras_bert_impl[{BACKEND},training] @ git+https://ADDRESS"
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", package], check=True)

# %% [markdown]
# ## The training, as a script
#
# A script of its own, because it is going to be killed. Everything in it would also stand in a notebook's cell.
# `set_distribution` comes before a model is made; batches are then divided over the devices without a further word.
# `ExactResume` saves the state at the end of each epoch and, here, every 20 steps. On Colab, let it save to a mounted
# Google Drive, `/content/drive/MyDrive/run`: the machine's own disk is gone with the session.

# %% tags=["parameters"]
SENTENCES = 1600
KILL_AFTER_STEP = 70

# %%
SCRIPT = '''
import itertools
import os
import signal
import sys

import keras_bert_impl as kbi
import keras
import jax

directory, kill_after, sentences = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
keras.utils.set_random_seed(0)
keras.distribution.set_distribution(keras.distribution.DataParallel())

found = (text for document in kbi.corpora.PythonDocsCorpus(["python"]) for text in document.sentences)
texts = list(itertools.islice((text for text in found if 6 <= len(text.split()) <= 30), sentences))
tokenizer = kbi.WordPieceTokenizer(kbi.tokenizers.learn_vocabulary(texts, 2000))
config = kbi.BertConfig.from_name("bert_tiny", vocabulary_size=tokenizer.vocabulary_size)
model = kbi.MaskedLM(kbi.BertEncoder(config), tokenizer=tokenizer, sequence_length=64)
model.compile(kbi.optimization.BertAdamW(1e-3), loss=model.loss, weighted_metrics=["accuracy"])


class Disconnect(keras.callbacks.Callback):
    """What Colab does: the process is gone, without a word."""

    steps = 0

    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1
        if self.steps == kill_after:
            os.kill(os.getpid(), signal.SIGKILL)


print(f"{len(jax.devices())} devices of kind {jax.devices()[0].device_kind}")
model.fit(texts, batch_size=32, epochs=2, verbose=2,
          callbacks=[kbi.callbacks.ExactResume(directory, every_steps=20), Disconnect()])
model.save_pretrained(f"{directory}_model")
'''
with open("train.py", "w") as file:
    file.write(SCRIPT)


def train(directory, kill_after=0):
    """Runs the script; without an accelerator, on two devices that the CPU pretends to be."""
    flags = "--xla_force_host_platform_device_count=2"
    command = [sys.executable, "train.py", directory, str(kill_after), str(SENTENCES)]
    done = subprocess.run(command, env={**os.environ, "XLA_FLAGS": flags}, capture_output=True, text=True)
    print(done.stdout if done.returncode in (0, -9) else done.stderr[-3000:])
    return done.returncode


# %% [markdown]
# ## It breaks off ...

# %%
train("interrupted", kill_after=KILL_AFTER_STEP)

# %% [markdown]
# -9 is the signal that no process survives.
#
# ## ... and goes on
#
# The same lines again:

# %%
train("interrupted")

# %% [markdown]
# ## Is it the same training?
#
# Once more, without an interruption, in a directory of its own:

# %%
train("whole")

# %%
import hashlib
import pathlib


def checksum(directory):
    return hashlib.sha256(pathlib.Path(directory, "model.safetensors").read_bytes()).hexdigest()[:16]


print(checksum("interrupted_model"), checksum("whole_model"))
print("the same weights" if checksum("interrupted_model") == checksum("whole_model") else "OTHER WEIGHTS")

# %% [markdown]
# ## The same from the command line
#
# `keras-bert pretrain` has all of this without a script: the data of any size, `--distribution data_parallel`, states that
# are saved after each round, on SIGTERM and every `--save_minutes`, and an output in a bucket (`gs://`). When a session has
# broken off, give the same command again:
#
#     keras-bert prepare-data --input my_texts --output /content/drive/MyDrive/data
#     keras-bert pretrain --config bert_mini/phase_128 --data /content/drive/MyDrive/data \
#         --distribution data_parallel --save_minutes 10 --output /content/drive/MyDrive/run
#
# On a TPU, `keras-bert plan-tpu` says before whether a recipe fits. This notebook has run on CPUs, never on a TPU.
