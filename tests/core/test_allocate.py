"""What a container gets: DeviceSpecs, mounts, environment, annotations, CDI names."""

import itertools
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from genericdp.core.allocate import (
    Allocation,
    DeviceSpec,
    MountSpec,
    RefusalReason,
    RefusedError,
    allocate,
    device_specs,
)
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Device, Offer
from genericdp.core.limits import why_too_long
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remember import remember
from genericdp.core.rules.name import env_names, kubevirt_env
from tests.scenes.builders import (
    GPU_RULE,
    a_device,
    a_fuse,
    a_gpu,
    a_kfd,
    a_modem,
    a_usb_device,
    a_usb_node,
    a_usb_serial,
)
from tests.scenes.inventories import inventory_of
from tests.scenes.steps import growth

LINKS = "/dev/genericdp"
FTDI = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty" }\n'
FUSE = '[[resource]]\nname = "fuse"\nmatch = { DEVNAME = "/dev/fuse" }\nreplicas = 3\n'
USB = '[[resource]]\nname = "usb"\nmatch = { SUBSYSTEM = "usb", DEVTYPE = "usb_device" }\n'
A, B = a_usb_serial(0, port="1", serial="A"), a_usb_serial(1, port="2", serial="B")
C = a_usb_serial(2, port="3", serial="C")


def the_offer(inventory: Inventory) -> Offer:
    (offer,) = inventory.offers.values()
    return offer


def answer(rules: str, devices: list[UdevDevice], *ids: str) -> Allocation:
    """The answer for these ids, or for all."""
    offer = the_offer(inventory_of(rules, *devices))
    return allocate(offer, ids or list(offer.ids), LINKS)


def paths(allocation: Allocation) -> dict[str, str]:
    return {spec.container_path: spec.host_path for spec in allocation.devices}


# The whole


def test_an_answer_without_any_key_in_the_rule() -> None:
    assert answer(FTDI, [A]) == Allocation(
        devices=(DeviceSpec("/dev/ttyUSB0", "/dev/genericdp/ftdi_A", "rw"),),
        mounts=(),
        envs={"GENERICDP_EXAMPLE_COM_FTDI": "/dev/ttyUSB0", "GENERICDP_EXAMPLE_COM_FTDI_IDS": "ftdi_A"},
        annotations={},
        cdi_devices=(),
    )


def test_an_answer_with_all_of_them() -> None:
    rules = """
    [[resource]]
    name = "vendor.example/lte-modem_2"
    match = { usb = { vendor = "2c7c" } }
    group_by = "usb_device"
    kubevirt = true
    env = { MODEM = "{ID_SERIAL_SHORT}", LINK = "{link}", WHICH = "{index}:{id}:{devname}" }
    mounts = [{ host_path = "/srv/{ID_SERIAL_SHORT}", container_path = "/cal", read_only = false }]
    annotations = { "example.com/serial" = "{ID_SERIAL_SHORT}" }
    cdi = ["vendor.example/modem={ID_SERIAL_SHORT}"]
    [[resource.node]]
    match = { SUBSYSTEM = "tty", usb = { interface = "02" } }
    container_path = ["/dev/modem-at", "/dev/{devname}"]
    permissions = "mrw"
    [[resource.node]]
    match = { SUBSYSTEM = "usbmisc" }
    container_path = "/dev/modem-qmi"
    permissions = "r"
    """
    name = "GENERICDP_VENDOR_EXAMPLE_LTE_MODEM_2"
    id_ = "lte-modem-2_E_rryqbir6me"
    at, qmi = f"{LINKS}/{id_}@if02", f"{LINKS}/{id_}@if04-cdc-wdm"
    assert answer(rules, list(a_modem(serial="E"))) == Allocation(
        devices=(
            DeviceSpec("/dev/modem-at", at, "rwm"),
            DeviceSpec("/dev/ttyUSB3", at, "rwm"),
            DeviceSpec("/dev/modem-qmi", qmi, "r"),
        ),
        mounts=(MountSpec("/cal", "/srv/E", read_only=False),),
        envs={
            name: "/dev/modem-at,/dev/modem-qmi",
            f"{name}_IDS": id_,
            "USB_RESOURCE_VENDOR_EXAMPLE_LTE-MODEM_2": "1:9",
            "MODEM": "E",
            "LINK": at,
            "WHICH": f"0:{id_}:ttyUSB3",
        },
        annotations={"example.com/serial": "E"},
        cdi_devices=("vendor.example/modem=E",),
    )


# Laws


def test_the_same_ids_give_the_same_answer_however_often_and_in_whatever_order() -> None:
    devices = [a_usb_serial(n, port=str(n + 1), serial=f"S{n}") for n in range(4)]
    offer = the_offer(inventory_of(FTDI, *devices))
    expected = allocate(offer, offer.ids, LINKS)
    for order in itertools.permutations(offer.ids):
        assert allocate(offer, order, LINKS) == expected
        assert allocate(offer, (*order, *order), LINKS) == expected


