"""A controller of USB 3 as the kernel shows it: a root hub for each speed, with ports in the same sockets."""

from genericdp.core.buses.port import beside_in_socket
from genericdp.core.device import PEER, UdevDevice
from tests.scenes.builders import CONTROLLER, a_device, a_usb_device, a_usb_node

#: How much higher the numbers of the same sockets are on the root hub for USB 3.
SHIFT = 4

#: The number of the bus of each root hub.
_BUS = {False: 1, True: 2}


def in_socket(
    port: str = "2",
    *,
    fast: bool = False,
    serial: str | None = None,
    peer: bool = True,
    is_hub: bool = False,
    shift: int = 0,
    product: str = "6001",
    devnum: int = 4,
) -> UdevDevice:
    """A unit with its /dev/bus/usb node in a socket of USB 3, or behind hubs in one.

    port   as the root hub for USB 2 numbers it; the other one adds `shift` to the number of the socket
    fast   whether it runs at a speed of USB 3
    peer   whether the kernel says which ports are one socket
    """
    first, _, rest = port.partition(".")
    there = {False: first, True: str(int(first) + shift)}
    chain = ".".join(filter(None, (there[fast], rest)))
    bus, other = _BUS[fast], _BUS[not fast]
    model = a_usb_device(chain, bus=bus, serial=serial, product=product, devnum=devnum)
    controller = a_device(CONTROLLER, subsystem="pci", driver="xhci_hcd")
    above = a_device(
        f"{CONTROLLER}/usb{bus}",
        subsystem="usb",
        devtype="usb_device",
        attributes={"version": " 3.00" if fast else " 2.00"},
        parent=controller,
    )
    parts = chain.split(".")
    for depth in range(1, len(parts) + 1):
        is_last = depth == len(parts)
        name = f"{bus}-{'.'.join(parts[:depth])}"
        says = {**model.attributes} if is_last else {}
        if depth == 1 and peer:
            says[PEER] = f"{CONTROLLER}/usb{other}/{other}-0:1.0/usb{other}-port{there[not fast]}"
        above = a_device(
            f"{above.sys_path}/{name}",
            subsystem="usb",
            devtype="usb_device",
            node=model.device_node if is_last else f"/dev/bus/usb/{bus:03d}/{100 + depth:03d}",
            number=str(model.number) if is_last else f"c 189:{128 * (bus - 1) + 99 + depth}",
            properties={**model.properties, "DEVPATH": "", "TYPE": "0/0/0"}
            if is_last and not is_hub
            else {"TYPE": f"9/0/{3 if fast else 1}"},
            attributes=says,
            parent=above,
        )
    return above


def unread(*units: UdevDevice) -> dict[str, str]:
    """The `UnreadError.paths` for these units, or parts of units, while they cannot be read."""
    peers = {unit: [each.attributes.get(PEER) for each in unit.self_and_ancestors()] for unit in units}
    return {
        unit.sys_path: beside_in_socket(unit.sys_path, next(filter(None, mine), ""))
        for unit, mine in peers.items()
    }


def a_tty_in_socket(number: int = 0, **where: object) -> UdevDevice:
    """/dev/ttyACM`number` of a unit that is `in_socket`."""
    usb = in_socket(**where)  # type: ignore[arg-type]
    return a_usb_node(usb, "tty", f"ttyACM{number}", number=f"c 166:{number}")
