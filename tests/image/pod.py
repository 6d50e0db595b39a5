"""A pod of the DaemonSet, run by runc.

The rules of this file:

* Nothing sleeps: a case waits for a line of the log or for the end of the process.
"""

import asyncio
import contextlib
import json
import os
from pathlib import Path
from typing import Any

#: How long anything may take that usually takes less than a second. The machine may be busy.
PATIENCE_S = 60.0

_RUNC = ("runc", "--root", "/run/runc")


class Pod:
    """A container from `start` to `stop`. `lines` is its log so far, each line as JSON."""

    def __init__(self, name: str, bundle: Path, configuration: dict[str, Any]) -> None:
        self.name = name
        self.lines: list[dict[str, Any]] = []
        self._bundle = bundle
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._news = asyncio.Condition()
        bundle.mkdir()
        (bundle / "config.json").write_text(json.dumps(configuration), encoding="utf-8")

    async def start(self) -> None:
        """Start it. Returns when it has begun."""
        pid_file = self._bundle / "pid"
        command = (*_RUNC, "run", "--bundle", str(self._bundle), "--pid-file", str(pid_file), self.name)
        self._process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        self._reading = asyncio.create_task(self._read(self._process))

    @property
    def pid(self) -> int:
        """Of its first process, on the host; it is there when there is a line of its log."""
        return int((self._bundle / "pid").read_text(encoding="ascii"))

    async def logged(self, text: str, *, after: int = 0) -> dict[str, Any]:
        """Wait for a line, from line `after` on, with a text in its message. AssertionError if none comes."""

        def found() -> dict[str, Any] | None:
            return next((line for line in self.lines[after:] if text in line["msg"]), None)

        async with self._news:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    await self._news.wait_for(lambda: found() or self._has_ended())
        line = found()
        assert line is not None, f"{self.name} did not log '{text}', only:\n{self.log()}"
        return line

    async def exec(self, *command: str) -> tuple[int, str]:
        """`kubectl exec`: the exit status and all output."""
        process = await asyncio.create_subprocess_exec(
            *_RUNC,
            "exec",
            self.name,
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode(errors="replace")

    async def stop(self, signal: str = "TERM") -> int:
        """Delete the pod: signal its first process and wait for its end. Returns the exit status."""
        await _run(*_RUNC, "kill", self.name, signal)
        return await self.ended()

    async def ended(self) -> int:
        """Wait for its end. Returns the exit status."""
        assert self._process is not None
        assert self._reading is not None
        async with asyncio.timeout(PATIENCE_S):
            status = await self._process.wait()
            await self._reading
        self._process = None
        return status

    async def remove(self) -> None:
        """Kill it if it still runs."""
        if self._process is not None:
            await self.stop("KILL")

    def log(self) -> str:
        """Its log so far, as text."""
        return "\n".join(json.dumps(line) for line in self.lines)

    def status(self) -> dict[str, str]:
        """/proc/PID/status of its first process."""
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}

    def _has_ended(self) -> bool:
        return self._reading is None or self._reading.done()

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            await self._add(_parsed(line.decode(errors="replace").rstrip()))
        await self._add(None)

    async def _add(self, line: dict[str, Any] | None) -> None:
        async with self._news:
            if line is not None:
                self.lines.append(line)
            self._news.notify_all()


def network_namespace(path: Path) -> None:
    """Make a network namespace as a pod's sandbox has it, and bind it to a file."""
    path.touch()
    os.system(f"unshare --net={path} ip link set lo up")  # noqa: S605  (the path is ours)


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, f"{' '.join(command)}: {output.decode(errors='replace')}"


def _parsed(line: str) -> dict[str, Any]:
    """A line of the log. Not every one is the daemon's: runc has errors, too."""
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    return found if isinstance(found, dict) and "msg" in found else {"level": "text", "msg": line}
