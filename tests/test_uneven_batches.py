"""Batches that devices or processes cannot share evenly give the figures of one, whatever their size and place."""

import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
from test_distribution import environments
from tiers import full_but, full_on, on

PROGRAM = """
import json
import os
import sys

BACKEND = os.environ["KERAS_BACKEND"]
HAS_PROCESSES = "TF_CONFIG" in os.environ or "KERAS_DISTRIBUTION_NUM_PROCESSES" in os.environ
if BACKEND == "jax" and not HAS_PROCESSES:
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
import keras
import numpy as np
import keras_bert_impl as kbi
from keras_bert_impl import distribution

if BACKEND == "jax" and HAS_PROCESSES:
    keras.distribution.initialize()

def made():
    keras.utils.set_random_seed(0)
    config = kbi.BertConfig(
        len(words) + 5, hidden_size=8, num_layers=1, num_heads=2, intermediate_size=16, max_length=16,
        hidden_dropout_rate=0.0, attention_dropout_rate=0.0,
    )
    tokenizer = kbi.WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    classifier = kbi.TextClassifier(
        kbi.BertEncoder(config), 2, tokenizer=tokenizer, sequence_length=14, class_names=["bad", "good"],
        dropout_rate=0.0,
    )
    classifier.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return classifier

def found(rows, batch_size):
    classifier, data = made(), (texts[:rows], labels[:rows])
    before = classifier.get_weights()
    results = [*classifier.evaluate(*data, batch_size=batch_size, verbose=0)]
    results += [classifier.predict(data[0], batch_size=batch_size, verbose=0).ravel()]
    ids, numbers = classifier.rows(data[0]), np.array([["bad", "good"].index(label) for label in data[1]])
    results += [np.ravel(classifier.evaluate(ids, numbers, batch_size=batch_size, verbose=0))]
    results += [classifier.predict(ids, batch_size=batch_size, verbose=0).ravel()]
    fitted = classifier.fit(*data, batch_size=batch_size, verbose=0, validation_data=data).history
    results += [np.ravel(fitted["accuracy"]), np.ravel(fitted["loss"])]
    change = np.concatenate([np.ravel(b - a) for a, b in zip(before, classifier.get_weights())])
    again = classifier.evaluate(*data, batch_size=batch_size, verbose=0)  # what validation has to have shown
    np.testing.assert_allclose([fitted["val_loss"][0], fitted["val_accuracy"][0]], again, atol=1e-6)
    classifier.classify(texts[0])
    return results, change

words = "good bad fine dull film cast plot the a of and".split()
random = np.random.default_rng(0)
# Rows are as long as the longest text of their batch, and each length takes both backends seconds to compile.
counts = [12 if row % 8 == 0 else random.integers(1, 13) for row in range(17)]
texts = [" ".join(random.choice(words, count)) for count in counts]
labels = [["bad", "good"][number] for number in random.integers(0, 2, 17)]
cases = [tuple(case) for case in json.loads(sys.argv[1])]
if BACKEND == "jax":
    keras.distribution.set_distribution(keras.distribution.DataParallel(auto_shard_dataset=False))
    shared = [found(*case) for case in cases]
    if HAS_PROCESSES:
        part = slice(int(os.environ["KERAS_DISTRIBUTION_PROCESS_ID"]) * 8, None)
        try:
            made().fit(texts[part], labels[part])
            raise AssertionError("Each process may train on other texts.")
        except ValueError as error:
            assert "processes hold different lists" in str(error)
    keras.distribution.set_distribution(None)
elif HAS_PROCESSES:
    with distribution.distributed(distribution.Distribution(distribution="multi_worker")):
        shared = [found(*case) for case in cases]
else:
    import tensorflow as tf

    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], two)
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        shared = [found(*case) for case in cases]
alone = [found(*case) for case in cases]
for case, one, two in zip(cases, alone, shared):
    for number in range(len(one[0])):
        np.testing.assert_allclose(two[0][number], one[0][number], atol=1e-5, err_msg=f"{case} {number}")
    np.testing.assert_allclose(two[1], one[1], atol=1e-6, err_msg=str(case))
print("done")
"""


# Of rows and batch size: a last batch of one row; others, each of which takes both backends seconds to compile.
CASES = {"one row is left": [(17, 8)], "others": [(17, 17), (15, 5), (1, 8), (16, 8)]}


@on("tensorflow", "jax")  # Keras does not distribute torch
@full_on("tensorflow")  # which has the losses below
@pytest.mark.parametrize("cases", full_but(CASES, "one row is left"))
def test_uneven_batches_give_the_figures_of_one_device(cases):
    environment = {**os.environ, "KERAS_BACKEND": keras.backend.backend(), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", PROGRAM, json.dumps(CASES[cases])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stderr[-3000:]


@on("tensorflow", "jax")  # Keras does not distribute torch
@pytest.mark.full
def test_two_processes_give_the_figures_of_one_of_lists_and_arrays_that_they_cannot_share_evenly():
    command = [sys.executable, "-c", PROGRAM, json.dumps([(17, 8), (7, 5), (1, 8)])]
    running = [
        subprocess.Popen(command, env=one, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for one in environments(2)
    ]
    for process, (printed, complaints) in [(process, process.communicate(timeout=500)) for process in running]:
        assert process.returncode == 0 and printed.endswith("done\n"), complaints[-3000:]


LOSSES = pathlib.Path(__file__).with_name("replica_losses.py")


@on("tensorflow")  # JAX's meshes see the whole batch, and draw one mask for it
@pytest.mark.parametrize("losses", full_but(["words", "all"], "words"))
def test_losses_and_gradients_of_unequal_replicas_are_those_of_one_device_and_dropout_is_not(losses):
    environment = {**os.environ, "KERAS_BACKEND": keras.backend.backend()}
    command = [sys.executable, str(LOSSES), *([] if losses == "all" else [losses])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=500)
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found["differences"]) == (16 if losses == "all" else 2)
    for case, of_figures in found["differences"].items():
        for figure, difference in of_figures.items():
            assert difference < 1e-5, (case, figure)
    masks = np.array(found["masks"])
    assert all(set(mask) == {0, 2} for mask in masks)
    agreement = np.array([[np.mean(one == other) for one in masks] for other in masks])
    # Of two independent masks half of the units agree: 0.5, with a standard deviation of 0.025.
    assert np.all(np.abs(agreement - np.eye(4) * 0.5 - 0.5) < 0.12)
