"""What the kubelet's checkpoint says of who got what."""

import base64
import errno
import json
import os
from pathlib import Path

import pytest

from genericdp.core.comeback.judge import Saved
from genericdp.core.memory.held import Named
from genericdp.core.rules.name import cdi_kind
from genericdp.errors import GenericdpError
from genericdp.kubelet.api import deviceplugin as api
from genericdp.kubelet.checkpoint import LONGEST, NAME, Checkpoint, answers_in, read
from genericdp.simulator.devices import checkpoint as simulated

HINT = "until it can be read, what only an init container may hold is not given to other pods"

#: The beginning of an answer that names a CDI device.
CUT_SHORT = base64.b64encode(b"\x2a\x40\x0a\x3e%s=" % cdi_kind("example.com/a").encode()).decode()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The device plugin directory of a kubelet."""
    found = tmp_path / "device-plugins"
    found.mkdir()
    return found


def test_every_id_of_every_container_and_resource_counts(directory: Path) -> None:
    given: dict[tuple[str, str], dict[int, tuple[str, ...]]] = {
        ("uid", "init"): {-1: ("a",)},
        ("uid", "main"): {0: ("b", "c"), 1: ("d",)},
        ("other", "main"): {-1: ("e",)},
    }
    entries = [
        simulated.PodDevices(pod, name, f"example.com/{name}", ids, api.ContainerAllocateResponse())
        for (pod, name), ids in given.items()
    ]
    simulated.write(directory, simulated.render(entries, {"example.com/x": ["not given"]}))
    assert simulated.NAME == NAME
    pairs = {("init", "a"), ("main", "b"), ("main", "c"), ("main", "d"), ("main", "e")}
    found = Checkpoint(frozenset((f"example.com/{name}", id_) for name, id_ in pairs))
    assert read(str(directory)) == read(f"{directory}/") == found
    assert found.ids == frozenset("abcde")


def test_before_kubernetes_1_20_the_ids_were_a_list(directory: Path) -> None:
    (directory / NAME).write_text(
        '{"Data": {"PodDeviceEntries": [{"PodUID": "uid", "ResourceName": "x", "DeviceIDs": ["a", "b"]}]}}'
    )
    assert read(str(directory)).given == {("x", "a"), ("x", "b")}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"Data": {"PodDeviceEntries": [1]}}',
        '{"Data": {"PodDeviceEntries": [{"ResourceName": "x", "DeviceIDs": 7}]}}',
        '{"Data": {"PodDeviceEntries": [{"ResourceName": "x", "DeviceIDs": [{}]}]}}',
        '{"Data": {"PodDeviceEntries": [{"ResourceName": "x", "DeviceIDs": [7]}]}}',
        '{"Data": {"PodDeviceEntries": [{"ResourceName": 7, "DeviceIDs": ["a"]}]}}',
        '{"Data": {"PodDeviceEntries": [{"DeviceIDs": ["a"]}]}}',
        "[" * 100_000,
    ],
)
def test_what_has_another_format_is_an_error_and_not_an_empty_checkpoint(directory: Path, text: str) -> None:
    (directory / NAME).write_text(text)
    with pytest.raises(GenericdpError) as caught:
        read(str(directory))
    assert str(caught.value) == f"cannot read '{directory}/{NAME}': it has another format"
    assert caught.value.hint == HINT


@pytest.mark.parametrize("text", [None, '{"Data": {"PodDeviceEntries": null}}'])
def test_a_kubelet_that_has_given_nothing_may_have_no_checkpoint(directory: Path, text: str | None) -> None:
    if text is not None:
        (directory / NAME).write_text(text)
    assert read(str(directory)) == Checkpoint()


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.EMFILE, "raise the limit of open files: LimitNOFILE= of the unit, or 'ulimit -n'"),
        (errno.EACCES, HINT),
    ],
)
def test_a_checkpoint_that_cannot_be_opened_is_an_error(
    directory: Path, monkeypatch: pytest.MonkeyPatch, number: int, hint: str
) -> None:
    """Other pods would get what only an init container has."""
    (directory / NAME).write_text('{"Data": {"PodDeviceEntries": null}}')

    def fail(path: str, flags: int) -> int:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr("genericdp.kubelet.checkpoint.os.open", fail)
    with pytest.raises(GenericdpError) as caught:
        read(str(directory))
    assert str(caught.value) == f"cannot read '{directory}/{NAME}': {os.strerror(number)}"
    assert caught.value.hint == hint


def test_a_saved_answer_says_what_a_container_gets_again(directory: Path) -> None:
    spec = api.DeviceSpec(container_path="/dev/a", host_path="/dev/genericdp/a", permissions="rw")
    answer = api.ContainerAllocateResponse(devices=[spec], cdi_devices=[api.CDIDevice(name="v.example/c=n")])
    entry = simulated.PodDevices("uid", "main", "example.com/a", {-1: ("a",)}, answer)
    simulated.write(directory, simulated.render([entry], {}))
    assert answers_in(str(directory)) == {
        ("uid", "main", "example.com/a"): Saved({"/dev/a": "/dev/genericdp/a"}, ("v.example/c=n",))
    }


def test_the_names_in_an_answer_by_cdi_are_read_with_the_ids_of_its_container(directory: Path) -> None:
    link = api.DeviceSpec(container_path="/dev/b", host_path="/dev/genericdp/b", permissions="rw")
    other, its_own = api.CDIDevice(name="v.example/c=n"), api.CDIDevice(name="example.com/own=c")
    mine = [api.CDIDevice(name=f"example.com/tty={name}") for name in ("a1", "a2", "a1:hash")]
    entries = [
        simulated.PodDevices("uid", name, f"example.com/{name}", ids, answer)
        for name, ids, answer in (
            ("tty", {0: ("a2",), 1: ("a1",)}, api.ContainerAllocateResponse(cdi_devices=[*mine, other])),
            ("bus", {-1: ("b",)}, api.ContainerAllocateResponse(devices=[link], cdi_devices=[other])),
            # A rule may name CDI devices of its own kind.
            ("own", {-1: ("c",)}, api.ContainerAllocateResponse(devices=[link], cdi_devices=[its_own])),
        )
    ]
    simulated.write(directory, simulated.render(entries, {}))
    names = ("example.com/tty=a1", "example.com/tty=a2", "example.com/tty=a1:hash", "v.example/c=n")
    assert read(str(directory)) == Checkpoint(
        frozenset(
            {
                ("example.com/tty", "a1"),
                ("example.com/tty", "a2"),
                ("example.com/bus", "b"),
                ("example.com/own", "c"),
            }
        ),
        (Named("example.com/tty", frozenset({"a1", "a2"}), names),),
    )


@pytest.mark.parametrize("answer", ["", "%", "/w==", CUT_SHORT, "null", 1, None, ["a"]])
def test_an_answer_that_cannot_be_read_is_not_known(directory: Path, answer: object) -> None:
    names = {"PodUID": "uid", "ContainerName": "main", "ResourceName": "example.com/a"}
    entry = {**names, "DeviceIDs": {"-1": ["a"]}, "AllocResp": answer}
    text = json.dumps({"Data": {"PodDeviceEntries": [entry]}})
    (directory / NAME).write_text(text)
    assert read(str(directory)) == Checkpoint(frozenset({("example.com/a", "a")}))
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
            path.write_text('{"Data": {"PodDeviceEntries": [{"ResourceName": "x", "DeviceIDs": ["a"]}]}}')
            assert read(str(directory)).ids == {"a"}
            with path.open("a") as file:
                file.write(" " * LONGEST)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(GenericdpError) as caught:
        read(str(directory))
    assert len(os.listdir("/proc/self/fd")) == len(before)
    why = "Is a directory" if what == "directory" else f"it is not a regular file of at most {LONGEST} bytes"
    assert str(caught.value) == f"cannot read '{path}': {why}"


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