def test_host_path_is_the_link_whatever_node_the_device_has() -> None:
    before = answer(FTDI + 'container_path = "/dev/gps"', [A])
    after = answer(FTDI + 'container_path = "/dev/gps"', [a_usb_serial(7, port="9", serial="A")])
    assert before == after


def test_an_unhealthy_device_is_answered_for_as_before() -> None:
    healthy, unhealthy = answer(FTDI, [A]), answer(FTDI, [replace(A, node_is_there=False)])
    assert unhealthy == healthy


def test_a_device_that_left_is_answered_for_as_before() -> None:
    _, memory = remember(inventory_of(FTDI, A), Memory(), 0.0, None)
    inventory, _ = remember(inventory_of(FTDI), memory, 1.0, None)
    assert allocate(the_offer(inventory), ["ftdi_A"], LINKS) == answer(FTDI, [A])


# Container paths


def test_devices_of_one_container_path_are_told_apart() -> None:
    allocation = answer(FTDI + 'container_path = "/dev/gps"', [A, B])
    assert paths(allocation) == {"/dev/gps": f"{LINKS}/ftdi_A", "/dev/gps-1": f"{LINKS}/ftdi_B"}
    assert allocation.envs["GENERICDP_EXAMPLE_COM_FTDI"] == "/dev/gps,/dev/gps-1"


def named(*names: str) -> list[UdevDevice]:
    """Serial adapters S1, S2, … whose property NAME is one of these."""
    return [
        a_usb_node(a_usb_device(f"{n}", serial=f"S{n}"), "tty", f"ttyUSB{n}", properties={"NAME": name})
        for n, name in enumerate(names, 1)
    ]


def test_a_number_that_tells_apart_is_nobody_elses_path() -> None:
    allocation = answer(FTDI + 'container_path = "/dev/{NAME}"', named("x", "x", "x-1", "x"))
    assert paths(allocation) == {
        "/dev/x": f"{LINKS}/ftdi_S1",
        "/dev/x-1": f"{LINKS}/ftdi_S2",
        "/dev/x-1-1": f"{LINKS}/ftdi_S3",
        "/dev/x-2": f"{LINKS}/ftdi_S4",
    }


@pytest.mark.parametrize(
    ("path", "names", "given"),
    [
        (["/dev/{NAME}", "/dev/a/b"], ["a"], ["/dev/a", "/dev/a-1/b"]),
        (["/dev/a/b", "/dev/{NAME}"], ["a"], ["/dev/a/b", "/dev/a-1"]),
        (
            ["/dev/{NAME}", "/dev/a/{NAME}"],
            ["a", "a-1"],
            ["/dev/a", "/dev/a-1/a", "/dev/a-1-1", "/dev/a-1/a-1"],
        ),
        (
            ["/dev/{NAME}", "/dev/a/b/c"],
            ["a-1", "a"],
            ["/dev/a-1", "/dev/a/b/c", "/dev/a-2", "/dev/a/b/c-1"],
        ),
        (["/dev/a/{NAME}", "/dev/a/b/c"], ["b"], ["/dev/a/b", "/dev/a/b-1/c"]),
        (["/dev/{NAME}", "/dev/a/b/c", "/dev/{NOT_THERE|a}"], ["a"], ["/dev/a", "/dev/a-1/b/c"]),
    ],
)
def test_no_device_node_is_the_directory_of_another_one(
    path: list[str], names: list[str], given: list[str]
) -> None:
    assert list(paths(answer(FTDI + f"container_path = {path}", named(*names)))) == given


def test_a_devlink_gives_way_to_a_container_path_that_it_would_be_below() -> None:
    rules = FTDI + 'container_path = "/dev/{NOT_THERE|serial}"\ndevlinks = ["/dev/serial/by-id/*"]\n'
    allocation = answer(rules, [A])
    assert list(paths(allocation)) == ["/dev/serial", "/dev/serial-1/by-id/usb-0403_A-if00-port0"]
    assert allocation.envs["GENERICDP_EXAMPLE_COM_FTDI"] == "/dev/serial"


def test_index_counts_the_devices_of_the_answer() -> None:
    rules = FTDI + 'container_path = "/dev/gps{index}"'
    assert list(paths(answer(rules, [A, B]))) == ["/dev/gps0", "/dev/gps1"]
    assert list(paths(answer(rules, [A, B], "ftdi_B"))) == ["/dev/gps0"]


def test_link_as_container_path_makes_it_equal_to_host_path() -> None:
    allocation = answer(FTDI + 'container_path = "{link}"', [A, B])
    assert all(spec.container_path == spec.host_path for spec in allocation.devices)
    assert len(allocation.devices) == 2


def test_devlinks_are_further_names_and_not_announced() -> None:
    allocation = answer(FTDI + 'devlinks = ["/dev/serial/by-id/*"]', [A])
    assert paths(allocation) == {
        "/dev/ttyUSB0": f"{LINKS}/ftdi_A",
        "/dev/serial/by-id/usb-0403_A-if00-port0": f"{LINKS}/ftdi_A",
    }
    assert allocation.envs["GENERICDP_EXAMPLE_COM_FTDI"] == "/dev/ttyUSB0"


