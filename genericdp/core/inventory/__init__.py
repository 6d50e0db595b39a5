"""From udev devices to the devices that each resource offers. Theory of operation:

The kubelet knows a device by its id alone. It saves the id with the pod, and asks for the same id
when a container restarts, after a re-plug, after a reboot. So an id must mean the same physical
device for as long as a pod may hold it. The kernel helps little: it numbers buses, ttys and cameras
in the order of arrival.

A **unit** is a physical thing: a USB device, a PCI function, a virtual device. It has a **port**,
which is where it is plugged in: the chain of controller and hub ports, without bus numbers. What is
plugged in nowhere, such as a volume, has what its bus calls it instead (`genericdp.core.buses`). Most
units have a serial number. A device node has a **place** within its unit, such as `if02` for
interface 2 of a modem. All of this comes from sysfs, and none of it depends on the order of
arrival.

Each device node goes to the first resource in file order that **claims** it. `group_by` then sorts
the nodes of a resource into **groups**, mostly by the nearest ancestor that satisfies a match, and each group
makes one **device**. Its **identity** is
the serial number of its unit and the place within it; without a serial number, the port counts, for
a virtual device its kernel name. A rule may choose the port, or udev properties, instead. The
**id** is a function of the identity: `modem_EC25-17`. An id that would be too long, would hold
characters that are not allowed, or could be that of another identity, is shortened and ends in a hash.

**Twins** are units with the same serial number. The first one keeps the plain id, which a pod may
already hold, and is **tied** to its port as soon as a second one appears. Every other unit with this
serial number gets an id that includes its port. Ties are never dropped: which twin was the first could
not be found out again after a reboot. Twins are remembered as such whatever resources take them: if each
is in a resource of its own, each is tied to its port, and so is the first one under a new name. A serial
number that tells nothing (`genericdp.core.fillers`), such as 0001, counts only together with the port.

Each device node gets a **link** that is named after the id (and the place, if the device has
several nodes). Pods get the link, never the kernel's name, so the answer that the kubelet saved
stays right when ttyUSB0 becomes ttyUSB3.

**Siblings** are nodes that nothing but their order tells apart, such as the ports of a card without numbers.
Each keeps its number and its id for as long as it is plugged in: its directory in sysfs is remembered. A unit
that is plugged in again has the numbers that it had, at any port.
Wireless units without an address are siblings as well, even if only one of them is there.

**Shared** nodes, such as `/dev/kfd`, go along with every device of a resource. They belong to none of
them, have links of their own, and sharing a node claims nothing.

All of this is a function of the rules and the udev devices. The builder keeps what it found out, and judges
and sorts only the snapshots that an event replaced; a new builder comes to the same result. What has to
outlive a device or a restart is `genericdp.core.memory`.

Read in this order: `place`, `part`, `past`, `identity`, `plugged`, `siblings`, `claims`, `group`, `twins`,
`offer`, `compose` (one device), `naming`, `inventory`, `shared`, `sorting`, `build`.

Does not belong here: what a container gets for an id (`genericdp.core.allocate`), and why
(`genericdp.core.explain`).
"""
