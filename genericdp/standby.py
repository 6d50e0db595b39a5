"""Only one genericdp serves a node: what the second one does.

It stands by, READY, until the first one ends, and then serves within milliseconds. So an upgrade that
starts the new one first, or waits for it, goes on; and two that were installed by mistake do no harm.
With other links than ours, another one cannot be waited for: it is refused.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import ExitStack, suppress

from genericdp import log
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError
from genericdp.kubelet.endpoints import sweep
from genericdp.lock import NodeLock
from genericdp.watch import DirectoryWatch

#: How long to wait at the most before asking again whether the other one has ended, in seconds.
AGAIN_S = 0.5

#: How often to ask before another one that holds no lock of ours is taken for one that stays.
COMPANY_TRIES = 5

_log = log.get(__name__)


async def until_alone(
    settings: Settings,
    stack: ExitStack,
    on_wait: Callable[[str], None],
    awake: asyncio.Event,
    stopping: Callable[[], bool],
) -> None:
    """Return when no other genericdp has these links, or `stopping` says so after `awake`.

    This one has them for as long as `stack` is open. `on_wait` is told who is waited for.
    """
    try:
        lock = stack.enter_context(NodeLock(settings.link_dir))
    except GenericdpError as error:
        _log.warning(str(error), hint=error.hint)
        return
    if lock.taken():
        return
    _log.warning(
        "another genericdp serves this node, standing by until it ends",
        who=lock.holder,
        hint="if this is no upgrade, remove one of them: the package, or the DaemonSet",
    )
    on_wait(lock.holder)
    watch = DirectoryWatch(settings.link_dir, lambda _: awake.set())
    try:
        while not stopping() and not lock.taken():
            # The kernel tells of the end of the other one just before it lets go of its lock.
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_S):
                    await awake.wait()
            awake.clear()
    finally:
        watch.close()
    if not stopping():
        _log.info("this genericdp serves the node now")


async def refuse_company(kubelet_dir: str) -> None:
    """Remove sockets that a killed genericdp left behind.

    Raises GenericdpError when one that lives, with other links than ours, is at the same kubelet.
    """
    others = sweep(kubelet_dir)
    for _ in range(COMPANY_TRIES):
        if not others:
            return
        await asyncio.sleep(AGAIN_S)  # it may be ending: a process loses its lock before its sockets
        others = sweep(kubelet_dir)
    if others:
        raise GenericdpError(
            f"another genericdp serves this kubelet: it listens on '{os.path.join(kubelet_dir, others[0])}'",
            hint="remove one of them, or give both the same 'link_dir': then one stands by for the other",
        )