def test_a_path_that_a_rule_names_twice_appears_once() -> None:
    assert len(answer(FTDI + 'container_path = ["/dev/x", "/dev/{NOT_THERE|x}"]', [A]).devices) == 1


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "..", "/etc/passwd", "a/../..", "\n", "\udcff", "x" * 9999]
)
def test_no_name_of_a_device_leads_out_of_the_directory_that_the_rule_names(name: str) -> None:
    tty = a_usb_node(a_usb_device(serial="A"), "tty", "ttyUSB0", properties={"NAME": name})
    rules = """
    [[resource]]
    name = "x"
    match = { SUBSYSTEM = "tty" }
    container_path = "/dev/serial/{NAME}"
    mounts = [{ host_path = "/srv/{NAME}/cal", container_path = "/cal/{NAME}" }]
    cdi = ["vendor.example/class={NAME}"]
    """
    allocation = answer(rules, [tty])
    (spec,), (mount,), (cdi,) = allocation.devices, allocation.mounts, allocation.cdi_devices
    for path, directory in (
        (spec.container_path, "/dev/serial"),
        (mount.container_path, "/cal"),
        (mount.host_path.removesuffix("/cal"), "/srv"),
        (cdi.replace("=", "=/"), "vendor.example/class="),
    ):
        head, _, last = path.rpartition("/")
        assert head == directory
        assert last.strip(".")
        assert last.isprintable()
        assert len(last) <= 128


def test_no_value_of_a_device_makes_a_line_or_a_byte_of_its_own() -> None:
    tty = a_usb_node(
        a_usb_device(serial="A"), "tty", "ttyUSB0", properties={"NAME": "a\nLD_PRELOAD=x\0é\udcff"}
    )
    rules = FTDI + 'env = { NAME = "<{NAME}>" }\nannotations = { "example.com/n" = "{NAME}" }\n'
    allocation = answer(rules, [tty])
    assert allocation.envs["NAME"] == "<a_LD_PRELOAD=x___>"
    assert allocation.annotations == {"example.com/n": "a_LD_PRELOAD=x___"}


def test_no_name_of_a_device_makes_two_paths_of_one() -> None:
    tty = a_usb_node(a_usb_device(serial="A"), "tty", "ttyUSB0", properties={"NAME": "a,b"})
    allocation = answer(FTDI + 'container_path = "/dev/{NAME}"', [tty])
    assert allocation.envs["GENERICDP_EXAMPLE_COM_FTDI"] == "/dev/a_b"


# Replicas


def test_replicas_of_one_node_give_one_spec() -> None:
    allocation = answer(FUSE, [a_fuse()], "fuse_fuse.0", "fuse_fuse.2")
    assert allocation.devices == (DeviceSpec("/dev/fuse", f"{LINKS}/fuse_fuse", "rw"),)
    assert allocation.envs == {
        "GENERICDP_EXAMPLE_COM_FUSE": "/dev/fuse",
        "GENERICDP_EXAMPLE_COM_FUSE_IDS": "fuse_fuse.0,fuse_fuse.2",
    }


# Environment, annotations, mounts, CDI names


def test_the_name_of_the_environment_variable_is_the_full_name_of_the_resource() -> None:
    assert env_names("example.com/ftdi") == ("GENERICDP_EXAMPLE_COM_FTDI", "GENERICDP_EXAMPLE_COM_FTDI_IDS")
    assert env_names("my-vendor.example/LTE.modem_2")[0] == "GENERICDP_MY_VENDOR_EXAMPLE_LTE_MODEM_2"


def test_kubevirt_spells_its_variable_in_its_own_way() -> None:
    assert kubevirt_env("my-vendor.example/usb.stick") == "USB_RESOURCE_MY-VENDOR_EXAMPLE_USB_STICK"


def test_ids_and_paths_are_in_the_order_of_the_devices() -> None:
    devices = [a_usb_serial(n, port=str(n), serial=f"S{n}") for n in (10, 9, 2)]
    envs = answer(FTDI, devices).envs
    assert envs["GENERICDP_EXAMPLE_COM_FTDI_IDS"] == "ftdi_S2,ftdi_S9,ftdi_S10"
    assert envs["GENERICDP_EXAMPLE_COM_FTDI"] == "/dev/ttyUSB2,/dev/ttyUSB9,/dev/ttyUSB10"


def test_kubevirt_hears_the_numbers_of_each_usb_device_once() -> None:
    sticks = [a_usb_device(str(n), serial=f"S{n}", devnum=n + 10) for n in (1, 2)]
    envs = answer(USB + "kubevirt = true\nreplicas = 2\n", sticks).envs
    assert envs["USB_RESOURCE_EXAMPLE_COM_USB"] == "1:11,1:12"
    both = answer(USB + 'group_by = "all"\nkubevirt = true\n', sticks)
    assert both.envs["USB_RESOURCE_EXAMPLE_COM_USB"] == "1:11,1:12"
    assert both.envs["GENERICDP_EXAMPLE_COM_USB_IDS"] == "usb"
    fuse = answer(FUSE + "kubevirt = true\n", [a_fuse()]).envs
    assert fuse["USB_RESOURCE_EXAMPLE_COM_FUSE"] == ""


