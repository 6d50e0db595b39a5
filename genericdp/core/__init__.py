"""The decisions: values in, values out. The daemon and every verb decide here, so they agree.

    rule files ──parse──► rules ──match──┐
                                         ├──► claims ──► inventory ──► memory ──► allocate, prefer
    udev ──snapshots──► udev devices ────┘                    └──diff──► changes

    rules, reading       what a rule file can say; how it is read
    device, hint         one udev device at one moment; where something may have changed
    inventory            from udev devices to the devices of each resource
    allocate, prefer     what a container gets, and of which devices
    explain, suggest     why a device is offered or not; a rule for it
    status               how the daemon is doing
    hostile, limits      text of devices made harmless; limits of the kernel
    usb_port, words      a port of a USB hub; English for messages

Does not belong here: anything that reads or writes the machine. No I/O, no clock, no randomness, no logging;
a contract test checks this.
"""
