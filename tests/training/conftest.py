"""What the runs in the scripts' tests omit, and prepared data that several tests read."""

import shutil
import types

import keras
import pytest

from keras_bert_impl.callbacks import training_figures
from keras_bert_training import data_preparation, pretraining_report

# What baselines() returns in a run that does not count them.
NO_BASELINES = {
    "next_sentence_majority": 0.5,
    "unigram_masked_lm_accuracy": 0.0,
    "unigram_masked_lm_perplexity": 1.0,
    "bigram_masked_lm_accuracy": 0.0,
    "bigram_masked_lm_perplexity": 1.0,
}


class NoCallback(keras.callbacks.Callback):
    """Replaces the callback that writes for TensorBoard."""

    def __init__(self, *arguments, **options):
        super().__init__()

    def close(self):
        pass


@pytest.fixture(scope="module")
def quick_steps():
    """TensorFlow runs steps as Python does: tracing a graph takes longer than a dozen steps."""
    if keras.backend.backend() != "tensorflow":
        yield
        return
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture(scope="module")
def without_reports():
    """Pre-training runs of a module, those of its fixtures included, count no baselines, draw no curves, write nothing
    for TensorBoard and do not measure the machine: that takes half of the seconds of a run of a dozen steps. The test
    of the quickstart has all of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pretraining_report, "baselines", lambda data: NO_BASELINES)
        patch.setattr(pretraining_report, "curves_of", lambda *_: types.SimpleNamespace(savefig=lambda path, **_: None))
        patch.setattr(pretraining_report, "TensorBoardLog", NoCallback)
        patch.setattr(training_figures, "device_ceiling", lambda _: (1e12, "a test"))
        yield


@pytest.fixture(scope="session")
def prepared_data(tmp_path_factory, text_folder):
    """Function from options of PrepareConfig to a directory with data prepared with them, once for all tests."""
    made = {}

    def prepared(**options):
        key = tuple(sorted(options.items()))
        if key not in made:
            made[key] = tmp_path_factory.mktemp("prepared") / "data"
            vocabulary = {} if "vocab" in options else {"vocabulary_size": 500}
            config = {**vocabulary, "sequence_length": 32, "input": str(text_folder), **options}
            data_preparation.run(data_preparation.PrepareConfig(str(made[key]), **config))
        return made[key]

    return prepared


@pytest.fixture
def prepared_copy(prepared_data, tmp_path):
    """Like `prepared_data`, but returns a copy that the test may damage."""

    def copied(**options):
        return shutil.copytree(prepared_data(**options), tmp_path / "data")

    return copied
