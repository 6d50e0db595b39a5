"""A port of a USB hub: what identifies it, and how it is written for people. A socket, which may have two.

The rules of this file:

* A socket of USB 3 is two ports to the kernel, one on each root hub of its controller. What is plugged in
  there counts as plugged in at the port of USB 2, at whichever speed it runs.
* An earlier release kept the two apart. What is remembered at the port of USB 3 alone stays there, with
  everything that comes to this socket, until it is forgotten. What is remembered at both stays apart.
* Two units may be in one socket at once: one that changes its speed is seen twice for a moment. So a unit
  that comes beside another one is **new**, and is not offered. The other one keeps the port at which it
  counts.
* If both stay for a minute, and rules match both, or the new one, the socket is apart: it has two ports
  until nothing at either is remembered, and both units keep theirs.
* If nothing shows which one was there first, each is at its own port, and neither is new.
* What comes while the unit of a pod is unplugged counts at the port of that unit, too. If ids or links that
  the pod got may depend on the port, the unit has it again when it comes back beside the other one, which
  then counts at the other port. Neither is new. But if a pod got the other one in the same way, that stays.
* If devices are remembered at both ports, what is alone in the socket counts at its own port. If its model
  and serial number say that it was at the other one, and that others were at its own, it counts at the other.
* What cannot be read may be the unit that is remembered in the socket. So what comes beside it is new, too,
  unless its device nodes or its serial number are remembered there.
"""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

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

    def port(self, past: "At") -> str:
        """The port at which a unit counts that is alone there."""
        if not past.is_known(self.fast):
            return self.slow
        if not past.is_known(self.slow):
            return self.fast
        other = self.other(self.own)
        here, there = past.units(self.own), past.units(other)
        is_another = bool(here) and all(_are_two(said, self.unit) for said in here)
        return other if is_another and any(not _are_two(said, self.unit) for said in there) else self.own

    def other(self, port: str) -> str:
        """The other one of its two ports."""
        return self.fast if port == self.slow else self.slow


@dataclass(frozen=True, slots=True)
class Pair:
    """Two units in one socket.

    fast        its port for USB 3
    is_crossed  whether each unit counts at the port of the other speed
    new         the port at which the one is that came beside the other one; "" if neither did
    """

    fast: str
    is_crossed: bool
    new: str = ""


#: Sockets with two units, by their port for USB 2.
Pairs = Mapping[str, Pair]

#: Device nodes, as they are remembered until the next boot.
Nodes = Collection[Hashable]


@dataclass(frozen=True, slots=True)
class At:
    """What is remembered at ports, and what cannot be read now.

    is_known  whether anything is, at an exact port
    units     what the units at an exact port said that they are
    unseen    the same of those that were perhaps there when the machine booted, but not seen since
    held      the same of those that pods hold and whose ids or links may depend on the port
    ports_of  the exact ports of remembered devices that have one of these device nodes
    given     the same of those that pods got since the daemon has started
    apart     the sockets that are apart
    two       those that held two units before, and are not apart
    unread    the sys paths of what cannot be read
    """

    is_known: Callable[[str], bool] = lambda _: False
    units: Callable[[str], Collection[Said]] = lambda _: ()
    unseen: Callable[[str], Collection[Said]] = lambda _: ()
    held: Callable[[str], Collection[Said]] = lambda _: ()
    ports_of: Callable[[Nodes], Collection[str]] = lambda _: ()
    given: Callable[[Nodes], Collection[str]] = lambda _: ()
    apart: Pairs = field(default_factory=dict)
    two: Pairs = field(default_factory=dict)
    unread: Collection[str] = ()


def _are_two(one: Said, other: Said) -> bool:
    """Whether two units say that they are two."""
    return any(a and b and a != b for a, b in zip(one, other, strict=True))


