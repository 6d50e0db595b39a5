"""The protocol of the control socket.

A question is one line of JSON, `{"ask": "status"}`. The answer is one line; for `{"ask": "events"}`,
one line for each event until the client hangs up. A probe asks for "health" or "readiness", and the answer
to `{"ask": "health"}` is `{"health": "why not"}`, or `{"health": ""}` if it is fine.
"""

import json
from collections.abc import Mapping

#: The name of the socket in the run directory.
SOCKET = "control.sock"


def socket_path(run_dir: str) -> str:
    """Where the daemon with this run directory listens."""
    return f"{run_dir}/{SOCKET}"


def line_of(value: Mapping[str, object]) -> bytes:
    """A value as one line of JSON."""
    return json.dumps(value).encode("ascii") + b"\n"


def question(what: str) -> bytes:
    """The line that asks for something: "status", "events", "health", "readiness"."""
    return line_of({"ask": what})


def asked_for(line: bytes) -> str:
    """What a line asks for; "" if it is not a question."""
    try:
        asked = json.loads(line)["ask"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
    return asked if isinstance(asked, str) else ""
