"""How containerd and CRI-O with runc turn device specs into nodes, tried on real nodes and links."""

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.simulator import CONTAINERD, CRIO, CreatedContainer, DeviceNode, LowLevel, Runtime
from genericdp.simulator.runtimes.creation import create
from genericdp.simulator.runtimes.runtime import (
    ContainerConfig,
    CreateContainerError,
    RequestedDevice,
    RequestedMount,
)

BOTH = pytest.mark.parametrize("runtime", [CONTAINERD, CRIO], ids=["containerd", "cri-o"])
SPEC = "failed to generate container spec: failed to generate spec: "


def config(*devices: tuple[str | Path, str, str], **more: object) -> ContainerConfig:
    """A request for devices: (host path, container path, permissions) each."""
    return ContainerConfig(
        devices=tuple(RequestedDevice(str(host), inside, rwm) for host, inside, rwm in devices),
        **more,  # type: ignore[arg-type]
    )


def one(
    runtime: Runtime, host_path: str | Path, container_path: str = "/dev/x", rwm: str = "rw"
) -> DeviceNode:
    """The only node of a container with one device."""
    (node,) = create(runtime, config((host_path, container_path, rwm))).nodes
    return node


def error(runtime: Runtime, request: ContainerConfig) -> str:
    with pytest.raises(CreateContainerError) as caught:
        create(runtime, request)
    return str(caught.value)


@pytest.fixture
def mknod(tmp_path: Path) -> Callable[..., Path]:
    """Makes device nodes, which takes root."""

    def make(
        name: str, kind: int = stat.S_IFCHR, number: tuple[int, int] = (1, 7), mode: int = 0o640
    ) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mknod(path, kind | mode, os.makedev(*number))
        path.chmod(mode)
        return path

    return make


