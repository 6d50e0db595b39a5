"""CDI as containerd 1.7 does it: devices by name, from files that it reads whenever one changes.

The files here are written by hand, so that what is tested is the runtime. `ContainerRuntime.create` raises an
error wherever the simulator's outcome is another one.
"""

import json
from collections.abc import Mapping

from tests.vm.case import case
from tests.vm.cases.runtimes import FUSE, LOOP, begin
from tests.vm.node import Node, expect
from tests.vm.runtime import HANDLERS, DeviceNode, Outcome

_REFUSED = "failed to create containerd container: CDI device injection failed: "


@case
def a_cdi_name_means_what_its_file_says_at_each_creation(node: Node) -> None:
    _begin(node)
    for handler in HANDLERS:
        _write(node, {"unit": _node("/dev/scene/fuse") | {"env": ["ADDRESS=1:5"]}})
        outcome = _create(node, handler)
        expect((outcome.numbers, outcome.envs), ({"/dev/x": FUSE}, {"ADDRESS": "1:5"}))
        # It returned under another name.
        _write(node, {"unit": _node("/dev/scene/loop") | {"env": ["ADDRESS=1:6"]}})
        outcome = _create(node, handler)
        expect((outcome.numbers, outcome.envs), ({"/dev/x": LOOP}, {"ADDRESS": "1:6"}))


@case
def a_container_is_refused_while_its_cdi_device_is_not_in_the_file(node: Node) -> None:
    _begin(node)
    _write(node, {"other": _node("/dev/scene/fuse")})
    expect(_create(node).error, f"{_REFUSED}unresolvable CDI devices example.com/stick=unit")
    node.sh("rm /run/cdi/example.json")
    expect(_create(node).error, f"{_REFUSED}unresolvable CDI devices example.com/stick=unit")
    _write(node, {"unit": _node("/dev/scene/fuse")})
    expect(_create(node).numbers, {"/dev/x": FUSE})


@case
def cdi_follows_no_link_and_believes_numbers_without_looking(node: Node) -> None:
    _begin(node)
    for path, reason in (("link", "not a device node"), ("missing", "no such file or directory")):
        _write(node, {"unit": _node(f"/dev/scene/{path}")})
        refused = f'{_REFUSED}failed to inject devices: failed to stat CDI host device "/dev/scene/{path}": '
        expect(_create(node).error, refused + reason)
        numbered = _node(f"/dev/scene/{path}", type="c", major=FUSE[0], minor=FUSE[1])
        _write(node, {"unit": numbered})
        expect(_create(node).numbers, {"/dev/x": FUSE})
        _write(node, {"unit": _node(f"/dev/scene/{path}", type="c")})
        expect(_create(node).error, refused + reason)


@case
def additional_gids_let_a_user_open_a_node_of_the_group(node: Node) -> None:
    _begin(node)
    user = {"run_as_user": 1000, "run_as_group": 1000}
    owned = _node("/dev/scene/fuse", fileMode=0o660, uid=0, gid=20, permissions="rw")
    for handler in HANDLERS:
        _write(node, {"unit": owned})
        expect(_create(node, handler, **user).nodes["/dev/x"].access, "==")
        _write(node, {"unit": owned | {"additionalGids": [20]}}, version="0.7.0")
        outcome = _create(node, handler, **user, script="id -G")
        expect(outcome.nodes, {"/dev/x": DeviceNode("c", *FUSE, "660", 0, 20, "rw")})
        expect(set(outcome.out.split()), {"20", "1000"})


@case
def without_a_mode_cdi_makes_nodes_that_everybody_may_open(node: Node) -> None:
    _begin(node)
    _write(node, {"unit": _node("/dev/scene/fuse")})
    for handler in HANDLERS:
        outcome = _create(node, handler, run_as_user=1000, run_as_group=1001)
        expect(outcome.nodes, {"/dev/x": DeviceNode("c", *FUSE, "666", 1000, 1001, "rw")})


@case
def a_cdi_file_that_is_not_valid_has_no_devices(node: Node) -> None:
    _begin(node)
    unresolvable = f"{_REFUSED}unresolvable CDI devices example.com/stick=unit"
    good = {"unit": _node("/dev/scene/fuse")}
    _write(node, {"unit": good["unit"] | {"additionalGids": [20]}}, version="0.6.0")
    expect(_create(node).error, unresolvable)
    _write(node, {"unit": good["unit"] | {"unheard": 1}})
    expect(_create(node).error, unresolvable)
    _write(node, good, version="9.0.0")
    expect(_create(node).error, unresolvable)
    _write(node, good)
    expect(_create(node).numbers, {"/dev/x": FUSE})
    # One name in two files is nobody's.
    node.sh("cp /run/cdi/example.json /run/cdi/second.json")
    expect(_create(node).error, unresolvable)


@case
def cdi_replaces_a_device_at_the_same_path_and_reads_annotations(node: Node) -> None:
    _begin(node)
    _write(node, {"unit": _node("/dev/scene/fuse")})
    devices = [["/dev/scene/loop", "/dev/x", "rw"], ["/dev/scene/loop", "/dev/y", "rw"]]
    expect(_create(node, devices=devices).numbers, {"/dev/x": FUSE, "/dev/y": LOOP})
    annotated = {"cdi.k8s.io/plugin_unit": "example.com/stick=unit"}
    expect(node.runtime.create("runc", annotations=annotated).numbers, {"/dev/x": FUSE})


def _begin(node: Node) -> None:
    begin(node)
    node.sh("rm -rf /run/cdi/* /etc/cdi; mkdir -p /run/cdi")


def _node(host_path: str, **rest: object) -> dict[str, object]:
    """The edits for one node, /dev/x."""
    return {"deviceNodes": [{"path": "/dev/x", "hostPath": host_path, **rest}]}


def _write(node: Node, devices: Mapping[str, Mapping[str, object]], version: str = "0.5.0") -> None:
    document = {
        "cdiVersion": version,
        "kind": "example.com/stick",
        "devices": [{"name": name, "containerEdits": edits} for name, edits in devices.items()],
    }
    # As a plugin should: under another name, then renamed.
    node.guest.ask({"write": "/run/cdi/.example", "text": json.dumps(document)})
    node.sh("mv /run/cdi/.example /run/cdi/example.json")


def _create(node: Node, handler: str = "runc", **request: object) -> Outcome:
    return node.runtime.create(handler, handler=handler, cdi_devices=["example.com/stick=unit"], **request)
