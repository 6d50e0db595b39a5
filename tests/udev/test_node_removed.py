"""What the package's udev rule does when a device node goes and no daemon runs, alone and with a real udevd.

The rules of this file:

* A device that goes is followed at once by another one that gets its name, as the kernel does it.
"""

import fcntl
import json
import os
import resource
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from genericdp.core.cdi import SpecTexts
from genericdp.files.links import Links
from tests.scenes.builders import a_usb_serial
from tests.scenes.inventories import inventory_of
from tests.scenes.shortage import a_file_system_at, fill, fill_inodes
from tests.udev.hotplug import NODE_REMOVED, macvtap, reserve_console, udevd_with_our_rule

#: What the program locks while it changes spec files.
LOCK = ".genericdp-lock"


def remove(node: str, links: Path, cdi: Path = Path("/nowhere")) -> None:
    """Run the program as udev does: with properties and nothing else."""
    subprocess.run([NODE_REMOVED, links, cdi], env={"ACTION": "remove", "GENERICDP_NODE": node}, check=True)


def links_in(directory: Path) -> dict[str, str]:
    return {name: os.readlink(directory / name) for name in os.listdir(directory)}


def make_links(directory: Path, **targets: str) -> Path:
    assert Links(str(directory)).apply(targets) == {}
    return directory


def test_every_link_to_the_node_is_pointed_at_itself_and_no_other(tmp_path: Path) -> None:
    links = make_links(tmp_path, a="/dev/ttyUSB1", b="/dev/ttyUSB10", c="/dev/ttyUSB1", d="/dev/ttyUSB")
    remove("/dev/ttyUSB1", links)
    assert links_in(links) == {"a": "a", "b": "/dev/ttyUSB10", "c": "c", "d": "/dev/ttyUSB"}
    remove("/dev/ttyUSB1", links)
    assert links_in(links) == {"a": "a", "b": "/dev/ttyUSB10", "c": "c", "d": "/dev/ttyUSB"}


def test_a_link_makes_room_for_itself_where_there_is_none_for_a_second_one(tmp_path: Path) -> None:
    with a_file_system_at(tmp_path / "links", inodes=20):
        links = make_links(tmp_path / "links", a="/dev/ttyUSB0", b="/dev/ttyUSB1")
        fillers = fill_inodes(links)
        remove("/dev/ttyUSB0", links)
        for each in fillers:
            each.unlink()
        assert links_in(links) == {"a": "a", "b": "/dev/ttyUSB1"}


def test_a_link_that_the_daemon_is_about_to_rename_is_left_alone(tmp_path: Path) -> None:
    links = make_links(tmp_path, a="/dev/ttyUSB0")
    os.symlink("/dev/ttyUSB0", links / ".new-0123456789abcdef")
    remove("/dev/ttyUSB0", links)
    assert links_in(links) == {"a": "a", ".new-0123456789abcdef": "/dev/ttyUSB0"}


def test_ids_and_places_of_any_spelling_are_names_of_links(tmp_path: Path) -> None:
    names = ("-n", "--help", "A.b_c-d@if02", "modem@usb", "x@index1:2+3=4")
    links = make_links(tmp_path, **dict.fromkeys(names, "/dev/bus/usb/001/005"))
    remove("/dev/bus/usb/001/005", links)
    assert links_in(links) == {name: name for name in names}


@pytest.mark.parametrize(
    "node", ["", "/dev/*", "/dev/ttyUSB?", "/dev/$(touch x)", "-delete", "/dev/a b", "/dev/a\nb"]
)
def test_the_name_of_a_node_is_compared_and_never_expanded(tmp_path: Path, node: str) -> None:
    links = make_links(tmp_path / "links", a="/dev/ttyUSB0", b="/dev/a")
    (tmp_path / "cdi").mkdir()
    spec = tmp_path / "cdi" / "genericdp_a.json"
    spec.write_text(a_spec({"a": "/dev/ttyUSB0", "b": "/dev/a"}))
    remove(node, links, tmp_path / "cdi")
    assert links_in(links) == {"a": "/dev/ttyUSB0", "b": "/dev/a"}
    assert nodes_in(spec) == {"a": "/dev/ttyUSB0", "b": "/dev/a"}
    assert specs_in(tmp_path / "cdi") == ["genericdp_a.json"]


