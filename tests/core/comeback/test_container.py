"""What runtimes tell about containers, and what strangers put in its place."""

import json

import pytest

from genericdp.core.comeback.container import DEFAULT_GRACE_S, Container, Inside, container_of, inside
from genericdp.core.device import DeviceNumber
from genericdp.core.status.holdings import Holder

LABELS = {
    "io.kubernetes.pod.namespace": "lab",
    "io.kubernetes.pod.name": "app",
    "io.kubernetes.pod.uid": "uid-1",
    "io.kubernetes.container.name": "main",
}
GRACE = "io.kubernetes.pod.terminationGracePeriod"


def test_a_container_is_known_by_the_labels_of_the_kubelet() -> None:
    found = container_of("1", LABELS, {GRACE: "7"}, 5, runs=False)
    assert found == Container("1", Holder("lab", "app", "main"), "uid-1", 5, 7, runs=False)


@pytest.mark.parametrize("missing", LABELS)
def test_a_container_without_one_of_the_labels_is_of_nobody(missing: str) -> None:
    labels = {name: value for name, value in LABELS.items() if name != missing}
    assert container_of("1", labels, {}, 5, runs=True) is None


@pytest.mark.parametrize("grace", ["", "-1", "1.5", "½", "a", "9" * 20])
def test_a_grace_period_that_is_none_is_the_default(grace: str) -> None:
    found = container_of("1", LABELS, {GRACE: grace}, 5, runs=True)
    assert found is not None
    assert found.grace_s == DEFAULT_GRACE_S


@pytest.mark.parametrize("grace", [2**31 - 1, 2**31, 10**18, 2**63 - 1])
def test_a_grace_period_is_at_most_what_runtimes_can_count(grace: int) -> None:
    found = container_of("1", LABELS, {GRACE: str(grace)}, 5, runs=True)
    assert found is not None
    assert found.grace_s == 2**31 - 1


def test_the_devices_are_those_of_the_oci_spec() -> None:
    devices = [
        {"path": "/dev/a", "type": "c", "major": 188, "minor": 0, "fileMode": 438, "uid": 0, "gid": 20},
        {"path": "/dev/b", "type": "u", "major": 1, "minor": 3},
        {"path": "/dev/c", "type": "b", "major": 8, "minor": 1},
        {"path": "/dev/d", "type": "p"},
    ]
    info = json.dumps({"sandboxID": "s", "pid": 1, "runtimeSpec": {"linux": {"devices": devices}}})
    assert inside(info) == Inside(
        {
            "/dev/a": DeviceNumber("c", 188, 0),
            "/dev/b": DeviceNumber("c", 1, 3),
            "/dev/c": DeviceNumber("b", 8, 1),
        }
    )


def test_of_several_entries_for_a_path_the_first_is_in_the_container() -> None:
    """Containerd appends the devices of the host to those of a privileged container."""
    devices = [
        {"path": "/dev/a", "type": "c", "major": 188, "minor": 1},
        {"path": "/dev/f", "type": "p"},
        {"path": "/dev/a", "type": "c", "major": 188, "minor": 0},
        {"path": "/dev/b", "type": "c", "major": 188, "minor": 1},
        {"path": "/dev/f", "type": "c", "major": 1, "minor": 3},
    ]
    assert inside(json.dumps({"runtimeSpec": {"linux": {"devices": devices}}})) == Inside(
        {"/dev/a": DeviceNumber("c", 188, 1), "/dev/b": DeviceNumber("c", 188, 1)}
    )


def test_the_envs_are_those_of_genericdp_in_the_oci_spec() -> None:
    envs = [
        "PATH=/bin",
        "GENERICDP_EXAMPLE_COM_X=/dev/a,/dev/b",
        "GENERICDP_Y=1=2",
        "GENERICDP_Z",
        "SECRET=s",
    ]
    info = json.dumps({"runtimeSpec": {"process": {"env": envs}, "linux": {}}})
    told = {"GENERICDP_EXAMPLE_COM_X": "/dev/a,/dev/b", "GENERICDP_Y": "1=2", "GENERICDP_Z": ""}
    assert inside(info) == Inside({}, told)


@pytest.mark.parametrize("spec", [{}, {"linux": None}, {"linux": {}}, {"linux": {"devices": None}}])
def test_a_spec_without_devices_has_none(spec: object) -> None:
    assert inside(json.dumps({"runtimeSpec": spec})) == Inside({})


@pytest.mark.parametrize("process", [None, {}, {"env": None}, {"env": []}])
def test_a_process_without_envs_has_none(process: object) -> None:
    assert inside(json.dumps({"runtimeSpec": {"process": process}})) == Inside({})


@pytest.mark.parametrize(
    "info",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"runtimeSpec": null}',
        '{"runtimeSpec": {"linux": 1}}',
        '{"runtimeSpec": {"process": 1}}',
        '{"runtimeSpec": {"process": {"env": 1}}}',
        '{"runtimeSpec": {"process": {"env": [1]}}}',
        '{"runtimeSpec": {"linux": {"devices": [1]}}}',
        '{"runtimeSpec": {"linux": {"devices": [{"path": "/dev/a"}]}}}',
        '{"runtimeSpec": {"linux": {"devices": [{"path": 1, "type": "c", "major": 1, "minor": 1}]}}}',
        '{"runtimeSpec": {"linux": {"devices": [{"path": "/", "type": "c", "major": "x", "minor": 1}]}}}',
        '{"runtimeSpec": {"linux": {"devices": [{"path": "/", "type": "c", "major": 1e999, "minor": 1}]}}}',
        "[" * 100_000,
    ],
)
def test_what_is_not_understood_is_not_taken_for_no_devices(info: str) -> None:
    assert inside(info) is None
