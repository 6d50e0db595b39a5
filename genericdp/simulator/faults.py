"""Faults that a test can inject.

The rules of this file:

* Each of them can happen to a real kubelet: by an operator, a full disk, a bug, a race.
* `hold` puts races in order; nothing sleeps.
"""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from genericdp.simulator.gates import Gate, Gates, Point
from genericdp.simulator.plugins.lifecycle import Plugins

#: The mode of the device plugin directory: everybody can read it.
DEVICE_PLUGINS_MODE = 0o755


class Faults:
    """The faults of one simulated kubelet, which survive its restarts."""

    def __init__(self, directory: Path, gates: Gates, plugins: Callable[[], Plugins]) -> None:
        self.refusal: str | None = None
        self._directory = directory
        self._gates = gates
        self._plugins = plugins

    def refuse_registrations(self, text: str | None) -> None:
        """Answer every Register with this error from now on; None: accept again."""
        self.refusal = text

    def hold(self, point: Point) -> AbstractContextManager[Gate]:
        """`with faults.hold(Point.DIAL) as gate:` makes the kubelet wait there until `gate.open()`."""
        return self._gates.hold(point)

    def end_streams(self, resource: str) -> None:
        """Break the streams of a resource from the kubelet's side, as a bug or a race would."""
        self._plugins().end_streams(resource)

    def remove_socket(self) -> None:
        """Delete kubelet.sock. The kubelet does not notice; nobody can register until it restarts."""
        (self._directory / "kubelet.sock").unlink()

    def remove_directory(self) -> None:
        """Delete the device plugin directory with all that is in it. Plugins may remove sockets meanwhile."""
        shutil.rmtree(self._directory, onerror=_unless_gone)

    def make_directory(self) -> None:
        """Create the device plugin directory again, empty."""
        self._directory.mkdir(mode=DEVICE_PLUGINS_MODE)


def _unless_gone(_function: object, _path: str, error: Any) -> None:
    if not isinstance(error[1], FileNotFoundError):
        raise error[1]


def empty(directory: Path) -> None:
    """Remove a directory's contents, as a reboot does with a tmpfs."""
    for path in directory.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
