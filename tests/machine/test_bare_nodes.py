"""Bare nodes on a real /dev: which are found, and what follows from a look at one of them."""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from genericdp.core.device import DeviceNumber
from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.place import Spot
from genericdp.core.memory.remembered import Remembered
from genericdp.core.rules.node_names import NodeNames, names_in
from genericdp.errors import GenericdpError
from genericdp.machine import bare_nodes
from genericdp.machine.bare_nodes import BareNodes
from genericdp.udev import sysfs
from tests.scenes.builders import a_device, by_sys_path, resources_of
from tests.scenes.dev import a_directory, make_node


@pytest.fixture
def dev() -> Iterator[Path]:
    with a_directory() as path:
        yield path


def naming(*patterns: str) -> NodeNames:
    return names_in(
        resources_of(
            "".join(
                f'[[resource]]\nname = "x{n}"\nmatch = {{ DEVNAME = "{pattern}" }}\n'
                for n, pattern in enumerate(patterns)
            )
        )
    )


def remembered(*paths: str) -> Callable[[], dict[str, Remembered]]:
    """The memory of the bare nodes at these paths."""
    return lambda: {path: Remembered("x", Device(path, spots=(Spot(path, "", "node"),))) for path in paths}


def found(bare: BareNodes) -> dict[str, str]:
    """The names of the bare nodes that are there, each with its refusal."""
    return {path.rpartition("/")[2]: device.refusal for path, device in bare.devices.items()}


def looking_for(*patterns: str) -> BareNodes:
    bare = BareNodes(naming(*patterns))
    bare.resync()
    bare.judge({})
    return bare


def test_a_character_device_that_rules_name_is_found(dev: Path) -> None:
    make_node(dev / "acme0", 1)
    make_node(dev / "other", 2)

    bare = looking_for(f"{dev}/acme*")

    (device,) = bare.devices.values()
    assert (device.device_node, device.number) == (f"{dev}/acme0", DeviceNumber("c", 4000, 1))
    assert device.is_bare


def test_without_a_name_nothing_is_looked_at() -> None:
    bare = BareNodes(NodeNames())
    bare.resync()
    assert not bare.judge({})
    assert bare.directories == frozenset()


def test_what_udev_knows_is_not_among_them_not_even_before_udev_has_said_so() -> None:
    assert found(looking_for("/dev/null")) == {}


def test_what_no_container_must_get_is_refused(dev: Path) -> None:
    make_node(dev / "acme0", 0)
    make_node(dev / "acme1", 3, major=1)
    make_node(dev / "acme2", 2)
    make_node(dev / "acme3", 2)
    make_node(dev / "acme4", 4)
    os.chown(dev / "acme4", 1000, 1000)
    make_node(dev / "acme5", 5, kind=stat.S_IFBLK)
    (dev / "acme6").symlink_to("/dev/null")

    assert found(looking_for(f"{dev}/acme*")) == {
        "acme0": "",
        "acme1": "it has the number of '/dev/null', c 1:3; match that device node instead",
        "acme2": f"udev does not know it, and '{dev}/acme3' has the same number, c 4000:2",
        "acme3": f"udev does not know it, and '{dev}/acme2' has the same number, c 4000:2",
        "acme4": "udev does not know it, and it does not belong to root",
        "acme5": "it is a block device that udev does not know",
        "acme6": "it is a symlink; match the device node to which it leads, '/dev/null'",
    }


def test_what_is_no_device_node_is_nothing(dev: Path) -> None:
    (dev / "acme0").write_text("")
    (dev / "acme1").mkdir()
    os.mkfifo(dev / "acme2")
    (dev / "acme3").symlink_to("/nowhere")
    (dev / "acme4").symlink_to("/etc/passwd")
    make_node(Path(os.fsdecode(bytes(dev) + b"/acme\xff")), 5)
    make_node(dev / "acme\n", 6)

    assert found(looking_for(f"{dev}/acme*")) == {}


def test_a_symlink_to_a_node_that_the_rules_name_anyway_is_not_worth_a_word(dev: Path) -> None:
    make_node(dev / "acme0", 0)
    (dev / "acme-front").symlink_to("acme0")

    assert found(looking_for(f"{dev}/acme*")) == {"acme0": ""}


def test_directories_are_walked_where_a_pattern_leads(dev: Path) -> None:
    for name in ("a/b", "c"):
        (dev / name).mkdir(parents=True)
    make_node(dev / "a/b/acme0", 0)
    make_node(dev / "c/acme1", 1)

    assert found(looking_for(f"{dev}/a/*")) == {"acme0": ""}
    assert found(looking_for(f"{dev}/*/acme1")) == {"acme1": ""}
    assert looking_for(f"{dev}/c/acme1").directories == {"/dev", str(dev), f"{dev}/c"}


def test_directories_that_others_can_change_and_links_to_directories_are_not(dev: Path) -> None:
    for name, mode in (("a", 0o777), ("b", 0o775), ("c", 0o755)):
        (dev / name).mkdir()
        make_node(dev / name / f"acme-{name}", ord(name))
        (dev / name).chmod(mode)
    (dev / "d").symlink_to("c")
    (dev / "e").mkdir()
    make_node(dev / "e/acme-e", 5)
    os.chown(dev / "e", 1000, 1000)

    assert found(looking_for(f"{dev}/*")) == {"acme-c": ""}


