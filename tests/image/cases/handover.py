"""From one genericdp to the next on a node: a rollout with a surge, and from the package to the DaemonSet."""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import AsyncIterator

from genericdp.simulator import PodStatus
from tests.image.case import Case
from tests.image.node import LINKS, SCREEN, Node
from tests.image.pod import PATIENCE_S
from tests.image.unpacked import CHECKOUT

_STANDS_BY = "another genericdp serves this node; standing by until it ends"
_SERVES = "this genericdp serves the node now"


async def a_rollout_with_a_surge_loses_no_device(node: Node) -> str:
    with node.console.plugged():
        old = await node.pod()
        await node.until_offered(1)
        app = await node.admit()
        held = node.kubelet.allocated(SCREEN)
        links = node.links()
        new = await node.pod()
        line = await new.logged(_STANDS_BY)
        assert line["level"] == "warning"
        # A rollout goes on when the new pod is ready.
        assert await new.exec("/usr/bin/genericdp", "probe", "readiness") == (0, "")
        before = node.registrations()
        started = time.monotonic()
        assert await old.stop() == 0
        await new.logged(_SERVES)
        await node.until(lambda: node.registrations() > before and node.kubelet.streams(SCREEN) == 1)
        await node.until_offered(1)
        took_s = time.monotonic() - started
        await _holds(node, app, held, links)
    return f"after {took_s:.1f} s"


async def a_pod_that_is_killed_leaves_a_node_on_which_the_next_one_knows_everything(node: Node) -> None:
    with node.console.plugged():
        old = await node.pod()
        await node.until_offered(1)
        app = await node.admit()
        held, links = node.kubelet.allocated(SCREEN), node.links()
        await old.stop("KILL")
    # Unplugged meanwhile: a pod holds it, so it stays listed.
    await node.pod()
    await node.until(lambda: set(node.kubelet.devices(SCREEN)) == held)
    assert node.kubelet.allocatable[SCREEN] == 0
    with node.console.plugged():
        await node.until_offered(1)
        await _holds(node, app, held, links)


async def from_the_package_to_the_daemonset_and_back_no_device_is_lost(node: Node) -> None:
    with node.console.plugged():
        async with _package(node) as package:
            await node.until_offered(1)
            app = await node.admit()
            held, links = node.kubelet.allocated(SCREEN), node.links()
            pod = await node.pod()
            await pod.logged(_STANDS_BY)
            before = node.registrations()
            package.send_signal(signal.SIGTERM)
            assert await package.wait() == 0
        await pod.logged(_SERVES)
        await node.until(lambda: node.registrations() > before and node.kubelet.streams(SCREEN) == 1)
        await node.until_offered(1)
        await _holds(node, app, held, links)
        before = node.registrations()
        async with _package(node):
            assert await pod.stop() == 0
            await node.until(lambda: node.registrations() > before and node.kubelet.streams(SCREEN) == 1)
            await node.until_offered(1)
            await _holds(node, app, held, links)


@contextlib.asynccontextmanager
async def _package(node: Node) -> AsyncIterator[asyncio.subprocess.Process]:
    """While open, genericdp runs on the host, as the package's unit starts it, with the same directories."""
    rules = node.place("/etc/genericdp/rules.d")
    (rules / "50-screen.toml").write_text(node.screen_rules("screen"), encoding="utf-8")
    settings = rules.with_name("genericdp.toml")
    kubelet = node.place("/var/lib/kubelet")
    settings.write_text(
        f'kubelet_dir = "{kubelet}/device-plugins"\n'
        f'pod_resources_socket = "{kubelet}/pod-resources/kubelet.sock"\n'
        f'link_dir = "{LINKS}"\n'
        f'state_dir = "{node.place("/var/lib/genericdp")}"\n'
        f'run_dir = "{node.place("/run/genericdp")}"\n'
        f'cdi_dir = "{node.place("/run/cdi")}"\n',
        encoding="utf-8",
    )
    program = [sys.executable, "-m", "genericdp", "run", "--config", str(settings), "--rules", str(rules)]
    log = settings.with_name("log")
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(*program, cwd=CHECKOUT, stdout=output, stderr=output)
    try:
        yield process
    except BaseException as error:
        error.add_note(f"log of the package:\n{log.read_text(encoding='utf-8')}")
        raise
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE_S):
                await process.wait()


async def _holds(node: Node, app: PodStatus, held: set[str], links: dict[str, str]) -> None:
    """The pod still has its device, and its container can be started again with it."""
    assert (node.kubelet.allocated(SCREEN), node.links()) == (held, links)
    assert node.kubelet.resource_health(app, "main") == {SCREEN: dict.fromkeys(held, "Healthy")}
    assert node.opened(await node.kubelet.restart_container(app, "main")) == node.console.node


CASES: tuple[Case, ...] = (
    a_rollout_with_a_surge_loses_no_device,
    a_pod_that_is_killed_leaves_a_node_on_which_the_next_one_knows_everything,
    from_the_package_to_the_daemonset_and_back_no_device_is_lost,
)
