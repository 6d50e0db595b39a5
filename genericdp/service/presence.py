"""Which devices were Healthy when the machine went down: `presence.json` in the state directory.

The rules of this file:

* It is written when the daemon stops, unless it says that already, and some seconds after a device came or
  went: a flapping device must not wear out a flash memory. After a power cut it may be that old, and older
  if the disk is slow: only the end of the daemon waits for it.
* It belongs to one boot. What an earlier process of the same boot saved is of no interest: only the daemon
  has restarted.
* Without it, nothing is waited for. So whatever is wrong with the file is logged, and no more. What cannot be
  saved is tried again.
"""

import asyncio
import json
import os
from concurrent.futures import Future
from functools import partial

from genericdp import log
from genericdp.errors import GenericdpError
from genericdp.files.whole_file import FileIdentity, identity_at, read_whole, write_whole
from genericdp.retry import Retry
from genericdp.watch.disk import Disk

#: How long a change may wait to be saved, in seconds.
SAVE_WITHIN_S = 10.0

#: The longest pause after a failure, in seconds.
LONGEST_S = 600.0

_FORMAT = 1

_log = log.get(__name__)


class Presence:
    """`presence.json`.

    boot  the id of this boot; "" if it is not known, and then nothing is read or written
    """

    def __init__(self, state_dir: str, boot: str) -> None:
        self.path = os.path.join(state_dir, "presence.json")
        self._boot = boot
        self._saved: frozenset[str] | None = None
        self._healthy: frozenset[str] | None = None
        self._file: FileIdentity | None = None
        self._has_failed = False
        self._timer: asyncio.TimerHandle | None = None
        self._disk = Disk(self.path, again=self.save)
        self._retry = Retry(self.save, longest_s=LONGEST_S)

    def load(self) -> frozenset[str]:
        """The ids that were Healthy when the machine went down; none if it did not since the last save."""
        if not self._boot:
            return frozenset()
        try:
            data, file = read_whole(self.path)
            boot, healthy = _parse(data)
        except (FileNotFoundError, NotADirectoryError):
            return frozenset()
        except (OSError, GenericdpError, ValueError, TypeError, KeyError, RecursionError) as error:
            _log.warning(
                "cannot read which devices were there before the reboot, so READY does not wait for them",
                path=self.path,
                why=_why(error),
            )
            return frozenset()
        if boot == self._boot:
            self._saved, self._healthy, self._file = healthy, healthy, file
            return frozenset()
        return healthy

    def see(self, healthy: frozenset[str]) -> None:
        """Save soon that these ids are Healthy now."""
        self._healthy = healthy
        if healthy == self._saved:
            self._cancel()
        elif self._timer is None and self._boot:
            self._timer = asyncio.get_running_loop().call_later(SAVE_WITHIN_S, self.save)

    def save(self) -> None:
        """Save now what was seen last, if anything was; a disk that is slow is not waited for."""
        self._cancel()
        if not self._boot or self._healthy is None:
            return
        if self._healthy == self._saved and identity_at(self.path) == self._file:
            self._has_failed = False
            self._retry.succeeded()
            return
        document = {"version": _FORMAT, "boot": self._boot, "healthy": sorted(self._healthy)}
        data = json.dumps(document).encode("ascii")
        self._disk.do(partial(write_whole, self.path, data), partial(self._see_tried, self._healthy))

    def close(self) -> None:
        """Save now or never what was seen last."""
        self.save()
        self._disk.finish()
        self._retry.succeeded()

    def _see_tried(self, healthy: frozenset[str], future: Future[FileIdentity]) -> None:
        try:
            self._file = future.result()
        except (OSError, GenericdpError) as error:
            if not self._has_failed:
                _log.warning(
                    "cannot save which devices are there, so the next boot may not wait for them",
                    path=self.path,
                    why=_why(error),
                )
            self._has_failed = True
            self._retry.failed()
        else:
            self._saved, self._has_failed = healthy, False
            self._retry.succeeded()
        if self._healthy is not None and self._healthy != healthy:
            self.see(self._healthy)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error) if isinstance(error, GenericdpError) else "it is damaged"


def _parse(data: bytes) -> tuple[str, frozenset[str]]:
    document = json.loads(data)
    boot, healthy = document["boot"], document["healthy"]
    if document["version"] != _FORMAT or not isinstance(boot, str) or not isinstance(healthy, list):
        raise ValueError("it is not of this version of genericdp")
    return boot, frozenset(id_ for id_ in healthy if isinstance(id_, str))
