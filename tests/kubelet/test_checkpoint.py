"""What the kubelet's checkpoint says of who got what."""

import asyncio
import base64
import errno
import json
import os
from pathlib import Path

import pytest

from genericdp.core.comeback.judge import Saved
from genericdp.core.memory.answer import Named
from genericdp.core.rules.name import cdi_kind
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError
from genericdp.kubelet import deadline
from genericdp.kubelet.api import deviceplugin as api
from genericdp.kubelet.checkpoint import LONGEST, NAME, Checkpoint, answers_in, names_holders, read
from genericdp.simulator.devices import checkpoint as simulated

LINKS = "/dev/genericdp"

HINT = "until it can be read, what only an init container may hold is not given to other pods"

#: The beginning of an answer that names a CDI device.
CUT_SHORT = base64.b64encode(b"\x2a\x40\x0a\x3e%s=" % cdi_kind("example.com/a").encode()).decode()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The device plugin directory of a kubelet."""
    found = tmp_path / "device-plugins"
    found.mkdir()
    return found


async def test_every_id_of_every_container_and_resource_counts(directory: Path) -> None:
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
    assert await read(str(directory), LINKS) == await read(f"{directory}/", LINKS) == found
    assert found.ids == frozenset("abcde")


async def test_before_kubernetes_1_20_the_ids_were_a_list(directory: Path) -> None:
    (directory / NAME).write_text(
        '{"Data": {"PodDeviceEntries": [{"PodUID": "uid", "ResourceName": "x", "DeviceIDs": ["a", "b"]}]}}'
    )
    assert (await read(str(directory), LINKS)).given == {("x", "a"), ("x", "b")}


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
        '{"Data": {"PodDeviceEntries": []}} {}',
        "[" * 100_000,
    ],
)
async def test_what_has_another_format_is_an_error_and_not_an_empty_checkpoint(
    directory: Path, text: str
) -> None:
    (directory / NAME).write_text(text)
    with pytest.raises(GenericdpError) as caught:
        await read(str(directory), LINKS)
    assert str(caught.value) == f"cannot read '{directory}/{NAME}': it has another format"
    assert caught.value.hint == HINT


@pytest.mark.parametrize("torn", [1, 40, -1, -3])
async def test_a_checkpoint_that_is_cut_off_is_an_error(directory: Path, torn: int) -> None:
    """Also if it has all entries."""
    simulated.write(directory, simulated.render([an_entry("a")], {"example.com/a": ["a", "b"]}))
    assert (await read(str(directory), LINKS)).ids == {"a"}
    path = directory / NAME
    path.write_bytes(path.read_bytes()[:torn])
    with pytest.raises(GenericdpError, match="it has another format"):
        await read(str(directory), LINKS)
    assert await answers_in(str(directory), {"example.com/a"}) == {}


def by_cdi(resource: str, envs: dict[str, str]) -> simulated.PodDevices:
    """An answer that names a CDI device of the kind of the resource."""
    answer = api.ContainerAllocateResponse(cdi_devices=[api.CDIDevice(name=f"{resource}=0")], envs=envs)
    return simulated.PodDevices("uid", "main", resource, {-1: ("0",)}, answer)


def an_entry(id_: str, *, links: str = LINKS) -> simulated.PodDevices:
    """A container of a pod of its own that has one device, by its link."""
    spec = api.DeviceSpec(container_path="/dev/a", host_path=f"{links}/{id_}", permissions="rw")
    answer = api.ContainerAllocateResponse(devices=[spec])
    return simulated.PodDevices(id_, "main", "example.com/a", {-1: (id_,)}, answer)


async def test_everything_else_has_its_turn_while_a_checkpoint_is_read(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between any two entries, and between any two resources in the rest, once the time of a turn is up."""
    monkeypatch.setattr(deadline, "TURN_S", -1.0)
    ids = [f"a{n}" for n in range(100)]
    registered = {f"example.com/r{n}": ids for n in range(50)}
    simulated.write(directory, simulated.render(map(an_entry, ids), registered))
    for reading in (read(str(directory), LINKS), answers_in(str(directory), {"example.com/a"})):
        turns = 0
        task = asyncio.create_task(reading)
        while not task.done():
            turns += 1
            await asyncio.sleep(0)
        assert turns > len(ids) + len(registered)
    assert (await read(str(directory), LINKS)).ids == set(ids)


