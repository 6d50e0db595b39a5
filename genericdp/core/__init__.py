"""The decisions: values in, values out. The daemon and every verb decide here, so they agree.

    rule files ──parse──► rules ──match──┐
                                         ├──► claims ──► inventory ──► memory ──► allocate, prefer
    udev ──snapshots──► udev devices ────┘                    └──diff──► changes

Reading order:

    device               one udev device, which all decisions are about
    bare_node            a device node that udev does not know, and whether it may be offered
    vfio                 which functions an IOMMU group hands over, and whether it is of use
    rules, reading       what a rule file can say; how it is read
    buses                what a bus says that tells its devices apart
    inventory            from udev devices to the devices of each resource
    allocate, prefer     what a container gets; which of the free devices
    container_paths      what is where in the container
    cdi                  the same as names, and the spec files that say what they mean
    explain, suggest     why a device is offered or not; a rule for it
    returning            after a boot, the devices that READY waits for
    comeback             which containers no longer have their device
    status               how the daemon is doing
    hint, hostile        where something may have changed; what a device says, made harmless
    fillers              serial numbers that tell nothing
    limits, usb_port, words   the kernel's limits; USB ports; English for messages

Does not belong here: anything that reads or writes the machine. No I/O, no clock, no randomness, no logging;
a contract test checks this.
"""
