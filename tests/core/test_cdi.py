"""CDI answers: which names Allocate returns, and what the spec files say that they mean."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.allocate import Allocation, allocate
from genericdp.core.cdi import (
    FEW,
    SpecTexts,
    by_cdi,
    by_names,
    cdi_device,
    file_name,
    lasting_envs,
    why_not_cdi,
)
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.offer import Offer
from genericdp.core.memory.answered import Answered, CdiDevice
from genericdp.core.rules.match import Match
from genericdp.core.rules.name import cdi_kind, env_names, why_not_a_resource_name
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.settings import AnswerBy
from genericdp.simulator.runtimes.cdi_spec import Spec, read
from tests.scenes.builders import a_fuse, a_kfd, a_modem, a_terminal, a_usb_device, a_usb_serial
from tests.scenes.inventories import inventory_of
from tests.scenes.steps import growth

LINKS = "/dev/genericdp"
FTDI = '[[resource]]\nname = "ftdi"\nanswer = "cdi"\nmatch = { SUBSYSTEM = "tty" }\n'
FUSES = "example.com/fuse"
FUSE = '[[resource]]\nname = "fuse"\nmatch = { DEVNAME = "/dev/fuse" }\nreplicas = 3\n'
USB = '[[resource]]\nname = "usb"\nmatch = { SUBSYSTEM = "usb", DEVTYPE = "usb_device" }\n'
A, B = a_usb_serial(0, port="1", serial="A"), a_usb_serial(1, port="2", serial="B")


def the_offer(rules: str, *devices: UdevDevice) -> Offer:
    (offer,) = inventory_of(rules, *devices).offers.values()
    return offer


def answered(*devices: CdiDevice) -> Answered:
    return {device.name: device for device in devices}


def text_of(offer: Offer, named: Answered | None = None, *, all_by_cdi: bool = True) -> str:
    """The text of the only spec file; "" when there is none."""
    texts = SpecTexts(LINKS).of([offer], named or {}, lambda _: all_by_cdi)
    return texts.get(file_name(offer.resource.name), "")


def spec_of(offer: Offer, named: Answered | None = None, *, all_by_cdi: bool = True) -> Spec:
    """The only spec file, as a runtime reads it."""
    return read(text_of(offer, named, all_by_cdi=all_by_cdi))


def answer(offer: Offer, *ids: str) -> Allocation:
    return by_names(allocate(offer, ids, LINKS), cdi_device(offer, ids), offer.resource)


def envs(edits: Any) -> dict[str, str]:
    return dict(env.split("=", 1) for env in edits["env"])


# The whole


def test_a_spec_file_without_any_key_in_the_rule() -> None:
    env = "GENERICDP_EXAMPLE_COM_FTDI"
    zero = '{"path": "/dev/ttyUSB0", "hostPath": "/dev/ttyUSB0", "type": "c", "permissions": "rw"}'
    one = zero.replace("ttyUSB0", "ttyUSB1")
    assert text_of(the_offer(FTDI, replace(A, gid=20), B)) == (
        '{"cdiVersion": "0.7.0", "kind": "example.com/ftdi", "devices": [\n'
        '{"name": "ftdi_A", "containerEdits": {'
        f'"env": ["{env}=/dev/ttyUSB0", "{env}_IDS=ftdi_A"], '
        f'"deviceNodes": [{zero}], "additionalGids": [20]}}}},\n'
        '{"name": "ftdi_B", "containerEdits": {'
        f'"env": ["{env}=/dev/ttyUSB1", "{env}_IDS=ftdi_B"], '
        f'"deviceNodes": [{one}]}}}}\n'
        "]}\n"
    )


def test_the_udev_rule_finds_each_device_and_its_nodes_in_a_line_of_its_own() -> None:
    """It removes the lines of a removed node while genericdp is down, by grep and sed."""
    offer = the_offer(FTDI, A, B)
    first, *lines, last = text_of(offer, answered(cdi_device(offer, offer.ids))).splitlines()
    assert first.endswith('"devices": [')
    assert last == "]}"
    assert len(lines) == 3
    assert all(line.startswith('{"name": ') and line.rstrip(",").endswith("}") for line in lines)
    assert ['"hostPath": "/dev/ttyUSB1"' in line for line in lines] == [False, True, True]


def test_an_answer_names_the_device_and_keeps_what_cannot_change() -> None:
    rules = (
        FTDI
        + 'annotations = { a = "b" }\ncdi = "v.test/class=x"\n'
        + 'mounts = [{host_path="/a",container_path="/b"}]'
    )
    assert answer(the_offer(rules, A), "ftdi_A") == Allocation(
        devices=(),
        mounts=(),
        envs={"GENERICDP_EXAMPLE_COM_FTDI_IDS": "ftdi_A"},
        annotations={"a": "b"},
        cdi_devices=("example.com/ftdi=ftdi_A", "v.test/class=x"),
    )


@pytest.mark.parametrize(
    ("keys", "lasting"),
    [
        ('container_path = "/dev/x{index}"', {"GENERICDP_EXAMPLE_COM_FTDI": "/dev/x0"}),
        ('container_path = ["{link}", "/dev/{devname}"]', {"GENERICDP_EXAMPLE_COM_FTDI": f"{LINKS}/ftdi_A"}),
        ('env = { A = "on", B = "{id}", C = "{ID_SERIAL_SHORT|none}" }', {"A": "on", "B": "ftdi_A"}),
        ("kubevirt = true", {}),
        ('env = { "A{index}" = "x", "B-C" = "y" }', {"B-C": "y"}),
    ],
)
def test_an_env_stays_in_the_answer_only_if_nothing_can_change_it(keys: str, lasting: dict[str, str]) -> None:
    ids = {"GENERICDP_EXAMPLE_COM_FTDI_IDS": "ftdi_A"}
    assert answer(the_offer(FTDI + keys, A), "ftdi_A").envs == ids | lasting


def test_several_devices_have_one_more_name_that_brings_the_envs_of_all() -> None:
    offer = the_offer(USB + "kubevirt = true", a_usb_device("1", serial="A"), a_usb_device("2", serial="B"))
    first, second = offer.ids
    *each, of_all = answer(offer, second, first).cdi_devices
    assert each == [f"example.com/usb={first}", f"example.com/usb={second}"]
    assert of_all.startswith(f"example.com/usb={first}:")
    spec = spec_of(offer, answered(cdi_device(offer, (first, second))))
    together = spec.devices[of_all.partition("=")[2]]
    assert envs(together) == allocate(offer, [first, second], LINKS).envs
    assert envs(together)["GENERICDP_EXAMPLE_COM_USB_IDS"] == f"{first},{second}"


def test_devices_that_want_one_path_are_told_apart() -> None:
    offer = the_offer(FTDI + 'container_path = "/dev/modem"', A, B)
    both = cdi_device(offer, offer.ids)
    nodes = spec_of(offer, answered(both)).devices[both.short_name]["deviceNodes"]
    assert [(node["path"], node["hostPath"]) for node in nodes] == [
        ("/dev/modem", "/dev/ttyUSB0"),
        ("/dev/modem-1", "/dev/ttyUSB1"),
    ]


def test_all_nodes_of_a_device_come_with_their_paths_permissions_and_groups() -> None:
    rules = """