@BOTH
@pytest.mark.parametrize("shape", ["absolute", "relative", "link to link", "through a linked directory"])
def test_links_of_any_shape_are_followed_at_each_creation(
    runtime: Runtime, shape: str, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    match shape:
        case "absolute":
            link.symlink_to("/dev/null")
        case "relative":
            link.symlink_to(os.path.relpath("/dev/null", tmp_path))
        case "link to link":
            (tmp_path / "other").symlink_to("/dev/null")
            link.symlink_to("other")
        case _:
            (tmp_path / "dev").symlink_to("/dev")
            link = tmp_path / "dev" / "null"
    node = one(runtime, link)
    assert (node.kind, node.major, node.minor) == ("c", 1, 3)
    assert os.path.realpath(node.source) == "/dev/null"


@BOTH
def test_a_link_that_points_at_itself_prevents_the_creation(runtime: Runtime, tmp_path: Path) -> None:
    link = tmp_path / "gone"
    link.symlink_to("gone")
    assert error(runtime, config((link, "/dev/x", "rw"))) == (
        f"{SPEC}EvalSymlinks: too many links"
        if runtime is CONTAINERD
        else f"SecureJoin //{link}: too many levels of symbolic links"
    )


@pytest.mark.parametrize("what", ["missing", "dangling"])
def test_containerd_refuses_a_missing_path(what: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    if what == "dangling":
        path.symlink_to(tmp_path / "nothing")
    where = tmp_path / ("nothing" if what == "dangling" else "x")
    assert (
        error(CONTAINERD, config((path, "/dev/x", "rw"))) == f"{SPEC}lstat {where}: no such file or directory"
    )


@pytest.mark.parametrize("what", ["missing", "dangling", "regular file"])
def test_crio_silently_starts_without_a_path_that_is_not_a_device(what: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    if what == "dangling":
        path.symlink_to(tmp_path / "nothing")
    elif what == "regular file":
        path.write_text("")
    assert create(CRIO, config((path, "/dev/x", "rw"))) == CreatedContainer()


def test_containerd_refuses_a_regular_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("")
    assert error(CONTAINERD, config((path, "/dev/x", "rw"))) == f"{SPEC}not a device node"


def test_containerd_copies_the_mode_and_crio_does_not(mknod: Callable[..., Path]) -> None:
    path = mknod("node", mode=0o640)
    os.chown(path, 0, 20)
    assert (one(CONTAINERD, path).mode, one(CONTAINERD, path).gid) == (0o640, 20)
    assert (one(CRIO, path).mode, one(CRIO, path).gid) == (0o666, 20)


@BOTH
def test_a_block_device_stays_a_block_device(runtime: Runtime, mknod: Callable[..., Path]) -> None:
    assert one(runtime, mknod("disk", stat.S_IFBLK, (7, 99))).kind == "b"


@BOTH
def test_the_owner_follows_the_security_context_only_with_the_setting(runtime: Runtime) -> None:
    request = config(("/dev/null", "/dev/x", "rw"), run_as_user=1000)
    assert create(runtime, request).nodes[0].uid == 0
    (node,) = create(replace(runtime, device_ownership=True), request).nodes
    assert (node.uid, node.gid) == (1000, 0), "only ids that are set and not 0"


@BOTH
def test_a_directory_gives_its_device_nodes_but_not_its_links(
    runtime: Runtime, mknod: Callable[..., Path], tmp_path: Path
) -> None:
    mknod("dir/a")
    mknod("dir/sub/b")
    (tmp_path / "dir/link").symlink_to("/dev/null")
    (tmp_path / "dir/file").write_text("")
    nodes = create(runtime, config((tmp_path / "dir", "/dev/d", "rw"))).nodes
    assert sorted(node.container_path for node in nodes) == ["/dev/d/a", "/dev/d/sub/b"]


def test_containerd_skips_consoles_fifos_and_pts_below_a_directory(
    mknod: Callable[..., Path], tmp_path: Path
) -> None:
    mknod("dir/pts/0")
    mknod("dir/console")
    mknod("dir/a")
    os.mkfifo(tmp_path / "dir/fifo")
    nodes = create(CONTAINERD, config((tmp_path / "dir", "/dev/d", "rw"))).nodes
    assert [node.container_path for node in nodes] == ["/dev/d/a"]
    assert error(CRIO, config((tmp_path / "dir", "/dev/d", "rw"))) == 'invalid cgroup device type "p"'


@BOTH
def test_an_empty_directory_gives_no_nodes_and_no_error(runtime: Runtime, tmp_path: Path) -> None:
    assert create(runtime, config((tmp_path, "/dev/d", "rw"))).nodes == ()


@BOTH
def test_a_fifo_is_an_error_of_runc(runtime: Runtime, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert error(runtime, config((tmp_path / "fifo", "/dev/x", "rw"))) == 'invalid cgroup device type "p"'


@BOTH
def test_empty_permissions_are_an_error_of_runc(runtime: Runtime) -> None:
    assert error(runtime, config(("/dev/null", "/dev/x", ""))) == "device access at 1 field cannot be empty"


@BOTH
@pytest.mark.parametrize(
    ("given", "effective"), [("rwx", "rw"), ("wr", "rw"), ("rr", "r"), ("RW", ""), ("m", "m")]
)
def test_unknown_letters_of_permissions_are_dropped(runtime: Runtime, given: str, effective: str) -> None:
    assert one(runtime, "/dev/null", rwm=given).permissions == effective


@BOTH
def test_crun_grants_nothing_for_empty_permissions_and_has_words_of_its_own(
    runtime: Runtime, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "fifo")
    crun = replace(runtime, low_level=LowLevel.CRUN)
    assert one(crun, "/dev/null", rwm="").permissions == ""
    assert error(crun, config((tmp_path / "fifo", "/dev/x", "rw"))) == "unknown device type `p`"
    assert error(crun, config(("/dev/null", "dev/x", "rw"))) == "mknod `dev/x`: No such file or directory"
    below = config(("/dev/null", "/etc/file/x", "rw"), image_files=frozenset({"/etc/file"}))
    assert error(crun, below) == "mknod `/etc/file/x`: Not a directory"


@BOTH
def test_runc_adds_up_the_permissions_of_all_nodes_of_a_device_and_crun_takes_the_last(
    runtime: Runtime,
) -> None:
    request = config(("/dev/null", "/dev/x", "r"), ("/dev/null", "/dev/y", "w"), ("/dev/zero", "/dev/z", "r"))
    assert [node.permissions for node in create(runtime, request).nodes] == ["rw", "rw", "r"]
    crun = replace(runtime, low_level=LowLevel.CRUN)
    assert [node.permissions for node in create(crun, request).nodes] == ["w", "w", "r"]


def test_with_cgroup_1_permissions_of_unknown_letters_only_are_an_error() -> None:
    assert error(replace(CONTAINERD, cgroup=1), config(("/dev/null", "/dev/x", "RW"))) == (
        "resulting devices cgroup doesn't precisely match target"
    )


@pytest.mark.parametrize(("runtime", "minor"), [(CONTAINERD, 3), (CRIO, 5)], ids=["containerd", "cri-o"])
def test_of_two_devices_at_one_path_runc_takes_the_first_that_crio_replaces_and_neither_a_file_of_the_image(
    runtime: Runtime, minor: int
) -> None:
    both = (("/dev/null", "/dev/x", "rw"), ("/dev/zero", "/dev/x", "rw"))
    (node,) = create(runtime, config(*both)).nodes
    assert node.minor == minor
    assert create(runtime, config(*both, image_files=frozenset({"/dev/x"}))).nodes == ()


@BOTH
def test_container_paths_are_relative_to_the_root_and_ptmx_is_skipped(runtime: Runtime) -> None:
    assert one(runtime, "/dev/null", "dev/x").container_path == "/dev/x"
    assert create(runtime, config(("/dev/null", "/dev/ptmx", "rw"))).nodes == ()
    below_a_file = config(("/dev/null", "/etc/file/x", "rw"), image_files=frozenset({"/etc/file"}))
    assert error(runtime, below_a_file) == "cannot mkdir in /etc/file: not a directory"


@BOTH
def test_a_node_cannot_be_the_directory_of_another_one(runtime: Runtime) -> None:
    above, below = ("/dev/null", "/dev/a", "rw"), ("/dev/zero", "/dev/a/b/c", "rw")
    crun = replace(runtime, low_level=LowLevel.CRUN)
    assert error(runtime, config(above, below)) == "cannot mkdir in /dev/a: not a directory"
    assert error(crun, config(above, below)) == "mknod `/dev/a/b/c`: Not a directory"
    for each in (runtime, crun):
        (node,) = create(each, config(below, above)).nodes
        assert node.container_path == "/dev/a/b/c"


@BOTH
def test_in_a_user_namespace_runc_cannot_bind_a_node_over_a_directory(runtime: Runtime) -> None:
    devices = (("/dev/null", "/dev/pts/ptmx", "rw"), ("/dev/zero", "/dev/pts", "rw"))
    assert error(runtime, config(*devices, user_namespace=True)) == (
        "error during container init: error creating device nodes: open /dev/pts: is a directory"
    )


def test_an_empty_container_path_is_the_resolved_host_path_for_containerd_and_nothing_for_crio(
    tmp_path: Path,
) -> None:
    (tmp_path / "link").symlink_to("/dev/null")
    assert one(CONTAINERD, tmp_path / "link", "").container_path == "/dev/null"
    assert create(CRIO, config((tmp_path / "link", "", "rw"))).nodes == ()


def test_a_privileged_container_of_crio_may_not_rename_onto_a_path_of_the_host() -> None:
    renamed = config(("/dev/null", "/dev/zero", "rw"), privileged=True)
    assert error(CRIO, renamed) == (
        "privileged container was configured with a device container path that already exists on the host"
    )
    assert one(CONTAINERD, "/dev/null", "/dev/zero").minor == 3
    for path in ("/dev/null", "/dev/gdp-x"):
        node = create(CRIO, config(("/dev/null", path, "rw"), privileged=True)).node(path)
        assert node is not None
        assert node.minor == 3


def test_containerd_appends_the_devices_of_the_host_for_a_privileged_container_and_its_own_win(
    mknod: Callable[..., Path], tmp_path: Path
) -> None:
    first, second = mknod("dev/a", number=(1, 3)), mknod("dev/below/b", number=(1, 5))
    mknod("dev/console", number=(5, 1))
    mknod("dev/pts/0", number=(136, 0))
    mknod("dev/fifo", kind=stat.S_IFIFO)
    (tmp_path / "dev/link").symlink_to(first)
    runtime = replace(CONTAINERD, host_dev=str(tmp_path / "dev"))
    created = create(runtime, config((second, str(first), "r"), privileged=True))
    assert [(each.path, each.minor) for each in created.spec_devices] == [
        (str(first), 5),
        (str(first), 3),
        (str(second), 5),
    ]
    assert [(each.container_path, each.minor, each.permissions) for each in created.nodes] == [
        (str(first), 5, "rwm"),
        (str(second), 5, "rwm"),
    ]
    assert len(create(runtime, config((second, str(first), "r"))).spec_devices) == 1
    without = replace(runtime, host_dev="")
    assert len(create(without, config((second, str(first), "r"), privileged=True)).spec_devices) == 1


def test_of_a_privileged_container_crio_has_each_path_once(
    mknod: Callable[..., Path], tmp_path: Path
) -> None:
    path = mknod("dev/a", number=(1, 3))
    mknod("dev/b", number=(1, 5))
    runtime = replace(CRIO, host_dev=str(tmp_path / "dev"))
    created = create(runtime, config((path, str(path), "rw"), (path, "/dev/gdp-x", "rw"), privileged=True))
    assert [(each.path, each.minor) for each in created.spec_devices] == [
        (str(path), 3),
        (str(tmp_path / "dev/b"), 5),
        ("/dev/gdp-x", 3),
    ]


@BOTH
def test_in_a_user_namespace_runc_binds_the_hosts_container_path(
    runtime: Runtime, mknod: Callable[..., Path], tmp_path: Path
) -> None:
    path = mknod("node", mode=0o666)
    link = tmp_path / "link"
    link.symlink_to(path)
    (node,) = create(runtime, config((link, str(link), "rw"), user_namespace=True)).nodes
    assert (node.container_path, node.major, node.minor) == (str(link), 1, 7)
    assert (node.mode, node.uid, node.gid, node.permissions) == (0o666, 65534, 65534, "rw")


@BOTH
def test_in_a_user_namespace_runc_cannot_rename_a_device(runtime: Runtime) -> None:
    renamed = config(("/dev/null", "/dev/gdp-renamed", "rw"), user_namespace=True)
    assert error(runtime, renamed) == (
        "error during container init: error creating device nodes: "
        "mount /dev/gdp-renamed (via /proc/self/fd/8), flags: 0x1000: no such file or directory"
    )
    (node,) = create(replace(runtime, low_level=LowLevel.CRUN), renamed).nodes
    assert (node.minor, node.uid) == (3, 0)


@BOTH
def test_in_a_user_namespace_renaming_onto_another_device_shows_that_one_without_access(
    runtime: Runtime,
) -> None:
    (node,) = create(runtime, config(("/dev/null", "/dev/zero", "rw"), user_namespace=True)).nodes
    assert (node.minor, node.permissions) == (5, "")


@BOTH
def test_a_missing_mount_source_becomes_a_directory_and_a_linked_one_is_followed(
    runtime: Runtime, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    request = ContainerConfig(
        mounts=(
            RequestedMount(str(tmp_path / "missing"), "/a", read_only=True),
            RequestedMount(str(tmp_path / "link"), "/b", read_only=False),
        )
    )
    missing, linked = create(runtime, request).mounts
    assert (missing.made_directory, missing.read_only) == (True, True)
    assert (linked.host_path, linked.made_directory) == (str(tmp_path), False)
    assert not (tmp_path / "missing").exists(), "the simulator creates nothing"


@BOTH
def test_a_dangling_mount_source_is_an_error(runtime: Runtime, tmp_path: Path) -> None:
    path = tmp_path / "link"
    path.symlink_to("nothing")
    request = ContainerConfig(mounts=(RequestedMount(str(path), "/a", read_only=True),))
    assert error(runtime, request) == f'failed to mkdir "{path}": mkdir {path}: file exists'


def test_a_mount_source_that_is_a_link_to_itself_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "link"
    path.symlink_to("link")
    request = ContainerConfig(mounts=(RequestedMount(str(path), "/a", read_only=True),))
    assert error(CONTAINERD, request) == (
        f'failed to stat "{path}": stat {path}: too many levels of symbolic links'
    )
    assert error(CRIO, request) == f'failed to resolve symlink "{path}": EvalSymlinks: too many links'
