# %% [markdown]
# # Export, serve, ask
#
# A trained model becomes a directory that runs without Keras and without this package. A server answers requests for it.

# %%
import json
import os
import pathlib
import random
import subprocess
import sys
import time
import urllib.request

import keras_bert_impl as kbi  # before keras
import keras

# %% [markdown]
# ## A model
#
# This one says which library a sentence is about. Any model of yours takes its place:
# `kbi.TextClassifier.from_pretrained("my_classifier")`.

# %% tags=["parameters"]
TRAINING_TEXTS = 400
REQUESTS = 128

# %%
random.seed(0)
keras.utils.set_random_seed(0)
classes = ["keras", "matplotlib"]
rows = []
for name in classes:
    sentences = [text for module in kbi.corpora.PythonDocsCorpus([name]) for text in module.sentences]
    sentences = [text for text in sentences if 6 <= len(text.split()) <= 40]
    rows += [(text, name) for text in random.sample(sentences, (TRAINING_TEXTS + REQUESTS) // 2)]
random.shuffle(rows)
texts, labels = (list(column) for column in zip(*rows))

classifier = kbi.TextClassifier.from_pretrained("small_english", class_names=classes, sequence_length=64)
classifier.optimizer.learning_rate = 3e-4
classifier.fit(
    texts[:TRAINING_TEXTS],
    labels[:TRAINING_TEXTS],
    validation_data=(texts[TRAINING_TEXTS:], labels[TRAINING_TEXTS:]),
    epochs=3,
    verbose=2,
)
classifier.save_pretrained("my_classifier")

# %% [markdown]
# ## A SavedModel that takes strings
#
# Its graph contains the tokenizer. The export is compared with the model before it is kept. SavedModels need TensorFlow,
# whichever backend trained the model.

# %%
kbi.export.export_saved_model(classifier, "exports/1", overwrite=True)
print(*sorted(path.name for path in pathlib.Path("exports/1").iterdir()), sep="\n")

# %% [markdown]
# `example.py` needs only TensorFlow and tensorflow-text:

# %%
print(pathlib.Path("exports/1/example.py").read_text())
quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
done = subprocess.run([sys.executable, "example.py"], cwd="exports/1", capture_output=True, text=True, env=quiet)
print(done.stdout or done.stderr[-2000:])

# %% [markdown]
# ## OpenVINO
#
# `open_export` opens an export of any format. [Export](../docs/serving.md) compares their speed on a quiet machine, which the
# machine of these outputs was not.

# %%
kbi.export.export_openvino(classifier, "openvino", overwrite=True)
requests = texts[TRAINING_TEXTS:]
for name, directory in (("SavedModel", "exports/1"), ("OpenVINO", "openvino")):
    answer = kbi.export.open_export(directory)
    answer(requests)  # the first call is slower
    begun = time.monotonic()
    probabilities = answer(requests)["probabilities"]
    speed = len(requests) / (time.monotonic() - begun)
    print(f"{name:10} {speed:5.0f} texts/s, first text {probabilities[0].round(3)}")

# %% [markdown]
# ## A server
#
# `keras-bert serve` has the REST and gRPC interfaces of TensorFlow Serving. In a terminal, the command is
# `keras-bert serve --model library=exports`. Here it runs in the background.

# %%
command = [sys.executable, "-m", "keras_bert_training", "serve", "--model", "library=exports", "--port", "8531"]
with open("server.log", "w") as log:
    server = subprocess.Popen([*command, "--grpc_port", "8530"], stdout=log, stderr=subprocess.STDOUT, env=quiet)


def ask(path, body=None):
    """The server's answer to a request, from JSON."""
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
instances = ["Draws a line between two points.", "Adds a layer to the model."]
for row in ask("v1/models/library:predict", {"instances": instances})["predictions"]:
    print(row["label"], [round(one, 3) for one in row["probabilities"]])

# %% [markdown]
# On your own machine, the server also has [a page](../docs/page.md) in the browser, at http://localhost:8501.
#
# ## Many requests at once
#
# Requests that arrive while another is computed are answered together, as one batch.

# %%
from concurrent.futures import ThreadPoolExecutor

for clients in (1, 16):
    with ThreadPoolExecutor(clients) as pool:
        begun = time.monotonic()
        list(pool.map(lambda text: ask("v1/models/library:predict", {"instances": [text]}), requests))
        print(f"{clients:2} clients: {len(requests) / (time.monotonic() - begun):.0f} requests/s")

# %% [markdown]
# ## Stop
#
# On SIGTERM the server answers the requests that it has and exits with 0.

# %%
server.terminate()
print("exit code", server.wait(timeout=60))
