"""Runs in the guest as root and carries out a test's requests: JSON lines over a virtio port.

    {"run": [word, …], "input": text, "timeout": seconds}   -> {"status": 0, "out": text, "err": text}
    {"write": path, "text": text}                           -> {}
    {"links": directory}                                    -> {"links": {name: target}}

When it starts it sends {"boot": id}, so that a test can wait for a reboot.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

PORT = "/dev/virtio-ports/vm.agent"


def main() -> None:
    """Serve until the machine ends."""
    with open(PORT, "r+b", buffering=0) as port:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        # The machine may have been reset in the middle of a line.
        port.write(b"\n")
        _send(port, {"boot": boot})
        with open(port.fileno(), "rb", closefd=False) as lines:
            for line in lines:
                _send(port, _answer(json.loads(line)))


def _send(port: Any, document: dict[str, Any]) -> None:
    data = json.dumps(document).encode() + b"\n"
    while data:
        data = data[port.write(data) :]


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        match request:
            case {"run": command, "input": text, "timeout": timeout}:
                return _run(command, text, timeout)
            case {"write": path, "text": text}:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).write_text(text, encoding="utf-8")
                return {}
            case {"links": directory}:
                with os.scandir(directory) as entries:
                    return {
                        "links": {each.name: os.readlink(each.path) for each in entries if each.is_symlink()}
                    }
    except OSError as error:
        return {"error": str(error)}
    return {"error": f"unknown request {request}"}


def _run(command: list[str], text: str, timeout: float) -> dict[str, Any]:
    try:
        result = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return {"error": f"still running after {timeout} s: {error.stdout!r} {error.stderr!r}"}
    return {"status": result.returncode, "out": result.stdout, "err": result.stderr}


if __name__ == "__main__":
    main()