def test_other_file_systems_below_dev_are_not_looked_at() -> None:
    assert os.lstat("/dev/shm").st_dev != os.lstat("/dev").st_dev
    assert "/dev/shm" not in looking_for("/dev/*").directories


def test_only_so_many_directories_are_looked_at(dev: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (dev / name).mkdir()
    monkeypatch.setattr(bare_nodes, "DIRECTORY_LIMIT", 3)
    bare = looking_for(f"{dev}/*")

    assert bare.directories == {"/dev", str(dev), f"{dev}/a"}
    bare.look_at(f"{dev}/b")
    assert bare.directories == {"/dev", str(dev), f"{dev}/a"}
    bare.resync()
    assert bare.directories == {"/dev", str(dev), f"{dev}/a"}


def test_a_look_at_one_name_sees_that_name_alone(dev: Path) -> None:
    bare = looking_for(f"{dev}/acme*")
    make_node(dev / "acme0", 0)
    make_node(dev / "acme1", 1)

    bare.look_at(f"{dev}/acme1")
    assert bare.judge({})
    assert found(bare) == {"acme1": ""}
    (dev / "acme1").unlink()
    bare.look_at(f"{dev}/acme1")
    assert bare.judge({})
    assert found(bare) == {}


@pytest.mark.parametrize("name", [b"acme\xff", b"acme\xc2\xa0", b"acme\n"])
def test_a_look_at_one_name_sees_no_more_than_a_look_at_all(dev: Path, name: bytes) -> None:
    """What is not printable, no rule can name."""
    bare = looking_for(f"{dev}/acme*")
    path = os.fsdecode(bytes(dev) + b"/" + name)
    make_node(Path(path), 0)
    bare.look_at(path)
    assert found(bare) == {}
    bare.resync()
    assert found(bare) == {}


def test_a_directory_that_comes_and_goes_brings_and_takes_what_is_below_it(dev: Path) -> None:
    bare = looking_for(f"{dev}/caps/acme*")
    assert bare.directories == {"/dev", str(dev)}
    (dev / "caps").mkdir()
    make_node(dev / "caps/acme0", 0)

    bare.look_at(f"{dev}/caps")
    bare.judge({})
    assert found(bare) == {"acme0": ""}
    assert bare.directories == {"/dev", str(dev), f"{dev}/caps"}
    shutil.rmtree(dev / "caps")
    bare.look_at(f"{dev}/caps")
    bare.judge({})
    assert found(bare) == {}
    assert bare.directories == {"/dev", str(dev)}


def test_what_did_not_change_stays_the_same_object(dev: Path) -> None:
    make_node(dev / "acme0", 0)
    make_node(dev / "acme1", 1)
    bare = looking_for(f"{dev}/acme*")
    before = dict(bare.devices)

    bare.resync()
    assert not bare.judge({})
    assert all(bare.devices[path] is device for path, device in before.items())

    (dev / "acme1").unlink()
    make_node(dev / "acme1", 7)
    bare.resync()
    assert bare.judge({})
    assert bare.devices[f"{dev}/acme0"] is before[f"{dev}/acme0"]
    assert bare.devices[f"{dev}/acme1"].number == DeviceNumber("c", 4000, 7)


def test_a_node_that_udev_comes_to_know_is_no_longer_bare(dev: Path) -> None:
    make_node(dev / "acme0", 0)
    bare = looking_for(f"{dev}/acme*")

    assert bare.judge(by_sys_path(a_device(node=f"{dev}/acme0", number="c 4000:0")))
    assert found(bare) == {}
    assert bare.judge(by_sys_path(a_device(node="/dev/elsewhere", number="c 4000:0")))
    assert found(bare) == {
        "acme0": "it has the number of '/dev/elsewhere', c 4000:0; match that device node instead"
    }
    assert bare.judge({})
    assert found(bare) == {"acme0": ""}


def test_what_is_only_shown_is_in_nobody_s_way(dev: Path) -> None:
    make_node(dev / "acme0", 0)
    make_node(dev / "other", 0)
    bare = BareNodes(naming(f"{dev}/acme*"), naming(f"{dev}/*"))
    bare.resync()
    bare.judge({})

    assert found(bare) == {
        "acme0": "",
        "other": f"udev does not know it, and '{dev}/acme0' has the same number, c 4000:0",
    }


def test_a_remembered_node_that_no_rule_names_any_more_is_still_seen(dev: Path) -> None:
    make_node(dev / "acme0", 0)
    make_node(dev / "acme1", 1)
    bare = looking_for(f"{dev}/acme*")

    bare.remember(remembered(f"{dev}/acme0"))
    bare.want(naming(f"{dev}/acme1"))
    bare.judge({})
    assert found(bare) == {"acme0": "", "acme1": ""}
    assert bare.concern(f"{dev}/acme0")
    (dev / "acme0").unlink()
    bare.look_at(f"{dev}/acme0")
    bare.judge({})
    assert found(bare) == {"acme1": ""}


def test_a_remembered_node_in_a_directory_that_is_not_looked_into_is_refused(
    dev: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (dev / name).mkdir()
        make_node(dev / name / f"acme-{name}", ord(name))
    bare = looking_for(f"{dev}/*")
    bare.remember(remembered(f"{dev}/a/acme-a", f"{dev}/b/acme-b", "/dev/shm/acme"))

    (dev / "a").chmod(0o775)
    bare.look_at(f"{dev}/a")
    bare.judge({})
    assert found(bare) == {
        "acme-a": f"others than root can change '{dev}/a', so genericdp does not look into it",
        "acme-b": "",
    }
    (dev / "a").chmod(0o755)
    bare.look_at(f"{dev}/a")
    bare.judge({})
    assert found(bare) == {"acme-a": "", "acme-b": ""}

    monkeypatch.setattr(bare_nodes, "DIRECTORY_LIMIT", 3)
    bare.resync()
    bare.judge({})
    assert found(bare) == {
        "acme": "'/dev/shm' is not on the file system of /dev, so genericdp does not look into it",
        "acme-a": "",
        "acme-b": f"genericdp looks into at most 3 directories below /dev, and not into '{dev}/b'",
    }


def test_a_directory_that_cannot_be_read_keeps_what_was_in_it(
    dev: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_node(dev / "acme0", 0)
    bare = looking_for(f"{dev}/acme*")
    real = os.scandir

    def short(path: str) -> "os._ScandirIterator[str]":
        if path == str(dev):
            raise OSError(24, "Too many open files")
        return real(path)

    monkeypatch.setattr(os, "scandir", short)
    bare.resync()
    assert not bare.judge({})
    assert str(bare.unread) == f"cannot read '{dev}': Too many open files"
    monkeypatch.undo()
    bare.resync()
    assert bare.unread is None


def test_a_node_that_was_bare_stays_so_while_the_kernel_cannot_be_asked_for_its_number(
    dev: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, minor in (("acme0", 0), ("acme1", 1), ("alias", 1)):
        make_node(dev / name, minor)
    bare = looking_for(f"{dev}/acme*", f"{dev}/alias")
    before = found(bare)
    assert before["acme0"] == ""

    def short(number: DeviceNumber) -> str | None:
        raise OSError(24, f"Too many open files for {number}")

    monkeypatch.setattr(sysfs, "node_of", short)
    bare.resync()
    assert not bare.judge({})
    assert found(bare) == before
    assert bare.unread is not None
    assert bare.unread.paths.keys() == {f"{dev}/acme0", f"{dev}/acme1", f"{dev}/alias"}


def test_a_look_tells_whether_anything_differs(dev: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If nothing does, nothing is judged again."""
    make_node(dev / "acme0", 0)

    def short(number: DeviceNumber) -> str | None:
        raise OSError(24, f"Too many open files for {number}")

    bare = looking_for(f"{dev}/acme0", f"{dev}/caps/acme*")
    os.utime(dev / "acme0")
    assert not bare.look_at(f"{dev}/acme0")
    (dev / "caps").mkdir(mode=0o755)
    assert bare.look_at(f"{dev}/caps"), "it is watched from now on"
    monkeypatch.setattr(sysfs, "node_of", short)
    bare.judge({})
    assert bare.unread is not None
    assert bare.look_at(f"{dev}/acme0"), "the kernel has to be asked again"


def test_other_names_are_looked_for_while_the_memory_is_the_same(dev: Path) -> None:
    make_node(dev / "acme0", 0)
    make_node(dev / "other0", 1)
    memory = remembered(f"{dev}/acme0")()
    bare = looking_for(f"{dev}/acme*")
    bare.remember(lambda: memory)
    bare.resync()
    bare.want(naming(f"{dev}/other*"))
    bare.judge({})
    assert sorted(found(bare)) == ["acme0", "other0"]


def test_the_kernel_is_asked_once_for_each_number(dev: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[DeviceNumber] = []

    def nothing(number: DeviceNumber) -> None:
        asked.append(number)

    monkeypatch.setattr(sysfs, "node_of", nothing)
    for number in range(4):
        make_node(dev / f"acme{number}", number % 2)
    (dev / "link").symlink_to("acme0")
    looking_for(f"{dev}/acme*", f"{dev}/link")
    assert sorted(number.minor for number in asked) == [0, 1]


def test_while_the_kernel_cannot_be_asked_for_a_number_its_node_is_refused(
    dev: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_node(dev / "acme0", 0)

    def unknown(number: DeviceNumber) -> str | None:
        raise FileNotFoundError(2, f"no sysfs for {number}", "/sys/dev/char")

    monkeypatch.setattr(sysfs, "node_of", unknown)
    bare = looking_for(f"{dev}/acme*")
    assert found(bare) == {"acme0": "the kernel does not say whether another device has the number c 4000:0"}
    assert isinstance(bare.unread, GenericdpError)
    assert str(bare.unread) == "cannot read '/sys/dev/char': no sysfs for c 4000:0"