def test_a_node_with_blanks_in_its_name_is_found(tmp_path: Path) -> None:
    links = make_links(tmp_path, a="/dev/ a  b ", b="/dev/ a b")
    remove("/dev/ a  b ", links)
    assert links_in(links) == {"a": "a", "b": "/dev/ a b"}


def test_what_is_not_a_link_stays_and_a_missing_directory_is_no_failure(tmp_path: Path) -> None:
    links = make_links(tmp_path, a="/dev/ttyUSB0")
    (links / ".lock").write_text("/dev/ttyUSB0")
    (links / "directory").mkdir()
    os.symlink("/dev/ttyUSB0", links / "directory" / "b")
    remove("/dev/ttyUSB0", links)
    assert os.readlink(links / "directory" / "b") == "/dev/ttyUSB0"
    assert (links / ".lock").read_text() == "/dev/ttyUSB0"
    remove("/dev/ttyUSB0", tmp_path / "missing")


# CDI


def a_spec(nodes: Mapping[str, str]) -> str:
    """A spec file as the daemon writes it: one line for each device."""
    devices = [
        {"name": id_, "containerEdits": {"deviceNodes": [{"path": "/dev/x", "hostPath": node, "type": "c"}]}}
        for id_, node in nodes.items()
    ]
    lines = ",\n".join(json.dumps(device) for device in devices)
    return f'{{"cdiVersion": "0.5.0", "kind": "genericdp.io/ftdi", "devices": [\n{lines}\n]}}\n'


def specs_in(directory: Path) -> list[str]:
    """All files but the program's lock, which nobody else may open."""
    names = sorted(os.listdir(directory))
    if LOCK in names:
        names.remove(LOCK)
        assert (directory / LOCK).stat().st_mode & 0o777 == 0o600
    return names


def nodes_in(spec: Path) -> dict[str, str]:
    document = json.loads(spec.read_text())
    return {
        device["name"]: device["containerEdits"]["deviceNodes"][0]["hostPath"]
        for device in document["devices"]
    }


def test_a_device_is_taken_out_of_the_spec_files_that_name_its_node(tmp_path: Path) -> None:
    nodes = {"a": "/dev/ttyUSB0", "b": "/dev/ttyUSB1", "c": "/dev/ttyUSB2"}
    for node in nodes.values():
        ours, others = tmp_path / "genericdp_a.json", tmp_path / "genericdp-of-others.json"
        ours.write_text(a_spec(nodes))
        others.write_text(a_spec(nodes))
        remove(node, tmp_path / "links", tmp_path)
        assert nodes_in(ours) == {id_: path for id_, path in nodes.items() if path != node}
        assert ours.stat().st_mode & 0o777 == 0o644
        assert others.read_text() == a_spec(nodes)
        assert specs_in(tmp_path) == ["genericdp-of-others.json", "genericdp_a.json"]


@pytest.mark.parametrize(
    "node", ["/dev/é", "/dev/\udcff", '/dev/a"b', "/dev/a\\b", "/dev/a\tb", "/dev/a b", "/dev/a[b", "/dev/a*"]
)
def test_a_node_of_any_name_is_taken_out_of_the_spec_files(tmp_path: Path, node: str) -> None:
    spec = tmp_path / "genericdp_a.json"
    spec.write_text(a_spec({"a": node, "b": "/dev/ttyUSB0"}))
    remove(node, tmp_path / "links", tmp_path)
    assert nodes_in(spec) == {"b": "/dev/ttyUSB0"}


def test_a_spec_file_without_a_device_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "genericdp_a.json").write_text(a_spec({"a": "/dev/ttyUSB0", "b": "/dev/ttyUSB0"}))
    remove("/dev/ttyUSB0", tmp_path / "links", tmp_path)
    assert specs_in(tmp_path) == []


@pytest.mark.parametrize("room", ["no block", "one block", "no inode"])
def test_without_room_for_another_one_a_spec_file_goes(tmp_path: Path, room: str) -> None:
    """What it says of the node would lead to the next device of that name."""
    with a_file_system_at(tmp_path / "cdi", inodes=20):
        spec = tmp_path / "cdi" / "genericdp_a.json"
        spec.write_text(a_spec({f"{number}": f"/dev/ttyUSB{number}" for number in range(200)}))
        if room == "no inode":
            fill_inodes(tmp_path / "cdi")
        else:
            filler = fill(tmp_path / "cdi")
            os.truncate(filler, filler.stat().st_size - (4096 if room == "one block" else 0))
        remove("/dev/ttyUSB0", tmp_path / "links", tmp_path / "cdi")
        assert not spec.exists()
        assert [each.name for each in (tmp_path / "cdi").iterdir() if "gone" in each.name] == []


