"""What must survive a restart: the memory of `genericdp.core.inventory`, in a file of the state directory.

The rules of this file:

* The file is written if the memory has changed, or if another file has taken its place since it was last read
  or written; and if another memory is kept beside the links, which would count as the later one.
* A file whose content cannot be understood is reported and kept aside; the daemon starts with an empty
  memory.
* A file that cannot be read now, or that others may have written, is left alone: it may hold what must not
  be forgotten, and the daemon does not start without it. The same goes for what is kept beside the links.
* A file that this process has neither read nor written is never replaced: its file system may have been
  mounted after the start. It is kept aside: pods got their devices according to this process's memory.
* Before the file is written, the memory is kept beside the links, which last until the next boot. The disk
  may be full or slow, or somebody may put an old file in place while no daemon runs. What is kept does not
  count if the memory in the file was saved later in this boot. A note says what may be in the file, by
  digests, because the state directory may be moved to another disk. Anything else is kept aside.
"""

import errno
import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from genericdp.core.memory import saved
from genericdp.core.memory.memory import Memory
from genericdp.errors import GenericdpError
from genericdp.files.trust import UntrustedError
from genericdp.files.whole_file import (
    FileIdentity,
    free_path,
    identity_at,
    path_aside,
    read_if_any,
    read_whole,
    unsaved,
    write_whole,
)

#: The unit passes the id of the boot on (systemd's `%b`), because it hides this file from the daemon.
BOOT_VARIABLE = "GENERICDP_BOOT_ID"
BOOT_FILE = "/proc/sys/kernel/random/boot_id"

#: The memory beside the links. Ids do not begin with a dot.
SPARE = ".memory"

#: How many digests are kept of what was not proved to be on the disk, or not to be.
_MOST_DIGESTS = 100

_UNTIL_THEN = "until the memory is saved, ids of twins and of absent devices do not survive a {}"

_NOT_WITHOUT_IT = "genericdp does not serve without what it remembers: pods may hold devices that are absent"

_UNKEPT = (
    "until then, if somebody puts an old memory.json in place while genericdp is stopped, that one counts"
)


def this_boot(environment: Mapping[str, str] = os.environ) -> str:
    """The id of this boot, see random(4); "" if it is not known."""
    text = environment.get(BOOT_VARIABLE, "")
    if not text:
        try:
            with open(BOOT_FILE, encoding="ascii") as file:
                text = file.read()
        except (OSError, ValueError):
            return ""
    return text.strip().replace("-", "")


class BrokenStateError(GenericdpError):
    """The saved memory was read and cannot be understood."""


