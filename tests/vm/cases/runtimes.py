"""What real container runtimes do with requested devices, and that the simulator does the same.

Debian 12 has containerd 1.6, Debian 13 has 1.7; both have runc and crun. No release of Debian has CRI-O, so
what the simulator's CRI-O does is known from its sources and not tested here.

`ContainerRuntime.create` raises an error wherever the simulator's outcome is another one.
"""

from tests.vm.case import case
from tests.vm.node import Node, expect
from tests.vm.runtime import HANDLERS, DeviceNode, Outcome

#: Devices that every kernel of Debian has, and that no container may open unless it requests them.
FUSE, LOOP = (10, 229), (10, 237)

_SCENE = """
rm -rf /dev/scene; mkdir -p /dev/scene/directory/empty /dev/scene/deeper /dev/scene/plain; cd /dev/scene
mknod -m 660 fuse c 10 229; chgrp 20 fuse; mknod -m 666 loop c 10 237
mknod -m 600 directory/fuse c 10 229; ln -s ../fuse directory/link; mkfifo fifo; echo text >file
ln -s fuse link; ln -s ../link deeper/chain; ln -s deeper through; ln -s /dev/scene/link absolute
ln -s dead dead; ln -s missing dangling
"""


def begin(node: Node) -> None:
    """Begin with a runtime without pods, and nodes and links of all kinds."""
    node.sh("systemctl stop kubelet genericdp")
    node.sh(_SCENE)
    node.runtime.begin()


@case
def a_link_is_followed_whenever_a_container_is_created(node: Node) -> None:
    begin(node)
    paths = ("link", "absolute", "through/chain")
    devices = [[f"/dev/scene/{path}", f"/dev/{number}", "rw"] for number, path in enumerate(paths)]
    for handler in HANDLERS:
        node.sh("ln -sfn fuse /dev/scene/link")
        outcome = node.runtime.create(handler, handler=handler, devices=devices)
        expect(outcome.numbers, dict.fromkeys(("/dev/0", "/dev/1", "/dev/2"), FUSE))
        node.sh("ln -s loop /dev/scene/next; mv -T /dev/scene/next /dev/scene/link")
        # The running container is as it was; the next one is not.
        expect(node.runtime.run(handler, "stat -c %t:%T /dev/0"), "a:e5\n")
        outcome = node.runtime.create(handler, handler=handler, devices=devices)
        expect(outcome.numbers, dict.fromkeys(("/dev/0", "/dev/1", "/dev/2"), LOOP))


@case
def a_link_to_itself_is_refused_until_it_leads_to_a_node(node: Node) -> None:
    begin(node)
    refused = "failed to generate container spec: failed to generate spec: "
    for handler in HANDLERS:
        outcome = node.runtime.create(handler, handler=handler, devices=[["/dev/scene/dead", "/dev/x", "rw"]])
        expect(outcome, Outcome(f"{refused}EvalSymlinks: too many links"))
        missing = [["/dev/scene/dangling", "/dev/x", "rw"]]
        outcome = node.runtime.create(handler, handler=handler, devices=missing)
        expect(outcome, Outcome(f"{refused}lstat /dev/scene/missing: no such file or directory"))
    node.sh("ln -sfn fuse /dev/scene/dead")
    outcome = node.runtime.create("runc", devices=[["/dev/scene/dead", "/dev/x", "rw"]])
    expect(outcome.numbers, {"/dev/x": FUSE})


@case
def nodes_have_the_hosts_mode_and_owner_and_the_granted_access(node: Node) -> None:
    begin(node)
    devices = [
        ["/dev/scene/fuse", "/dev/both", "rw"],
        ["/dev/scene/loop", "/deep/below/read", "r"],
        ["/dev/scene/directory", "/dev/directory", "rw"],
        ["/dev/scene/fuse", "", "rw"],
        # These make no node, because something is there already.
        ["/dev/scene/loop", "/dev/both", "r"],
        ["/dev/scene/fuse", "/srv/file", "rw"],
    ]
    for handler in HANDLERS:
        outcome = node.runtime.create(handler, handler=handler, devices=devices, envs={"NAME": "a value"})
        fuse = DeviceNode("c", *FUSE, "660", 0, 20, "rw")
        expect(outcome.nodes["/dev/both"], fuse)
        expect(outcome.nodes["/dev/scene/fuse"], fuse)
        expect(outcome.nodes["/deep/below/read"], DeviceNode("c", *LOOP, "666", 0, 0, "r-"))
        expect(outcome.nodes["/dev/directory/fuse"], DeviceNode("c", *FUSE, "600", 0, 0, "rw"))
        expect(outcome.envs, {"NAME": "a value"})


@case
def of_one_device_runc_grants_what_all_entries_say_and_crun_the_last(node: Node) -> None:
    begin(node)
    devices = [["/dev/scene/loop", "/dev/x", "r"], ["/dev/scene/loop", "/dev/y", "w"]]
    granted = {each.access for each in node.runtime.create("runc", devices=devices).nodes.values()}
    expect(granted, {"rw"})
    # crun 1.8 added up, too; the simulator does as today's does.
    if node.release != "12":
        outcome = node.runtime.create("crun", handler="crun", devices=devices)
        expect({each.access for each in outcome.nodes.values()}, {"-w"})


