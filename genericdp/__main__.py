"""The program starts here, installed (`genericdp`) or from a clone (`python -m genericdp`).

The rules of this file:

* Nothing is imported before the verb is known: a verb pays only for what it uses.
"""

import importlib
import os
import sys
import types
import typing

#: The verbs that run a daemon. Only they keep running, so only they have to be small.
_DAEMON = ("run", "simulate")

#: What libraries import for functions that a daemon never calls. protobuf has an implementation in Python
#: beside the one in C that it uses; ctypes.util can ask a C compiler for libraries. grpc takes two words for
#: type checkers from typing_extensions.
_SELDOM_USED = (
    "asyncio.sslproto",
    "calendar",
    "google.protobuf.internal.python_message",
    "shutil",
    "tempfile",
    "typing_extensions",
)


def main() -> int:
    """Run the verb that the command line names; returns the exit status."""
    if sys.argv[1:2] and sys.argv[1] in _DAEMON:
        _leave_unused_modules_out()
        # gRPC's C library reports each lost connection on stderr; the log of genericdp says what it means.
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
        # As the event loop (`cli/loop.py`), it must not depend on what other processes watch by epoll.
        os.environ.setdefault("GRPC_POLL_STRATEGY", "poll")
    from genericdp.cli import main as cli  # noqa: PLC0415  (see the rules of this file)

    return cli.main(sys.argv[1:])


def _leave_unused_modules_out() -> None:
    """Keep modules from being imported that libraries import if they can: 9.9 MiB of resident memory.

    genericdp uses unix sockets only. asyncio works without ssl (4 MiB), and grpc contains its own TLS; shutil
    works without bz2 and lzma (0.4 MiB); hashlib works without OpenSSL (3.5 MiB), because it has Python's own
    SHA-2, unless a distribution left that out. Others are loaded only if they are used (1.9 MiB, most of it
    protobuf's). Must run before asyncio is imported.
    """
    for name in ("ssl", "bz2", "lzma"):
        sys.modules[name] = None  # type: ignore[assignment]
    if _can_import("_sha2") or _can_import("_sha256"):  # the name since Python 3.12, and the one before
        sys.modules["_hashlib"] = None  # type: ignore[assignment]
    for name in _SELDOM_USED:
        _load_when_used(name)
    vars(sys.modules["typing_extensions"]).update(Self=typing.Self, override=lambda method: method)


def _load_when_used(name: str) -> None:
    """Let a module be imported without being loaded. It is loaded when something in it is first used."""
    empty = types.ModuleType(name)

    def load(attribute: str) -> object:
        if attribute == "__path__":  # `from … import …` asks whether it is a package
            raise AttributeError(attribute)
        if sys.modules.get(name) is empty:
            del sys.modules[name]
        return getattr(importlib.import_module(name), attribute)

    vars(empty)["__getattr__"] = load  # PEP 562
    sys.modules[name] = empty


def _can_import(name: str) -> bool:
    try:
        __import__(name)
    except ImportError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