class StateFile:
    """`memory.json` in the state directory. All but what `job` returns runs in one thread, the event loop's.

    boot      the id of this boot, "" if it is not known
    link_dir  where the memory is kept as well, "" for nowhere
    spare     the path of that file, "" if there is none
    is_spare  the memory that was loaded was kept there, and is not in the file
    broken    where a file that could not be understood is to be kept, "" without one
    damaged   why the memory beside the links cannot be understood; "" if it can, or there is none
    unkept    why the last memory is not kept there, if it should be
    writer    renders the memory; `prepare` does ahead the part that takes longest
    """

    def __init__(self, directory: str, boot: str = "", link_dir: str = "") -> None:
        self.path = os.path.join(directory, "memory.json")
        self.is_spare = False
        self.spare = os.path.join(link_dir, SPARE) if boot and link_dir else ""
        self.broken = self.damaged = ""
        self.unkept: GenericdpError | None = None
        # What is in the file as far as that is known, and where another one was kept.
        self._saved, self._moved_to = b"", ""
        # What the last job writes or wrote. Besides that and what was saved, the digests of what may be in
        # the file, which other jobs wrote. What is kept beside the links, nothing if that is not known, and
        # in which file, None if that is to be written again.
        self._written, self._own = b"", list[str]()
        self._kept = b""
        self._kept_in: FileIdentity | None = None
        # How often it was written there, and how often when the file was written last, which is later.
        self._keeps, self._beaten = 0, -1
        self._file: FileIdentity | None = None
        self.writer = saved.Writer(boot)
        self._boot = boot

    def load(self) -> Memory:
        """The memory as it was saved; empty if the file is absent.

        Raises BrokenStateError if its content cannot be understood; the next job keeps it aside. Raises
        GenericdpError if it cannot be read, or if others can write it.
        """
        self._saved, self.broken, self.damaged = b"", "", ""
        loaded = self._load()
        spare = self._load_spare()
        self._saved = saved.untimed(self._saved)
        self.is_spare = spare is not None
        if spare is not None:
            return spare
        if isinstance(loaded, BrokenStateError):
            raise loaded
        return loaded

    def _load(self) -> Memory | BrokenStateError:
        found = read_if_any(self.path, _NOT_WITHOUT_IT)
        if found is None:
            return Memory()
        data, self._file = found
        try:
            memory = saved.load(data, self._boot)
        except saved.UnreadableMemoryError as error:
            self.broken = free_path(f"{self.path}.broken")
            hint = f"the daemon keeps it as '{self.broken}' and starts with an empty memory"
            return BrokenStateError(f"'{self.path}' {error}", hint=hint)
        self._saved = data
        return memory

    def job(self, data: bytes) -> Callable[[], str]:
        """What writes a memory if the file does not contain it already. It waits for the disk.

        It must run at once, one at a time. It returns the path to which another file was moved that was in
        its place, "" without one, and raises GenericdpError.
        """
        self._written = data
        is_current = self._kept in (b"", data) or self._beaten == self._keeps
        return partial(self._write, data, self._timed(data), self._keeps, is_current=is_current)

    def _write(self, data: bytes, timed: bytes, keeps: int, *, is_current: bool) -> str:
        found = identity_at(self.path)
        if self.was_replaced() and self._saved and self._content() == self._saved:
            self._file = found  # It was touched, or put back from a backup.
        is_own = found is not None and found == self._file
        aside = ""

        def keep_as() -> str:
            # As the disk may be slow, it may be another file by now.
            nonlocal aside, is_own
            now = identity_at(self.path)
            if now is None:
                with suppress(FileNotFoundError):
                    os.stat(self.path)
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
            is_own = now is not None and now == self._file
            aside = "" if now is None or is_own else path_aside(self.path, now)
            return self.broken if is_own and self.broken else aside

        if not (data == self._saved and is_own and is_current):
            try:
                self._file = write_whole(self.path, timed, keep_as=keep_as)
            except (UntrustedError, OSError) as error:
                if isinstance(error, OSError):
                    self._see_failed(found, data, aside)
                raise unsaved(self.path, error) from error
            aside, self._moved_to = aside or self._moved_to, ""
            self._saved, self.broken, self._beaten = data, "", keeps
        self._own = []
        return aside

    def _see_failed(self, found: FileIdentity | None, data: bytes, aside: str) -> None:
        """Check which file is in place after a failed write; `found` is the one that was there before it."""
        now = identity_at(self.path)
        if now == found is not None:
            return
        self._own = [*self._own, _digest(self._saved), _digest(data)][-_MOST_DIGESTS:]
        if now is None or self._content() == data:
            # The new file is there, but not safe from a power cut. Or none is: the old one was moved.
            self._file, self._saved, self.broken = now, b"", ""
            self._moved_to = aside or self._moved_to

    def keep(self, data: bytes) -> bool:
        """Keep a memory beside the links. False if that is impossible.

        This does not wait for the disk of the state directory.
        """
        self.unkept = None
        if self._kept == data and self._is_in_place():
            return True
        # Until the write succeeds, the copy there may be older than the file.
        self._kept_in = None
        if not self._may_be_kept():
            return False
        own = [*self._own, _digest(self._saved), _digest(self._written)]
        try:
            note = json.dumps(own).encode()
            self._kept_in = write_whole(self.spare, note + b"\n" + self._timed(data), sync=False)
        except (UntrustedError, OSError) as error:
            self.unkept = unsaved(self.spare, error, _UNKEPT)
            return False
        self._kept, self._keeps = data, self._keeps + 1
        return True

    @property
    def has_kept(self) -> bool:
        """Whether a memory was ever kept beside the links."""
        return self._keeps > 0

    def was_unkept(self) -> bool:
        """Whether the last memory is not there, although it could be."""
        return self._may_be_kept() and not self._is_in_place()

    def _may_be_kept(self) -> bool:
        # Without that directory, no pod has a link there.
        return self.spare != "" and os.path.isdir(os.path.dirname(self.spare))

    def _is_in_place(self) -> bool:
        return self._kept_in is not None and identity_at(self.spare) == self._kept_in

    def failure(self, error: GenericdpError, *, is_kept: bool) -> GenericdpError:
        """What a job raised, with what that means; `is_kept`: the memory is kept beside the links."""
        return GenericdpError(str(error), hint="; ".join(filter(None, (error.hint, _until_then(is_kept)))))

    def no_answer(self, seconds: float, *, is_kept: bool) -> GenericdpError:
        """The error to report when the disk has not answered for so long."""
        message = f"cannot save '{self.path}': the disk has not answered for {seconds:g} s"
        return GenericdpError(message, hint=_until_then(is_kept))

    def _load_spare(self) -> Memory | None:
        """The memory beside the links, if it is of this boot and later than the one in the file."""
        found = read_if_any(self.spare, _NOT_WITHOUT_IT) if self._may_be_kept() else None
        if found is None:
            return None
        note, _, timed = found[0].partition(b"\n")
        data, in_file = saved.untimed(timed), saved.untimed(self._saved)
        if data == in_file and data:
            self._kept = data
            return None
        try:
            memory = saved.load(timed, self._boot)
            is_own = not in_file or _digest(in_file) in json.loads(note)
        except saved.UnreadableMemoryError as error:
            self.damaged = f"'{self.spare}' {error}"
            return None
        except (TypeError, ValueError, RecursionError) as error:
            self.damaged = f"'{self.spare}' is broken: {error}"
            return None
        if not self._is_later(timed):
            return None
        if not is_own:
            # It was only read because it is in the place of this memory's.
            self._file, self._saved = None, b""
        self._kept = data
        return memory

    def _is_later(self, kept: bytes) -> bool:
        kept_at, saved_at = (saved.since_boot_ns(each, self._boot) for each in (kept, self._saved))
        return kept_at is not None and (saved_at is None or kept_at >= saved_at)

    def _timed(self, data: bytes) -> bytes:
        return saved.timed(data, time.clock_gettime_ns(time.CLOCK_BOOTTIME)) if self._boot else data

    def _content(self) -> bytes:
        """The memory in the file, nothing if that cannot be read."""
        try:
            return saved.untimed(read_whole(self.path)[0])
        except (OSError, UntrustedError):
            return b""

    def was_removed(self) -> bool:
        """Whether the file is gone since it was last read or written, and none has taken its place."""
        return self._file is not None and not os.path.exists(self.path)

    def was_replaced(self) -> bool:
        """Whether another file is in the place of the one that was last read or written, if any."""
        return identity_at(self.path) not in (None, self._file)


def _until_then(is_kept: bool) -> str:
    if is_kept:
        return _UNTIL_THEN.format("reboot")
    # A unit that has come to the port of a pod's id would be offered under a new one.
    return _UNTIL_THEN.format("restart of the daemon or a reboot") + "; do not edit rules before that"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
