"""What the kubelet's checkpoint says of who got what."""

import base64
import json
import os
from pathlib import Path

import pytest

from genericdp.core.comeback.judge import Saved
from genericdp.kubelet.api import deviceplugin as api
from genericdp.kubelet.checkpoint import LONGEST, NAME, answers_in, ids_in
from genericdp.simulator.devices import checkpoint as simulated


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The device plugin directory of a kubelet that has one pod, `uid`."""
    (tmp_path / "pods" / "uid").mkdir(parents=True)
    found = tmp_path / "device-plugins"
    found.mkdir()
    return found


def test_every_id_of_every_container_and_resource_of_an_existing_pod_counts(directory: Path) -> None:
    given: dict[tuple[str, str], dict[int, tuple[str, ...]]] = {
        ("uid", "init"): {-1: ("a",)},
        ("uid", "main"): {0: ("b", "c"), 1: ("d",)},
        ("gone", "main"): {-1: ("e",)},
    }
    entries = [
        simulated.PodDevices(pod, name, f"example.com/{name}", ids, api.ContainerAllocateResponse())
        for (pod, name), ids in given.items()
    ]
    simulated.write(directory, simulated.render(entries, {"example.com/x": ["not given"]}))
    assert simulated.NAME == NAME
    assert ids_in(str(directory)) == ids_in(f"{directory}/") == {"a", "b", "c", "d"}


def test_before_kubernetes_1_20_the_ids_were_a_list(directory: Path) -> None:
    (directory / NAME).write_text(
        '{"Data": {"PodDeviceEntries": [{"PodUID": "uid", "DeviceIDs": ["a", "b"]}]}}'
    )
    assert ids_in(str(directory)) == {"a", "b"}


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "[]",
        "{}",
        '{"Data": {"PodDeviceEntries": null}}',
        '{"Data": {"PodDeviceEntries": [1]}}',
        '{"Data": {"PodDeviceEntries": [{"PodUID": "uid", "DeviceIDs": 7}]}}',
        '{"Data": {"PodDeviceEntries": [{"PodUID": {}, "DeviceIDs": ["a"]}]}}',
        "[" * 100_000,
    ],
)
def test_what_cannot_be_read_says_nothing(directory: Path, text: str | None) -> None:
    if text is not None:
        (directory / NAME).write_text(text)
    assert ids_in(str(directory)) == frozenset()


def test_a_saved_answer_says_what_a_container_gets_again(directory: Path) -> None:
    spec = api.DeviceSpec(container_path="/dev/a", host_path="/dev/genericdp/a", permissions="rw")
    answer = api.ContainerAllocateResponse(devices=[spec], cdi_devices=[api.CDIDevice(name="v.example/c=n")])
    entry = simulated.PodDevices("uid", "main", "example.com/a", {-1: ("a",)}, answer)
    simulated.write(directory, simulated.render([entry], {}))
    assert answers_in(str(directory)) == {
        ("uid", "main", "example.com/a"): Saved({"/dev/a": "/dev/genericdp/a"}, ("v.example/c=n",))
    }


@pytest.mark.parametrize("answer", ["", "%", "/w==", "null", 1, None, ["a"]])
def test_an_answer_that_cannot_be_read_is_not_known(directory: Path, answer: object) -> None:
    entry = {"PodUID": "uid", "ContainerName": "main", "ResourceName": "example.com/a", "AllocResp": answer}
    text = json.dumps({"Data": {"PodDeviceEntries": [entry]}})
    (directory / NAME).write_text(text)
    assert answers_in(str(directory)) in ({}, {("uid", "main", "example.com/a"): Saved({})})


@pytest.mark.parametrize("what", ["pipe", "directory", "long file"])
def test_what_is_not_a_file_of_reasonable_length_is_not_read(directory: Path, what: str) -> None:
    """A pipe would be waited for, and a longer file would take seconds."""
    path = directory / NAME
    match what:
        case "pipe":
            os.mkfifo(path)
        case "directory":
            path.mkdir()
        case _:
            path.write_text('{"Data": {"PodDeviceEntries": [{"PodUID": "uid", "DeviceIDs": ["a"]}]}}')
            assert ids_in(str(directory)) == {"a"}
            with path.open("a") as file:
                file.write(" " * LONGEST)
    assert ids_in(str(directory)) == frozenset()


def test_an_answer_of_another_plugin_that_cannot_be_decoded_hides_no_other(directory: Path) -> None:
    link = api.DeviceSpec(container_path="/dev/a", host_path="/dev/genericdp/a", permissions="rw")
    entries = [
        simulated.PodDevices("uid", name, "example.com/a", {-1: (name,)}, answer)
        for name, answer in (
            ("other", api.ContainerAllocateResponse(annotations={"a": "b"})),
            ("main", api.ContainerAllocateResponse(devices=[link])),
        )
    ]
    simulated.write(directory, simulated.render(entries, {}))
    document = json.loads((directory / NAME).read_text())
    # The kubelet does not check that what a plugin says is UTF-8.
    document["Data"]["PodDeviceEntries"][0]["AllocResp"] = base64.b64encode(b"\x22\x02\x0a\x00\xff").decode()
    (directory / NAME).write_text(json.dumps(document))
    assert answers_in(str(directory)) == {
        ("uid", "main", "example.com/a"): Saved({"/dev/a": "/dev/genericdp/a"})
    }
