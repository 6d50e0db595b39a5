"""The device nodes that go along with every device of a resource."""

from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Conflict, Refusal
from genericdp.core.inventory.offer import Device, Health
from tests.scenes.builders import (
    GPU_RULE,
    a_bare_node,
    a_device,
    a_fuse,
    a_gpu,
    a_kfd,
    a_terminal,
    a_usb_device,
    a_usb_node,
    a_usb_serial,
    by_sys_path,
    resources_of,
)
from tests.scenes.inventories import DOMAIN, inventory_of, offered, the_device


def shares(match: str, *more: str) -> str:
    """A rule for USB serial adapters that share what a match says."""
    return "\n".join(
        (
            '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty" }',
            f"[[resource.node]]\nmatch = {match}\nshared = true",
            *more,
        )
    )


def paths(device: Device) -> tuple[list[str], list[str]]:
    """The nodes of a device, and the shared ones."""
    return [node.path for node in device.nodes], [node.path for node in device.shared]


def link_of(device: UdevDevice) -> str:
    """The name of the link to a node that is shared."""
    subsystem = f'"{device.subsystem}"' if device.subsystem else "{ exists = false }"
    name = f'"{device.device_node}"' if device.is_bare else "{ exists = true }"
    rules = shares(f"{{ SUBSYSTEM = {subsystem}, DEVNAME = {name} }}")
    (node,) = the_device(rules, device, a_usb_serial()).shared
    assert node.path == device.device_node
    return node.link


# What is shared


def test_a_shared_node_goes_along_with_every_device_and_belongs_to_none() -> None:
    one, other = offered(GPU_RULE, *a_gpu(0), *a_gpu(1), a_kfd())
    assert paths(one) == (["/dev/dri/card0", "/dev/dri/renderD128"], ["/dev/kfd"])
    assert paths(other) == (["/dev/dri/card1", "/dev/dri/renderD129"], ["/dev/kfd"])
    assert one.shared is other.shared
    assert one.healthy


def test_it_changes_nothing_else_of_a_device() -> None:
    (gpu,) = offered(GPU_RULE, *a_gpu(0), a_kfd())
    (alone,) = offered(GPU_RULE.partition("[[resource.node]]")[0], *a_gpu(0))
    assert gpu.links == (*alone.links, "shared+kfd")
    assert replace(gpu, links=alone.links, shared=()) == alone


def test_all_nodes_that_satisfy_the_table_go_along_and_the_first_table_takes_a_node() -> None:
    rules = shares(
        '{ SUBSYSTEM = "vc" }',
        '[[resource.node]]\nmatch = { DEVNAME = ["/dev/fuse", "/dev/vcs3"] }\nshared = true',
    )
    device = the_device(rules, a_fuse(), a_terminal(10), a_terminal(3), a_usb_serial())
    assert paths(device) == (["/dev/ttyUSB0"], ["/dev/vcs3", "/dev/vcs10", "/dev/fuse"])
    assert [node.table for node in device.shared] == [
        resources_of(rules)[0].nodes[index] for index in (0, 0, 1)
    ]


def test_a_node_that_a_resource_shares_is_none_of_its_own() -> None:
    rules = '[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "vc" }\n[[resource.node]]\n'
    rules += '[[resource.node]]\nmatch = { DEVNAME = "/dev/vcs1" }\nshared = true\n'
    device = the_device(rules, a_terminal(1), a_terminal(2))
    assert paths(device) == (["/dev/vcs2"], ["/dev/vcs1"])


def test_what_udev_has_not_finished_with_is_not_shared() -> None:
    device = the_device(GPU_RULE, *a_gpu(0), replace(a_kfd(), initialized=False))
    assert device.reason == "the shared node for DEVNAME '/dev/kfd' is missing"


def test_a_shared_node_needs_no_device_and_makes_none() -> None:
    assert offered(GPU_RULE, a_kfd()) == []


# Without it


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("", "the shared node for DEVNAME '/dev/kfd' is missing"),
        ('container_path = "/dev/compute"', "the shared node for '/dev/compute' is missing"),
        ("optional = true", ""),
    ],
)
def test_without_a_shared_node_no_device_is_healthy_unless_it_is_optional(more: str, reason: str) -> None:
    devices = offered(GPU_RULE + more, *a_gpu(0), *a_gpu(1))
    assert [device.reason for device in devices] == [reason, reason]
    assert [device.health for device in devices] == [Health.UNHEALTHY if reason else Health.HEALTHY] * 2


