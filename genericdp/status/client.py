"""Asks the daemon on this node over its control socket.

The rules of this file:

* Without an answer, the error says why and what to do about it: no daemon, no permission, no answer in time.
* A daemon of another release may answer otherwise. What it says is shown if it can be read.
"""

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from genericdp import VERSION
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError
from genericdp.status.protocol import question, socket_path

#: How long an answer may take, in seconds: the daemon itself asks the kubelet for the holders.
PATIENCE_S = 15.0

_JOURNAL = "'journalctl -u genericdp' says what it is doing"


class NotRunningError(GenericdpError):
    """No daemon runs on this node."""


class NotAllowedError(GenericdpError):
    """The user is not allowed to ask the daemon."""


def status(settings: Settings) -> dict[str, Any]:
    """The report of the daemon. Raises GenericdpError without an answer."""
    with _connected(settings) as connection:
        answer = next(_answers(connection, settings, "status"), {})
    report = answer.get("status")
    if not isinstance(report, dict):
        raise _no("status", settings, answer)
    return report


def events(settings: Settings) -> Iterator[dict[str, Any]]:
    """The events of the daemon as they happen, until it ends. Raises GenericdpError before the first one."""
    with _connected(settings) as connection:
        for event in _answers(connection, settings, "events"):
            if "event" not in event:
                raise _no("events", settings, event)
            connection.settimeout(None)  # nothing may happen for days
            yield event


@contextmanager
def reading(said: Mapping[str, object], settings: Settings) -> Iterator[None]:
    """The block reads an answer. Raises GenericdpError if it cannot, and it is that of another release.

    said  the report, or the first event: only these name the release
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if said.get("version") == VERSION:
            raise
        raise GenericdpError(
            f"the answer of the program on '{_path(settings)}' cannot be read: it is not genericdp {VERSION}",
            hint="if it is the daemon of another release, restart it: systemctl restart genericdp",
        ) from error


def _no(what: str, settings: Settings, answer: Mapping[str, object]) -> GenericdpError:
    """The error for another answer than the one that was asked for."""
    why = answer.get("error", "it hung up")
    return GenericdpError(f"no {what} from the program on '{_path(settings)}': {why}", hint=_JOURNAL)


def _path(settings: Settings) -> str:
    return socket_path(settings.run_dir)


def _connected(settings: Settings) -> socket.socket:
    path = _path(settings)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(PATIENCE_S)
    try:
        connection.connect(path)
    except PermissionError as error:
        connection.close()
        raise NotAllowedError(
            f"no permission to ask the daemon on '{path}'", hint="ask as root: sudo genericdp status"
        ) from error
    except FileNotFoundError as error:
        connection.close()
        raise NotRunningError(
            f"genericdp is not running on this node: '{path}' does not exist",
            hint="'systemctl status genericdp' says why; 'genericdp list' shows what it would offer",
        ) from error
    except ConnectionRefusedError as error:
        connection.close()
        raise NotRunningError(
            f"genericdp is no longer running on this node: nothing listens on '{path}'",
            hint="'systemctl status genericdp' says why; 'genericdp list' shows what it would offer",
        ) from error
    except OSError as error:
        connection.close()
        raise GenericdpError(
            f"cannot ask the daemon on '{path}': {error.strerror or error}", hint=_JOURNAL
        ) from error
    return connection


def _answers(connection: socket.socket, settings: Settings, what: str) -> Iterator[dict[str, Any]]:
    """Each line of the answer. A line that is not a JSON object ends it."""
    try:
        with suppress(BrokenPipeError, ConnectionResetError):  # it may have answered before it was asked
            connection.sendall(question(what))
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
    except (OSError, ValueError, RecursionError):
        return  # the daemon ended in the middle of a line, or it is none