def test_equal_values_of_several_devices_appear_only_once() -> None:
    rules = FTDI + 'env = { SERIALS = "{ID_SERIAL_SHORT}", VENDOR = "{ID_VENDOR_ID}", FIXED = "1" }\n'
    envs = answer(rules, [A, B]).envs
    assert (envs["SERIALS"], envs["VENDOR"], envs["FIXED"]) == ("A,B", "0403", "1")


def envs_of(env: str, *serials: str) -> dict[str, str]:
    """The variables of a rule for dongles with these serial numbers, without genericdp's own."""
    dongles = [a_usb_serial(n, port=str(n + 1), serial=serial) for n, serial in enumerate(serials)]
    envs = answer(f"{FTDI}env = {{ {env} }}\n", dongles).envs
    return {name: value for name, value in envs.items() if not name.startswith("GENERICDP_")}


def test_each_device_may_have_a_variable_of_its_own() -> None:
    assert envs_of('"TTY{index}" = "{sysname}"', "A", "B") == {"TTY0": "ttyUSB0", "TTY1": "ttyUSB1"}
    assert envs_of('"PCI-{ID_SERIAL_SHORT|x}.bus" = "{BUSNUM}"', "A") == {"PCI-A.bus": "001"}


def test_devices_that_give_one_name_share_the_variable() -> None:
    assert envs_of('"TTY_{ID_VENDOR_ID}" = "{sysname}"', "A", "B") == {"TTY_0403": "ttyUSB0,ttyUSB1"}
    assert envs_of('"TTY_{ID_SERIAL_SHORT}" = "{sysname}"', "a b", "a/b") == {"TTY_a_b": "ttyUSB1,ttyUSB0"}


@pytest.mark.parametrize("serial", ["=x", "a=b", "\n", "ä", "\0", "{id}", "$(HOME)"])
def test_no_device_breaks_the_name_of_a_variable(serial: str) -> None:
    (name,) = envs_of('"TTY_{ID_SERIAL_SHORT}" = "x"', serial)
    assert re.fullmatch("TTY_[A-Za-z0-9._-]+", name)
    (name,) = envs_of('"AT_{link}" = "x"', "A")
    assert name == "AT__dev_genericdp_ftdi_A"


def test_no_device_replaces_a_variable_by_what_it_calls_itself() -> None:
    env = '"KEY_{ID_SERIAL_SHORT}" = "made", KEY_A = "written", "KEY_{ID_VENDOR_ID}" = "later"'
    assert envs_of(env, "A") == {"KEY_A": "written", "KEY_0403": "later"}
    assert envs_of(env, "0403") == {"KEY_A": "written", "KEY_0403": "made"}
    own = answer(
        FTDI + 'env = { "GENERICDP_EXAMPLE_COM_{ID_SERIAL_SHORT}" = "x" }', [a_usb_serial(serial="FTDI")]
    )
    assert own.envs["GENERICDP_EXAMPLE_COM_FTDI"] == "/dev/ttyUSB0"


def test_a_rule_may_override_the_variables_that_genericdp_sets() -> None:
    envs = answer(FTDI + 'env = { GENERICDP_EXAMPLE_COM_FTDI = "mine" }', [A]).envs
    assert envs["GENERICDP_EXAMPLE_COM_FTDI"] == "mine"


def test_mounts_at_one_container_path_are_told_apart_and_the_same_one_is_one() -> None:
    mounts = 'mounts = [{ host_path = "/srv/{ID_SERIAL_SHORT}", container_path = "/cal" }, '
    mounts += '{ host_path = "/etc/fixed", container_path = "/fixed" }]'
    assert answer(FTDI + mounts, [A, B]).mounts == (
        MountSpec("/cal", "/srv/A", read_only=True),
        MountSpec("/cal-1", "/srv/B", read_only=True),
        MountSpec("/fixed", "/etc/fixed", read_only=True),
    )


def test_a_mount_may_be_below_another_one() -> None:
    mounts = 'mounts = [{ host_path = "/srv", container_path = "/a" }, '
    mounts += '{ host_path = "/opt", container_path = "/a/b" }]'
    assert [mount.container_path for mount in answer(FTDI + mounts, [A]).mounts] == ["/a", "/a/b"]