def test_a_spec_file_that_is_written_again_meanwhile_stays(tmp_path: Path) -> None:
    """The daemon removes files that it cannot write fast enough, and writes them again."""
    again, program, cdi = tmp_path / "again", tmp_path / "program", tmp_path / "cdi"
    cdi.mkdir()
    spec = cdi / "genericdp_a.json"
    spec.write_text(a_spec({"a": "/dev/ttyUSB0", "b": "/dev/ttyUSB1"}))
    again.write_text(a_spec({"b": "/dev/ttyUSB1"}))
    text = NODE_REMOVED.read_text()
    for line, before in (("grep -v", f"rm '{spec}'"), ("if grep -q", f"mv '{again}' '{spec}'")):
        assert text.count(f"\n        {line}") == 1
        text = text.replace(f"\n        {line}", f"\n        {before}\n        {line}")
    program.write_text(text)
    program.chmod(0o755)
    environment = {"ACTION": "remove", "GENERICDP_NODE": "/dev/ttyUSB0"}
    subprocess.run([program, "/nowhere", cdi], env=environment, check=True, capture_output=True)
    assert nodes_in(spec) == {"b": "/dev/ttyUSB1"}
    assert specs_in(cdi) == ["genericdp_a.json"]


def test_it_understands_the_spec_files_of_the_daemon(tmp_path: Path) -> None:
    rules = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty" }\n'
    sticks = (a_usb_serial(0), a_usb_serial(1, serial="B", port="2"), a_usb_serial(2, serial="C", port="3"))
    offers = inventory_of(rules, *sticks).offers.values()
    ((name, text),) = SpecTexts("/dev/genericdp").of(offers, {}, lambda _: True).items()
    spec = tmp_path / name
    spec.write_text(text)
    left = {"ftdi_A50285BI": "/dev/ttyUSB0", "ftdi_B": "/dev/ttyUSB1", "ftdi_C": "/dev/ttyUSB2"}
    assert nodes_in(spec) == left
    for id_ in ("ftdi_C", "ftdi_A50285BI"):
        remove(left.pop(id_), tmp_path / "links", tmp_path)
        assert nodes_in(spec) == left
    remove(left.pop("ftdi_B"), tmp_path / "links", tmp_path)
    assert specs_in(tmp_path) == []


def test_nodes_that_go_at_the_same_time_undo_nothing(tmp_path: Path) -> None:
    spec = tmp_path / "genericdp_a.json"
    spec.write_text(a_spec({f"d{n}": f"/dev/ttyUSB{n}" for n in range(20)}))
    running = [
        subprocess.Popen(
            [NODE_REMOVED, tmp_path / "links", tmp_path], env={"GENERICDP_NODE": f"/dev/ttyUSB{n}"}
        )
        for n in range(19)
    ]
    assert [process.wait() for process in running] == [0] * 19
    assert nodes_in(spec) == {"d19": "/dev/ttyUSB19"}


def test_a_node_that_another_change_puts_back_goes_all_the_same(tmp_path: Path) -> None:
    """The other one has read the file before the daemon took the node out, and replaces it afterwards."""
    spec = tmp_path / "genericdp_a.json"
    spec.write_text(a_spec({"b": "/dev/ttyUSB1"}))
    with (tmp_path / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        running = subprocess.Popen(
            [NODE_REMOVED, tmp_path / "links", tmp_path], env={"GENERICDP_NODE": "/dev/ttyUSB0"}
        )
        while running.poll() is None and not waits_for(lock.fileno()):
            pass
        spec.write_text(a_spec({"a": "/dev/ttyUSB0", "b": "/dev/ttyUSB1"}))
    assert running.wait() == 0
    assert nodes_in(spec) == {"b": "/dev/ttyUSB1"}


def waits_for(descriptor: int) -> bool:
    """Whether somebody waits for the lock of a file: proc_locks(5)."""
    inode = f":{os.fstat(descriptor).st_ino} "
    locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    return any(inode in line and " -> " in line for line in locks)


def test_who_can_only_read_the_directory_cannot_delay_it(tmp_path: Path) -> None:
    spec = tmp_path / "genericdp_a.json"
    spec.write_text(a_spec({"a": "/dev/ttyUSB0"}))
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        remove("/dev/ttyUSB0", tmp_path / "links", tmp_path)
    finally:
        os.close(directory)
    assert specs_in(tmp_path) == []


def test_without_the_lock_the_spec_files_change_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "genericdp_a.json").write_text(a_spec({"a": "/dev/ttyUSB0"}))
    (tmp_path / LOCK).symlink_to("/missing/lock")
    remove("/dev/ttyUSB0", tmp_path / "links", tmp_path)
    assert os.listdir(tmp_path) == [LOCK]


