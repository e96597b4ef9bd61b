"""OpenVINO and ONNX exports answer as the SavedModel of the same model does."""

import json

import numpy as np
import pytest
from made_exports import make
from made_servers import RunningServer, running
from tiers import on

from keras_bert_impl.export import export_onnx, export_openvino, export_saved_model
from keras_bert_impl.json_files import write_json
from keras_bert_serving.row_servable import RowServable
from keras_bert_serving.servable import SessionOptions

FORMATS = {"onnx": export_onnx, "openvino": export_openvino, "saved_model": export_saved_model}
ROWS = ("onnx", "openvino")
TEXTS = ["The cat sat on the mat.", "It slept.", "", "the mat the mat the mat the mat the mat the mat"]
PREDICT = "/v1/models/{}:predict"


def classifier(**arguments):
    """A classifier that gives the texts different labels: the mean of each class's logits over them is 0."""
    model = make("TextClassifier", class_names=["red", "green", "blue"], **arguments)
    bias = next(weight for weight in reversed(model.weights) if weight.shape == (3,))
    bias.assign(bias - model.predict(TEXTS, verbose=0).mean(axis=0))
    return model


def write_formats(model, directory, formats=tuple(FORMATS)):
    for name in formats:
        FORMATS[name](model, directory / name / "1")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server of one classifier in three formats, and of another with several labels a text in two."""
    directory = tmp_path_factory.mktemp("served")
    write_formats(classifier(), directory / "colour")
    write_formats(classifier(multi_label=True), directory / "several", ("onnx", "saved_model"))
    models = {f"{path.parent.name}-{path.name}": str(path) for path in sorted(directory.glob("*/*"))}
    server = RunningServer(models)
    yield server
    server.stop()


def check_equal(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        for name, value in other.items():
            if name in ("logits", "probabilities"):
                np.testing.assert_allclose(one[name], value, atol=1e-4)
            else:
                assert one[name] == value


@on("torch")  # it writes ONNX files
def test_texts_and_pairs_get_the_answers_of_the_model(tmp_path):
    model = classifier()
    write_formats(model, tmp_path, ["onnx"])
    pairs = [{"text": text, "text_pair": "the cat"} for text in TEXTS]
    with running(tmp_path / "onnx", "colour") as server:
        address = PREDICT.format("colour")
        found = server.json(address, {"instances": TEXTS})["predictions"]
        of_pairs = server.json(address, {"signature_name": "pairs", "instances": pairs})["predictions"]
    assert [row["label"] for row in found] == [labels[0].label for labels in model.classify(TEXTS)]
    np.testing.assert_allclose([row["logits"] for row in found], model.predict(TEXTS, verbose=0), atol=1e-4)
    expected = model.predict((TEXTS, ["the cat"] * len(TEXTS)), verbose=0)
    np.testing.assert_allclose([row["logits"] for row in of_pairs], expected, atol=1e-4)


@pytest.mark.full
@on("tensorflow")
@pytest.mark.parametrize("format_name", ROWS)
def test_texts_and_pairs_get_the_answers_of_the_saved_model(served, format_name):
    pairs = {"signature_name": "pairs", "instances": [{"text": text, "text_pair": "the cat"} for text in TEXTS]}
    for body in ({"instances": TEXTS}, pairs):
        expected = served.json(PREDICT.format("colour-saved_model"), body)["predictions"]
        assert len({row["label"] for row in expected}) > 1
        check_equal(served.json(PREDICT.format(f"colour-{format_name}"), body)["predictions"], expected)
    body = {"instances": [{"b64": "/w=="}]}
    status, error = served.error(PREDICT.format(f"colour-{format_name}"), body)
    assert status == 400 and "text that is not valid UTF-8" in error


@pytest.mark.full
@on("tensorflow")
def test_the_names_of_several_labels_are_those_of_the_saved_model(served):
    body = {"instances": TEXTS}
    expected = served.json(PREDICT.format("several-saved_model"), body)["predictions"]
    assert len({len(row["labels"]) for row in expected}) == 1  # empty strings fill the rows up
    assert len({tuple(row["labels"]) for row in expected}) > 1
    check_equal(served.json(PREDICT.format("several-onnx"), body)["predictions"], expected)


@pytest.mark.full
@on("tensorflow")
@pytest.mark.parametrize("format_name", ROWS)
def test_metadata_describe_inputs_and_outputs_as_those_of_the_saved_model_do(served, format_name):
    def described(name):
        found = served.json(f"/v1/models/colour-{name}/metadata")["metadata"]["signature_def"]["signature_def"]
        found.pop("attention", None)
        return {
            signature: {
                f"{side} {key}": (array["dtype"], json.dumps(array["tensor_shape"]["dim"]))
                for side in ("inputs", "outputs")
                for key, array in definition[side].items()
            }
            for signature, definition in found.items()
        }

    assert described(format_name) == described("saved_model")


@on("torch")  # so that TensorFlow need not start
def test_a_kind_of_model_that_needs_the_graph_is_refused_with_the_format_that_serves_it(tmp_path):
    write_json(tmp_path / "config.json", {"export": {"model": "QuestionAnswerer", "format": "onnx"}})
    with pytest.raises(ValueError, match="--format saved_model"):
        RowServable("one", 1, tmp_path, SessionOptions())
