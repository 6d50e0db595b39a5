"""What an event costs the core: the inventory rebuilt whole, 1,000 udev devices × 100 rules."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from genericdp.core.device import UdevDevice
from genericdp.core.hint import Hint, Uevent
from genericdp.core.inventory.build import Builder
from genericdp.core.memory.held import give
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.take import take_inventory
from genericdp.core.rules.node_names import names_in
from genericdp.core.rules.resource import Resource
from genericdp.machine.bare_nodes import BareNodes
from genericdp.udev import UdevDevices
from tests.bench.row import Row
from tests.scenes.builders import a_device, a_usb_device, a_usb_node, by_sys_path, resources_of

DOMAIN = "bench.example"


def rows() -> Iterator[Row]:
    devices, rules = machine(), many_rules()
    size = f"{len(devices):,} udev devices x {len(rules)} rules"
    whole = best(lambda: Builder(rules, DOMAIN).build(devices))
    yield Row(f"rebuild, everything judged anew: {size}", f"{whole:.1f} ms", "< 100 ms")

    builder = Builder(rules, DOMAIN)
    builder.build(devices)
    victim = next(iter(each for each in devices.values() if each.device_node == "/dev/ttyUSB7"))

    def one_event() -> None:
        devices[victim.sys_path] = replace(victim)
        builder.build(devices)

    event = best(one_event)
    yield Row("rebuild after one device changed", f"{event:.1f} ms", "< 2 ms")
    other = best(lambda: builder.build(devices))
    yield Row("  of that, for the device itself", f"{max(0.0, event - other):.2f} ms")

    bare = BareNodes(names_in(rules))
    bare.resync()
    again = best(lambda: bare.judge(devices))
    yield Row("to find out after an event which nodes udev does not know", f"{again:.2f} ms", "< 1 ms")

    yield Row(
        "800 of 4,000 USB devices leave at once: to follow the uevents", f"{leaving():.0f} ms", "< 250 ms"
    )

    for what, names, promised in (("", ("x", "x"), "< 2 ms"), (" that all wait", ("x", "y"), "")):
        free, held = (held_step(names, ids) for ids in (0, 1000))
        yield Row(f"a step takes longer with 1,000 held ids{what}, by", f"{held - free:.1f} ms", promised)


def leaving() -> float:
    """How long it takes in milliseconds to follow the uevents of 800 USB devices of 4,000 that leave."""
    known = UdevDevices()
    gone: list[Hint] = []
    for number in range(4000):
        path = f"/sys/devices/bench/usb{number // 100}/{number}"
        ways = (
            path,
            f"{path}/if0",
            f"{path}/if0/ttyUSB{number}",
            f"{path}/if0/ttyUSB{number}/tty/ttyUSB{number}",
        )
        for way in ways:
            known._put_in(a_device(way, node=f"/dev/ttyUSB{number}", number=f"c 188:{number}"))
        if number < 800:
            gone += [Uevent("remove", way, "", "kernel") for way in reversed(ways)]
    begun = time.perf_counter()
    known.apply(*gone)
    return (time.perf_counter() - begun) * 1e3


def held_step(names: tuple[str, str], ids: int) -> float:
    """How long a step takes in milliseconds while pods hold so many of 1,000 devices.

    names  the short name of their resource when they were given to the pods, and now
    """
    every = 'match = { SUBSYSTEM = "misc" }\n'
    rules = [resources_of(f'[[resource]]\nname = "{name}"\n{every}', domain=DOMAIN) for name in names]
    paths = [f"/sys/devices/virtual/misc/m{n}ctl" for n in range(1000)]
    devices = by_sys_path(
        *(a_device(path, node=f"/dev/m{n}", number=f"c 10:{n}") for n, path in enumerate(paths))
    )
    inventory, memory = take_inventory(Builder(rules[0], DOMAIN), devices, Memory(), 0.0)
    (offer,) = inventory.offers.values()
    memory = replace(memory, held=give({}, offer, [*offer.ids][:ids], 0.0))
    builder = Builder(rules[1], DOMAIN)
    _, memory = take_inventory(builder, devices, memory, 1.0)
    return best(lambda: take_inventory(builder, devices, memory, 2.0))


def machine() -> dict[str, UdevDevice]:
    """A crowded node: serial adapters behind hubs, cameras, consoles, and much that no rule takes."""
    found: list[UdevDevice] = []
    for n in range(130):
        usb = a_usb_device(f"{n // 7 + 1}.{n % 7 + 1}", vendor="0403", serial=f"S{n:04d}", devnum=n + 2)
        found += [usb, a_usb_node(usb, "tty", f"ttyUSB{n}", number=f"c 188:{n}")]
    for n in range(600 - 1):
        path = f"/sys/devices/virtual/tty/tty{n}"
        found.append(a_device(path, subsystem="tty", node=f"/dev/tty{n}", number=f"c 4:{n}"))
    devices = by_sys_path(*found)
    for n in range(1000 - len(devices)):
        path = f"/sys/devices/virtual/misc/m{n}"
        devices[path] = a_device(path, node=f"/dev/m{n}", number=f"c 10:{n}")
    return devices


def many_rules() -> tuple[Resource, ...]:
    """A hundred rules of all kinds; a tenth share a device node, and a tenth look far up."""
    shared = '[[resource.node]]\nmatch = { DEVNAME = "/dev/m0" }\nshared = true\n'
    far = (
        'group_by = { SUBSYSTEM = "usb", DEVTYPE = "usb_interface" }\nenv = { "BY_{sysname}" = "{DRIVER}" }\n'
    )
    tables = [
        f'[[resource]]\nname = "serial-{n}"\n'
        f'match = {{ SUBSYSTEM = "tty", usb = {{ vendor = "0403", serial = "S{n:03d}*" }} }}\n'
        + (far if n % 3 == 0 else "")
        + (shared if n % 3 == 1 else "")
        for n in range(30)
    ]
    tables += [
        f'[[resource]]\nname = "unit-{n}"\ngroup_by = "usb_device"\n'
        f'match = {{ usb = {{ vendor = "2c7c", product = "{n:04x}" }} }}\n'
        for n in range(20)
    ]
    tables += [
        f'[[resource]]\nname = "console-{n}"\nmatch = {{ DEVNAME = "/dev/tty{n}[0-9]" }}\n' for n in range(30)
    ]
    tables += [
        f'[[resource]]\nname = "odd-{n}"\n'
        f'match = {{ parent = {{ DRIVER = "usb", "ATTR{{serial}}" = "X{n}" }} }}\n'
        for n in range(20)
    ]
    return resources_of("\n".join(tables), domain=DOMAIN)


def best(work: Callable[[], object], times: int = 7) -> float:
    """The shortest of some runs in milliseconds: what the work takes when nothing else runs."""
    return min(timed(work) for _ in range(times))


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000