[[resource]]
name = "modem"
match = { usb = { vendor = "2c7c" } }
answer = "cdi"
group_by = "usb_device"
container_path = ["/dev/modem{index}-{devname}", "/dev/{devname}"]
permissions = "r"
mounts = [{ host_path = "/a", container_path = "/b/{id}", read_only = false }]
"""
    # 65534 is what a user namespace shows for any other group.
    modem = [replace(device, gid=gid) for device, gid in zip(a_modem(), (0, 20, 65534, 44), strict=False)]
    offer = the_offer(rules, *modem)
    (id_,) = offer.ids
    edits = spec_of(offer).devices[id_]
    paths = [spec.container_path for spec in allocate(offer, [id_], LINKS).devices]
    assert [node["path"] for node in edits["deviceNodes"]] == paths
    assert {node["permissions"] for node in edits["deviceNodes"]} == {"r"}
    assert edits["mounts"] == [
        {"hostPath": "/a", "containerPath": f"/b/{id_}", "options": ["rbind", "rprivate", "rw"]}
    ]
    assert edits["additionalGids"] == [20, 44]


# Which devices are in a file


def test_an_absent_device_is_not_in_the_file_and_without_any_there_is_no_file() -> None:
    offer = the_offer(FTDI, A, replace(B, node_is_there=False))
    assert list(spec_of(offer).devices) == ["ftdi_A"]
    assert list(spec_of(offer, answered(cdi_device(offer, offer.ids))).devices) == ["ftdi_A"]
    assert text_of(the_offer(FTDI, replace(A, node_is_there=False))) == ""


def test_of_replicas_only_those_are_in_the_file_that_pods_hold() -> None:
    offer = the_offer(FUSE, a_fuse())
    assert text_of(offer) == ""
    both = cdi_device(offer, ["fuse_fuse.2", "fuse_fuse.0"])
    devices = spec_of(offer, answered(both)).devices
    assert list(devices) == ["fuse_fuse.0", "fuse_fuse.2", both.short_name]
    assert envs(devices["fuse_fuse.2"])["GENERICDP_EXAMPLE_COM_FUSE_IDS"] == "fuse_fuse.2"


def test_what_pods_hold_stays_in_the_file_when_the_resource_is_no_longer_answered_by_cdi() -> None:
    offer = the_offer(FTDI, A, B)
    assert list(spec_of(offer, answered(cdi_device(offer, ["ftdi_B"])), all_by_cdi=False).devices) == [
        "ftdi_B"
    ]
    assert text_of(offer, all_by_cdi=False) == ""


def test_what_pods_hold_of_a_device_that_is_not_offered_is_left_out() -> None:
    offer = the_offer(FTDI, A)
    assert list(spec_of(offer, answered(CdiDevice("example.com/ftdi", ("ftdi_Z",)))).devices) == ["ftdi_A"]


# The rules of CDI


@pytest.mark.parametrize(
    ("rules", "gid", "version"),
    [
        (FTDI, 0, "0.5.0"),
        (FTDI.replace('"ftdi"', '"ft.di"'), None, "0.6.0"),
        (FTDI, 20, "0.7.0"),
    ],
)
def test_a_file_has_the_lowest_version_that_its_fields_need(
    rules: str, gid: int | None, version: str
) -> None:
    text = text_of(the_offer(rules, replace(A, gid=gid)))
    assert json.loads(text)["cdiVersion"] == version
    assert read(text).devices


RESOURCE_NAMES = st.from_regex(
    r"[a-z0-9]([-a-z0-9]{0,3}[a-z0-9])?(\.[a-z0-9]{1,3}){0,2}/[A-Za-z0-9]([-A-Za-z0-9_.]{0,4}[A-Za-z0-9])?",
    fullmatch=True,
).filter(lambda name: not why_not_a_resource_name(name))


@given(st.lists(RESOURCE_NAMES, unique=True, max_size=8))
def test_each_resource_has_a_kind_and_a_file_of_its_own(names: list[str]) -> None:
    assert len({cdi_kind(name) for name in names}) == len(names)
    assert len({file_name(name) for name in names}) == len(names)
    for name in names:
        vendor, class_ = cdi_kind(name).split("/")
        for part in (vendor, class_):
            assert len(part) > 1
            assert part[0].isalpha()
            assert part[-1].isalnum()


def test_a_name_that_cdi_permits_stays_and_another_gets_a_kind_that_it_permits() -> None:
    assert cdi_kind("genericdp.io/lte-modem") == "genericdp.io/lte-modem"
    assert cdi_kind("vendor.example/a.b_c") == "vendor.example/a.b_c"
    assert cdi_kind("genericdp.io/3d") == "genericdp.io/x-genericdp.io_3d"
    assert cdi_kind("1.2.3.4/x") == "genericdp.io/x-1.2.3.4_x"
    assert cdi_kind("genericdp.io/x-y") == "genericdp.io/x-genericdp.io_x-y"
    assert file_name("genericdp.io/ftdi") == "genericdp_genericdp.io_ftdi.json"
    long = f"{'a.' * 120}io/{'x' * 63}"
    assert len(file_name(long)) < 100


HOSTILE = st.text(min_size=1, max_size=80).filter(lambda text: "\0" not in text)


@given(st.lists(HOSTILE, min_size=1, max_size=4, unique=True))
def test_whatever_devices_call_themselves_a_runtime_reads_the_file(serials: list[str]) -> None:
    keys = 'env = { S = "{ID_SERIAL_SHORT|none}" }\ncontainer_path = "/dev/{ID_SERIAL_SHORT|none}"'
    devices = [
        a_usb_serial(number, port=str(number + 1), serial=serial) for number, serial in enumerate(serials)
    ]
    offer = the_offer(FTDI + keys, *devices)
    together = cdi_device(offer, offer.ids)
    spec = spec_of(offer, answered(together))
    assert set(spec.devices) == {*offer.ids, together.short_name}
    assert text_of(offer, answered(together)).isascii()


# Which resources


def test_the_key_of_a_resource_comes_before_the_setting() -> None:
    def of(key: AnswerBy | None, setting: AnswerBy, *, reads: bool = False) -> bool:
        return by_cdi(Resource("a.b/c", Match(), answer=key), setting, runtime_reads_cdi=reads)

    assert not of(None, AnswerBy.DEVICES, reads=True)
    assert of(None, AnswerBy.CDI)
    assert of(AnswerBy.CDI, AnswerBy.DEVICES)
    assert not of(AnswerBy.DEVICES, AnswerBy.CDI)
    assert of(None, AnswerBy.AUTO, reads=True)
    assert not of(AnswerBy.AUTO, AnswerBy.CDI, reads=False)


CDI_ON, CDI_OFF = '{"enableCDI": true}', '{"enableCDI": false}'
ELSEWHERE = '{"enableCDI": true, "cdiSpecDirs": ["/etc/cdi", "/opt/cdi"]}'


@pytest.mark.parametrize(
    ("name", "version", "config", "why_not"),
    [
        ("containerd", "v2.3.4", "", ""),
        ("containerd", "2.0.0-rc.1", '{"enableCDI": null, "cdiSpecDirs": ["/etc/cdi", "/var/run/cdi"]}', ""),
        ("containerd", "v2.0.11", CDI_OFF, "enable_cdi is not set in its configuration"),
        ("containerd", "1.7.24~ds1-6", CDI_ON, ""),
        ("containerd", "1.7.24~ds1-6", CDI_OFF, "enable_cdi is not set in its configuration"),
        ("containerd", "v1.7.2", "not JSON", "enable_cdi is not set in its configuration"),
        ("containerd", "1.6.20", CDI_ON, "CDI needs 1.7 or newer"),
        ("containerd", "garbage", CDI_ON, "CDI needs 1.7 or newer"),
        ("containerd", "v2.1.9", ELSEWHERE, "it does not read '/run/cdi', which is not in its cdi_spec_dirs"),
        ("cri-o", "1.28.0", "", ""),
        ("cri-o", "1.27.9", "", "CDI needs 1.28 or newer"),
        ("docker", "29.0.0", "", "it is not known to read CDI"),
    ],
)
def test_whether_a_runtime_reads_cdi(name: str, version: str, config: str, why_not: str) -> None:
    assert why_not_cdi(name, version, {"config": config}, "/run/cdi") == why_not


# What it costs


def test_what_did_not_change_is_not_rendered_again() -> None:
    texts = SpecTexts(LINKS)

    def entries(offer: Offer, named: Answered) -> Mapping[tuple[str, ...], object]:
        texts.of([offer], named, lambda _: True)
        return texts._before["example.com/ftdi"][1]

    before, after = the_offer(FTDI, A, B), the_offer(FTDI, A, replace(B, gid=20))
    both = cdi_device(before, before.ids)
    first, second, third = (
        entries(before, {}),
        entries(before, answered(both)),
        entries(after, answered(both)),
    )
    assert all(second[ids] is first[ids] for ids in first)
    assert third["ftdi_A",] is first["ftdi_A",]
    assert third["ftdi_B",] is not first["ftdi_B",]
    assert third[both.ids] is not second[both.ids]


def test_an_edit_of_the_rule_alone_is_written() -> None:
    texts = SpecTexts(LINKS)
    before, after = the_offer(FTDI, A), the_offer(FTDI + 'env = { A = "edited" }', A)
    assert before.devices == after.devices
    first, second = ("".join(texts.of([offer], {}, lambda _: True).values()) for offer in (before, after))
    assert "A=edited" not in first
    assert "A=edited" in second


def test_of_many_ids_only_the_cdi_device_of_all_is_named_and_made() -> None:
    """Each of them would take the runtime some time, and a replica has no other use for its own."""
    offer = the_offer(FUSE.replace("replicas = 3", f"replicas = {FEW + 1}"), a_fuse())
    *few, one_more = offer.in_order(offer.ids)
    some, all_ = cdi_device(offer, few), cdi_device(offer, [*few, one_more])
    assert answer(offer, *some.ids).cdi_devices == (*(f"{FUSES}={id_}" for id_ in few), some.name)
    assert answer(offer, *all_.ids).cdi_devices == (all_.name,)
    assert list(spec_of(offer, answered(some)).devices) == [*few, some.short_name]
    (of_all,) = spec_of(offer, answered(all_)).devices.values()
    assert envs(of_all) == allocate(offer, all_.ids, LINKS).envs


def test_the_cost_of_a_file_is_in_proportion_to_its_devices() -> None:
    rules = FTDI.replace("tty", "vc")

    def prepared(count: int) -> Callable[[], object]:
        offer = the_offer(rules, *(a_terminal(number) for number in range(count)))
        offer.in_order(offer.ids)  # which it works out once
        return lambda: SpecTexts(LINKS).of([offer], {}, lambda _: True)

    assert growth(prepared, 300) < 2.2


# Shared nodes


GPU = """
[[resource]]
name = "gpu"
match = { SUBSYSTEM = "tty" }
answer = "cdi"
container_path = "/dev/gpu{id}"
[[resource.node]]
match = { DEVNAME = "/dev/kfd" }
shared = true
"""


def test_a_shared_node_is_in_the_line_of_each_device_so_the_udev_rule_removes_them_all() -> None:
    offer = the_offer(GPU, A, B, replace(a_kfd(), gid=44))
    named = answered(cdi_device(offer, offer.ids))
    _, *lines, _ = text_of(offer, named).splitlines()
    assert [line.count('"hostPath": "/dev/kfd"') for line in lines] == [1, 1, 1]
    assert [edits["additionalGids"] for edits in spec_of(offer, named).devices.values()] == [[44]] * 3


def test_a_container_with_several_devices_gets_a_shared_node_once() -> None:
    offer = the_offer(GPU, A, B, a_kfd())
    assert [spec.container_path for spec in allocate(offer, offer.ids, LINKS).devices] == [
        "/dev/kfd",
        "/dev/gpugpu_A",
        "/dev/gpugpu_B",
    ]


def test_without_a_shared_node_no_device_is_in_the_spec_file() -> None:
    assert text_of(the_offer(GPU, A, B)) == ""


def test_the_path_of_a_shared_node_does_not_matter_to_what_an_env_says() -> None:
    changing = GPU.replace("shared = true", 'shared = true\ncontainer_path = "/dev/{devname}"')
    for rules in (GPU, changing):
        assert env_names("example.com/gpu")[0] in lasting_envs(the_offer(rules, A, a_kfd()).resource)
