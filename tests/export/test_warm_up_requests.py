"""The requests that TensorFlow Serving answers before those of users."""

import pytest
import tensorflow as tf
from made_exports import make
from tiers import on

import keras_bert_impl as kbi
from keras_bert_impl.export import text_signatures, warm_up_requests
from keras_bert_impl.preprocessing.graphs.wordpiece import WordPiece

pytestmark = on("tensorflow")


def test_a_request_is_encoded_with_the_field_numbers_of_tensorflow_serving():
    log = warm_up_requests.prediction_log("s", {"text": ["ab"]})
    # PredictionLog.predict_log is field 6, PredictLog.request 1, PredictRequest.model_spec 1, its signature_name 3;
    # PredictRequest.inputs is field 2, a map from string 1 to TensorProto 2: DT_STRING 7, one dimension of 1, "ab".
    tensor = b"\x08\x07\x12\x04\x12\x02\x08\x01\x42\x02ab"
    entry = b"\x0a\x04text\x12" + bytes([len(tensor)]) + tensor
    request = b"\x0a\x03\x1a\x01s\x12" + bytes([len(entry)]) + entry
    inner = b"\x0a" + bytes([len(request)]) + request
    assert log == b"\x32" + bytes([len(inner)]) + inner


@pytest.mark.parametrize("kind", [kbi.TextClassifier, kbi.MultipleChoice, kbi.QuestionAnswerer, kbi.MaskedLM])
def test_requests_are_for_inputs_that_the_signatures_take(kind):
    model = make(kind.__name__)
    found = text_signatures.signatures(model, WordPiece(model.tokenizer), 11)
    found.pop("attention", None)  # a person who asks for it can wait for a second
    for name, (_, specs) in found.items():
        texts = kind.asked.signatures[name]
        assert set(texts) == {spec.name for spec in specs}
        for spec in specs:
            assert spec.is_compatible_with(tf.constant(texts[spec.name]))


def test_each_signature_is_asked_in_two_sizes(tmp_path):
    warm_up_requests.write(make("TextClassifier"), tmp_path)
    records = list(tf.data.TFRecordDataset(str(tmp_path / warm_up_requests.FILE)).as_numpy_iterator())
    assert [b"pairs" in record for record in records] == [False, False, True, True]