class Sockets:
    """The units that are plugged in where there are sockets of USB 3, and where each of them counts.

    two  the sockets that hold two units and are not apart, unless these may be one
    new  the sys paths of units that have come beside others -> the sockets of these
    """

    def __init__(self) -> None:
        self.two: Pairs = {}
        self.new: Mapping[str, str] = {}
        self._apart: Pairs = {}
        self._at: dict[str, Socket] = {}
        self._ports: dict[str, str] = {}

    def see(
        self,
        gone: Iterable[str],
        came: Mapping[str, Socket | None],
        past: At,
        nodes_of: Callable[[str], Nodes] = lambda _: (),
    ) -> Collection[str]:
        """Find out where each unit counts.

        Returns the sys paths of those that count elsewhere than before, and of those that became new or apart
        or are so no longer.

        gone, came  sys paths; of those that have come, with their sockets
        past        what is remembered at ports
        nodes_of    sys path of a unit -> its device nodes
        """
        before, were_new, were_apart = self._ports, self.new, self._apart
        for path in (*gone, *came):
            self._at.pop(path, None)
        self._at.update((path, socket) for path, socket in came.items() if socket is not None)
        self._apart = past.apart
        self.two = {
            slow.slow: pair
            for path, slow in self._at.items()
            if slow.own == slow.slow and slow.beside in self._at and slow.slow not in past.apart
            for pair in (past.two.get(slow.slow) or self._judge(path, slow, past, nodes_of),)
            if pair.new or _are_surely_two(slow, self._at[slow.beside], past)
        }
        self.new = {
            path: socket.slow
            for path, socket in self._at.items()
            if (socket.slow in self.two and self.two[socket.slow].new == socket.own)
            or (
                socket.beside in past.unread
                # Nodes of a unit that stays may have come: it was bound to its driver again.
                and (path in came or path in were_new)
                and self._has_come_beside(path, socket, past, nodes_of)
            )
        }
        self._ports = {path: self._port(socket, past) for path, socket in self._at.items()}
        return [
            path
            for path, port in self._ports.items()
            if before.get(path, port) != port
            or (path in were_new) is not (path in self.new)
            or (self._at[path].slow in were_apart) is not self.is_apart(path)
        ]

    def _judge(self, path: str, slow: Socket, past: At, nodes_of: Callable[[str], Nodes]) -> Pair:
        """Which of two units was there first, and where it counted."""
        fast = self._at[slow.beside]
        nodes = {path: nodes_of(path), slow.beside: nodes_of(slow.beside)}

        def with_nodes(ports_of: Callable[[Nodes], Collection[str]]) -> dict[str, str]:
            both = ((path, slow), (slow.beside, fast))
            return {one.own: _one_of(ports_of(nodes[each]), one) for each, one in both}

        # After a boot, one that has come while the machine was off may be found before the other one.
        was_at = _said_at(slow, fast, past.unseen)
        if any(was_at.values()) and any((given := with_nodes(past.given)).values()):
            was_at = given  # a pod would lose what it got, although that has stayed
        known = with_nodes(past.ports_of)
        if not any(was_at.values()):
            was_at = known
        if not any(was_at.values()):
            was_at = _said_at(slow, fast, past.units)
        # At the other port, it would be another device for as long as the socket is apart.
        back = [(own, port) for own, port in _said_at(slow, fast, past.held).items() if port]
        if len(back) == 1:
            ((own, port),) = back
            other = slow.other(own)
            if was_at[other] or known[other]:
                return Pair(slow.fast, is_crossed=port != own)
        first = [own for own, port in was_at.items() if port]
        if len(first) == 1:
            (own,) = first
            return Pair(slow.fast, was_at[own] != own, slow.other(own))
        return Pair(slow.fast, is_crossed=False)

    def _has_come_beside(self, path: str, socket: Socket, past: At, nodes_of: Callable[[str], Nodes]) -> bool:
        """Whether what is remembered in a socket may be what cannot be read there, and not this unit."""
        ports = {socket.slow, socket.fast}
        return (
            socket.slow not in self._apart
            and any(map(past.is_known, ports))
            and ports.isdisjoint(past.ports_of(nodes_of(path)))
            and not (socket.unit[1] and any(socket.unit in past.units(port) for port in ports))
        )

    def _port(self, socket: Socket, past: At) -> str:
        if socket.beside not in self._at and socket.slow not in self._apart:
            return socket.port(past)
        pair = self._apart.get(socket.slow) or self.two.get(socket.slow)
        return socket.other(socket.own) if pair and pair.is_crossed else socket.own

    def port_of(self, sys_path: str) -> str:
        """The exact port at which a unit counts; "" if it is not in a socket of USB 3."""
        return self._ports.get(sys_path, "")

    def is_apart(self, sys_path: str) -> bool:
        """Whether a unit is in a socket that is apart, and so never at the other port of it."""
        socket = self._at.get(sys_path)
        return socket is not None and socket.slow in self._apart


def _are_surely_two(one: Socket, other: Socket, past: At) -> bool:
    return (past.is_known(one.slow) and past.is_known(one.fast)) or _are_two(one.unit, other.unit)


def _said_at(one: Socket, other: Socket, units: Callable[[str], Collection[Said]]) -> dict[str, str]:
    """The own port of each of two units in a socket -> where it was, by what units there have said."""
    return {
        each.own: _one_of(
            [
                port
                for port in (each.slow, each.fast)
                for said in units(port)
                if _are_two(said, beside.unit) and not _are_two(said, each.unit)
            ],
            each,
        )
        for each, beside in ((one, other), (other, one))
    }


def _one_of(ports: Iterable[str], socket: Socket) -> str:
    """The port of a socket that is among these; "" if none or both are."""
    found = {socket.slow, socket.fast}.intersection(ports)
    return found.pop() if len(found) == 1 else ""