def test_equal_cdi_names_appear_only_once() -> None:
    cdi = 'cdi = ["vendor.example/class={ID_SERIAL_SHORT}", "vendor.example/class=all"]'
    assert answer(FTDI + cdi, [A, B]).cdi_devices == (
        "vendor.example/class=A", "vendor.example/class=B", "vendor.example/class=all"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cdi", "value", "name"),
    [
        ("v.e/class={NAME}", "FT232R (C)", "v.e/class=FT232R__C"),
        ("v.e/class={NAME}", "a@b=c+d/e:f", "v.e/class=a_b_c_d_e:f"),
        ("v.e/class={NAME}", "-x-", "v.e/class=x"),
        ("v.e/class={NAME}-0", "-x-", "v.e/class=x--0"),
        ("v.e/class=0-{NAME}", "-x-", "v.e/class=0--x"),
        ("v.e/class={NAME}", "(?)", "v.e/class=unknown"),
        ("v.e/class={NAME|}", "", "v.e/class=unknown"),
        ("v.e/class={NAME|a+b}", "", "v.e/class=a_b"),
        ("v.e/class={devname}", "", "v.e/class=bus_usb_001_004"),
        ("{NAME}/{NAME}={NAME}", "a/b=c", "a_b_c/a_b_c=a_b_c"),
        ("{NAME}/{NAME}={NAME}", "0403:", "x0403/x0403=0403"),
        ("{NAME}/{NAME}={NAME}", "a:b", "a_b/a_b=a:b"),
        ("{NAME}/{NAME}={NAME}", "a", "xa/xa=a"),
        ("{NAME}/v-{NAME|}=0", "-", "xx/xv=0"),
        ("{devname}/{devname}=0", "", "bus_usb_001_004/bus_usb_001_004=0"),
    ],
)
def test_a_value_of_a_device_makes_a_cdi_name_that_runtimes_read(cdi: str, value: str, name: str) -> None:
    node = a_usb_device(serial="A", devnum=4)
    node = replace(node, properties={**node.properties, "NAME": value})
    rules = '[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "usb" }\n'
    assert answer(f'{rules}cdi = "{cdi}"', [node]).cdi_devices == (name,)
    annotations = f'annotations = {{ "cdi.k8s.io/x" = "{cdi},v.e/class=all" }}'
    assert answer(rules + annotations, [node]).annotations == {"cdi.k8s.io/x": f"{name},v.e/class=all"}


def test_no_device_names_another_cdi_device_in_an_annotation() -> None:
    tty = a_usb_node(
        a_usb_device(serial="A"), "tty", "ttyUSB0", properties={"NAME": "a,v.e/class=all", "MODEL": "m,n"}
    )
    rules = FTDI + 'annotations = { "cdi.k8s.io/x" = "v.e/class={NAME}", "example.com/model" = "{MODEL}" }'
    assert answer(rules, [tty]).annotations == {
        "cdi.k8s.io/x": "v.e/class=a_v.e_class_all",
        "example.com/model": "m,n",
    }


def test_the_cdi_names_of_several_devices_are_joined_in_an_annotation() -> None:
    rules = FTDI + 'annotations = { "cdi.k8s.io/x" = "v.e/class={ID_SERIAL_SHORT},v.e/class=all" }'
    assert answer(rules, [A, B]).annotations == {"cdi.k8s.io/x": "v.e/class=A,v.e/class=all,v.e/class=B"}


# What cannot be answered


def test_an_id_that_was_never_offered_is_an_error_that_names_it() -> None:
    with pytest.raises(RefusedError) as unknown:
        answer(FTDI, [A], "ftdi_A", "ftdi_Z\n")
    assert str(unknown.value) == "example.com/ftdi has no device 'ftdi_Z_'"
    assert unknown.value.reason is RefusalReason.UNKNOWN


def test_the_number_of_a_replica_belongs_to_the_id() -> None:
    for id_ in ("fuse_fuse", "fuse_fuse.3", "fuse_fuse.00"):
        with pytest.raises(RefusedError) as unknown:
            answer(FUSE, [a_fuse()], id_)
        assert str(unknown.value) == f"example.com/fuse has no device '{id_}'"


def test_a_device_of_which_only_the_id_is_known_is_an_error_that_says_what_to_do() -> None:
    offer = the_offer(inventory_of(FTDI, A))
    restarted = replace(offer, devices=(Device("ftdi_A", links=("ftdi_A",)),))
    with pytest.raises(RefusedError) as unknown:
        allocate(restarted, ["ftdi_A"], LINKS)
    assert str(unknown.value) == "device 'ftdi_A' of example.com/ftdi is unplugged; plug it in again"
    assert unknown.value.reason is RefusalReason.UNPLUGGED


#: Templates that an edit may bring, each with the field of which nothing is known.
UNKNOWN = {
    'env = { X = "{ID_NEW}" }': "ID_NEW",
    'env = { "X_{ID_NEW}" = "1" }': "ID_NEW",
    'env = { X = "{sysname}" }': "sysname",
    'annotations = { "x/y" = "{ID_NEW}" }': "ID_NEW",
    'annotations = { "cdi.k8s.io/x" = "v.example/class={ID_NEW}" }': "ID_NEW",
    'cdi = ["v.example/class={ID_NEW}"]': "ID_NEW",
    'mounts = [{ host_path = "/srv/{ID_NEW}", container_path = "/cal" }]': "ID_NEW",
    'mounts = [{ host_path = "/srv", container_path = "/cal/{ID_NEW}" }]': "ID_NEW",
}


