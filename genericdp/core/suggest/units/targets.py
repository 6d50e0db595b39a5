"""What a device node leads to when its hardware is elsewhere: an image of a cluster, a device over Bluetooth.

The rules of this file:

* The kernel numbers such nodes in the order in which somebody makes them, and it may move them when they are
  opened. What they lead to stays the same.
* sysfs attributes say it, whatever the driver is called.
"""

from collections.abc import Mapping

from genericdp.core.device import UdevDevice
from genericdp.core.suggest.quoting import exactly

#: Attributes that say together what a device leads to -> what says more, where it is not empty.
_OVER_NETWORK: Mapping[tuple[str, ...], tuple[str, ...]] = {
    # Ceph (Documentation/ABI/testing/sysfs-bus-rbd)
    ("pool", "name"): ("pool_ns", "current_snap"),
    # NVMe, also over several paths (drivers/nvme/host/sysfs.c)
    ("subsysnqn",): (),
}
#: The same for what the kernel moves below its adapter, for as long as it is open.
_OVER_RADIO: Mapping[tuple[str, ...], tuple[str, ...]] = {
    # serial ports over Bluetooth (net/bluetooth/rfcomm/tty.c)
    ("address", "channel"): (),
}

#: sysfs attributes that say what a device leads to, beyond CORE_ATTRIBUTES. Only verbs read them.
TARGET_ATTRIBUTES = frozenset(
    name
    for first, more in (*_OVER_NETWORK.items(), *_OVER_RADIO.items())
    for name in (*first, *more)
    if name != "name"
)


def target_of(node: UdevDevice) -> Mapping[str, str | Mapping[str, str]]:
    """The conditions that what a device node leads to satisfies; {} for hardware of this machine."""
    # An NVMe disk on PCI has the name of a subsystem, too.
    is_here = any(each.subsystem == "pci" for each in node.ancestors())
    targets = _OVER_RADIO if is_here else {**_OVER_NETWORK, **_OVER_RADIO}
    for above in node.self_and_ancestors():
        for first, more in targets.items():
            values = {name: above.attributes.get(name, "").strip() for name in (*first, *more)}
            if all(values[name] for name in first):
                target = {f"ATTR{{{name}}}": exactly(value) for name, value in values.items() if value}
                return target if above is node else {"parent": {"SUBSYSTEM": above.subsystem, **target}}
    return {}