def test_one_of_several_nodes_of_a_table_is_enough() -> None:
    rules = shares('[{ SUBSYSTEM = "vc" }, { DEVNAME = "/dev/fuse" }]')
    assert the_device(rules, a_usb_serial()).reason == (
        "the shared node for SUBSYSTEM 'vc' or DEVNAME '/dev/fuse' is missing"
    )
    assert the_device(rules, a_usb_serial(), a_fuse()).healthy


def test_the_devices_own_reason_comes_first() -> None:
    gone = replace(a_usb_serial(), node_is_there=False)
    device = the_device(shares('{ DEVNAME = "/dev/fuse" }'), gone)
    assert device.reason == "'/dev/ttyUSB0' is not the device node c 188:0"


def test_a_shared_node_that_is_not_there_makes_the_devices_unhealthy_and_its_link_lead_nowhere() -> None:
    inventory = inventory_of(GPU_RULE, *a_gpu(0), replace(a_kfd(), node_is_there=False))
    (device,) = inventory.offers[f"{DOMAIN}/gpu"].devices
    assert device.reason == "'/dev/kfd' is not the device node c 510:0"
    assert inventory.links()["shared+kfd"] is None


# What is refused


MEM = a_device("/sys/devices/virtual/mem/mem", subsystem="mem", node="/dev/mem", number="c 1:1")
DANGER = "it gives control of the host; the rule lacks 'allow_dangerous = true'"


def test_a_dangerous_node_is_refused_unless_the_rule_allows_it() -> None:
    rules = shares('{ DEVNAME = "/dev/mem" }')
    inventory = inventory_of(rules, MEM, a_usb_serial())
    (device,) = inventory.offers[f"{DOMAIN}/ftdi"].devices
    assert device.shared == ()
    assert device.reason == f"the shared node '/dev/mem' is not offered: {DANGER}"
    assert inventory.refusals == (Refusal(f"{DOMAIN}/ftdi", "/dev/mem", DANGER),)
    allowed = rules.replace("match", "allow_dangerous = true\nmatch", 1)
    assert the_device(allowed, MEM, a_usb_serial()).healthy


def test_a_node_without_a_property_that_its_path_names_is_refused() -> None:
    rules = shares('{ SUBSYSTEM = "vc" }', 'container_path = "/dev/{COLOUR}"')
    red = replace(a_terminal(1), properties={**a_terminal(1).properties, "COLOUR": "red"})
    inventory = inventory_of(rules, red, a_terminal(2), a_usb_serial())
    (device,) = inventory.offers[f"{DOMAIN}/ftdi"].devices
    reason = "it has no property COLOUR, which a template uses without a default"
    assert paths(device) == (["/dev/ttyUSB0"], ["/dev/vcs1"])
    assert inventory.refusals == (Refusal(f"{DOMAIN}/ftdi", "/dev/vcs2", reason),)


# Others


OWNER = '[[resource]]\nname = "kfd"\nmatch = { DEVNAME = "/dev/kfd" }\n'


def test_a_node_that_another_resource_has_for_one_container_at_a_time_is_a_conflict() -> None:
    inventory = inventory_of(GPU_RULE + OWNER, *a_gpu(0), a_kfd())
    assert inventory.conflicts == (Conflict("/dev/kfd", f"{DOMAIN}/kfd", (f"{DOMAIN}/gpu",)),)
    assert [len(offer.devices) for offer in inventory.offers.values()] == [1, 1]


def test_it_is_none_if_that_resource_has_replicas() -> None:
    assert inventory_of(f"{GPU_RULE}{OWNER}replicas = 8\n", *a_gpu(0), a_kfd()).conflicts == ()


def test_two_resources_that_share_a_node_are_neither_a_conflict_nor_an_overlap() -> None:
    rules = GPU_RULE + shares('{ SUBSYSTEM = "kfd" }')
    inventory = inventory_of(rules, *a_gpu(0), a_usb_serial(), a_kfd())
    assert inventory.conflicts == ()
    assert inventory.overlaps == ()
    one, other = (offer.devices[0] for offer in inventory.offers.values())
    assert [node.link for node in (*one.shared, *other.shared)] == ["shared+kfd"] * 2


# Links


def test_a_link_repeats_the_name_of_a_virtual_device() -> None:
    assert link_of(a_kfd()) == "shared+kfd"
    path = "/sys/devices/virtual/misc/rdma_cm"
    assert link_of(a_device(path, node="/dev/infiniband/rdma_cm")) == "shared+infiniband+rdma_cm"
    for name in ("nvidiactl", "nvidia-caps/nvidia-cap1"):
        assert link_of(a_bare_node(f"/dev/{name}")) == f"shared+{name.replace('/', '+')}"


