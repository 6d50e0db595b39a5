"""What rule files without a mistake mean. Those with a mistake are a corpus: test_corpus.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.reading.parse import parse_rules, parse_settings
from genericdp.core.rules.grouping import ALL, NODE, PARENT, USB_DEVICE, Grouping, SameProperty
from genericdp.core.rules.name import why_not_a_resource_name
from genericdp.core.rules.resource import (
    EVERY_NODE,
    EVERYTHING,
    KERNEL_NAME,
    Mount,
    NodeTable,
    Prefer,
    PreStart,
    Resource,
    attributes_of,
    covering_in,
)
from genericdp.core.rules.settings import LogFormat, Settings
from genericdp.core.rules.template import parse as template
from tests.scenes.builders import a_device, a_fuse, a_modem, a_usb_device, a_usb_node, a_usb_serial
from tests.scenes.work import IN_PROPORTION, growth

FULL = """
[[resource]]
name = "vendor.example/full"
description = "everything at once"
match = [
  { SUBSYSTEM = "tty", usb = { vendor = "0X403", product = ["6001", "6015"], port = "2*" } },
  { TAG = "genericdp", "ATTR{dev}" = "188:*", parent = { SUBSYSTEM = "usb", "ATTR{bDeviceClass}" = "0xEF" } },
]
group_by = "usb_device"
identity = ["ID_PATH", "ID_USB_INTERFACE_NUM"]
container_path = ["/dev/x{index}", "{link}"]
permissions = "mr"
devlinks = "/dev/serial/by-id/*"
optional = true
replicas = 3
env = { MODEL = "{ID_MODEL|none}", "WHO-{index}.x" = "{id}" }
mounts = [
  { host_path = "/srv/fw", container_path = "/fw" },
  { host_path = "/dev/shm", container_path = "/shm", read_only = false },
]
annotations = { "example.com/id" = "{id}" }
cdi = "vendor.example/modem={id}"
prefer = "same-hub"
unplug_grace = "1.5h"
prestart = { wait = "500ms", usb_reset = true }
health = { ID_MODEL = { not = { regex = "bad.*" } } }
kubevirt = true
allow_dangerous = true
[[resource.node]]
match = { SUBSYSTEM = { exists = true } }
permissions = "rw"
[[resource.node]]
container_path = "/dev/y"
optional = false
"""


def resources_of(text: str) -> tuple[Resource, ...]:
    resources, problems = parse_rules("50-x.toml", text, "example.com")
    assert [problem.render() for problem in problems] == []
    return resources


def test_every_key_arrives_in_its_field() -> None:
    (full,) = resources_of(FULL)
    assert full.name == "vendor.example/full"
    assert full.short_name == "full"
    assert full.description == "everything at once"
    assert full.group_by == USB_DEVICE
    assert full.identity == ("ID_PATH", "ID_USB_INTERFACE_NUM")
    assert full.replicas == 3
    assert dict(full.env) == {
        template("MODEL"): template("{ID_MODEL|none}"),
        template("WHO-{index}.x"): template("{id}"),
    }
    assert full.mounts == (
        Mount(template("/srv/fw"), template("/fw"), read_only=True),
        Mount(template("/dev/shm"), template("/shm"), read_only=False),
    )
    assert full.annotations == (("example.com/id", template("{id}")),)
    assert full.cdi == (template("vendor.example/modem={id}"),)
    assert full.prefer is Prefer.SAME_HUB
    assert full.unplug_grace_s == 5400.0
    assert full.prestart == PreStart(0.5, usb_reset=True)
    assert full.kubevirt
    assert full.allow_dangerous
    assert str(full.location) == "50-x.toml:3:8"
    first, second = full.nodes
    assert [path.text for path in first.container_paths] == ["/dev/x{index}", "{link}"]
    assert (first.permissions, first.optional) == ("rw", True)
    assert [path.text for path in second.container_paths] == ["/dev/y"]
    assert (second.permissions, second.optional) == ("rm", False)
    assert second.devlinks[0].holds("/dev/serial/by-id/usb-x")
    assert [text.text for text in full.device_templates] == [
        *("MODEL", "{ID_MODEL|none}"),
        *("WHO-{index}.x", "{id}"),
        *("/srv/fw", "/fw", "/dev/shm", "/shm"),
        "{id}",
        "vendor.example/modem={id}",
    ]
    assert attributes_of([full]) == {"dev", "bDeviceClass"}
    assert len(full.matches) == 5


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('"node"', NODE),
        ('"usb_device"', USB_DEVICE),
        ('"parent"', PARENT),
        ('"all"', ALL),
        ('"RACK"', SameProperty("RACK")),
        ('{ SUBSYSTEM = "usb", DEVTYPE = "usb_device" }', USB_DEVICE),
        ('[{ SUBSYSTEM = "usb", DEVTYPE = "usb_device" }]', USB_DEVICE),
    ],
)
def test_a_word_for_a_grouping_means_what_a_match_can_say(written: str, meant: Grouping) -> None:
    (resource,) = resources_of(f'[[resource]]\nname = "x"\nmatch = {{ A = "1" }}\ngroup_by = {written}\n')
    assert resource.group_by == meant


def test_the_attributes_that_a_grouping_looks_at_are_read() -> None:
    (resource,) = resources_of(
        '[[resource]]\nname = "x"\nmatch = { A = "1" }\ngroup_by = { "ATTR{card}" = "1" }\n'
    )
    assert attributes_of([resource]) == {"card"}


SHARED = """
[[resource]]
name = "gpu"
match = { SUBSYSTEM = "drm" }
container_path = "/dev/gpu{index}"
permissions = "r"
optional = true
[[resource.node]]
match = { DEVNAME = "/dev/kfd" }
shared = true
"""


def test_a_resource_with_only_shared_tables_has_all_its_nodes() -> None:
    (gpu,) = resources_of(SHARED)
    (shared,), (own,) = gpu.shared_nodes, gpu.own_nodes
    assert own.match == EVERYTHING
    assert [path.text for path in own.container_paths] == ["/dev/gpu{index}"]
    assert shared.match.in_words == ("DEVNAME '/dev/kfd'",)
    (other,) = resources_of(f'{SHARED}[[resource.node]]\nmatch = {{ DEVNAME = "/dev/dri/card*" }}\n')
    assert [table.match == EVERYTHING for table in other.own_nodes] == [False]


def test_what_a_resource_sets_for_its_tables_holds_for_shared_ones_but_for_the_path() -> None:
    (gpu,) = resources_of(SHARED)
    (shared,) = gpu.shared_nodes
    assert shared.container_paths == (KERNEL_NAME,)
    assert (shared.permissions, shared.optional) == ("r", True)


def test_only_a_whole_component_of_a_path_is_the_directory_of_another_one() -> None:
    paths = ["/dev/serial", "/dev/serial-1/a", "/dev/serial0/{id}", "{link}/serial/a"]
    devlinks = ["/dev/serial*", "/dev/serial[0-9]/*", "/dev/serial-2/*|*/by-id/*"]
    keys = f"container_path = {paths}\ndevlinks = {devlinks}\n"
    (resource,) = resources_of(f'[[resource]]\nname = "x"\nmatch = {{ TAG = "x" }}\n{keys}')
    (table,) = resource.nodes
    assert [path.text for path in table.container_paths] == paths


def test_a_component_of_a_path_may_be_as_long_as_the_name_of_a_file() -> None:
    path = f"/dev/{'a' * 255}/{'b' * 255}"
    (resource,) = resources_of(
        f'[[resource]]\nname = "x"\nmatch = {{ TAG = "x" }}\ncontainer_path = "{path}"\n'
    )
    assert resource.nodes[0].container_paths == (template(path),)


def test_an_env_that_is_too_long_for_linux_is_a_mistake() -> None:
    fixed = "x" * (131_071 - len("A=x"))
    text = '[[resource]]\nname = "x"\nmatch = { DEVNAME = "/dev/x" }\nenv = { "A{id|}" = "%s{id}" }\n'
    resources, problems = parse_rules("x.toml", text % f"{fixed}é", "example.com")
    assert resources == ()
    assert [(str(each.location), each.message, each.hint) for each in problems] == [
        (
            "x.toml:4:20",
            "'A{id|}' has at least 131072 bytes with its name; an env has at most 131071",
            "write a shorter text",
        )
    ]
    assert resources_of(text % f"{fixed}x")


@pytest.mark.parametrize(
    ("node", "mount"),
    [("/dev/x", "/dev/xy"), ("/dev/x", "/dev/x{id}"), ("/dev/x/y", "/dev/x"), ("/dev/{id}", "/dev/x")],
)
def test_a_mount_may_be_where_it_keeps_no_node_out(node: str, mount: str) -> None:
    text = f'[[resource]]\nname = "x"\nmatch = {{ DEVNAME = "/dev/x" }}\ncontainer_path = "{node}"\n'
    assert resources_of(f'{text}mounts = [{{ host_path = "/srv", container_path = "{mount}" }}]\n')


def test_a_mount_may_be_where_a_node_is_optional() -> None:
    """While that is absent, nothing is kept out."""
    text = (
        '[[resource]]\nname = "x"\nmatch = { DEVNAME = "/dev/x" }\n'
        'mounts = [{ host_path = "/srv", container_path = "/dev/cfg" }]\n'
        '[[resource.node]]\nmatch = { DEVNAME = "/dev/x" }\n'
        '[[resource.node]]\nmatch = { DEVNAME = "/dev/y" }\ncontainer_path = "/dev/cfg"\n%s'
    )
    assert resources_of(text % "optional = true\n")
    assert parse_rules("x.toml", text % "", "example.com")[0] == ()


def test_to_look_for_nodes_that_mounts_keep_out_grows_in_proportion_to_both() -> None:
    def work(count: int) -> None:
        table = NodeTable(container_paths=tuple(template(f"/dev/x{number}") for number in range(count)))
        mounts = [Mount(template("/srv"), template(f"/srv/x{number}")) for number in range(count)]
        assert covering_in([table], mounts) is None

    assert growth(work, 500) < IN_PROPORTION


def test_what_is_not_written_has_its_default() -> None:
    (plain,) = resources_of('[[resource]]\nname = "x"\nmatch = { DEVNAME = "/dev/fuse" }\n')
    assert plain == Resource("example.com/x", plain.match)
    assert plain.nodes == (EVERY_NODE,)
    assert plain.nodes[0].container_paths == (KERNEL_NAME,)


@pytest.mark.parametrize(
    ("match", "number"),
    [
        ('{ usb = { vendor = "403" } }', 1),
        ('{ usb = { vendor = "0x0403", product = "60*" } }', 1),
        ('{ usb = { vendor = "0402" } }', 0),
        ('{ usb = { class = "FF", interface = "0" } }', 1),
        ('{ usb = { serial = "A5*", port = "2" } }', 1),
        ('{ ID_VENDOR_ID = "0X403" }', 1),
        ('{ DEVNAME = "/dev/ttyUSB*" }', 1),
        ('{ SUBSYSTEM = { not = "tty" } }', 0),
        ('{ SUBSYSTEM = { not = ["usb", "net"] } }', 1),
        ("{ ID_NOTHING = { exists = false } }", 1),
        ("{ ID_NOTHING = { exists = true } }", 0),
        ('{ parent = { "ATTR{idVendor}" = "0403" } }', 1),
        ('{ parent = [{ SUBSYSTEM = "nothing" }, { DRIVER = "usb" }] }', 1),
        ('{ parent = { SUBSYSTEM = "usb", "ATTR{idVendor}" = "ffff" } }', 0),
        ('{ DRIVER = "x" }', 0),
        ("{ BUSNUM = { at_least = 1 } }", 0),
        ('{ parent = { BUSNUM = { at_least = 1, at_most = 1 }, "ATTR{devnum}" = { at_most = 0x4 } } }', 1),
        ("{ ID_MODEL_ID = { at_least = 0x6000, at_most = 0x6fff } }", 1),
        ("{ ID_MODEL_ID = [{ at_most = 0x6000 }, { at_least = 0x6002 }] }", 0),
        ("{ ID_NOTHING = { not = { at_least = 1 } } }", 1),
        ('{ DEVTYPE = "x" }', 0),
        ('{ DEVPATH = "/devices/*" }', 1),
        ('{ "ATTR{nothing}" = "x" }', 0),
        ('{ TAG = "x" }', 0),
        ('{ TAG = { not = "x" } }', 1),
        ('[{ SUBSYSTEM = "net" }, { SUBSYSTEM = "tty" }]', 1),
    ],
)
def test_a_match_means_what_it_says(match: str, number: int) -> None:
    (resource,) = resources_of(f'[[resource]]\nname = "x"\nmatch = {match}\n')
    device = a_usb_serial()
    assert resource.match.matches(device) == bool(number)
    # `explain` shows the very conditions that decide.
    judged = resource.match.judge(device)
    assert any(all(verdict.holds for verdict in verdicts) for verdicts in judged) == bool(number)


@pytest.mark.parametrize(
    ("match", "number"),
    [
        ('{ PCI_ID = "1af4:1042" }', 1),  # as lspci -nn prints it
        ('{ PCI_ID = "1AF4:1042" }', 1),
        ('{ PCI_ID = "0x1af4:0x1042" }', 1),
        ('{ PCI_ID = "10de:*|1af4:104[0-2]" }', 1),
        ('{ PCI_ID = "1af4*" }', 1),
        ('{ PCI_ID = { not = "1af4:1042" } }', 0),
        ('{ PCI_ID = "1af4:1043" }', 0),
        ('{ PCI_SUBSYS_ID = "1af4:a" }', 1),
        ('{ PCI_SLOT_NAME = "0000:AF:02.0" }', 1),
        ('{ PCI_SLOT_NAME = "*:af:*" }', 1),
        ('{ PCI_SLOT_NAME = "0000:AF:02.1" }', 0),
        ('{ PCI_CLASS = "0x030000" }', 1),
        ('{ PCI_CLASS = "0x30000" }', 1),
        ('{ PCI_CLASS = "30000" }', 1),
        ('{ PCI_CLASS = "0300*" }', 1),
        ('{ PCI_CLASS = "300*" }', 1),
        ("{ PCI_CLASS = { at_least = 0x30000, at_most = 0x3ffff } }", 1),
        ('{ PCI_CLASS = "020000" }', 0),
    ],
)
def test_a_pci_function_is_matched_as_the_kernel_or_as_lspci_writes_it(match: str, number: int) -> None:
    (resource,) = resources_of(f'[[resource]]\nname = "x"\nmatch = {match}\n')
    function = a_device(
        "/sys/devices/pci0000:ae/0000:af:02.0",
        subsystem="pci",
        properties={
            "PCI_ID": "1AF4:1042",
            "PCI_SUBSYS_ID": "1AF4:000A",
            "PCI_CLASS": "30000",
            "PCI_SLOT_NAME": "0000:af:02.0",
        },
    )
    assert resource.match.matches(function) == bool(number)


def test_a_usb_condition_needs_a_usb_device() -> None:
    (resource,) = resources_of(
        '[[resource]]\nname = "x"\nmatch = { usb = { vendor = "0403", port = "*" } }\n'
    )
    assert not resource.match.matches(a_fuse())
    assert [verdict.actual for verdict in resource.match.judge(a_fuse())[0]] == [None, None]
    assert resource.match.matches(a_usb_serial())


def test_the_judgement_of_parents_shows_the_one_that_comes_nearest() -> None:
    text = '[[resource]]\nname = "x"\nmatch = { parent = { SUBSYSTEM = "usb", DRIVER = "none" } }\n'
    (resource,) = resources_of(text)
    ((first, second),) = resource.match.judge(a_usb_serial())
    assert (first.key, first.holds, first.actual) == ("parent.SUBSYSTEM", True, "usb")
    assert (second.key, second.holds) == ("parent.DRIVER", False)
    ((alone,),) = resource.match.judge(a_fuse())
    assert (alone.key, alone.holds, alone.actual) == ("parent", False, None)


def test_the_judgement_of_parents_shows_another_value_rather_than_none() -> None:
    text = '[[resource]]\nname = "x"\nmatch = { parent = { PCI_ID = "10de:1eb8" } }\n'
    (resource,) = resources_of(text)
    pci = a_device(
        "/sys/devices/pci0000:00/0000:00:02.0", subsystem="pci", properties={"PCI_ID": "1AF4:1042"}
    )
    between = a_device(f"{pci.sys_path}/virtio0", subsystem="virtio", parent=pci)
    node = a_device(f"{between.sys_path}/x", subsystem="x", node="/dev/x", parent=between)
    ((verdict,),) = resource.match.judge(node)
    assert (verdict.key, verdict.wanted, verdict.actual) == ("parent.PCI_ID", "'10DE:1EB8'", "1AF4:1042")


def test_a_modem_is_what_the_readme_says() -> None:
    text = '[[resource]]\nname = "m"\nmatch = { usb = { vendor = "2c7c", interface = "0[0-4]" } }\n'
    (resource,) = resources_of(text)
    usb, *nodes = a_modem()
    assert not resource.match.matches(usb)
    assert all(resource.match.matches(node) for node in nodes)
    assert not resource.match.matches(a_usb_node(a_usb_device(), "tty", "ttyUSB9"))


def test_rules_in_the_settings_are_one_mistake_beside_the_others() -> None:
    text = 'coalesce = 1\n[[resource]]\nname = "x"\n'
    settings, problems = parse_settings("genericdp.toml", text)
    assert settings == Settings()
    assert [(str(each.location), each.message, each.hint) for each in problems] == [
        (
            "genericdp.toml:1:12",
            "'coalesce' must be a duration such as \"10s\", not the number 1",
            'write "1s"',
        ),
        (
            "genericdp.toml:2:1",
            "[[resource]] is not a setting",
            "rules belong in files of their own, in /etc/genericdp/rules.d",
        ),
    ]


@pytest.mark.parametrize("text", ["[[resource]]", "resource = []", "[resource]", "resource = 1"])
def test_no_kind_of_resource_is_a_setting(text: str) -> None:
    _, problems = parse_settings("genericdp.toml", text)
    assert [each.message for each in problems] == ["[[resource]] is not a setting"]


def test_settings_are_read() -> None:
    text = """
