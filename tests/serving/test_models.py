"""Each model is loaded once, in its highest version, and answered before a client asks."""

import numpy as np
import pytest
from made_servers import RunningServer, running, write_model
from tiers import on

from keras_bert_serving.models import highest_version, load, warm_up
from keras_bert_serving.servable import SessionOptions

pytestmark = on("tensorflow")

BODY = {"instances": ["cat"]}


@pytest.fixture
def toy(tmp_path):
    write_model(tmp_path / "toy", 1)
    return tmp_path / "toy"


def test_the_highest_version_that_a_client_could_ask_for_and_that_is_whole_is_served(toy):
    write_model(toy.parent, 3)
    (toy.parent / "3").rename(toy / "10")  # 9 by its letters is higher
    (toy / "1").rename(toy / "9")
    for other in (str(2**63), "11", "copy"):
        (toy / other).mkdir()
    (toy / str(2**63) / "saved_model.pb").touch()
    assert highest_version(toy) == (10, toy / "10")
    with running(toy) as server:
        (status,) = server.json("/v1/models/toy")["model_version_status"]
        assert (status["version"], status["state"]) == ("10", "AVAILABLE")
        assert server.json("/v1/models/toy/versions/10:predict", BODY)["predictions"][0]["version"] == 3
        assert server.ask("/v1/models/toy/versions/9:predict", BODY)[0] == 404


def test_models_are_described_with_signatures_and_the_config_beside_them(toy):
    (toy / "1" / "config.json").write_text('{"id2label": {"0": "bad"}}')
    with running(toy) as server:
        (model,) = server.server.models.models
        assert (model.name, model.version, model.metadata) == ("toy", 1, {"id2label": {"0": "bad"}})
        assert model.signatures["add"].inputs["numbers"].shape == (None, 2)
        assert set(model.signatures["serving_default"].outputs) == {"length", "version"}


def test_a_saved_model_without_a_version_directory_is_version_1(toy):
    servable = load("toy", str(toy / "1"), SessionOptions())
    assert servable.version == 1 and servable.signatures


def damage_weights(version):
    data = next((version / "variables").glob("*.data-*"))
    data.write_bytes(data.read_bytes()[:-3])


def test_a_damaged_model_ends_the_start_with_its_place(toy):
    damage_weights(toy / "1")
    with pytest.raises(ValueError, match="toy could not be loaded as model toy"):
        RunningServer({"toy": str(toy)})


def test_a_damaged_model_keeps_no_other_from_being_served(toy, tmp_path):
    write_model(tmp_path / "broken")
    damage_weights(tmp_path / "broken" / "1")
    server = RunningServer({"broken": str(tmp_path / "broken"), "toy": str(toy)})
    try:
        assert server.json("/v1/models/toy:predict", BODY)["predictions"][0]["length"] == 3
        assert server.ask("/readyz") == (200, b"ready, without broken\n")
        for path, body in (("/v1/models/broken:predict", BODY), ("/v1/models/broken", None)):
            status, error = server.error(path, body)
            assert status == 404 and "could not be loaded as model broken" in error
    finally:
        server.stop()


def test_texts_of_two_lengths_warm_each_signature_that_takes_texts(toy):
    servable, asked = load("toy", str(toy), SessionOptions()), []
    run = servable.run
    servable.run = lambda name, inputs: asked.append((name, len(inputs["text"][0]))) or run(name, inputs)
    for signature in servable.signatures.values():
        warm_up(servable, signature)
    assert {name for name, _ in asked} == {"serving_default", "echo", "words", "keep"} and len(asked) == 8
    assert np.unique([length for _, length in asked]).size == 2