def test_a_link_of_anything_else_is_named_after_its_place_whatever_the_kernel_calls_it() -> None:
    def camera(number: int, bus: int, port: str = "2") -> UdevDevice:
        usb = a_usb_device(port, bus=bus, serial=None)
        return a_usb_node(usb, "video4linux", f"video{number}", attributes={"index": "0"})

    link = link_of(camera(0, 1))
    assert link == "shared+video@4qfblkgjxr"
    assert link_of(camera(7, 2)) == link
    assert link_of(camera(0, 1, "3")) != link


def test_hostile_names_cannot_take_the_link_of_another_node() -> None:
    names = ["a/b", "a@b", "a+b", "a b", "../kfd", "é", "a\nb", "x" * 200]
    links = {
        link_of(a_device(f"/sys/devices/virtual/misc/{n}", node=f"/dev/{name}"))
        for n, name in enumerate(names)
    }
    assert len(links) == len(names)
    assert all(
        link.isascii() and link.isprintable() and "/" not in link and len(link) < 128 for link in links
    )


def test_a_link_leads_to_the_node_while_devices_are_unhealthy() -> None:
    one, other = a_usb_serial(0, port="1", serial="A"), a_usb_serial(1, port="2", serial="B")
    rules = shares('{ DEVNAME = "/dev/fuse" }')
    for first, second in ((True, False), (False, True), (False, False)):
        there = replace(one, node_is_there=first), replace(other, node_is_there=second)
        assert inventory_of(rules, *there, a_fuse()).links() == {
            "ftdi_A": "/dev/ttyUSB0" if first else None,
            "ftdi_B": "/dev/ttyUSB1" if second else None,
            "shared+fuse": "/dev/fuse",
        }


def test_links_that_were_pointed_at_themselves_lead_to_the_shared_node_that_has_to_be_read_again() -> None:
    inventory = inventory_of(GPU_RULE, *a_gpu(0), *a_gpu(1), a_kfd())
    assert inventory.behind({"shared+kfd"}) == (a_kfd().sys_path,)


# Drafts


def test_an_offer_changes_with_its_shared_nodes_and_only_with_them() -> None:
    builder = Builder(resources_of(GPU_RULE + OWNER.replace("kfd", "fuse"), domain=DOMAIN), DOMAIN)
    present = by_sys_path(*a_gpu(0), a_kfd())
    before = builder.build(present).offers
    assert (
        builder.build({**present, **by_sys_path(a_terminal())}).offers[f"{DOMAIN}/gpu"]
        is before[f"{DOMAIN}/gpu"]
    )
    changed = builder.build({**present, **by_sys_path(replace(a_kfd(), gid=44))}).offers
    assert changed[f"{DOMAIN}/gpu"] is not before[f"{DOMAIN}/gpu"]
    assert changed[f"{DOMAIN}/fuse"] is before[f"{DOMAIN}/fuse"]
    del present[a_kfd().sys_path]
    assert not builder.build(present).offers[f"{DOMAIN}/gpu"].devices[0].healthy


# Nodes that udev does not know


ACME = """
[[resource]]
name = "acme"
match = { DEVNAME = "/dev/acme*" }
[[resource.node]]
match = { DEVNAME = "/dev/acme-ctl" }
shared = true
"""


def test_a_bare_node_can_be_shared_and_one_match_may_hold_for_both() -> None:
    control = a_bare_node("/dev/acme-ctl", "c 195:255")
    one, other = offered(ACME, a_bare_node("/dev/acme0"), a_bare_node("/dev/acme1", "c 195:1"), control)
    assert paths(one) == (["/dev/acme0"], ["/dev/acme-ctl"])
    assert paths(other) == (["/dev/acme1"], ["/dev/acme-ctl"])
    assert one.shared[0].link == "shared+acme-ctl"


def test_an_alias_is_not_shared() -> None:
    reason = "it has the number of '/dev/sda', b 8:0; match that device node instead"
    inventory = inventory_of(ACME, a_bare_node(), a_bare_node("/dev/acme-ctl", "b 8:0", reason))
    (device,) = inventory.offers[f"{DOMAIN}/acme"].devices
    assert device.shared == ()
    assert device.reason == f"the shared node '/dev/acme-ctl' is not offered: {reason}"
    assert inventory.refusals == (Refusal(f"{DOMAIN}/acme", "/dev/acme-ctl", reason),)