@case
def a_user_needs_the_group_of_a_node_that_others_may_not_open(node: Node) -> None:
    begin(node)
    user = {"run_as_user": 1000, "run_as_group": 1000, "devices": [["/dev/scene/fuse", "/dev/x", "rw"]]}
    for handler in HANDLERS:
        outcome = node.runtime.create(handler, handler=handler, **user)
        expect(outcome.nodes["/dev/x"].access, "==")
        outcome = node.runtime.create(handler, handler=handler, **user, groups=[20])
        expect(outcome.nodes["/dev/x"].access, "rw")


@case
def what_is_no_device_node_is_refused(node: Node) -> None:
    begin(node)
    for handler in HANDLERS:
        for devices, words in (
            ([["/dev/scene/file", "/dev/x", "rw"]], "not a device node"),
            ([["/dev/scene/absent", "/dev/x", "rw"]], "no such file or directory"),
        ):
            outcome = node.runtime.create(handler, handler=handler, devices=devices)
            expect((words in outcome.error, outcome.nodes), (True, {}))
        # runc 1.1.5 has other words than 1.1.15 and the simulator.
        create = node.runtime.create_unsimulated if node.release == "12" else node.runtime.create
        outcome = create(handler, handler=handler, devices=[["/dev/scene/fuse", "/srv/file/below", "rw"]])
        expect(("ot a directory" in outcome.error, outcome.nodes), (True, {}))
    # crun 1.8 made fifos; the simulator is as strict as today's.
    fifo = [["/dev/scene/fifo", "/dev/x", "rw"]]
    expect(node.runtime.create("runc", devices=fifo).nodes, {})
    if node.release != "12":
        expect(node.runtime.create("crun", handler="crun", devices=fifo).nodes, {})
    # runc refuses what crun creates without access.
    for handler, access in zip(HANDLERS, ([], ["--"]), strict=True):
        outcome = node.runtime.create(handler, handler=handler, devices=[["/dev/scene/fuse", "/dev/x", ""]])
        expect([each.access for each in outcome.nodes.values()], access)


@case
def a_missing_source_of_a_mount_is_made_and_a_dead_link_refused(node: Node) -> None:
    begin(node)
    mounts = [["/dev/scene/made", "/mnt/made", False], ["/dev/scene/plain", "/mnt/plain", True]]
    outcome = node.runtime.create("runc", mounts=mounts, script="ls -d /mnt/made; touch /mnt/plain/x")
    expect(outcome.out, "/mnt/made\ntouch: /mnt/plain/x: Read-only file system\n")
    for name in ("dead", "dangling"):
        outcome = node.runtime.create("runc", mounts=[[f"/dev/scene/{name}", "/mnt/x", False]])
        expect(bool(outcome.error), True)


@case
def a_container_is_ended_by_its_signal_or_after_the_grace_period(node: Node) -> None:
    begin(node)
    devices = [["/dev/scene/link", "/dev/x", "rw"]]
    for handler in HANDLERS:
        node.runtime.create(handler, handler=handler, devices=devices)
        quick = node.runtime.stop(handler, 60)
        expect(quick < 60, True)
        node.runtime.create(handler, handler=handler, devices=devices, script="trap '' TERM")
        slow = node.runtime.stop(handler, 3)
        expect(slow >= 3, True)


@case
def in_a_user_namespace_runc_binds_what_is_at_the_containers_path(node: Node) -> None:
    begin(node)
    if node.release == "12":
        # containerd 1.6 does not know user namespaces, and says nothing.
        devices = [["/dev/scene/fuse", "/dev/x", "rw"]]
        pod = {"devices": devices, "user_namespace": True, "script": "cat /proc/self/uid_map"}
        outcome = node.runtime.create_unsimulated("pod", **pod)
        expect(outcome.out.split(), ["0", "0", "4294967295"])
        return
    devices = [[f"/dev/scene/{name}", f"/dev/scene/{name}", "rw"] for name in ("fuse", "loop", "link")]
    outcome = node.runtime.create("runc", devices=devices, user_namespace=True)
    expect([each.access for each in outcome.nodes.values()], ["==", "rw", "=="])
    renamed = [["/dev/scene/loop", "/dev/renamed", "rw"]]
    outcome = node.runtime.create("runc", devices=renamed, user_namespace=True)
    expect("no such file or directory" in outcome.error, True)
    outcome = node.runtime.create("crun", handler="crun", devices=renamed, user_namespace=True)
    expect(outcome.numbers, {"/dev/renamed": LOOP})


@case
def without_cdi_a_container_is_made_without_its_cdi_devices(node: Node) -> None:
    begin(node)
    node.sh("rm -rf /run/cdi /etc/cdi")
    wanted = {"cdi_devices": ["example.com/stick=unit"]}
    if node.release == "12":
        # containerd 1.6 does not say a word about it.
        expect(node.runtime.create("runc", **wanted, cdi="ignored"), Outcome())
    else:
        refused = "CDI device injection failed: unresolvable CDI devices example.com/stick=unit"
        expect(refused in node.runtime.create("runc", **wanted).error, True)