def test_thousands_of_links_to_other_nodes_take_no_time_of_the_shell(tmp_path: Path) -> None:
    count = 20_000
    for number in range(count):
        os.symlink(f"/dev/ttyUSB{number}", tmp_path / f"ftdi_{number}")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    remove("/dev/ttyUSB7", tmp_path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert os.readlink(tmp_path / "ftdi_7") == "ftdi_7"
    assert os.readlink(tmp_path / "ftdi_70") == "/dev/ttyUSB70"
    # The shell reads a pipe byte by byte: that alone would take a second.
    assert (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime) < 0.5


# A real udevd


@pytest.mark.hotplug
def test_a_device_that_comes_back_under_its_name_is_not_behind_the_link_50_times_of_50(
    tmp_path: Path,
) -> None:
    vcs = reserve_console()
    links = tmp_path / "links"
    with udevd_with_our_rule(links) as running:
        for _ in range(50):
            with vcs.plugged() as node:
                running.settle()
                make_links(links, vcs=node)
            with vcs.plugged():
                running.settle()
                assert links_in(links) == {"vcs": "vcs"}


@pytest.mark.hotplug
def test_another_device_under_the_same_name_is_never_behind_the_link(tmp_path: Path) -> None:
    links = tmp_path / "links"
    with udevd_with_our_rule(links) as running:
        for _ in range(5):
            with macvtap("gdps0", index=4000) as node:
                running.settle()
                make_links(links, tap=node)
            with macvtap("gdps1", index=4000) as other:
                assert other == node
                running.settle()
                assert links_in(links) == {"tap": "tap"}


@pytest.mark.hotplug
@pytest.mark.parametrize("forged", ["DEVNAME=/dev/full", "DEVNAME=", "GENERICDP_NODE=/dev/full"])
def test_the_node_is_the_one_that_the_kernel_names_whatever_udevs_database_says(
    tmp_path: Path, forged: str
) -> None:
    """A program of udev's rules may print what a device calls itself: older versions of v4l_id did."""
    vcs = reserve_console()
    links = tmp_path / "links"
    program = tmp_path / "v4l_id"
    program.write_text(f'#!/bin/sh\nprintf "ID_V4L_PRODUCT=Cam\\n{forged}\\n"\n')
    program.chmod(0o755)
    imports = f'ACTION!="remove", KERNEL=="vcs{vcs.number}", IMPORT{{program}}="{program}"\n'
    with udevd_with_our_rule(links, imports) as running:
        with vcs.plugged():
            running.settle()
            make_links(links, vcs=vcs.node, other="/dev/full")
        running.settle()
        assert links_in(links) == {"vcs": "vcs", "other": "/dev/full"}


@pytest.mark.hotplug
def test_the_link_is_dead_before_udev_processes_the_next_device_of_the_name(tmp_path: Path) -> None:
    vcs = reserve_console()
    order, links = tmp_path / "order", tmp_path / "links"
    this = f'KERNEL=="vcs{vcs.number}"'
    # A slow removal: what follows waits for it.
    slow = f'ACTION=="remove", {this}, RUN+="/bin/sleep 0.2"\n'
    shown = f"echo $env{{ACTION}} $(readlink {links}/vcs) >>{order}"
    with udevd_with_our_rule(links, f"{slow}{this}, RUN+=\"/bin/sh -c '{shown}'\"\n") as running:
        with vcs.plugged():
            running.settle()
            make_links(links, vcs=vcs.node)
            order.write_text("")
        with vcs.plugged():
            running.settle()
            assert order.read_text().splitlines() == ["remove vcs", "add vcs"]