@pytest.mark.parametrize("by", ["rename", "writing into it", "writing as much into it", "cutting it off"])
async def test_a_checkpoint_that_changes_while_it_is_read_is_the_one_before_or_an_error(
    directory: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    monkeypatch.setattr(deadline, "TURN_S", -1.0)
    path = directory / NAME
    simulated.write(directory, simulated.render(map(an_entry, "abc"), {}))
    os.utime(path, (0, 0))
    before = path.read_bytes()
    task = asyncio.create_task(read(str(directory), LINKS))
    await asyncio.sleep(0)
    match by:
        case "rename":
            simulated.write(directory, simulated.render([an_entry("d")], {}))
            assert (await task).ids == {"a", "b", "c"}
            assert (await read(str(directory), LINKS)).ids == {"d"}
            return
        case "writing into it":
            path.write_bytes(before + b" ")
        case "writing as much into it":
            path.write_bytes(before.replace(b'"a"', b'"d"'))
        case _:
            os.truncate(path, 0)
    with pytest.raises(GenericdpError) as caught:
        await task
    assert str(caught.value) == f"cannot read '{path}': it changed while it was read"


@pytest.mark.parametrize(
    ("entries", "is_named"),
    [
        ([], False),
        ([an_entry("a", links="/elsewhere")], False),
        ([an_entry("a", links=f"{LINKS}s")], False),
        ([an_entry("a", links="/elsewhere"), an_entry("b"), an_entry("c", links="/elsewhere")], True),
        ([by_cdi("example.com/tty", {"GENERICDP_EXAMPLE_COM_TTY_IDS": "0"})], True),
        # Another plugin.
        ([by_cdi("nvidia.com/gpu", {})], False),
    ],
)
async def test_whether_an_answer_names_a_link_or_a_cdi_device_of_ours(
    directory: Path, entries: list[simulated.PodDevices], is_named: bool
) -> None:
    """While the daemon serves and when it starts."""
    simulated.write(directory, simulated.render(entries, {}))
    assert (await read(str(directory), LINKS)).names_ours is is_named
    assert names_holders(Settings(kubelet_dir=str(directory), link_dir=LINKS)) is is_named


async def test_what_cannot_be_read_may_name_a_link_of_ours(directory: Path) -> None:
    (directory / NAME).write_text(
        '{"Data": {"PodDeviceEntries": [{"ResourceName": "x/y", "DeviceIDs": ["a"]}]}}'
    )
    assert (await read(str(directory), LINKS)).names_ours


@pytest.mark.parametrize("text", [None, '{"Data": {"PodDeviceEntries": null}}'])
async def test_a_kubelet_that_has_given_nothing_may_have_no_checkpoint(
    directory: Path, text: str | None
) -> None:
    if text is not None:
        (directory / NAME).write_text(text)
    assert await read(str(directory), LINKS) == Checkpoint()


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.EMFILE, "raise the limit of open files: LimitNOFILE= of the unit, or 'ulimit -n'"),
        (errno.EACCES, HINT),
    ],
)
async def test_a_checkpoint_that_cannot_be_opened_is_an_error(
    directory: Path, monkeypatch: pytest.MonkeyPatch, number: int, hint: str
) -> None:
    """Other pods would get what only an init container has."""
    (directory / NAME).write_text('{"Data": {"PodDeviceEntries": null}}')

    def fail(path: str, flags: int) -> int:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr("genericdp.kubelet.checkpoint.os.open", fail)
    with pytest.raises(GenericdpError) as caught:
        await read(str(directory), LINKS)
    assert str(caught.value) == f"cannot read '{directory}/{NAME}': {os.strerror(number)}"
    assert caught.value.hint == hint


async def test_a_saved_answer_says_what_a_container_gets_again(directory: Path) -> None:
    spec = api.DeviceSpec(container_path="/dev/a", host_path="/dev/genericdp/a", permissions="rw")
    answer = api.ContainerAllocateResponse(devices=[spec], cdi_devices=[api.CDIDevice(name="v.example/c=n")])
    entry = simulated.PodDevices("uid", "main", "example.com/a", {-1: ("a",)}, answer)
    simulated.write(directory, simulated.render([entry], {}))
    assert await answers_in(str(directory), {"example.com/a"}) == {
        ("uid", "main", "example.com/a"): Saved({"/dev/a": "/dev/genericdp/a"}, ("v.example/c=n",), ("a",))
    }


async def test_only_the_answers_of_the_resources_that_matter_are_decoded(directory: Path) -> None:
    simulated.write(directory, simulated.render(map(an_entry, "ab"), {}))
    assert await answers_in(str(directory), {"example.com/b", "example.com/c"}) == {}
    assert len(await answers_in(str(directory), {"example.com/a", "example.com/c"})) == 2


async def test_the_names_in_an_answer_by_cdi_are_read_with_the_ids_of_its_container(directory: Path) -> None:
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
    assert await read(str(directory), LINKS) == Checkpoint(
        frozenset(
            {
                ("example.com/tty", "a1"),
                ("example.com/tty", "a2"),
                ("example.com/bus", "b"),
                ("example.com/own", "c"),
            }
        ),
        (Named("example.com/tty", frozenset({"a1", "a2"}), names),),
        names_ours=True,
        ours=frozenset({"example.com/bus", "example.com/own"}),
    )


