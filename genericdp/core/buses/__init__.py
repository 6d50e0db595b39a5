"""What a bus says that tells its devices apart, where the kernel's names and numbers do not.

A device on USB or PCI is told by where it is plugged in. Elsewhere nothing is plugged in: a disk is behind a
network, a scanner is behind a radio, a volume consists of other disks. Each of these buses has a name of its
own for what is on it.

Reading order:

    kernel_name   the kernel's name without the numbers of arrival
    address       what tells a unit that has no place
    port          where a unit is connected
    ordinal       the number that a driver gives to a part of a unit
    scsi          disks and tapes: ATA, SAS, Fibre Channel, iSCSI
    wireless      what a radio has connected: by Bluetooth, or paired with a receiver
    nvme          drives with several controllers or behind a network, namespaces of any
    pmem          namespaces of persistent memory
    firewire      units on FireWire
    card          cards whose driver does not tell sysfs where they are
    volumes       volumes of device mapper and ZFS, arrays of md, cached disks, images of Ceph
    software      soft RDMA adapters, clocks of guests, virtual cameras, watchdogs and input devices
    video         nodes of cameras, codecs and image processors
    told          all that these say

Does not belong here: which device nodes a unit has, and what an id is made of (`genericdp.core.inventory`).
"""
