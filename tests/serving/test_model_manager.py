"""Versions come and go while requests are answered; what is damaged changes nothing."""

import pathlib
import shutil
import threading
import time

import numpy as np
import pytest
from made_servers import RunningServer, running, write_model, write_requests
from tiers import on

from keras_bert_impl.serving.versions import ServedModel, versions_in

pytestmark = on("tensorflow")

PREDICT = "/v1/models/toy:predict"
BODY = {"instances": ["cat"]}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A directory with the versions 1 and 2."""
    directory = tmp_path_factory.mktemp("written")
    for version in (1, 2):
        write_model(directory, version)
    return directory


@pytest.fixture
def toy(written, tmp_path):
    """A directory with version 1 alone."""
    shutil.copytree(written / "1", tmp_path / "toy" / "1")
    return tmp_path / "toy"


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def version_of(server):
    return server.json(PREDICT, BODY)["predictions"][0]["version"]


def states(server):
    found = server.json("/v1/models/toy")["model_version_status"]
    return {one["version"]: (one["state"], one["status"]["error_code"]) for one in found}


def test_a_new_version_replaces_the_old_one_without_a_request_lost(toy, written):
    answers, failures, stop = set(), [], threading.Event()

    def ask():
        while not stop.is_set():
            status, body = server.ask(PREDICT, BODY)
            (answers.add if status == 200 else failures.append)(body)

    with running(toy) as server:
        clients = [threading.Thread(target=ask) for _ in range(4)]
        for client in clients:
            client.start()
        shutil.copytree(written / "2", toy / "2")
        wait_for(lambda: states(server) == {"2": ("AVAILABLE", "OK"), "1": ("END", "OK")})
        time.sleep(0.1)
        stop.set()
        for client in clients:
            client.join()
        assert version_of(server) == 2 and failures == [] and len(answers) == 2
        assert server.ask("/v1/models/toy/versions/1:predict", BODY)[0] == 404


def test_removing_a_version_brings_the_one_before_it_back(toy, written):
    """The documented way to go back."""
    with running(toy) as server:
        shutil.copytree(written / "2", toy / "2")
        wait_for(lambda: states(server) == {"2": ("AVAILABLE", "OK"), "1": ("END", "OK")})
        shutil.rmtree(toy / "2")
        wait_for(lambda: states(server) == {"2": ("END", "OK"), "1": ("AVAILABLE", "OK")})
        assert version_of(server) == 1
        shutil.copytree(written / "2", toy / "2")
        wait_for(lambda: states(server)["2"] == ("AVAILABLE", "OK"))
        assert version_of(server) == 2


def test_a_version_that_no_client_could_ask_for_is_left_out(toy, written):
    shutil.copytree(written / "2", toy / str(2**63))
    assert list(versions_in(toy)) == [1]


def damage_graph(version):
    (version / "saved_model.pb").write_bytes(b"\x0a\xff damaged")


def damage_weights(version):
    data = next((version / "variables").glob("*.data-*"))
    data.write_bytes(data.read_bytes()[:-3])


@pytest.mark.parametrize("damage", [damage_graph, damage_weights])
def test_a_damaged_version_is_refused_while_the_old_one_goes_on_and_is_tried_again_when_mended(toy, written, damage):
    with running(toy) as server:
        shutil.copytree(written / "2", toy.parent / "2")
        damage(toy.parent / "2")
        (toy.parent / "2").rename(toy / "2")
        wait_for(lambda: states(server).get("2", ("", ""))[0] == "END")
        assert states(server)["2"][1] == "UNKNOWN" and version_of(server) == 1
        assert server.ask("/readyz")[0] == 200
        assert b'keras_bert_failed_loads_total{model="toy"} 1.0' in server.ask("/metrics")[1]
        shutil.rmtree(toy / "2")
        shutil.copytree(written / "2", toy / "2")
        wait_for(lambda: version_of(server) == 2)


def test_a_version_that_cannot_answer_its_own_warm_up_requests_is_refused(toy, written):
    shutil.copytree(written / "2", toy.parent / "2")
    write_requests(toy.parent / "2", ["boom"])
    with running(toy) as server:
        (toy.parent / "2").rename(toy / "2")
        wait_for(lambda: states(server).get("2", ("", ""))[0] == "END")
        assert version_of(server) == 1


def test_a_request_keeps_its_version_until_it_is_answered(toy, written):
    with running(toy) as server:
        manager = server.server.manager
        with manager.using("toy") as servable:
            shutil.copytree(written / "2", toy / "2")
            wait_for(lambda: states(server)["1"][0] == "UNLOADING")
            assert servable.run("echo", {"text": np.array([b"a"], object)})["echo"] == [b"a"]
        assert states(server)["1"][0] == "END"


def test_models_are_described_with_signatures_and_the_config_beside_them(toy):
    (toy / "1" / "config.json").write_text('{"id2label": {"0": "bad"}}')
    with running(toy) as server:
        (model,) = server.server.manager.models
    assert (model.name, model.version, model.metadata) == ("toy", 1, {"id2label": {"0": "bad"}})
    assert model.signatures["add"].inputs["numbers"].shape == (None, 2)
    assert set(model.signatures["serving_default"].outputs) == {"length", "version"}


def test_several_versions_are_served_if_that_is_asked_for(written):
    server = RunningServer([ServedModel("all", str(written), latest=0), ServedModel("one", str(written), only=(1,))])
    try:
        for path, version in (("all", 2), ("one", 1), ("all/versions/1", 1)):
            assert server.json(f"/v1/models/{path}:predict", BODY)["predictions"][0]["version"] == version
        described = {model.name: (model.version, model.versions) for model in server.server.manager.models}
        assert described == {"all": (2, (1, 2)), "one": (1, (1,))}
    finally:
        server.stop()


def test_a_saved_model_without_a_version_directory_is_version_1(written):
    with running(written / "2") as server:
        assert states(server) == {"1": ("AVAILABLE", "OK")} and version_of(server) == 2


@pytest.mark.parametrize("content", ["empty", "damaged"])
def test_a_server_does_not_start_without_any_version(tmp_path, content):
    if content == "damaged":
        (tmp_path / "1").mkdir()
        damage_graph(tmp_path / "1")
    with pytest.raises(ValueError, match=r"no version of model toy that can be loaded: (expected|version 1: \w+)"):
        RunningServer([ServedModel("toy", str(pathlib.Path(tmp_path)))])