async def test_the_links_in_an_answer_are_read_with_the_ids_of_its_container(directory: Path) -> None:
    paths = ("/dev/a", f"{LINKS}/a@if00", f"{LINKS}/shared+kfd", f"{LINKS}s/a@if01", f"{LINKS}/a@if00")
    specs = [api.DeviceSpec(container_path=f"/dev/{n}", host_path=path) for n, path in enumerate(paths)]
    answer = api.ContainerAllocateResponse(devices=specs)
    entries = [an_entry("b"), simulated.PodDevices("uid", "main", "example.com/a", {-1: ("a",)}, answer)]
    simulated.write(directory, simulated.render(entries, {}))
    links = ("a@if00", "shared+kfd")
    found = await read(str(directory), LINKS)
    assert found.named == (Named("example.com/a", frozenset({"a"}), links=links),)
    assert found.given == {("example.com/a", "a"), ("example.com/a", "b")}
    assert found.ours == {"example.com/a"}


async def test_a_resource_is_ours_if_an_answer_names_our_links(directory: Path) -> None:
    lone = api.DeviceSpec(container_path="/dev/a", host_path=f"{LINKS}/a")
    like_ours = api.DeviceSpec(container_path="/dev/b", host_path=f"{LINKS}s/b")
    answers = {
        name: api.ContainerAllocateResponse(devices=[spec])
        for name, spec in (("example.com/a", lone), ("example.com/b", like_ours))
    }
    entries = [
        simulated.PodDevices("uid", "main", name, {-1: (name,)}, answer) for name, answer in answers.items()
    ]
    broken = dict.fromkeys(["PodUID", "ContainerName", "ResourceName", "AllocResp"], "?")
    simulated.write(directory, simulated.render(entries, {}))
    document = json.loads((directory / NAME).read_text())
    document["Data"]["PodDeviceEntries"].append({**broken, "DeviceIDs": ["c"]})
    (directory / NAME).write_text(json.dumps(document))
    found = await read(str(directory), LINKS)
    assert found.ours == {"example.com/a"}
    assert found.names_ours


async def test_the_one_link_of_a_device_that_is_not_grouped_need_not_be_read(directory: Path) -> None:
    """Most answers name no other, and decoding them takes longer than all the rest."""
    simulated.write(directory, simulated.render(map(an_entry, "ab"), {}))
    assert (await read(str(directory), LINKS)).named == ()
    simulated.write(directory, simulated.render([an_entry("shared+kfd")], {}))
    assert [each.links for each in (await read(str(directory), LINKS)).named] == [("shared+kfd",)]


async def test_a_link_below_the_directory_of_links_is_not_one_of_these(directory: Path) -> None:
    entries = [an_entry("x@y/z"), an_entry("@/.."), an_entry(f"@{'x' * 255}"), an_entry("a@b", links="/x")]
    simulated.write(directory, simulated.render(entries, {}))
    assert (await read(str(directory), LINKS)).named == ()


@pytest.mark.parametrize("answer", ["", "%", "/w==", CUT_SHORT, "null", 1, None, ["a"]])
async def test_an_answer_that_cannot_be_read_is_not_known(directory: Path, answer: object) -> None:
    names = {"PodUID": "uid", "ContainerName": "main", "ResourceName": "example.com/a"}
    entry = {**names, "DeviceIDs": {"-1": ["a"]}, "AllocResp": answer}
    text = json.dumps({"Data": {"PodDeviceEntries": [entry]}})
    (directory / NAME).write_text(text)
    found = await read(str(directory), LINKS)
    assert found.given == {("example.com/a", "a")}
    assert found.named == ()
    saved = await answers_in(str(directory), {"example.com/a"})
    assert saved in ({}, {("uid", "main", "example.com/a"): Saved({}, ids=("a",))})


@pytest.mark.parametrize("what", ["pipe", "directory", "long file"])
async def test_what_is_not_a_file_of_reasonable_length_is_not_read(directory: Path, what: str) -> None:
    """A pipe would be waited for, and a longer file would take seconds."""
    path = directory / NAME
    match what:
        case "pipe":
            os.mkfifo(path)
        case "directory":
            path.mkdir()
        case _:
            path.write_text('{"Data": {"PodDeviceEntries": [{"ResourceName": "x", "DeviceIDs": ["a"]}]}}')
            assert (await read(str(directory), LINKS)).ids == {"a"}
            os.truncate(path, LONGEST + 1)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(GenericdpError) as caught:
        await read(str(directory), LINKS)
    assert len(os.listdir("/proc/self/fd")) == len(before)
    why = "Is a directory" if what == "directory" else f"it is not a regular file of at most {LONGEST} bytes"
    assert str(caught.value) == f"cannot read '{path}': {why}"


async def test_an_answer_of_another_plugin_that_cannot_be_decoded_hides_no_other(directory: Path) -> None:
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
    assert await answers_in(str(directory), {"example.com/a"}) == {
        ("uid", "main", "example.com/a"): Saved({"/dev/a": "/dev/genericdp/a"}, ids=("main",))
    }
