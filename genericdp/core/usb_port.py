"""A port of a USB hub: what identifies it, and how it is written for people. A socket, which may have two.

The rules of this file:

* A socket of USB 3 is two ports to the kernel, one on each root hub of its controller. What is plugged in
  there counts as plugged in at the port of USB 2, at whichever speed it runs.
* An earlier release kept the two apart. What is remembered at the port of USB 3 alone stays there, with
  everything that comes to this socket, until it is forgotten. What is remembered at both stays apart.
* Two units may be in one socket at once. Then each of them is at its own port.
* If these are two for a while, and rules match both, the socket is apart: it has two ports until nothing at
  either is remembered. If a pod has one that was there alone before, that keeps the port at which it counted,
  and the other one has the other port. Otherwise each stays at its own: pods may have got them by these.
* A unit that changes its speed or loads its firmware may be seen twice, but only for a moment.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

#: The port for USB 2 of each socket that is apart -> its port for USB 3, and whether each unit counts at the
#: port of the other speed.
Apart = Mapping[str, tuple[str, bool]]

_EXACT = re.compile(r"(?P<controller>\S+) usb(?P<generation>\S*) (?P<chain>\S+)")

#: The vendor and the product number of a unit, and its serial number; "" for what is not known.
Said = tuple[str, str]


@dataclass(frozen=True, slots=True)
class UsbPort:
    """Where a USB device is plugged in: what ID_PATH says, without bus numbers, which follow the order
    in which controllers were found.

    controller  its sys path
    generation  the USB generation of the root hub: a controller has a root hub for each
    chain       the ports from the root hub down, `2.3`; "0" for a root hub itself
    """

    controller: str
    generation: str
    chain: str

    @property
    def exact(self) -> str:
        """Distinguishes any two ports of the node. It is saved, so its form must not change."""
        return f"{self._root} {self.chain}"

    @property
    def hub(self) -> str:
        """The hub that the port belongs to, told apart from all others."""
        return f"{self._root} {self.chain.rpartition('.')[0]}"

    @property
    def _root(self) -> str:
        return f"{self.controller} usb{self.generation}"

    @classmethod
    def of_exact(cls, exact: str) -> "UsbPort | None":
        """The port with this exact form; None when it is not a USB port."""
        found = _EXACT.fullmatch(exact)
        return None if found is None else cls(**found.groupdict())

    def __str__(self) -> str:
        return f"USB port {self.chain} of {self.controller}"


@dataclass(frozen=True, slots=True)
class Socket:
    """A socket of USB 3, or what is behind it at the same ports of hubs, as one unit in it sees it.

    slow, fast  its port on the root hub for USB 2 and its port on the one for USB 3, exactly
    own         the one of the two at which the unit is
    beside      the sys path of what is at the other one, if anything is
    unit        what the unit says it is
    """

    slow: str
    fast: str
    own: str
    beside: str
    unit: Said = ("", "")

    def port(self, is_known: Callable[[str], bool]) -> str:
        """The port at which a unit counts that is alone there.

        is_known  whether anything is remembered at a port
        """
        if not is_known(self.fast):
            return self.slow
        return self.own if is_known(self.slow) else self.fast

    def other(self, port: str) -> str:
        """The other one of its two ports."""
        return self.fast if port == self.slow else self.slow


@dataclass(frozen=True, slots=True)
class At:
    """What is remembered at ports.

    is_known  whether anything is, at an exact port
    units     what the units at an exact port said that they are
    apart     the sockets that are apart
    """

    is_known: Callable[[str], bool] = lambda _: False
    units: Callable[[str], Collection[Said]] = lambda _: ()
    apart: Apart = field(default_factory=dict)


#: What is at both ports of a socket, by its port for USB 2.
Two = Mapping[str, tuple[Socket, Socket]]


def form_of(both: tuple[Socket, Socket], past: At) -> tuple[str, bool]:
    """How a socket with two units is apart.

    past  what is remembered with them: at its own port, one that is offered there
    """
    return both[0].fast, any(
        not past.is_known(one.own)
        and any(
            _are_two(said, other.unit) and not _are_two(said, one.unit)
            for said in past.units(one.other(one.own))
        )
        for one, other in (both, both[::-1])
    )


def _are_two(one: Said, other: Said) -> bool:
    """Whether two units say that they are two."""
    return any(a and b and a != b for a, b in zip(one, other, strict=True))


class Sockets:
    """The units that are plugged in where there are sockets of USB 3, and where each of them counts.

    apart  the sockets that are remembered as apart
    two    others that are so if they go on to hold two units
    """

    def __init__(self) -> None:
        self.apart: Apart = {}
        self.two: Two = {}
        self._at: dict[str, Socket] = {}
        self._ports: dict[str, str] = {}

    def see(self, gone: Iterable[str], came: Mapping[str, Socket | None], past: At) -> Collection[str]:
        """Find out where each unit counts. Returns the sys paths of those that count elsewhere than before.

        gone, came  sys paths; of those that have come, with their sockets
        past        what is remembered at ports
        """
        before = self._ports
        for path in (*gone, *came):
            self._at.pop(path, None)
        self._at.update((path, socket) for path, socket in came.items() if socket is not None)
        self.apart, self.two = past.apart, self._newly_two(past)
        self._ports = {path: self._port(socket, past.is_known) for path, socket in self._at.items()}
        return [path for path, port in self._ports.items() if before.get(path, port) != port]

    def _newly_two(self, past: At) -> Two:
        found: dict[str, tuple[Socket, Socket]] = {}
        for socket in self._at.values():
            other = self._at.get(socket.beside)
            if other is None or socket.slow in past.apart:
                continue
            are_known = past.is_known(socket.slow) and past.is_known(socket.fast)
            if are_known or _are_two(socket.unit, other.unit):
                found[socket.slow] = socket, other
        return found

    def _port(self, socket: Socket, is_known: Callable[[str], bool]) -> str:
        if socket.slow in self.apart:
            _, is_crossed = self.apart[socket.slow]
            return socket.other(socket.own) if is_crossed else socket.own
        return socket.own if socket.beside in self._at else socket.port(is_known)

    def port_of(self, sys_path: str) -> str:
        """The exact port at which a unit counts; "" if it is not in a socket of USB 3."""
        return self._ports.get(sys_path, "")

    def ports_at(self, sys_path: str) -> tuple[str, ...]:
        """The ports of the socket of a unit."""
        socket = self._at.get(sys_path)
        return () if socket is None else (socket.slow, socket.fast)
