"""What has to outlive a device, an edit of the rules, a restart and a reboot. Theory of operation:

The kubelet saves an id with its pod and never tells a device plugin that the pod has gone. Kubelet 1.36
crashes if an id vanishes that a pod holds. So an id stays listed for as long as a pod may hold it.

When a device leaves, a **tombstone** takes its place: same id, Unhealthy, with the reason, its
links pointing nowhere. The tombstone goes when no pod holds the id and `unplug_grace` has passed. If the
device returns before, it is Healthy under its old id. Tombstones keep the **spots** of their nodes (port,
serial number, place), by which a device is recognized that is plugged in again but not offered: the rules
changed, or udev has not finished with it.

`replicas` offers one device under several ids, `fuse_fuse.0`, `fuse_fuse.1`. When a rule lowers the
number, the ids that it no longer includes are **withdrawn**: like tombstones, they stay in the list as
Unhealthy until no pod holds them. When the rules no longer define a resource, its devices disappear
from the list, but their links stay as **orphaned links**.

A pod **holds** the ids that Allocate gave it, and those that PodResources lists, until a complete answer of
PodResources no longer lists them. Edited rules may offer a device node under another id while a pod holds it
under the old one. If one of the two is exclusive, the new id is **waiting**: it is Unhealthy, and Allocate
refuses it, until no pod holds the node.

A unit on USB that comes back without its serial number, because the kernel could not read it, would have a
new id. It is not offered while it may be what a pod holds (`waiting.unread`).

Units join and leave a device of several units. So what a pod got of it is told from what has come since
(`given`).

A list has a limit. It never costs an id that a pod may hold: new devices are refused.

The **memory** is saved: the devices, the ties of twins, how devices are shared, who holds what. Everything
else is built anew from the rules and the udev devices at each event.

A pod that was **answered** by CDI has only names, whose meaning is remembered while its ids are held. So are
the links of any other pod. If the memory is lost, both are learned again from the kubelet's checkpoint. Then
only the links tell which device nodes an id meant that edited rules no longer give. An edit makes them lead
nowhere, so **held links** lead there.

Read in this order: `remembered`, `room`, `held`, `answered`, `absence`, `given`, `renewal`, `withdrawn`,
`waiting`, `memory`, `lasting`, `renamed`, `remember`, `take` (all of it in one call). `saved` is the memory
as text, `fields` what each value of it may be.

Does not belong here: what a rule makes of the devices that are present (`genericdp.core.inventory`).
"""
