"""`genericdp probe`: what the daemon of this pod or node tells a kubelet's probe, as an exit status.

The rules of this file:

* A kubelet runs it every few seconds, on small machines too: it reads no settings, and loads little more than
  `json` and `socket`.
* It ends by itself before the kubelet would end it. So an event of the pod shows the reason.
"""

import argparse
import json
import socket
import time
from contextlib import suppress

from genericdp.cli.exit_status import FINE, NOT_FINE
from genericdp.core.hostile import for_terminal
from genericdp.status.protocol import question

#: How long everything may take, in seconds: less than the probes of the DaemonSet allow (5 s).
PATIENCE_S = 4.0

#: Where the daemon listens, unless its `run_dir` is set.
SOCKET = "/run/genericdp/control.sock"

#: The longest answer, in bytes: a sentence for each of thousands of resources.
ANSWER_LIMIT = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Ask the daemon whether it is healthy or ready, as the probes of the DaemonSet do. Exits with status "
        "0 if it is. Otherwise, or if no daemon answers within "
        f"{PATIENCE_S:g} seconds, prints why and exits with status 1. The daemon is healthy unless only a "
        "restart would help. It is ready while the kubelet has every resource, and while another genericdp "
        "serves the node. Needs root."
    )
    parser.epilog = "examples:\n  genericdp probe health\n  genericdp probe readiness"
    parser.add_argument("what", choices=("health", "readiness"), help="what to ask for")
    parser.add_argument(
        "--socket",
        dest="path",
        metavar="FILE",
        default=SOCKET,
        help=f"the control socket of the daemon, control.sock in its run_dir (default: {SOCKET})",
    )


def run(*, what: str, path: str) -> int:
    """Print why not. Returns 0 if the daemon answers that it is fine, else 1."""
    why_not = _why_not(what, path)
    for line in why_not.splitlines():
        print(for_terminal(line))
    return NOT_FINE if why_not else FINE


def _why_not(what: str, path: str) -> str:
    try:
        answer = json.loads(_answer(question(what), path))
        why_not = answer.get(what)
        reason = answer.get("error", "it hung up")
    except TimeoutError:
        reason = f"it took longer than {PATIENCE_S:g} s"
    except OSError as error:
        reason = error.strerror or error
    except UnicodeEncodeError:
        reason = "no file can have this name"
    except (ValueError, AttributeError, RecursionError):
        reason = "it hung up"
    else:
        if isinstance(why_not, str):
            return why_not
    return f"no answer from the daemon on '{path}': {reason}"


def _answer(asked: bytes, path: str) -> bytes:
    """The first line of the answer. Raises OSError; TimeoutError if not all of it came in time."""
    end = time.monotonic() + PATIENCE_S
    answer = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(PATIENCE_S)
        connection.connect(path)
        with suppress(BrokenPipeError, ConnectionResetError):  # it may have answered before it was asked
            connection.sendall(asked)
        while not answer.endswith(b"\n") and len(answer) < ANSWER_LIMIT:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            connection.settimeout(left)
            received = connection.recv(1 << 16)
            if not received:
                break
            answer += received
    return answer
