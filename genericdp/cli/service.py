"""The daemon as a service manager runs it: signals, descriptors, READY.

The rules of this file:

* It is imported only to run the daemon: it loads gRPC, and help and completion must not wait for that.
"""

import asyncio
import os
import resource
import signal

from genericdp import log
from genericdp.cli import loop
from genericdp.cli.exit_status import DEAD_MOUNT, FINE
from genericdp.core.rules.settings import Settings
from genericdp.daemon import Daemon
from genericdp.errors import MORE_DESCRIPTORS, GenericdpError
from genericdp.files.rulefiles import RuleFiles
from genericdp.kubelet.registration import some_still_stop
from genericdp.service import mounts, threads
from genericdp.service.dead_mount import until_dead
from genericdp.service.heap import Heap, keep_small
from genericdp.systemd import Notify

#: How many descriptors are enough for thousands of resources.
_DESCRIPTORS = 16384

#: With fewer, gRPC may abort the process when it starts, without a word.
_LEAST_DESCRIPTORS = 64

#: How many threads gRPC takes at most when it starts: one for each processor, up to 16, and a few more.
THREADS = min(os.cpu_count() or 1, 16) + 4

#: How long the end may take after a signal, in seconds: less than systemd and the kubelet wait (10 s).
_END_S = 5.0

#: How much of that is counted only once the event loop runs again after it has waited for a slow disk.
_AFTER_DISK_S = 1.0

_log = log.get(__name__)


def serve(settings: Settings, rule_files: RuleFiles) -> bool:
    """Serve until SIGTERM or SIGINT. In a pod, returns False if only a new container can go on serving.

    Raises GenericdpError if the daemon cannot start. Without enough threads, gRPC would hang for good, and
    without enough descriptors it would abort: the service manager starts the daemon again instead.
    """
    # First of all: the heap that a thread has begun is used again, although that thread has ended.
    keep_small()
    threads.require(THREADS)
    _raise_limit_of_descriptors()
    if mounts.is_in_a_pod():
        mounts.warn(settings, rule_files.resources)
    return loop.run(_serve_to_the_end(settings, rule_files))


def _raise_limit_of_descriptors() -> None:
    """The usual limit of 1024 suits programs that use select(2); each resource needs a few.

    Raises GenericdpError if it is too low and cannot be raised.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if wanted < _LEAST_DESCRIPTORS:
        raise GenericdpError(
            f"too few open files: the limit is {wanted}, and at least {_LEAST_DESCRIPTORS} are needed",
            hint=MORE_DESCRIPTORS,
        )
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _stop(daemon: Daemon) -> None:
    daemon.stop()
    running = asyncio.get_running_loop()
    running.call_later(_END_S - _AFTER_DISK_S, running.call_later, _AFTER_DISK_S, _give_up)


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
    heap = Heap()
    daemon = Daemon(settings, rule_files, notify=Notify.from_environment(), on_step=lambda _: heap.see_work())
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