domain = "edge.example"
kubelet_dir = "/var/lib/k/"
coalesce = "250ms"
rescan = "1m"
log_format = "json"
log_level = "debug"
"""
    settings, problems = parse_settings("genericdp.toml", text)
    assert problems == ()
    assert settings == Settings(
        domain="edge.example",
        kubelet_dir="/var/lib/k",
        coalesce_s=0.25,
        rescan_s=60.0,
        log_format=LogFormat.JSON,
        log_level="debug",
    )


@pytest.mark.parametrize("path", ["/{ID_SERIAL}" + "/x" * 2047 + "/", "/dev/" + "é/" * 1364])
def test_a_path_that_is_too_long_for_linux_is_a_mistake(path: str) -> None:
    size = len(path.replace("{ID_SERIAL}", "").encode()) + 1
    text = f'[[resource]]\nname = "x"\nmatch.SUBSYSTEM = "tty"\ncontainer_path = "{path}x"\n'
    _, (problem,) = parse_rules("50-x.toml", text, "example.com")
    assert (problem.location.line, problem.location.column) == (4, 18)
    assert problem.message == f"'container_path' has at least {size} bytes; a path has at most 4095"
    assert problem.hint == "write a shorter path"


def test_a_path_may_be_as_long_as_linux_permits() -> None:
    path = "/xx" + "/x" * 2046
    assert len(path) == 4095
    text = f'[[resource]]\nname = "x"\nmatch.SUBSYSTEM = "tty"\ncontainer_path = "{path}"\n'
    assert parse_rules("50-x.toml", text, "example.com")[1] == ()


KEPT_RULES = "'cdi_dir' is where genericdp keeps rule files, 'last-good' in 'state_dir'"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'domain = "Edge"',
            (
                "'Edge' cannot be the domain of resources: 'Edge' is not a domain: "
                "use lower-case letters, digits and '-', labels joined by '.'"
            ),
        ),
        ('kubelet_dir = "var/lib"', "'kubelet_dir' must be an absolute path, not 'var/lib'"),
        ('link_dir = "/dev/"', "'link_dir' must be a directory of its own, not '/dev'"),
        ('link_dir = "/"', "'link_dir' must be a directory of its own, not '/'"),
        ('link_dir = "//dev/."', "'link_dir' must be a directory of its own, not '/dev'"),
        ('link_dir = "/a//b"\nstate_dir = "/a/b"', "'link_dir' and 'state_dir' are the same directory"),
        ('state_dir = "/dev/genericdp"', "'link_dir' and 'state_dir' are the same directory"),
        ('link_dir = "/var/lib/genericdp"', "'link_dir' and 'state_dir' are the same directory"),
        ('link_dir = "/a/b"\ncdi_dir = "/a/b"', "'link_dir' and 'cdi_dir' are the same directory"),
        ('cdi_dir = "/dev/genericdp"', "'link_dir' and 'cdi_dir' are the same directory"),
        ('state_dir = "/run/cdi"', "'cdi_dir' and 'state_dir' are the same directory"),
        ('cdi_dir = "/var/lib/genericdp/last-good"', KEPT_RULES),
        ('state_dir = "/run"\ncdi_dir = "/run/last-good/x/y"', KEPT_RULES),
        ('state_dir = "/"\ncdi_dir = "/last-good/x"', KEPT_RULES),
        ('cdi_dir = "/run/c\\ndi"', "'cdi_dir' must not contain '\\n', which cannot be printed"),
        ('link_dir = "/dev/\\u200f"', "'link_dir' must not contain '\\u200f', which cannot be printed"),
        ('state_dir = "/var/\\u007f"', "'state_dir' must not contain '\\x7f', which cannot be printed"),
        ('link_dir = "/dev/../x"', "'link_dir' must not contain '..'"),
        ('kubelet_dir = "/a\\u0000b"', "'kubelet_dir' must not contain a null character"),
        ('log_level = "loud"', "'log_level' must be 'debug', 'info', 'warning' or 'error', not 'loud'"),
        ('log_levle = "info"', "unknown key 'log_levle' in the settings"),
        ("domain =", "not TOML: invalid value"),
        (
            'runtime_socket = "tcp://1.2.3.4:1"',
            "'runtime_socket' must be an absolute path, not 'tcp://1.2.3.4:1'",
        ),
        ("runtime_socket = true", "'runtime_socket' must be a string, not the boolean true"),
        (f'runtime_socket = "/{"r" * 107}"', "the path of a unix socket has at most 107 bytes"),
        ("metrics = 9101", "'metrics' must be a string, not the number 9101"),
        ('metrics = "localhost:9101"', "'localhost:9101' is not an address to listen on"),
        ('metrics = "127.0.0.1:0"', "'127.0.0.1:0' is not an address to listen on"),
        ('metrics = "127.0.0.1:65536"', "'127.0.0.1:65536' is not an address to listen on"),
        ('metrics = "127.0.0.256:9101"', "'127.0.0.256:9101' is not an address to listen on"),
        ('metrics = "[::1:]:9101"', "'[::1:]:9101' is not an address to listen on"),
        ('metrics = "unix:m.sock"', "'unix:m.sock' is not an address to listen on"),
        (
            f'metrics = "unix:/{"m" * 107}"',
            "the path of a unix socket has at most 107 bytes",
        ),
    ],
)
def test_a_mistake_in_the_settings_leaves_the_defaults(text: str, message: str) -> None:
    settings, problems = parse_settings("genericdp.toml", text)
    assert settings == Settings()
    assert [problem.message for problem in problems] == [message]


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        (
            'cdi_dir = "/run/c\\ndi"',
            (1, 11),
            "choose another name: genericdp notes its directories in files, one on each line",
        ),
        (
            'state_dir = "/run"\ncdi_dir = "/run/last-good/x"',
            (2, 11),
            "choose another one, for example '/run/cdi', that the container runtime reads",
        ),
        (
            'domain = "x.example"\nstate_dir = "/run/cdi"',
            (2, 13),
            "choose two: runtimes see what is in cdi_dir, and only genericdp what is in state_dir",
        ),
        (
            'cdi_dir = "/dev/genericdp"',
            (1, 11),
            "choose two: container runtimes read every file in cdi_dir",
        ),
    ],
)
def test_a_mistake_about_a_directory_says_where_it_is_and_what_to_do(
    text: str, place: tuple[int, int], hint: str
) -> None:
    _, (problem,) = parse_settings("genericdp.toml", text)
    assert (problem.location.line, problem.location.column) == place
    assert problem.hint == hint


def test_directories_of_the_daemon_may_be_below_one_another() -> None:
    text = 'state_dir = "/"\nlink_dir = "/dev/genericdp"\ncdi_dir = "/last-good-cdi/x"'
    assert parse_settings("genericdp.toml", text)[1] == ()


def test_a_path_is_read_in_its_shortest_form() -> None:
    """What leads from a path to / by its directories would never leave `//`."""
    settings, problems = parse_settings(
        "genericdp.toml", 'kubelet_dir = "//var/./lib//k/."\nstate_dir = "//"\n'
    )
    assert (settings.kubelet_dir, settings.state_dir, problems) == ("/var/lib/k", "/", ())


@pytest.mark.parametrize(
    "address", ["", "unix:/run/genericdp/metrics.sock", "127.0.0.1:9101", "[::1]:9101", "0.0.0.0:1"]
)
def test_metrics_may_be_asked_for_at_these_addresses(address: str) -> None:
    settings, problems = parse_settings("genericdp.toml", f'metrics = "{address}"\n')
    assert (settings.metrics, problems) == (address, ())


@pytest.mark.parametrize("name", ["example/foo", "1.2.3.4/x", "example.com/Foo_bar.baz-1", "a/" + "n" * 63])
def test_the_kubelet_accepts_these_names(name: str) -> None:
    assert why_not_a_resource_name(name) == ""


@pytest.mark.parametrize(
    "name",
    [
        "foo",
        "Example.com/foo",
        "a/b/c",
        "/foo",
        "x/",
        "notkubernetes.io/foo",
        "requests.x.io/y",
        "x.io/-foo",
        "x.io/a@1",
        "x.io/" + "n" * 64,
        "d" * 245 + "/x",
    ],
)
def test_the_kubelet_refuses_these_names(name: str) -> None:
    assert why_not_a_resource_name(name) != ""


@given(st.integers(0, len(FULL) - 1), st.text(max_size=3), st.integers(0, 30))
def test_no_text_raises(start: int, insert: str, remove: int) -> None:
    text = FULL[:start] + insert + FULL[start + remove :]
    _, problems = parse_rules("x.toml", text, "example.com")
    for problem in problems:
        assert problem.render()
        assert problem.location.line <= text.count("\n") + 1


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 5000 + "]" * 5000,
        '[[resource]]\nname = "a"\nmatch = ' + "{parent=" * 900 + '{DEVNAME="x"}' + "}" * 900,
    ],
    ids=["lists", "tables"],
)
def test_a_file_that_is_nested_too_deeply_is_a_mistake_like_any_other(text: str) -> None:
    message = "nested more than 32 levels deep"
    resources, problems = parse_rules("deep.toml", text, "example.com")
    assert (resources, [(each.message, each.hint) for each in problems]) == (
        (),
        [(message, "no rule needs that")],
    )
    settings, same = parse_settings("deep.toml", text)
    assert (settings, same) == (Settings(), problems)


@pytest.mark.parametrize(
    ("written", "socket"),
    [("", ""), ("/run/crio/crio.sock", "/run/crio/crio.sock"), ("unix:///run/a.sock", "/run/a.sock")],
)
def test_the_socket_of_the_runtime_may_be_written_as_for_the_kubelet(written: str, socket: str) -> None:
    settings, problems = parse_settings("genericdp.toml", f'runtime_socket = "{written}"\n')
    assert (settings.runtime_socket, problems) == (socket, ())
