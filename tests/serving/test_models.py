"""Each model is loaded once, in its highest version, and answered before a client asks."""

import numpy as np
import pytest
from made_servers import RunningServer, running, write_model
from tiers import on

from keras_bert_serving.models import ServedModel, highest_version, load, warm_up
from keras_bert_serving.servable import SessionOptions

pytestmark = on("tensorflow")

BODY = {"instances": ["cat"]}


@pytest.fixture
def toy(tmp_path):
    write_model(tmp_path / "toy", 1)
    return tmp_path / "toy"


@pytest.mark.parametrize("number", [2, 10, 2**63 - 1])
def test_the_highest_version_is_served(toy, number):
    write_model(toy.parent, 3)
    (toy.parent / "3").rename(toy / str(number))
    with running(toy) as server:
        (status,) = server.json("/v1/models/toy")["model_version_status"]
        assert (status["version"], status["state"]) == (str(number), "AVAILABLE")
        assert server.json(f"/v1/models/toy/versions/{number}:predict", BODY)["predictions"][0]["version"] == 3
        assert server.ask("/v1/models/toy/versions/1:predict", BODY)[0] == 404


def test_versions_that_no_client_could_ask_for_or_that_are_being_written_are_left_out(toy):
    write_model(toy.parent, 3)
    (toy.parent / "3").rename(toy / str(2**63))
    (toy / "2").mkdir()
    (toy / "copy").mkdir()
    assert highest_version(toy) == (1, toy / "1")


def test_models_are_described_with_signatures_and_the_config_beside_them(toy):
    (toy / "1" / "config.json").write_text('{"id2label": {"0": "bad"}}')
    with running(toy) as server:
        (model,) = server.server.models.models
        assert (model.name, model.version, model.metadata) == ("toy", 1, {"id2label": {"0": "bad"}})
        assert model.signatures["add"].inputs["numbers"].shape == (None, 2)
        assert set(model.signatures["serving_default"].outputs) == {"length", "version"}


def test_a_saved_model_without_a_version_directory_is_version_1(tmp_path):
    write_model(tmp_path, 2)
    with running(tmp_path / "2") as server:
        assert server.json("/v1/models/toy")["model_version_status"][0]["version"] == "1"
        assert server.json("/v1/models/toy:predict", BODY)["predictions"][0]["version"] == 2


def damage_graph(version):
    (version / "saved_model.pb").write_bytes(b"\x0a\xff damaged")


def damage_weights(version):
    data = next((version / "variables").glob("*.data-*"))
    data.write_bytes(data.read_bytes()[:-3])


@pytest.mark.parametrize("damage", [damage_graph, damage_weights])
def test_a_damaged_model_ends_the_start_with_its_place(toy, damage):
    damage(toy / "1")
    with pytest.raises(ValueError, match=r"toy could not be loaded as model toy: .+"):
        RunningServer([ServedModel("toy", str(toy))])


def test_a_damaged_model_keeps_no_other_from_being_served(toy, tmp_path):
    write_model(tmp_path / "broken")
    damage_weights(tmp_path / "broken" / "1")
    server = RunningServer([ServedModel("broken", str(tmp_path / "broken")), ServedModel("toy", str(toy))])
    try:
        assert server.json("/v1/models/toy:predict", BODY)["predictions"][0]["length"] == 3
        assert server.ask("/readyz") == (200, b"ready, without broken\n")
        for path, body in (("/v1/models/broken:predict", BODY), ("/v1/models/broken", None)):
            status, error = server.error(path, body)
            assert status == 404 and "could not be loaded as model broken" in error
    finally:
        server.stop()


def test_a_directory_without_a_model_says_what_is_expected(tmp_path):
    with pytest.raises(ValueError, match=r"could not be loaded as model toy: expected saved_model\.pb, openvino"):
        RunningServer([ServedModel("toy", str(tmp_path))])


def test_texts_of_two_lengths_warm_each_signature_that_takes_texts(toy):
    servable, asked = load(ServedModel("toy", str(toy)), SessionOptions()), []
    run = servable.run
    servable.run = lambda name, inputs: asked.append((name, len(inputs["text"][0]))) or run(name, inputs)
    for signature in servable.signatures.values():
        warm_up(servable, signature)
    assert {name for name, _ in asked} == {"serving_default", "echo", "words", "keep"} and len(asked) == 8
    assert np.unique([length for _, length in asked]).size == 2
