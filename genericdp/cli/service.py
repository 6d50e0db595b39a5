"""The daemon as a service manager runs it: signals, descriptors, READY.

The rules of this file:

* It is imported only to run the daemon: it loads gRPC, and help and completion must not wait for that.
"""

import asyncio
import ctypes
import os
import resource
import signal
from contextlib import suppress

from genericdp import log
from genericdp.cli import loop
from genericdp.cli.exit_status import DEAD_MOUNT, FINE
from genericdp.core.rules.settings import Settings
from genericdp.daemon import Daemon
from genericdp.files.rulefiles import RuleFiles
from genericdp.kubelet.registration import some_still_stop
from genericdp.service import mounts, threads
from genericdp.service.dead_mount import until_dead
from genericdp.systemd import Notify

#: How many descriptors are enough for thousands of resources.
_DESCRIPTORS = 16384

#: How many threads gRPC takes at most when it starts: one for each processor, up to 16, and a few more.
THREADS = min(os.cpu_count() or 1, 16) + 4

#: How long the end may take after a signal, in seconds: less than systemd and the kubelet wait (10 s).
_END_S = 5.0

#: mallopt(3), parameters of glibc alone.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

#: The two thresholds with which glibc begins, in bytes.
_LARGE = 128 << 10

_log = log.get(__name__)


def serve(settings: Settings, rule_files: RuleFiles) -> bool:
    """Serve until SIGTERM or SIGINT. In a pod, returns False if only a new container can go on serving.

    Raises GenericdpError if the daemon cannot start. Without enough threads gRPC would hang for good: the
    service manager starts the daemon again instead.
    """
    threads.require(THREADS)
    _raise_limit_of_descriptors()
    _keep_heap_small()
    if mounts.is_in_a_pod():
        mounts.warn(settings, rule_files.resources)
    return loop.run(_serve_to_the_end(settings, rule_files))


def _raise_limit_of_descriptors() -> None:
    """The usual limit of 1024 suits programs that use select(2); each resource needs a few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _keep_heap_small() -> None:
    """By default each thread of gRPC has a heap of its own, which keeps the room of its busiest moment.

    And glibc raises the thresholds with each large block that is freed, up to 32 MiB (mallopt(3)): the next
    large blocks are then on the heap, where they leave room that is not given back. One that is set stays.
    """
    with suppress(AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, 1)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE)
        libc.mallopt(_M_TRIM_THRESHOLD, _LARGE)


def _stop(daemon: Daemon) -> None:
    daemon.stop()
    asyncio.get_running_loop().call_later(_END_S, _give_up)


def _give_up() -> None:
    """End the process, whatever still runs: gRPC without threads never closes a server."""
    left = sorted(task.get_name() for task in asyncio.all_tasks())
    _log.error("the daemon does not end; ending the process", within=f"{_END_S:.0f}s", left=",".join(left))
    os._exit(1)


async def _serve_to_the_end(settings: Settings, rule_files: RuleFiles) -> bool:
    """As `_serve`; ends the process where Python would wait for grpc, and grpc for a peer."""
    alive = await _serve(settings, rule_files)
    if some_still_stop():
        _log.warning("a client of a plugin's socket does not read; ending without it")
        os._exit(FINE if alive else DEAD_MOUNT)
    return alive


async def _serve(settings: Settings, rule_files: RuleFiles) -> bool:
    daemon = Daemon(settings, rule_files, notify=Notify.from_environment())
    running = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        running.add_signal_handler(number, _stop, daemon)
    running.add_signal_handler(signal.SIGHUP, daemon.reload)
    if not mounts.is_in_a_pod():
        await daemon.run()
        return True
    losing = asyncio.create_task(until_dead(settings.kubelet_dir, daemon.plugins.may_be_followed))
    losing.add_done_callback(lambda _: daemon.stop())
    try:
        await daemon.run()
    finally:
        losing.cancel()
        await asyncio.wait((losing,))
    if losing.cancelled():
        return True
    losing.result()  # raises what went wrong, if that is why the daemon has ended
    return False
