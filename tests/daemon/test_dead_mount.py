"""A pod whose mount of the kubelet's directory is dead: the daemon ends, the next one serves. Real mounts."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from genericdp.cli.exit_status import DEAD_MOUNT
from genericdp.files.state import StateFile
from genericdp.simulator import Container, Kubelet, Phase, Pod
from tests.scenes.waiting import PATIENCE_S

NULL = "genericdp.io/null"
DELETED = "the kubelet's directory was deleted; ending, because only a new container can mount the new one"
RULES = '[[resource]]\nname = "null"\nmatch = { DEVNAME = "/dev/null" }\n'


def settings(root: Path) -> Path:
    """The settings of a pod that mounts the kubelet's directory as `pod`. Everything else is the host's."""
    rules, file = root / "rules.d", root / "genericdp.toml"
    rules.mkdir(mode=0o755)
    (rules / "50-null.toml").write_text(RULES)
    (rules / "50-null.toml").chmod(0o644)
    file.write_text(
        f'kubelet_dir = "{root}/pod"\nlink_dir = "{root}/links"\nstate_dir = "{root}/state"\n'
        f'run_dir = "{root}/run"\npod_resources_socket = "{root}/pod-resources/kubelet.sock"\n'
    )
    file.chmod(0o644)
    (root / "pod").mkdir()
    return file


@contextmanager
def mounted(root: Path) -> Iterator[None]:
    """What the container runtime does for each container."""
    subprocess.run(["mount", "--bind", root / "device-plugins", root / "pod"], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", root / "pod"], check=True)


@asynccontextmanager
async def a_container(root: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """The daemon in a container that was just made; killed at the end, if it still runs."""
    command = ["run", "--config", f"{root}/genericdp.toml", "--rules", f"{root}/rules.d"]
    with mounted(root):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "genericdp", *command),
            env={**os.environ, "KUBERNETES_SERVICE_HOST": "10.96.0.1"},
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


async def until_offered(kubelet: Kubelet) -> None:
    await kubelet.wait_until(lambda: kubelet.allocatable.get(NULL) == 1)
    kubelet.tick()


async def ended(process: asyncio.subprocess.Process) -> dict[str, str]:
    """The error that it logged, once it has ended because of the mount."""
    async with asyncio.timeout(PATIENCE_S):
        _, log = await process.communicate()
    assert process.returncode == DEAD_MOUNT, log.decode()
    (line,) = (line for line in map(json.loads, log.decode().splitlines()) if line["level"] == "error")
    return dict(line)


async def test_it_ends_when_the_directory_was_deleted_and_the_next_one_knows_what_pods_hold(
    short_dir: Path,
) -> None:
    settings(short_dir)
    async with Kubelet(short_dir) as kubelet:
        async with a_container(short_dir) as process:
            await until_offered(kubelet)
            app = await kubelet.admit(Pod("app", [Container("main", limits={NULL: 1})]))
            assert app.phase is Phase.RUNNING
            await kubelet.stop()
            kubelet.faults.remove_directory()
            await kubelet.start(readmit=False)
            line = await ended(process)
        del line["ts"]
        assert line == {
            "level": "error",
            "msg": DELETED,
            "path": f"{short_dir}/pod",
            "hint": "the kubelet restarts the container; if it finds no kubelet then, restart the kubelet",
        }
        assert StateFile(str(short_dir / "state")).load().held.keys() == {"null_null"}
        async with a_container(short_dir):
            await until_offered(kubelet)
            await kubelet.readmit()
            assert app.phase is Phase.RUNNING


async def test_it_serves_as_long_as_the_kubelet_that_knows_it(short_dir: Path) -> None:
    settings(short_dir)
    async with Kubelet(short_dir) as kubelet, a_container(short_dir) as process:
        await until_offered(kubelet)
        kubelet.faults.remove_directory()
        app = await kubelet.admit(Pod("app", [Container("main", limits={NULL: 1})]))
        assert app.phase is Phase.RUNNING
        assert process.returncode is None
        kubelet.faults.make_directory()
        await kubelet.restart()
        await ended(process)