@pytest.mark.parametrize(("keys", "name"), UNKNOWN.items())
@pytest.mark.parametrize("ids", [("ftdi_A",), ("ftdi_A", "ftdi_B")], ids=["alone", "with another one"])
def test_a_template_that_came_with_an_edit_while_the_device_was_away_is_an_error_that_says_so(
    keys: str, name: str, ids: tuple[str, ...]
) -> None:
    other = replace(B, properties={**B.properties, "ID_NEW": "x"})
    _, memory = remember(inventory_of(FTDI, A, other), Memory(), 0.0)
    inventory, _ = remember(inventory_of(f"{FTDI}{keys}\n", other), memory, 1.0)
    with pytest.raises(RefusedError) as refused:
        allocate(the_offer(inventory), ids, LINKS)
    which = "device 'ftdi_A'" if len(ids) == 1 else "one of 2 devices"
    assert str(refused.value) == (
        f"example.com/ftdi: the rule uses '{{{name}}}', which {which} lacks; plug it in again if it is "
        f"unplugged, or write a default, '{{{name}|default}}'"
    )
    assert refused.value.reason is RefusalReason.UNPLUGGED
    assert allocate(the_offer(inventory), ["ftdi_B"], LINKS).devices


def test_the_device_nodes_of_an_answer_do_not_depend_on_its_other_texts() -> None:
    _, memory = remember(inventory_of(FTDI, A), Memory(), 0.0)
    inventory, _ = remember(inventory_of(f'{FTDI}env = {{ X = "{{ID_NEW}}" }}\n'), memory, 1.0)
    offer = the_offer(inventory)
    assert device_specs(offer, ["ftdi_A"], LINKS) == answer(FTDI, [A]).devices
    with pytest.raises(RefusedError):
        device_specs(offer, ["ftdi_B"], LINKS)


@pytest.mark.parametrize(
    ("template", "chosen", "path"),
    [
        ("/dev/{ID_X}", "null", "/dev/null-1"),
        ("/dev/{ID_X}", "urandom", "/dev/urandom-1"),
        ("/dev/{ID_X}", "termination-log", "/dev/termination-log-1"),
        ("/dev/{ID_X}{ID_NO|l}", "nul", "/dev/null-1"),
        ("/dev/{ID_X}/a", "pts", "/dev/pts-1/a"),
        ("/dev/{ID_X}", "nullable", "/dev/nullable"),
        ("/{ID_X}/null", "dev", "/dev/null-1"),
        ("/dev/x/{ID_X}", "null", "/dev/x/null"),
        ("/dev/shm/{ID_X}", "a", "/dev/shm/a"),
        ("/data/{ID_X}", "null", "/data/null"),
    ],
)
def test_no_device_replaces_what_runtimes_make_in_every_container(
    template: str, chosen: str, path: str
) -> None:
    device = replace(A, properties={**A.properties, "ID_X": chosen})
    assert [*paths(answer(f'{FTDI}container_path = "{template}"\n', [device]))] == [path]


@pytest.mark.parametrize("letter", ["x", "é"])
def test_no_device_makes_a_name_that_linux_does_not_permit(letter: str) -> None:
    rule = f'{FTDI}container_path = "/dev/{letter}/{letter * 9}{{ID_X}}-{{ID_X}}/y"\n'
    devices = [
        replace(each, properties={**each.properties, "ID_X": text})
        for each, text in ((A, "x" * 126 + "ab"), (B, "x" * 126 + "ac"), (C, "x"))
    ]
    first, second, third = sorted(paths(answer(rule, devices)), key=len, reverse=True)
    assert third == f"/dev/{letter}/{letter * 9}x-x/y"
    for each in (first, second):
        assert why_too_long(each) == ""
        assert re.fullmatch(f"/dev/{letter}/{letter * 9}x+a[bc]-x+-[0-9a-f]{{10}}/y", each)
    assert first != second


def test_a_name_is_measured_in_bytes() -> None:
    device = replace(A, properties={**A.properties, "ID_X": "x" * 128})
    (path,) = paths(answer(f'{FTDI}container_path = "/dev/{"é" * 70}{{ID_X}}"\n', [device]))
    assert why_too_long(path) == ""
    assert path.startswith(f"/dev/{'é' * 70}xxx")


def test_several_nodes_at_one_path_that_is_too_long_get_numbers() -> None:
    parts = [replace(part, properties={**part.properties, "ID_X": "x" * 128}) for part in a_modem()]
    rule = '[[resource]]\nname = "m"\nmatch = { ID_X = "*" }\ngroup_by = "usb_device"\n'
    allocation = answer(f'{rule}container_path = "/dev/{{ID_X}}-{{ID_X}}"\n', parts)
    assert len(allocation.devices) > 2
    assert {why_too_long(path) for path in paths(allocation)} == {""}


def test_no_devlink_replaces_what_runtimes_make_in_every_container() -> None:
    device = replace(A, devlinks=("/dev/null", "/dev/gps", "/dev/shm/x"))
    found = {*paths(answer(f'{FTDI}devlinks = ["/dev/*"]\n', [device]))}
    assert found == {"/dev/ttyUSB0", "/dev/null-1", "/dev/gps", "/dev/shm-1/x"}


def test_the_path_of_a_mount_on_the_host_is_what_the_rule_says() -> None:
    keys = 'mounts = [{ host_path = "/dev/shm/{ID_X}", container_path = "/dev/{ID_X}" }]\n'
    device = replace(A, properties={**A.properties, "ID_X": "shm"})
    assert answer(FTDI + keys, [device]).mounts == (MountSpec("/dev/shm-1", "/dev/shm/shm", read_only=True),)


