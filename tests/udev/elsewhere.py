"""A monitor in another namespace: run as a program, says what it hears on stdout, one JSON a line.

    unshare --net python -m tests.udev.elsewhere

`Elsewhere` starts it and reads along.
"""

import asyncio
import json
import os
import signal
import sys
from types import TracebackType
from typing import Any, Self

from genericdp.core.hint import Deafness, Hint, Resync, Uevent
from genericdp.core.status.wording import why_rescan, why_silent
from genericdp.udev import Monitor, UdevDevices

PATIENCE_S = 0.3
RESCAN_S = 0.3


class Elsewhere:
    """The program, started behind `command` (an `unshare` with its options); a context manager."""

    def __init__(self, *command: str) -> None:
        self._command = (*command, sys.executable, "-m", "tests.udev.elsewhere")
        self.reports: list[dict[str, Any]] = []

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": "."}
        )
        await self.says(started=True)
        return self

    async def says(self, **wanted: object) -> dict[str, Any]:
        """Wait for a line with these values, from here on."""
        assert self._process.stdout is not None
        while True:
            line = await self._process.stdout.readline()
            assert line, f"it ended, having reported {self.reports}"
            report = json.loads(line)
            self.reports.append(report)
            if wanted.items() <= report.items():
                return dict(report)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGTERM)
        await self._process.communicate()


def _say(**values: object) -> None:
    print(json.dumps(values), flush=True)  # noqa: T201  (this is its output)


async def _main() -> None:
    devices = UdevDevices()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)

    def sink(hint: Hint) -> None:
        devices.apply(hint)
        match hint:
            case Deafness():
                _say(deaf=why_silent(hint.silence) if hint.silence else "")
                _say(cause=hint.silence and hint.silence.cause)
            case Resync():
                _say(resync=why_rescan(hint))
            case Uevent():
                device = devices.devices.get(hint.sys_path)
                _say(
                    action=hint.action,
                    sys_path=hint.sys_path,
                    source=hint.source,
                    initialized=device is not None and device.initialized,
                )

    with Monitor(sink, rescan_s=RESCAN_S, patience_s=PATIENCE_S):
        devices.resync()
        _say(started=True)
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(_main())
