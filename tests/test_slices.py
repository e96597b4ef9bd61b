"""Hosts of a TPU slice: found by a stand-in for Google Cloud's metadata server, computing on their CPUs."""

import dataclasses
import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest
from test_distribution import free_ports
from tiers import on

pytestmark = on("jax")  # slices are joined by JAX
PROGRAM = pathlib.Path(__file__).with_name("distributed_slice.py")


@pytest.fixture
def metadata():
    """Function that starts a metadata server for host `number` of `hosts`; returns its address."""
    servers = []

    def start(number, hosts):
        attributes = {
            "agent-worker-number": str(number),
            "worker-network-endpoints": ",".join(f"name{host}:{host}:127.0.0.1" for host in range(hosts)),
            "tpu-env": "ACCELERATOR_TYPE: 'v5litepod-8'\nTYPE: 'V5LITE_POD'",
        }

        class Answers(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                name = self.path.removeprefix("/computeMetadata/v1/instance/attributes/")
                is_known = name in attributes and self.headers["Metadata-Flavor"] == "Google"
                self.send_response(200 if is_known else 404)
                self.end_headers()
                self.wfile.write(attributes.get(name, "").encode())

            def log_message(self, *arguments):
                pass

        servers.append(http.server.ThreadingHTTPServer(("localhost", 0), Answers))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"localhost:{servers[-1].server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def on_hosts(addresses, kind):
    """What tests/distributed_slice.py prints on each host; they have a minute and a half."""
    environment = {**os.environ, "JAX_FORCE_TPU_INIT": "1", "JAX_PLATFORMS": "cpu"}
    environment |= {"JAX_COORDINATOR_PORT": str(free_ports(1)[0]), "TPU_SKIP_MDS_QUERY": ""}
    running = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), kind],
            env={**environment, "GCE_METADATA_IP": address},
            cwd=PROGRAM.parents[1],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for address in addresses
    ]
    try:
        printed = [process.communicate(timeout=90) for process in running]
    finally:
        for process in running:
            process.kill()
    assert all(output for output, _ in printed), printed
    return [json.loads(output.splitlines()[-1]) for output, _ in printed]


def test_hosts_of_a_slice_join_as_the_metadata_server_says(metadata):
    """They compute together, and a SIGTERM of the second ends both after the same step."""
    found = on_hosts([metadata(0, 2), metadata(1, 2)], "data_parallel")
    assert [host["number"] for host in found] == [0, 1] and {host["count"] for host in found} == {2}
    assert [host["gathered"] for host in found] == [[5, 6], [5, 6]]
    assert [host["chief"] for host in found] == [7, 7]
    assert found[0]["asked"] == found[1]["asked"] == sorted(found[0]["asked"])  # from one step on
    assert found[0]["asked"][-1] and not found[0]["asked"][0]


@pytest.mark.full
def test_a_slice_is_not_trained_by_each_host_alone(metadata):
    (found,) = on_hosts([metadata(1, 4)], "single")
    assert "The TPU slice names 4 hosts, each of which would train alone" in found["error"]


@pytest.mark.full
def test_a_slice_of_one_host_has_the_service_too_and_without_metadata_server_a_tpu_computes_alone(metadata):
    (of_slice,) = on_hosts([metadata(0, 1)], "data_parallel")
    assert (of_slice["joined"], of_slice["count"], of_slice["gathered"]) == (True, 1, [5])
    (alone,) = on_hosts([f"localhost:{free_ports(1)[0]}"], "data_parallel")
    assert (alone["joined"], alone["count"]) == (False, 1)


@dataclasses.dataclass(frozen=True)
class Device:
    """Stands in for a chip of JAX."""

    slice_index: int
    process_index: int
    id: int
    platform: str = "stand-in"
    device_kind: str = "stand-in"


def chips(slices, hosts, of_host):
    """The chips in the order of JAX, which mixes the hosts of a slice."""
    return [
        Device(one, one * hosts + host, (one * of_host + chip) * hosts + host)
        for one in range(slices)
        for chip in range(of_host)
        for host in range(hosts)
    ]


def test_only_the_first_axis_of_a_mesh_crosses_slices_and_hosts():
    import numpy as np
    from jax.experimental import mesh_utils

    from keras_bert_impl.distribution.meshes import by_slice_and_host, check_model_devices

    devices = chips(slices=2, hosts=3, of_host=4)[::-1]
    check_model_devices(devices, 2)
    mesh = np.empty(24, object)
    mesh[:] = by_slice_and_host(devices, 6)
    mesh = mesh.reshape(12, 2)
    assert [copy[0].slice_index for copy in mesh] == [0] * 6 + [1] * 6
    assert [copy[0].process_index for copy in mesh] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert all(copy[0].process_index == copy[1].process_index for copy in mesh)
    hybrid = mesh_utils.create_hybrid_device_mesh((6, 2), (2, 1), by_slice_and_host(devices, 6))
    assert hybrid.tolist() == mesh.tolist()


@pytest.mark.parametrize("model_devices", [8, 3, 1])
def test_a_copy_of_the_model_does_not_extend_over_hosts(model_devices):
    from keras_bert_impl.distribution.meshes import check_model_devices

    with pytest.raises(ValueError, match=f"--model_devices {model_devices} "):
        check_model_devices(chips(slices=2, hosts=3, of_host=4), model_devices)


def test_hosts_with_different_numbers_of_devices_are_refused():
    from keras_bert_impl.distribution.meshes import by_slice_and_host

    devices = sorted(chips(1, 2, 4), key=lambda device: device.process_index)
    for count, numbers in ((7, "4 of host 0, 3 of host 1"), (4, "4 of host 0, 0 of host 1")):
        with pytest.raises(ValueError, match=f"these {count} devices are {numbers}: give a --devices"):
            by_slice_and_host(devices[:count], 2)