def test_a_rule_may_put_a_device_in_the_place_of_what_runtimes_make() -> None:
    """As a hardware random number generator."""
    assert [*paths(answer(f'{FTDI}container_path = "/dev/random"\n', [A]))] == ["/dev/random"]
    random = a_device("/sys/devices/virtual/mem/random", subsystem="mem", node="/dev/random", number="c 1:8")
    rules = FTDI.replace('SUBSYSTEM = "tty"', 'SUBSYSTEM = "mem"') + "allow_dangerous = true\n"
    assert [*paths(answer(rules, [random]))] == ["/dev/random"]


def test_no_id_is_an_empty_answer() -> None:
    offer = the_offer(inventory_of(FTDI, A))
    names = ("GENERICDP_EXAMPLE_COM_FTDI", "GENERICDP_EXAMPLE_COM_FTDI_IDS")
    assert allocate(offer, [], LINKS) == Allocation((), (), dict.fromkeys(names, ""), {}, ())


def test_a_hundred_of_a_thousand_are_answered_for_at_once() -> None:
    devices = [a_usb_serial(n, port=f"{n % 9 + 1}.{n}", serial=f"S{n}") for n in range(200)]
    allocation = answer(FTDI + 'container_path = "/dev/same"', devices)
    assert len(paths(allocation)) == 200
    assert len(set(paths(allocation).values())) == 200


def test_the_group_of_the_nodes_may_go_into_an_env() -> None:
    rules = FTDI + 'env = { GROUPS = "{gid}" }\n'
    allocation = answer(rules, [replace(A, gid=20), replace(B, gid=20)])
    assert allocation.envs["GROUPS"] == "20"


@pytest.mark.parametrize(
    "keys",
    [
        'container_path = "/dev/x"',
        'container_path = ["/dev/{NOT_THERE|x}", "/dev/x/{id}", "/dev/x/y/{id}/z", "/dev/x/{NO|y}"]',
        'mounts = [{ host_path = "/srv/{id}", container_path = "/cal" }]',
    ],
)
def test_twice_as_many_devices_under_one_path_are_twice_as_much_work(keys: str) -> None:
    def allocating(size: int) -> Callable[[], object]:
        devices = [a_usb_serial(n, port=f"{n}", serial=f"S{n}") for n in range(size)]
        offer = the_offer(inventory_of(FTDI + keys, *devices))
        return lambda: allocate(offer, offer.ids, LINKS)

    assert growth(allocating, 100) < 2.5


# What no runtime could start


def refusal_of(rules: str, devices: list[UdevDevice]) -> tuple[str, RefusalReason]:
    with pytest.raises(RefusedError) as raised:
        answer(rules, devices)
    return str(raised.value), raised.value.reason


@pytest.mark.parametrize("letter", ["x", "é"])
def test_an_env_is_as_long_as_the_kernel_permits_and_no_longer(letter: str) -> None:
    """execve(2) fails with E2BIG for one of 128 KiB, with the zero at its end."""
    count = (131_071 - len("LONG=")) // len(letter.encode())
    rule = f'{FTDI}env = {{ LONG = "{letter * count}" }}'
    assert answer(rule, [A]).envs["LONG"] == letter * count
    message, reason = refusal_of(rule.replace('LONG = "', 'LONG = "{NONE|x}'), [A])
    assert message == (
        "example.com/ftdi: the env 'LONG' would have 131072 bytes, and Linux permits 131071; request fewer "
        "devices for a container, or shorten the env in the rule"
    )
    assert reason is RefusalReason.IMPOSSIBLE


LONG_NAME = "/{NAME}{NAME}", "a name of 256 bytes, and Linux permits 255"
LONG_PATH = "/{NAME}" * 32, "4130 bytes, and Linux permits 4095"


@pytest.mark.parametrize(
    ("keys", "what", "template", "why"),
    [
        ('container_path = "/d{}"', "container path '/d{}'", *LONG_PATH),
        ('mounts = [{{ host_path = "/srv", container_path = "/d{}" }}]', "container path '/d{}'", *LONG_PATH),
        ('mounts = [{{ host_path = "/d{}", container_path = "/cal" }}]', "host path '/d{}'", *LONG_PATH),
        ('mounts = [{{ host_path = "/d{}", container_path = "/cal" }}]', "host path '/d{}'", *LONG_NAME),
    ],
)
def test_a_path_that_a_device_makes_too_long_is_refused(
    template: str, why: str, keys: str, what: str
) -> None:
    device = named("x" * 128)[0]
    shown = what.format(template.replace("{NAME}", "x" * 128))
    head, path, _ = shown.split("'")
    assert refusal_of(FTDI + keys.format(template), [device]) == (
        f"example.com/ftdi: the {head}'{path[:64]}...' would have {why}; shorten it in the rule",
        RefusalReason.IMPOSSIBLE,
    )
    short = keys.format("/{NAME}/y{NAME}" * 15)
    assert paths(answer(FTDI + short, [device]))


