"""Two replicas of Ray Serve answer as `keras-bert serve` does, and nothing is lost where one dies or is replaced."""

import os
import pathlib
import shlex
import subprocess
import sys

import pytest
import yaml
from documentation import ROOT
from made_servers import write_model
from tiers import on

pytestmark = [on("tensorflow"), pytest.mark.full]

# serving/deploy/ray.yaml on a Ray of its own, whose replicas are asked by clients while one is killed and all are
# replaced.
SCRIPT = """
import http.client, json, os, sys, threading, time, urllib.error, urllib.request
import psutil, ray, yaml
from ray import serve
from ray.serve.schema import ServeDeploySchema
from ray.serve._private.api import serve_start
from ray.serve.context import _get_global_client

config = yaml.safe_load(open(sys.argv[1]))
port = config["http_options"]["port"]
ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
serve.start(http_options=config["http_options"])
client = _get_global_client()

def deploy(directory):
    config["applications"][0]["args"]["directory"] = directory
    # Without waiting: Ray itself would give up after a minute, which a busy machine needs.
    client.deploy_apps(ServeDeploySchema.model_validate(config), _blocking=False)

def ask(path, content=None):
    body = content and json.dumps(content).encode()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", body, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except (OSError, http.client.HTTPException):
        return "broken", b""  # in the middle of an answer: no proxy can ask again for it

def replicas():
    found = psutil.process_iter(["cmdline"])
    return [one for one in found if str(one.info["cmdline"]).startswith("['ray::ServeReplica")]

def wait_for(condition):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.2)

deploy(sys.argv[2])
wait_for(lambda: ask("/readyz")[0] == 200 and len(replicas()) == 2)
print("first", *(ask("/v1/models/films:predict", {"instances": [text]}) for text in ("cat", 1)))
ended, found = threading.Event(), []
def client_thread():
    while not ended.is_set():
        found.append((*ask("/v1/models/films:predict", {"instances": ["cat", "a longer text"]}), time.monotonic()))
        time.sleep(0.01)
clients = [threading.Thread(target=client_thread) for _ in range(8)]
[one.start() for one in clients]
time.sleep(2)
before = {one.pid for one in replicas()}
killed = time.monotonic()
replicas()[0].kill()
wait_for(lambda: len({one.pid for one in replicas()} - before) == 1)
deploy(sys.argv[3])
wait_for(lambda: all(b'"version":2' in body for _, body, _ in found[-20:]))
time.sleep(1)
ended.set()
[one.join() for one in clients]
broken = [at - killed for status, _, at in found if status == "broken"]  # each client waited for one answer
print("under load", len(found) > 200, len(broken) <= len(clients), all(0 <= after < 10 for after in broken))
print("answers", {status for status, _, _ in found} - {"broken"}, "broken", broken)
serve.shutdown(); ray.shutdown()
"""


def test_nothing_is_lost_where_a_replica_dies_or_is_replaced(tmp_path):
    pytest.importorskip("ray")
    for version in (1, 2):
        write_model(tmp_path, version)
    config = yaml.safe_load((ROOT / "serving" / "deploy" / "ray.yaml").read_text())
    config["http_options"]["port"] = 8655
    (tmp_path / "ray.yaml").write_text(yaml.safe_dump(config))
    page = (ROOT / "serving" / "deploy" / "README.md").read_text()
    (variables,) = [line for line in page.splitlines() if "RAY_SERVE_ENABLE_HA_PROXY" in line]
    environment = dict(word.split("=", 1) for word in shlex.split(variables)[1:])
    paths = {"PYTHONPATH": str(pathlib.Path(ROOT)), "KERAS_BACKEND": "tensorflow", "RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "ray.yaml"), *(str(tmp_path / name) for name in "12")]
    done = subprocess.run(
        command, env={**os.environ, **environment, **paths}, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert 'first (200, b\'{"predictions":[{"length":3,"version":1}]}\') (400, ' in done.stdout
    assert "under load True True True\nanswers {200} " in done.stdout, done.stdout[-2000:]
