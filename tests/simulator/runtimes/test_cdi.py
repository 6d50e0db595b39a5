"""CDI in the simulated runtimes: spec files by the specification's rules, and what they do to a container."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from genericdp.simulator import CONTAINERD, CRIO, Runtime
from genericdp.simulator.runtimes.cdi_cache import CdiCache
from genericdp.simulator.runtimes.cdi_spec import scan
from genericdp.simulator.runtimes.creation import create
from genericdp.simulator.runtimes.runtime import (
    CdiSupport,
    ContainerConfig,
    CreateContainerError,
    CreatedContainer,
    RequestedDevice,
)

BOTH = pytest.mark.parametrize("runtime", [CONTAINERD, CRIO], ids=["containerd", "cri-o"])
NAME = "v.example/cls=one"
FAILED = "CDI device injection failed: "
UNKNOWN = f"{FAILED}unresolvable CDI devices {NAME}"


def spec(*, version: str = "0.5.0", name: str = "one", edits: Mapping[str, Any] | None = None) -> Any:
    edits = edits or {"deviceNodes": [{"path": "/dev/cdi", "hostPath": "/dev/null", "permissions": "rw"}]}
    return {
        "cdiVersion": version,
        "kind": "v.example/cls",
        "devices": [{"name": name, "containerEdits": edits}],
    }


def nodes(*each: Mapping[str, Any]) -> Any:
    return spec(edits={"deviceNodes": list(each)})


def save(document: Any, directory: Path, file: str = "a.json") -> None:
    directory.mkdir(exist_ok=True)
    (directory / file).write_text(document if isinstance(document, str) else json.dumps(document))


def created(
    runtime: Runtime, *directories: Path, names: tuple[str, ...] = (NAME,), **request: Any
) -> CreatedContainer:
    mine = replace(runtime, cdi_dirs=tuple(map(str, directories)))
    return create(mine, ContainerConfig(cdi_devices=names, **request))


def error(runtime: Runtime, *directories: Path, **request: Any) -> str:
    with pytest.raises(CreateContainerError) as caught:
        created(runtime, *directories, **request)
    return str(caught.value)


@BOTH
def test_a_cdi_device_brings_its_nodes_envs_mounts_and_groups(runtime: Runtime, tmp_path: Path) -> None:
    edits = {
        "deviceNodes": [{"path": "/dev/cdi", "hostPath": "/dev/null", "permissions": "rw"}],
        "env": ["A=b", "C=d=e"],
        "mounts": [{"hostPath": "/", "containerPath": "/h", "options": ["ro"]}],
        "additionalGids": [20, 0, 20],
    }
    save(spec(version="0.7.0", edits=edits), tmp_path)
    found = created(runtime, tmp_path)
    assert [(node.container_path, node.minor, node.permissions) for node in found.nodes] == [
        ("/dev/cdi", 3, "rw")
    ]
    assert found.envs == {"A": "b", "C": "d=e"}
    assert [(mount.container_path, mount.read_only) for mount in found.mounts] == [("/h", True)]
    assert found.groups == (20,)


@BOTH
def test_annotations_name_cdi_devices_too(runtime: Runtime, tmp_path: Path) -> None:
    save(spec(), tmp_path)
    annotations = {"cdi.k8s.io/x_y": f"{NAME},v.example/cls=two", "example.com/cdi": "no"}
    assert error(runtime, tmp_path, names=(), annotations=annotations) == (
        f"{FAILED}unresolvable CDI devices v.example/cls=two"
    )
    annotations["cdi.k8s.io/x_y"] = NAME
    assert len(created(runtime, tmp_path, names=(), annotations=annotations).nodes) == 1


@BOTH
def test_a_node_belongs_to_the_process_and_everybody_may_open_it(runtime: Runtime, tmp_path: Path) -> None:
    save(spec(), tmp_path)
    (node,) = created(runtime, tmp_path, run_as_user=1000, run_as_group=2000).nodes
    assert (node.uid, node.gid, node.mode) == (1000, 2000, 0o666)


@BOTH
def test_what_cdi_brings_replaces_what_the_request_and_earlier_devices_have_there(
    runtime: Runtime, tmp_path: Path
) -> None:
    both = spec()
    other = {"deviceNodes": [{"path": "/dev/cdi", "hostPath": "/dev/zero"}], "env": ["A=later"]}
    both["devices"][0]["containerEdits"]["env"] = ["A=earlier", "B=stays"]
    both["devices"].append({"name": "two", "containerEdits": other})
    save(both, tmp_path)
    names = (NAME, "v.example/cls=two")
    requested = (RequestedDevice("/dev/full", "/dev/cdi", "r"),)
    found = created(runtime, tmp_path, names=names, devices=requested, envs={"A": "pod", "P": "pod"})
    assert [(node.container_path, node.minor, node.permissions) for node in found.nodes] == [
        ("/dev/cdi", 5, "rwm")
    ]
    assert found.envs == {"A": "later", "B": "stays", "P": "pod"}


@BOTH
def test_cdi_does_not_follow_links(runtime: Runtime, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/dev/null")
    save(nodes({"path": "/dev/cdi", "hostPath": str(link)}), tmp_path)
    assert error(runtime, tmp_path) == (
        f'{FAILED}failed to inject devices: failed to stat CDI host device "{link}": not a device node'
    )


@BOTH
def test_a_missing_node_or_one_of_another_type_is_refused(runtime: Runtime, tmp_path: Path) -> None:
    save(nodes({"path": "/dev/cdi", "hostPath": "/dev/gdp-gone", "type": "c"}), tmp_path)
    assert error(runtime, tmp_path) == (
        f"{FAILED}failed to inject devices: "
        'failed to stat CDI host device "/dev/gdp-gone": no such file or directory'
    )
    save(nodes({"path": "/dev/cdi", "hostPath": "/dev/null", "type": "b"}), tmp_path)
    assert error(runtime, tmp_path) == (
        f'{FAILED}failed to inject devices: CDI device ("/dev/cdi", "/dev/null"), host type mismatch (b, c)'
    )


@BOTH
def test_with_a_type_and_a_major_number_nobody_looks_at_the_node(runtime: Runtime, tmp_path: Path) -> None:
    node = {"path": "/dev/cdi", "hostPath": "/dev/gdp-gone", "type": "c", "major": 188, "minor": 4}
    save(nodes(node), tmp_path)
    (found,) = created(runtime, tmp_path).nodes
    assert (found.major, found.minor) == (188, 4)


@BOTH
def test_a_missing_source_of_a_mount_is_refused(runtime: Runtime, tmp_path: Path) -> None:
    save(spec(edits={"mounts": [{"hostPath": "/gone", "containerPath": "/m"}]}), tmp_path)
    assert error(runtime, tmp_path) == ('error mounting "/gone" to rootfs at "/m": no such file or directory')


@BOTH
def test_a_device_in_two_files_of_one_directory_is_unusable_and_a_later_directory_wins(
    runtime: Runtime, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    save(spec(), one)
    save(nodes({"path": "/dev/cdi", "hostPath": "/dev/zero"}), two)
    assert created(runtime, one, two).nodes[0].minor == 5
    save(spec(), two, "b.json")
    assert error(runtime, one, two) == UNKNOWN
    (two / "a.json").unlink()
    save(spec(), one, "b.json")
    assert error(runtime, one, two) == UNKNOWN, "the conflict in the first directory stays"


WRONG = {
    "an unknown field": {**spec(), "extra": 1},
    "an unknown field of a node": nodes({"path": "/dev/cdi", "hostpath": "/dev/null"}),
    "an unknown version": spec(version="0.9.0"),
    "a version too low for hostPath": spec(version="0.4.0"),
    "a version too low for groups": spec(edits={"env": ["A=b"], "additionalGids": [20]}),
    "a number for a text": spec(version="0.5.0", edits={"env": [1]}),
    "a text for a number": nodes({"path": "/dev/cdi", "major": "1"}),
    "no device": {**spec(), "devices": []},
    "an empty device": spec(edits={"env": []}),
    "a device name with a slash": spec(name="a/b"),
    "a device name that ends in a dash": spec(name="a-"),
    "a kind without a vendor": {**spec(), "kind": "cls"},
    "a class that begins with a digit": {**spec(), "kind": "v.example/3d"},
    "an env without a name": spec(edits={"env": ["=b"]}),
    "permissions of other letters": nodes({"path": "/dev/cdi", "permissions": "rwx"}),
    "a device twice": {**spec(), "devices": spec()["devices"] * 2},
    "a repeated key": '{"cdiVersion": "0.5.0", "cdiVersion": "0.5.0"}',
    "half a file": json.dumps(spec())[:-1],
}


@pytest.mark.parametrize("what", WRONG)
def test_a_file_with_a_mistake_is_no_file(what: str, tmp_path: Path) -> None:
    save(WRONG[what], tmp_path)
    assert scan([str(tmp_path)]) == {}


@pytest.mark.parametrize("file", ["a.txt", ".genericdp-0123", "a.json.new", "sub/a.json"])
def test_files_of_other_names_and_of_subdirectories_are_not_read(file: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    save(spec(), tmp_path, file)
    assert scan([str(tmp_path)]) == {}


def test_a_library_reads_no_version_that_is_newer_than_itself(tmp_path: Path) -> None:
    save(spec(version="0.7.0"), tmp_path)
    assert list(scan([str(tmp_path)], newest="0.7.0")) == [NAME]
    assert list(scan([str(tmp_path)], newest="0.6.0")) == []


def test_without_cdi_a_runtime_refuses_the_container_or_starts_it_without_the_device(tmp_path: Path) -> None:
    save(spec(), tmp_path)
    assert error(replace(CONTAINERD, cdi=CdiSupport.OFF), tmp_path) == (
        f"CDI devices ({NAME}) requested but CDI support is explicitly disabled"
    )
    assert created(replace(CONTAINERD, cdi=CdiSupport.IGNORED), tmp_path).nodes == ()


# The cache of a runtime


def names(cache: CdiCache) -> list[str]:
    return list(cache.devices())


def test_a_cache_follows_renames_within_its_directory_and_removals(tmp_path: Path) -> None:
    with CdiCache([str(tmp_path)]) as cache:
        save(spec(), tmp_path, ".new")
        assert names(cache) == []
        (tmp_path / ".new").rename(tmp_path / "a.json")
        assert names(cache) == [NAME]
        (tmp_path / "a.json").unlink()
        assert names(cache) == []


def test_a_cache_overlooks_a_file_that_is_moved_in(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    save(spec(), outside)
    with CdiCache([str(inside)]) as cache:
        (outside / "a.json").rename(inside / "a.json")
        assert names(cache) == []


def test_a_cache_finds_a_directory_that_is_made_later_and_made_again(tmp_path: Path) -> None:
    directory = tmp_path / "cdi"
    with CdiCache([str(directory)]) as cache:
        assert names(cache) == []
        save(spec(), directory)
        assert names(cache) == [NAME]
        (directory / "a.json").unlink()
        os.rmdir(directory)
        assert names(cache) == []
        save(spec(name="two"), directory)
        assert names(cache) == ["v.example/cls=two"]


def test_a_late_cache_uses_what_it_had_read_before(tmp_path: Path) -> None:
    save(spec(), tmp_path)
    with CdiCache([str(tmp_path)], late=True) as cache:
        (tmp_path / "a.json").unlink()
        assert names(cache) == [NAME]
        assert names(cache) == []
        runtime = replace(CONTAINERD, cdi_cache=cache)
        assert error(runtime) == UNKNOWN
