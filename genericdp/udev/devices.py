"""The udev devices as they are now, kept up to date by hints.

The rules of this file:

* Only devices with a device node are read (a container can get nothing else), and their ancestors (a
  rule can ask about nothing else). A server has thousands of others, and events for them.
* A snapshot that did not change stays the same object, its parents included: results can be cached by
  snapshot, and "did anything change" is a comparison of identities.
* The system is read, never the hint; the hint says where to look. The one exception: where the udev
  database cannot be read, udev's message is the only copy of it.
* The node of an IOMMU group has its functions as parent and companions. They are looked at with it, and it is
  hung below them again when one of them changes.
* A device that cannot be read is not gone: its last snapshot stays, and a later `resync` reads it.
* Whatever the kernel may not answer is read by `bounded`. Listing and looking for files takes no lock.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType

from genericdp.core.device import CORE_ATTRIBUTES, UdevDevice
from genericdp.core.hint import Hint, Poll, RescanCause, Resync, Uevent
from genericdp.core.vfio import with_first
from genericdp.errors import GenericdpError, UnreadError
from genericdp.udev import coldplug, iommu, snapshot, sysfs
from genericdp.udev.bounded import Bounded, OnAnswer
from genericdp.udev.database import RUN, Database, look_at
from genericdp.udev.unread import Unread, complaint, failure, message_of, stand_in, without_gone

#: What one scan has found: sys path -> the device there, or the nearest one above it.
_Seen = dict[str, UdevDevice | None]


class UdevDevices:
    """The devices with a device node, and their ancestors. Synchronous; starts empty, `resync` fills it.

    attributes    sysfs attributes to read beyond the CORE_ATTRIBUTES
    on_answer     called in some thread when the kernel answers after all: a resync reads what is `unread`
    run           udev's run directory (a constant of udev; only tests use another one)

    Raises GenericdpError if libudev cannot be loaded. Failures of sysfs raise nothing, see `unread`.
    """

    def __init__(self, attributes: Iterable[str] = (), *, on_answer: OnAnswer = None, run: str = RUN) -> None:
        snapshot.context()
        self._bounded = Bounded(on_answer)
        self._asked = frozenset(attributes)
        self._database = Database(run, self._bounded)
        self._devices: dict[str, UdevDevice] = {}
        self._paths = sysfs.SysPaths()
        self._unread: dict[str, Unread] = {}
        self._groups = iommu.Groups()
        self._changes = 0
        self._coldplug = coldplug.Coldplug(run)

    @property
    def devices(self) -> Mapping[str, UdevDevice]:
        """The devices by sys path: a live view."""
        return MappingProxyType(self._devices)

    @property
    def unread(self) -> UnreadError | None:
        """What could not be read the last time, None if everything could."""
        return complaint(self._unread)

    @property
    def unseen(self) -> GenericdpError | None:
        """That udevd has not looked at most of the devices, None if it has or will do so by itself."""
        return self._coldplug.unseen(self._devices.values())

    def want(self, attributes: Iterable[str]) -> bool:
        """Read these attributes, too, from now on; True if anything changed."""
        asked = frozenset(attributes)
        if asked == self._asked:
            return False
        self._asked = asked
        return self.resync()

    def resync(self, *, only_unread: bool = False) -> bool:
        """Read every device again, or only what could not be read; True if anything changed."""
        changes = self._changes
        try:
            sys_paths = sysfs.sys_paths_with_node()
        except OSError as error:
            self._unread[error.filename] = failure({}, error.filename, error)
            return False
        # Parents sort before their children.
        paths = sysfs.and_above(sys_paths)
        is_listed = all(path.startswith(sysfs.DEVICES) for path in self._unread)
        read = self._devices.keys() - self._unread.keys() if only_unread and is_listed else frozenset[str]()
        self._bounded.plan(look_at, (path for path in paths if path not in read), takes_late=only_unread)
        seen: _Seen = {}
        for path in paths:
            if path not in seen and path in read:
                seen[path] = self._hang_below(path, seen)
            elif path not in seen and path in sys_paths:
                seen[path] = self._look_at(path, seen)
        self._unread = {path: each for path, each in self._unread.items() if path in seen}
        # What could not be read keeps its parents as well.
        kept = {each.sys_path for device in seen.values() if device for each in device.related()}
        for sys_path in self._devices.keys() - kept:
            self._take_out(sys_path)
        return self._has_changed_since(changes)

    def apply(self, *hints: Hint) -> bool:
        """Read again what the hints point at; True if anything changed."""
        changes = self._changes
        for hint in hints:
            self._follow(hint)
        return self._has_changed_since(changes)

    def _follow(self, hint: Hint) -> None:
        match hint:
            case Resync():
                self.resync(only_unread=hint.cause is RescanCause.UNREAD)
            case Poll():
                self._poll(hint.attributes)
            case Uevent(action="remove", source="kernel"):
                self._gone(hint.sys_path)
            case Uevent(action="remove"):
                self._refresh(hint.sys_path, trust_the_past=False)
            case Uevent(action="move"):
                # The kernel reports the device that moved, not those below it.
                self._gone(hint.old_sys_path)
                self._refresh(hint.sys_path, hint.device, with_new=True)
            case Uevent():
                self._refresh(hint.sys_path, hint.device)

    def _refresh(
        self,
        sys_path: str,
        message: UdevDevice | None = None,
        *,
        trust_the_past: bool = True,
        with_new: bool = False,
    ) -> None:
        """Read one device again and check its descendants."""
        if not sys_path.startswith(sysfs.DEVICES):
            return
        try:
            seen, top = self._unchanged_ancestors(sys_path)
            if sys_path in self._devices or sysfs.has_node(sys_path):
                self._bounded.plan(look_at, sysfs.and_above([sys_path], seen))
                seen[sys_path] = self._look_at(sys_path, seen, message, trust_the_past=trust_the_past)
            for path in self._paths.at_and_below(top):
                if path not in seen:
                    seen[path] = self._hang_below(path, seen)
            for path in sorted(sysfs.sys_paths_with_node()) if with_new else ():
                if path.startswith(f"{sys_path}/") and path not in seen:
                    seen[path] = self._look_at(path, seen)
            self._hang_groups(sys_path, seen)
        except OSError as error:
            self._keep(sys_path, error, message)
        self._bounded.plan(look_at)

    def _poll(self, attributes: Mapping[str, frozenset[str]]) -> None:
        """Read again the devices of which such an attribute differs."""
        wanted: dict[str, frozenset[str]] = {}
        for sys_path in attributes.keys() & self._devices.keys():
            for each in self._devices[sys_path].related():
                wanted[each.sys_path] = wanted.get(each.sys_path, frozenset()) | attributes[sys_path]
        for sys_path, names in sorted(wanted.items()):
            if self._differs(sys_path, names):
                self._refresh(sys_path)

    def _differs(self, sys_path: str, names: frozenset[str]) -> bool:
        known = self._devices.get(sys_path)
        try:
            now = self._bounded.call(snapshot.attributes, sys_path, names & (CORE_ATTRIBUTES | self._asked))
        except OSError as error:
            self._keep(sys_path, error)
            return False
        return known is not None and any(known.attributes.get(name) != now.get(name) for name in names)

    def _unchanged_ancestors(self, sys_path: str) -> tuple[_Seen, str]:
        # Also the topmost path that is another device by now, whose event never arrived.
        unchanged: _Seen = {}
        top = path = sys_path
        while (path := path.rpartition("/")[0]).startswith(sysfs.DEVICES):
            known = self._devices.get(path)
            if known is not None and sysfs.incarnation(path) == known.incarnation:
                unchanged[path] = known
            elif known is not None:
                top = path
        return {path: device for path, device in unchanged.items() if not path.startswith(f"{top}/")}, top

    def _gone(self, sys_path: str) -> None:
        # If there is a device at that path now, it is another one and has events of its own.
        for path in self._paths.at_and_below(sys_path):
            try:
                if not sysfs.is_still(path, self._devices[path].incarnation):
                    self._take_out(path)
            except OSError as error:
                self._keep(path, error)
        try:
            self._hang_groups(sys_path, {})
        except OSError as error:
            self._keep(sys_path, error)
        self._unread = without_gone(self._unread, sys_path)

    def _has_changed_since(self, changes: int) -> bool:
        self._bounded.plan(look_at)
        if self._changes == changes:
            return False
        # An ancestor is kept only for its descendants.
        nodes = (device for device in self._devices.values() if device.number is not None)
        needed = {each.sys_path for device in nodes for each in device.related()}
        for sys_path in self._devices.keys() - needed:
            self._take_out(sys_path)
        return True

    def _parent_of(self, sys_path: str, seen: _Seen) -> UdevDevice | None:
        path = sys_path.rpartition("/")[0]
        if not path.startswith(sysfs.DEVICES):
            return None
        if path not in seen and not sysfs.is_device(path):
            seen[path] = self._parent_of(path, seen)
        return self._there(path, seen)

    def _there(self, path: str, seen: _Seen) -> UdevDevice | None:
        if path not in seen:
            seen[path] = self._look_at(path, seen)
        found = seen[path]
        if found is None and path in self._unread:
            above = self._parent_of(path, seen)
            hub = stand_in(path, self._unread[path], self._asked, above, self._database)
            found = seen[path] = self._put_in(hub)
        return found

    def _hang_groups(self, sys_path: str, seen: _Seen) -> None:
        """Hang the VFIO devices again that a change of this device concerns."""
        for path in self._groups.touched_by(sys_path, self._devices):
            if path not in seen:
                seen[path] = self._hang_below(path, seen)

    def _above(self, sys_path: str, seen: _Seen) -> tuple[UdevDevice | None, tuple[UdevDevice, ...]]:
        """The parent of a device, and the functions beside it if it is a VFIO device."""
        parent = self._parent_of(sys_path, seen)
        if not self._groups.see(sys_path):
            return parent, ()
        members = [self._there(path, seen) for path in sorted(iommu.members_beside(sys_path))]
        functions = with_first(each for each in members if each is not None)
        return parent, functions

    def _hang_below(self, sys_path: str, seen: _Seen) -> UdevDevice | None:
        # A parent's event can change two things about a descendant: whether it exists, and its parent.
        known = self._devices.get(sys_path)
        try:
            if known is not None and sysfs.incarnation(sys_path) == known.incarnation:
                parent, functions = self._above(sys_path, seen)
                return self._put_in(iommu.hung_below(known, parent, functions))
        except OSError as error:
            return self._keep(sys_path, error)
        return self._look_at(sys_path, seen)

    def _look_at(
        self, sys_path: str, seen: _Seen, message: UdevDevice | None = None, *, trust_the_past: bool = True
    ) -> UdevDevice | None:
        known = self._devices.get(sys_path)
        message = message_of(self._unread, sys_path, message) if trust_the_past else message
        try:
            read = self._database.read(sys_path, CORE_ATTRIBUTES | self._asked)
            parent, functions = self._above(sys_path, seen)
            found = self._database.complete(read, known, message, trust_the_past=trust_the_past)
        except OSError as error:
            return self._keep(sys_path, error, message)
        self._unread.pop(sys_path, None)
        if found is None:
            self._take_out(sys_path)
            return None
        return self._put_in(iommu.hung_below(found, parent, functions))

    def _keep(self, sys_path: str, why: OSError, message: UdevDevice | None = None) -> UdevDevice | None:
        """The last snapshot of a device that cannot be read now, None without one."""
        self._unread[sys_path] = failure(self._unread, sys_path, why, message)
        known = self._devices.get(sys_path)
        with suppress(OSError):
            if known is not None and sysfs.incarnation(sys_path) != known.incarnation:
                self._take_out(sys_path)
                return None
        return known

    def _put_in(self, device: UdevDevice) -> UdevDevice:
        known = self._devices.get(device.sys_path)
        if known is not None and snapshot.is_same(known, device):
            return known
        if known is None:
            self._paths.add(device.sys_path)
        self._changes += 1
        self._devices[device.sys_path] = device
        self._coldplug.see(device)
        return device

    def _take_out(self, sys_path: str) -> None:
        if self._devices.pop(sys_path, None) is not None:
            self._paths.remove(sys_path)
            self._changes += 1
        self._coldplug.forget(sys_path)
        self._database.forget(sys_path)