@pytest.mark.parametrize(
    ("device", "mount", "what"),
    [
        ("/dev/{NAME}", "/dev/x", "a mount and a device node would both be '/dev/x' in the container"),
        ("/dev/x", "/dev/{NAME}/y/z", "the mount '/dev/x/y/z' would be below the device node '/dev/x'"),
    ],
)
def test_a_mount_that_keeps_a_device_node_out_of_the_container_is_refused(
    device: str, mount: str, what: str
) -> None:
    """A runtime mounts first. If the path of a device node exists by then, it creates no node (runc)."""
    keys = f'container_path = "{device}"\nmounts = [{{ host_path = "/srv", container_path = "{mount}" }}]'
    assert refusal_of(FTDI + keys, named("x")) == (
        f"example.com/ftdi: {what}; choose another 'container_path' for one of the two in the rule",
        RefusalReason.IMPOSSIBLE,
    )


def test_a_device_node_may_be_below_a_mount() -> None:
    """Such as /dev/bus/usb of the host, with the right to use one of its nodes."""
    keys = 'container_path = "/a/b"\nmounts = [{ host_path = "/srv", container_path = "/a" }]'
    assert [*paths(answer(FTDI + keys, [A]))] == ["/a/b"]


# Shared nodes


GPUS = [*a_gpu(0), *a_gpu(1)]


def test_a_shared_node_is_given_once_however_many_devices_a_container_gets() -> None:
    first, second = "gpu_port-0000-03-00-0_64xszgat5n", "gpu_port-0000-04-00-0_zigo6ig4zx"
    allocation = answer(GPU_RULE, [*GPUS, a_kfd()])
    assert allocation == Allocation(
        devices=(
            DeviceSpec("/dev/kfd", f"{LINKS}/shared+kfd", "rw"),
            DeviceSpec("/dev/dri/card0", f"{LINKS}/{first}@card", "rw"),
            DeviceSpec("/dev/dri/renderD128", f"{LINKS}/{first}@renderD", "rw"),
            DeviceSpec("/dev/dri/card1", f"{LINKS}/{second}@card", "rw"),
            DeviceSpec("/dev/dri/renderD129", f"{LINKS}/{second}@renderD", "rw"),
        ),
        mounts=(),
        envs={
            "GENERICDP_EXAMPLE_COM_GPU": ",".join(each.device_node or "" for each in GPUS),
            "GENERICDP_EXAMPLE_COM_GPU_IDS": f"{first},{second}",
        },
        annotations={},
        cdi_devices=(),
    )


def test_a_shared_node_gets_all_that_its_table_says() -> None:
    rules = f"""
    {GPU_RULE}
    container_path = ["/dev/compute", "/dev/{{devname}}", "{{link}}", "/dev/{{SUBSYSTEM}}-node"]
    permissions = "rwm"
    devlinks = "/dev/by-*"
    """
    kfd = replace(a_kfd(), devlinks=("/dev/by-name/kfd",))
    link = f"{LINKS}/shared+kfd"
    given = [spec for spec in answer(rules, [*GPUS, kfd]).devices if spec.host_path == link]
    assert given == [
        DeviceSpec(path, link, "rwm")
        for path in ("/dev/compute", "/dev/kfd", link, "/dev/kfd-node", "/dev/by-name/kfd")
    ]


def test_the_path_of_a_shared_node_does_not_depend_on_the_devices() -> None:
    rules = (
        FTDI
        + 'container_path = "/dev/fuse"\n[[resource.node]]\nmatch = { DEVNAME = "/dev/fuse" }\nshared = true'
    )
    allocation = answer(rules, [A, B, a_fuse()])
    assert paths(allocation) == {
        "/dev/fuse": f"{LINKS}/shared+fuse",
        "/dev/fuse-1": f"{LINKS}/ftdi_A",
        "/dev/fuse-2": f"{LINKS}/ftdi_B",
    }
    assert allocation.envs["GENERICDP_EXAMPLE_COM_FTDI"] == "/dev/fuse-1,/dev/fuse-2"


def test_an_answer_without_a_shared_node_is_refused_because_the_kubelet_would_save_it() -> None:
    with pytest.raises(RefusedError) as raised:
        answer(GPU_RULE, GPUS)
    reason = "the shared node for DEVNAME '/dev/kfd' is missing"
    id_ = "gpu_port-0000-03-00-0_64xszgat5n"
    assert str(raised.value) == f"device '{id_}' of example.com/gpu is not available: {reason}"
    assert raised.value.reason is RefusalReason.UNPLUGGED
    assert len(answer(f"{GPU_RULE}optional = true\n", GPUS).devices) == 4


@pytest.mark.parametrize("left", [[], [a_kfd()], [*GPUS[:2], a_kfd()]])
def test_the_answer_for_a_device_that_left_has_the_shared_nodes(left: list[UdevDevice]) -> None:
    _, memory = remember(inventory_of(GPU_RULE, *GPUS, a_kfd()), Memory(), 0.0, None)
    inventory, _ = remember(inventory_of(GPU_RULE, *left), memory, 1.0, None)
    offer = the_offer(inventory)
    assert allocate(offer, [*offer.ids], LINKS) == answer(GPU_RULE, [*GPUS, a_kfd()])
