"""The program starts here, installed (`genericdp`) or from a clone (`python -m genericdp`).

The rules of this file:

* Nothing is imported before it is known which verb is asked for: a verb pays only for what it uses.
"""

import os
import sys

#: The verbs that hold the daemon; only they stay, so only they have to be small.
_DAEMON = ("run", "simulate")


def main() -> int:
    """Run the verb that the command line names; returns the exit status."""
    if sys.argv[1:2] and sys.argv[1] in _DAEMON:
        _leave_out_what_nobody_uses()
        # gRPC's C library reports each lost connection on stderr; what it means is in our own log.
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from genericdp.cli import main as cli  # noqa: PLC0415  (see the rules of this file)

    return cli.main(sys.argv[1:])


def _leave_out_what_nobody_uses() -> None:
    """Keep modules from being imported that libraries import if they can: 8 MiB of resident memory.

    asyncio does without ssl (4 MiB), because we speak over unix sockets alone and grpc brings a TLS of its
    own; shutil without bz2 and lzma (0.4 MiB); hashlib without OpenSSL (3.5 MiB), because it has Python's
    own SHA-2, except where a distribution left that out. Must come before asyncio's import.
    """
    for name in ("ssl", "bz2", "lzma"):
        sys.modules[name] = None  # type: ignore[assignment]
    if _can_import("_sha2") or _can_import("_sha256"):  # the name since Python 3.12, the one before
        sys.modules["_hashlib"] = None  # type: ignore[assignment]


def _can_import(name: str) -> bool:
    try:
        __import__(name)
    except ImportError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
