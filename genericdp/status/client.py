"""Asking the daemon that runs on this node, over its control socket.

The rules of this file:

* Why there is no answer is said with what to do about it: no daemon, no permission, no patience.
"""

import json
import socket
from collections.abc import Iterator
from typing import Any

from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError

#: The socket's name in the run directory, see genericdp.status.control.
SOCKET = "control.sock"

#: How long an answer may take, in seconds: the daemon itself asks the kubelet who holds what.
PATIENCE_S = 15.0

_JOURNAL = "'journalctl -u genericdp' says what it is doing"


class NotRunningError(GenericdpError):
    """There is no daemon that could answer."""


class NotAllowedError(GenericdpError):
    """There may be one, and it is not ours to ask."""


def status(settings: Settings) -> dict[str, Any]:
    """The report of the daemon. Raises GenericdpError when there is none to be had."""
    with _connected(settings) as connection:
        answer = next(_answers(connection, settings, "status"), {})
    report = answer.get("status")
    if not isinstance(report, dict):
        raise GenericdpError(
            f"what answers on '{_path(settings)}' gives no status: {answer.get('error', 'it hung up')}",
            hint=_JOURNAL,
        )
    return report


def events(settings: Settings) -> Iterator[dict[str, Any]]:
    """The events of the daemon as they happen; ends when it does. Raises GenericdpError at the first."""
    with _connected(settings) as connection:
        for event in _answers(connection, settings, "events"):
            connection.settimeout(None)  # nothing may happen for days
            yield event


def _path(settings: Settings) -> str:
    return f"{settings.run_dir}/{SOCKET}"


def _connected(settings: Settings) -> socket.socket:
    path = _path(settings)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(PATIENCE_S)
    try:
        connection.connect(path)
    except PermissionError as error:
        connection.close()
        raise NotAllowedError(
            f"you may not ask the daemon on '{path}'", hint="root may: sudo genericdp status"
        ) from error
    except FileNotFoundError as error:
        connection.close()
        raise NotRunningError(
            f"no genericdp runs on this node: there is no '{path}'",
            hint="'systemctl status genericdp' says why; 'genericdp list' shows what it would offer",
        ) from error
    except ConnectionRefusedError as error:
        connection.close()
        raise NotRunningError(
            f"no genericdp runs on this node any more: nobody listens on '{path}'",
            hint="'systemctl status genericdp' says why; 'genericdp list' shows what it would offer",
        ) from error
    except OSError as error:
        connection.close()
        raise GenericdpError(
            f"cannot ask the daemon on '{path}': {error.strerror or error}", hint=_JOURNAL
        ) from error
    return connection


def _answers(connection: socket.socket, settings: Settings, what: str) -> Iterator[dict[str, Any]]:
    """Each line of the answer. What is no JSON object ends it."""
    try:
        connection.sendall(json.dumps({"ask": what}).encode() + b"\n")
        with connection.makefile("rb") as lines:
            for line in lines:
                answer = json.loads(line)
                if not isinstance(answer, dict):
                    return
                yield answer
    except TimeoutError as error:
        raise GenericdpError(
            f"the daemon does not answer on '{_path(settings)}': it took longer than {PATIENCE_S:g} s",
            hint=_JOURNAL,
        ) from error
    except (OSError, ValueError):
        return  # it ended in the middle of what it said
