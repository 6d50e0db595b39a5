"""Disks behind controllers and networks, whose kernel names and numbers follow the order of arrival."""

from collections.abc import Mapping

from genericdp.core.device import UdevDevice
from tests.scenes.builders import a_device

HBA = a_device("/sys/devices/pci0000:00/0000:00:03.0", subsystem="pci", driver="mpt3sas")
PLATFORM = a_device("/sys/devices/platform", subsystem="")

#: Every disk of the machine.
DISK_RULE = """
[[resource]]
name = "disk"
allow_dangerous = true
match = { SUBSYSTEM = "block" }
"""


def below(parent: UdevDevice, name: str, subsystem: str = "", devtype: str = "", **told: str) -> UdevDevice:
    """A device below another one; `told` are its sysfs attributes, with `__` for `/`."""
    attributes = {key.replace("__", f"/{name}/"): value for key, value in told.items()}
    return a_device(
        f"{parent.sys_path}/{name}",
        subsystem=subsystem,
        devtype=devtype,
        attributes=attributes,
        parent=parent,
    )


def a_disk(
    target: UdevDevice,
    address: str,
    minor: int,
    *,
    wwid: str = "",
    properties: Mapping[str, str] | None = None,
) -> UdevDevice:
    """`/dev/sda` and so on, a logical unit of a target; `address` is `host:channel:target:lun`."""
    lun = below(target, f"target{address.rpartition(':')[0]}", "scsi", "scsi_target")
    attributes = {"wwid": wwid} if wwid else {}
    unit = below(lun, address, "scsi", "scsi_device", **attributes)
    name = f"sd{chr(97 + minor)}"
    return a_device(
        f"{unit.sys_path}/block/{name}",
        subsystem="block",
        devtype="disk",
        node=f"/dev/{name}",
        number=f"b 8:{16 * minor}",
        properties=properties,
        parent=unit,
        incarnation=100 + minor,
    )


def a_host(parent: UdevDevice = HBA, number: int = 0) -> UdevDevice:
    """A SCSI host."""
    return below(parent, f"host{number}", "scsi", "scsi_host")


def a_sas_disk(target: int, sas_address: str, minor: int, *, host: int = 0, wwid: str = "") -> UdevDevice:
    """A disk on SAS; the target has been counted."""
    port = below(a_host(number=host), f"port-{host}:{target}")
    told = {"sas_device__sas_address": sas_address} if sas_address else {}
    end = below(port, f"end_device-{host}:{target}", **told)
    properties = {"ID_SERIAL": sas_address}
    return a_disk(end, f"{host}:0:{target}:0", minor, wwid=wwid, properties=properties)


def an_fc_disk(target: int, port_name: str, minor: int, *, host: int = 0, lun: int = 0) -> UdevDevice:
    """A disk on Fibre Channel."""
    port = below(a_host(number=host), f"rport-{host}:0-{target}", fc_remote_ports__port_name=port_name)
    return a_disk(port, f"{host}:0:{target}:{lun}", minor)


def an_iscsi_disk(host: int, session: int, target: str, minor: int, *, lun: int = 1) -> UdevDevice:
    """A disk of a session of iSCSI, whose host a driver has made of nothing."""
    told = {"iscsi_session__targetname": target} if target else {}
    at = below(a_host(PLATFORM, host), f"session{session}", **told)
    return a_disk(at, f"{host}:0:0:{lun}", minor, properties={"ID_SERIAL": f"{target}-{lun}"})


def a_volume(number: int, uuid: str = "", name: str = "") -> UdevDevice:
    """A volume of device mapper."""
    return a_device(
        f"/sys/devices/virtual/block/dm-{number}",
        subsystem="block",
        devtype="disk",
        node=f"/dev/dm-{number}",
        number=f"b 253:{number}",
        attributes={"dm/uuid": uuid, "dm/name": name},
        incarnation=200 + number,
    )


def an_array(number: int, uuid: str = "", properties: Mapping[str, str] | None = None) -> UdevDevice:
    """An array of md; `uuid` is in sysfs."""
    return a_device(
        f"/sys/devices/virtual/block/md{number}",
        subsystem="block",
        devtype="disk",
        node=f"/dev/md{number}",
        number=f"b 9:{number}",
        attributes={"md/uuid": uuid} if uuid else {},
        properties=properties,
        incarnation=300 + number,
    )


