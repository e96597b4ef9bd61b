import inspect
import warnings

import pytest
from tiers import once

import keras_bert_impl as kbi

pytestmark = once

# Of 12, 16 and 11 tokens with [CLS] and [SEP], as many as the model takes.
TEXTS = ["the cat sat on a mat in rain . the", "red blue " * 7, "the cat sat on a mat in rain ."]
LABELS = [0, 1, 0]
CALLS = {
    "fit": lambda model: model.fit(TEXTS, LABELS, batch_size=1, epochs=2, verbose=0),
    "fit with validation data": lambda model: model.fit(["rain"], [0], validation_data=(TEXTS, LABELS), verbose=0),
    "evaluate": lambda model: model.evaluate(TEXTS, LABELS, verbose=0),
    "predict": lambda model: model.predict(TEXTS, batch_size=1, verbose=0),
    "classify": lambda model: model.classify(TEXTS),
    "rows": lambda model: model.rows(TEXTS),
}


@pytest.fixture
def classifier(small_tokenizer):
    config = kbi.BertConfig(29, hidden_size=6, num_layers=1, num_heads=2, intermediate_size=7, max_length=11)
    return kbi.TextClassifier(kbi.BertEncoder(config), 2, tokenizer=small_tokenizer)


@pytest.mark.parametrize("name", CALLS)
def test_the_warning_of_cut_texts_names_the_line_of_the_call(classifier, name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CALLS[name](classifier)
    (warning,) = [warning for warning in caught if "were truncated" in str(warning.message)]
    assert str(warning.message).startswith("2 of 3 texts have more than 11 tokens")
    assert (warning.filename, warning.lineno) == (__file__, inspect.getsourcelines(CALLS[name])[1])
