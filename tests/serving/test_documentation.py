"""Runs what docs/server.md shows: the server's command, the requests of curl, and the Python client."""

import json
import pathlib
import re
import shutil
import subprocess

import pytest
import yaml
from conftest import WORDS, revealing_config
from documentation import ROOT, commands, indented_blocks, python_blocks
from google.protobuf import text_format
from made_servers import RunningServer
from tensorflow_serving.config import model_server_config_pb2
from tiers import on

import keras_bert_impl as kbi
from keras_bert_impl.text.tokenizers.rows import sentence_of_cut
from keras_bert_training import runs
from keras_bert_training.cli import main
from keras_bert_training.commands.serve import ServeConfig, parse_models

pytestmark = on("tensorflow")

PAGE = "docs/server.md"


@pytest.fixture(scope="module")
def page():
    return indented_blocks(PAGE)


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """A folder with the checkpoint runs/films/model and the SavedModel films/1, which the page's commands name."""
    folder = tmp_path_factory.mktemp("films")
    tokenizer = kbi.WordPieceTokenizer(WORDS)
    encoder = kbi.BertEncoder(revealing_config(tokenizer, max_length=16))
    classifier = kbi.TextClassifier(encoder, num_classes=2, class_names=["bad", "good"], tokenizer=tokenizer)
    classifier.save_pretrained(folder / "runs" / "films" / "model")
    kbi.export.export_saved_model(classifier, folder / "films" / "1")
    return folder


@pytest.fixture(scope="module")
def server(films, page):
    """The server of the page's command, with the exported model, on free ports."""
    (options,) = [words[1:] for block in page for words in commands(block, "keras-bert") if words[0] == "serve"]
    config = runs.parse(ServeConfig, options)
    assert config.model == ["films=runs/films/model"] and (config.port, config.grpc_port) == (8501, 8500)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(films)
        config.model = ["films=films"]
        server = RunningServer(parse_models(config.model))
        yield server
        server.stop()


def test_the_requests_of_curl_are_answered(server, page):
    if shutil.which("curl") is None:
        pytest.skip("the requests are sent by curl")
    asked = [block for block in page if block.startswith("curl")]
    answers = []
    for block in asked:
        command = block.replace("localhost:8501", f"localhost:{server.server.port}").replace("curl", "curl -s", 1)
        answers.append(json.loads(subprocess.run(command, shell=True, capture_output=True, check=True).stdout))
    shown, of_cut = [block for block in page if block.startswith('{"predictions"')]
    names = set(json.loads(shown.replace(", ...]", "]"))["predictions"][0])
    rows, columns = answers
    warning = sentence_of_cut(1, 2, 128).partition(":")[0] + ": ..."
    assert json.loads(of_cut.replace("[...]", "[]"))["warnings"] == [warning]
    assert len(rows["predictions"]) == 2 and set(rows["predictions"][0]) == names == set(columns["outputs"])


def test_the_client_of_the_page_is_answered(server, capsys):
    (block,) = python_blocks(PAGE)
    exec(compile(block.replace("localhost:8500", f"localhost:{server.server.grpc_port}"), PAGE, "exec"), {})
    assert "good" in (printed := capsys.readouterr().out) or "bad" in printed


@pytest.mark.full
def test_the_commands_that_export_new_versions_write_them(films, page, monkeypatch):
    exports = [words for block in page for words in commands(block, "keras-bert") if words[0] == "export"]
    monkeypatch.chdir(films)
    for words, written in zip(exports, ("2/saved_model.pb", "3/openvino/openvino_model.xml"), strict=True):
        main(words)
        assert pathlib.Path("films", written).is_file()


def test_the_configuration_for_tensorflow_serving_is_read_by_its_message_and_that_of_kubernetes():
    deploy, config = ROOT / "serving" / "deploy", model_server_config_pb2.ModelServerConfig()
    text_format.Parse((deploy / "models.config").read_text(), config)
    (model,) = config.model_config_list.config
    assert (model.name, model.base_path) == ("films", "/models/films")
    copies = {path.name: path.read_text() for path in (deploy / "kubernetes" / "configs").iterdir()}
    assert copies == {path.name: path.read_text() for path in deploy.glob("*.config")}


def test_the_manifests_name_each_other():
    deploy, found = ROOT / "serving" / "deploy", {}
    manifests = {path.name: path.read_text() for path in (deploy / "kubernetes").glob("*.yaml")}
    for text in manifests.values():
        found |= {(one["kind"], one.get("metadata", {}).get("name")): one for one in yaml.safe_load_all(text)}
    pods = found["Deployment", "films"]["spec"]
    assert found["HorizontalPodAutoscaler", "films"]["spec"]["scaleTargetRef"]["name"] == "films"
    ports = {port["name"] for port in pods["template"]["spec"]["containers"][0]["ports"]}
    for name in ("films", "films-grpc"):
        service = found["Service", name]["spec"]
        assert service["selector"] == pods["selector"]["matchLabels"] == pods["template"]["metadata"]["labels"]
        assert {port["targetPort"] for port in service["ports"]} <= ports
    listed = found["Kustomization", None]["resources"]
    assert {*listed, "kustomization.yaml"} == set(manifests)
    compose = yaml.safe_load((deploy / "compose.yaml").read_text())["services"]["serving"]
    [config] = [volume.split(":")[0] for volume in compose["volumes"] if ":/config" in volume]
    assert (ROOT / config / "models.config").is_file()  # its paths begin at the root of a clone
    assert compose["image"] == pods["template"]["spec"]["containers"][0]["image"]


def test_the_files_for_keras_bert_serve_give_it_options_that_it_has():
    deploy = ROOT / "serving" / "deploy" / "keras-bert"
    deployment, service = yaml.safe_load_all((deploy / "kubernetes.yaml").read_text())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"] == labels
    assert {port["targetPort"] for port in service["spec"]["ports"]} == {port["name"] for port in container["ports"]}
    image = (deploy / "Dockerfile").read_text()
    given = {name: json.loads(re.search(f"^{name} (.*)$", image, re.M)[1]) for name in ("ENTRYPOINT", "CMD")}
    unit = re.search("^ExecStart=(.*)$", (deploy / "keras-bert.service").read_text(), re.M)[1].split()
    for command in (given["ENTRYPOINT"] + given["CMD"], given["ENTRYPOINT"] + container["args"], unit):
        assert command[0].endswith("keras-bert") and command[1] == "serve"
        parsed = runs.parse(ServeConfig, command[2:])
        assert parsed.model[0].startswith("films=/") and parsed.port == 8501 and parsed.grpc_port == 8500