def an_image(number: int, image_id: str = "", snap_id: str = "18446744073709551614") -> UdevDevice:
    """An image of Ceph."""
    told = {"cluster_fsid": "b1c2", "pool_id": "3", "pool_ns": "", "image_id": image_id, "snap_id": snap_id}
    root = a_device("/sys/devices/rbd")
    image = a_device(f"{root.sys_path}/{number}", subsystem="rbd", parent=root, attributes=told)
    return a_device(
        f"{image.sys_path}/block/rbd{number}",
        subsystem="block",
        devtype="disk",
        node=f"/dev/rbd{number}",
        number=f"b 252:{16 * number}",
        parent=image,
        incarnation=400 + number,
    )


def an_nvme_namespace(parent: UdevDevice, found: int, nsid: int, *, boot: int = 0) -> UdevDevice:
    """The namespace of a drive that was found as this one; its minor number is its nsid."""
    wwid = f"eui.00253885910000{nsid:02x}"
    return a_device(
        f"{parent.sys_path}/nvme0n{found}",
        subsystem="block",
        devtype="disk",
        node=f"/dev/nvme0n{found}",
        number=f"b 259:{nsid}",
        parent=parent,
        incarnation=100 * boot + found,
        attributes={"nsid": str(nsid)},
        properties={"ID_WWN": wwid},
    )


def a_virtual_disk(
    name: str,
    minor: int = 0,
    *,
    attributes: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    devlinks: tuple[str, ...] = (),
) -> UdevDevice:
    """A disk of software, such as `/dev/zd16`."""
    return a_device(
        f"/sys/devices/virtual/block/{name}",
        subsystem="block",
        devtype="disk",
        node=f"/dev/{name}",
        number=f"b 230:{minor}",
        attributes=attributes,
        properties=properties,
        devlinks=devlinks,
        incarnation=600 + minor,
    )


def a_zvol(number: int, name: str = "") -> UdevDevice:
    """A volume of ZFS, with the link that ZFS's udev rule makes."""
    return a_virtual_disk(f"zd{number}", number, devlinks=(f"/dev/zvol/{name}",) if name else ())


def a_cached_disk(number: int, uuid: str = "") -> UdevDevice:
    """A disk of bcache."""
    attributes = {"bcache/backing_dev_uuid": uuid} if uuid else {}
    return a_virtual_disk(f"bcache{number}", 128 * number, attributes=attributes)


def an_nvme_subsystem(number: int, serial: str, nqn: str = "") -> UdevDevice:
    """A drive that several controllers may have, as Linux shows it with multipath."""
    told = {"serial": serial, "subsysnqn": nqn}
    return a_device(
        f"/sys/devices/virtual/nvme-subsystem/nvme-subsys{number}",
        subsystem="nvme-subsystem",
        attributes={name: value for name, value in told.items() if value},
    )


def an_nvme_disk(number: int, serial: str, nqn: str = "") -> UdevDevice:
    """The first namespace of such a drive."""
    return a_device(
        f"/sys/devices/virtual/nvme-subsystem/nvme-subsys{number}/nvme{number}n1",
        subsystem="block",
        devtype="disk",
        node=f"/dev/nvme{number}n1",
        number=f"b 259:{number}",
        attributes={"nsid": "1"},
        properties={"ID_SERIAL": serial},
        parent=an_nvme_subsystem(number, serial, nqn),
        incarnation=400 + number,
    )


def an_nvme_controller(number: int, nqn: str, address: str) -> UdevDevice:
    """A controller over a network."""
    return a_device(
        f"/sys/devices/virtual/nvme-fabrics/ctl/nvme{number}",
        subsystem="nvme",
        node=f"/dev/nvme{number}",
        number=f"c 240:{number}",
        attributes={"serial": "a1c9d3f04b6e2210", "subsysnqn": nqn, "address": address},
        parent=a_device("/sys/devices/virtual/nvme-fabrics/ctl", subsystem="nvme-fabrics"),
        incarnation=500 + number,
    )


def a_generic_namespace(parent: UdevDevice, found: int, nsid: int, *, boot: int = 0) -> UdevDevice:
    """The generic node of the same namespace."""
    return a_device(
        f"{parent.sys_path}/ng0n{found}",
        subsystem="nvme-generic",
        node=f"/dev/ng0n{found}",
        number=f"c 239:{found}",
        parent=parent,
        incarnation=100 * boot + 50 + found,
        attributes={f"../nvme0n{found}/nsid": str(nsid)},
    )


_NVME = a_device("/sys/devices/pci0000:00/0000:00:1d.0", subsystem="pci", driver="nvme")
#: A drive, and one that several controllers may have, as Linux shows it with multipath.
NVME_DRIVES = (
    a_device(
        f"{_NVME.sys_path}/nvme/nvme0",
        subsystem="nvme",
        node="/dev/nvme0",
        number="c 240:0",
        attributes={"serial": "S4EMNX0R100002"},
        parent=_NVME,
    ),
    an_nvme_subsystem(0, "S4EMNX0R100002"),
)
