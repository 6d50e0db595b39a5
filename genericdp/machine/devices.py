"""All devices of this machine, kept up to date by hints: those that udev knows, and bare nodes.

The rules of this file:

* A bare node is one only while udev knows neither its path nor its number. So the bare nodes are judged again
  after every change: once for all hints that came together, because it takes the longer the more nodes there
  are.
* What listens needs asyncio, which most verbs do without. So it is loaded by `listen`.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from genericdp.core.device import UdevDevice
from genericdp.core.hint import Hint, NodeChange, RescanCause, Resync, Uevent
from genericdp.core.memory.remembered import Remembered
from genericdp.core.rules.node_names import NO_NAMES, NodeNames, names_in
from genericdp.core.rules.resource import Resource, attributes_of
from genericdp.errors import GenericdpError, UnreadError
from genericdp.machine.bare_nodes import DEV, BareNodes
from genericdp.udev import UdevDevices

if TYPE_CHECKING:
    from genericdp.machine.node_watch import NodeWatch

#: Starts to call a sink with hints, with rescans at this interval (seconds) if needed; returns the function
#: that ends it.
Listen = Callable[[Callable[[Hint], None], float], Callable[[], None]]


class KnownDevices(Protocol):
    """The devices that udev knows: `genericdp.udev.UdevDevices`, or a fake."""

    @property
    def devices(self) -> Mapping[str, UdevDevice]: ...

    @property
    def unread(self) -> UnreadError | None: ...

    @property
    def unseen(self) -> GenericdpError | None: ...

    def want(self, attributes: Iterable[str], /) -> bool: ...

    def resync(self) -> bool: ...

    def apply(self, *hints: Hint) -> bool: ...


def listen_to_udev(sink: Callable[[Hint], None], rescan_s: float) -> Callable[[], None]:
    """The hints of udev's monitor."""
    from genericdp.udev import Monitor  # noqa: PLC0415  (see the rules of this file)

    monitor = Monitor(sink, rescan_s=rescan_s)
    monitor.start()
    return monitor.close


class MachineDevices:
    """The devices that matter to these rules. Synchronous; starts empty, `resync` fills it.

    shown   paths below /dev that are looked at although no rule names them
    names   sysfs attributes that are read although no rule asks for them, until `want`
    udev    the devices that udev knows, and how to listen to it; others than the real ones are for tests
    """

    def __init__(
        self,
        resources: Iterable[Resource],
        *,
        shown: NodeNames = NO_NAMES,
        names: Iterable[str] = (),
        udev: KnownDevices | None = None,
        listen: Listen = listen_to_udev,
    ) -> None:
        resources = tuple(resources)
        if udev is None:
            wanted = {*attributes_of(resources), *names}
            udev = UdevDevices(wanted, on_answer=self._see_answer)
        self._udev = udev
        self._on_answer: Callable[[], None] | None = None
        self._listen = listen
        self._bare = BareNodes(names_in(resources), shown)
        self._watch: NodeWatch | None = None
        self._all: Mapping[str, UdevDevice] = self._udev.devices

    @property
    def devices(self) -> Mapping[str, UdevDevice]:
        """The devices by sys path, a bare node by its path."""
        return self._all

    @property
    def unread(self) -> UnreadError | None:
        """What could not be read the last time, None if everything could."""
        return self._udev.unread or self._bare.unread

    @property
    def unseen(self) -> GenericdpError | None:
        """That udevd has not looked at most of the devices, None if it has or will do so by itself."""
        return self._udev.unseen

    def remember(self, devices: Callable[[], Mapping[str, Remembered]], /) -> None:
        """From the next look on, look for the bare nodes of what is then remembered, too."""
        self._bare.remember(devices)

    def want(self, resources: Iterable[Resource], /) -> bool:
        """Look at what these rules look at from now on; True if anything changed."""
        resources = tuple(resources)
        changed = self._udev.want(attributes_of(resources))
        self._bare.want(names_in(resources))
        return self._judge(changed)

    def resync(self) -> bool:
        """Look at every device again; True if anything changed."""
        changed = self._udev.resync()
        self._bare.resync()
        return self._judge(changed)

    def apply(self, *hints: Hint) -> bool:
        """Look again where the hints point; True if anything changed."""
        if not hints:
            return False
        paths: list[str] = []
        others: list[Hint] = []
        for hint in hints:
            match hint:
                case NodeChange():
                    paths.append(hint.path)
                case Uevent() if hint.sys_path.startswith(f"{DEV}/"):
                    paths.append(hint.sys_path)
                case Resync():
                    paths.append(DEV)
                    others.append(hint)
                case _:
                    others.append(hint)
        changed = bool(others) and self._udev.apply(*others)
        # Any user with write access to a node can keep changing its timestamps.
        differs = self._bare.look_at(*paths)
        return self._judge(changed) if others or differs else False

    def listen(self, sink: Callable[[Hint], None], rescan_s: float) -> Callable[[], None]:
        """Call `sink` with hints from now on; returns the function that ends it. See `Listen`."""
        import asyncio  # noqa: PLC0415  (see the rules of this file)

        from genericdp.machine.node_watch import NodeWatch  # noqa: PLC0415
        from genericdp.retry import FIRST_S, Retry  # noqa: PLC0415

        loop = asyncio.get_running_loop()
        # The pause lets what has been kept waiting come back together.
        again = Retry(lambda: sink(Resync(RescanCause.UNREAD)), longest_s=FIRST_S)

        def look_again() -> None:
            if self._watch is not None:
                again.failed()

        def see_answer() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(look_again)

        def hear(path: str) -> None:
            if not path or self._bare.concern(path):
                sink(NodeChange(path or DEV))

        watch = self._watch = NodeWatch(hear)
        self._bare.on_directory = watch.add
        self._on_answer = see_answer
        end = self._listen(sink, rescan_s)

        def close() -> None:
            self._on_answer = None
            again.succeeded()
            end()
            watch.close()
            self._watch = None
            self._bare.on_directory = lambda _: None

        return close

    def _see_answer(self) -> None:
        # Called in another thread, also while `listen` ends.
        on_answer = self._on_answer
        if on_answer is not None:
            on_answer()

    def _judge(self, changed: bool) -> bool:
        if self._watch is not None:
            self._watch.keep(self._bare.directories)
        if self._bare.judge(self._udev.devices):
            changed = True
        if changed:
            bare = self._bare.devices
            self._all = {**self._udev.devices, **bare} if bare else self._udev.devices
        return changed
