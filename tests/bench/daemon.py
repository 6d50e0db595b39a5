"""What the daemon costs as a process: start, memory, registering, a plug, and doing nothing."""

import asyncio
import contextlib
import os
import re
import shutil
import site
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from genericdp.simulator import Container, Kubelet, Phase, Pod
from tests.bench.process import Memory, Process, Work
from tests.bench.row import Row
from tests.udev.hotplug import reserve_console

PLUGS = 20
IDLE_S = 10.0

#: When starting is over; no event says so. By then, unused memory has been given back, and gRPC's threads
#: look for work less and less often, in the end every 3 s.
SETTLED_S = 15.0

#: Resources -> the promise for the memory that cannot be read again from disk.
ANONYMOUS = {10: "<= 23 MiB", 100: "<= 31 MiB"}

#: A flapping cable: how long, how often a second it changes, and what the daemon makes one message of.
STORM_S = 60.0
CHANGES_PER_S = 100
COALESCE_S = 0.1

#: A machine without udevd is rescanned periodically; that is not the idleness measured here.
QUIET = 'log_level = "error"\nrescan = "1h"\n'

#: A rule for nodes that udev does not know. Its directories are watched, which must not wake anybody.
BARE = '[[resource]]\nname = "acme"\nmatch = { DEVNAME = "/dev/acme*" }\n'

CHECKOUT = Path(__file__).resolve().parents[2]


async def rows() -> AsyncIterator[Row]:
    """All measurements of the daemon."""
    started = [await _start_to_ready() for _ in range(3)]
    yield Row("start to READY", f"{min(started):.0f} ms", "< 400 ms")
    yield Row(
        "50 resources registered after kubelet.sock accepts", f"{await _registering(50):.0f} ms", "< 300 ms"
    )
    for count, promised in ((10, "<= 42.5 MiB"), (100, "<= 50 MiB")):
        memory = await _memory(count)
        yield Row(f"resident memory with {count} resources", f"{memory.resident:.1f} MiB", promised)
        yield Row("  of that anonymous: in no file", f"{memory.anonymous:.1f} MiB", ANONYMOUS[count])
        # The simulated kubelet maps the same libraries, so both are lower than on a node.
        yield Row("  private (USS)", f"{memory.private:.1f} MiB")
        yield Row("  private, and its part of what is shared (PSS)", f"{memory.proportional:.1f} MiB")
    idle = await _idle()
    yield Row(f"messages to the kubelet in {IDLE_S:.0f} s of idleness", str(idle.messages), "0")
    yield Row(
        f"wake-ups of the daemon's own thread in {IDLE_S:.0f} s, with {idle.uevents} uevents",
        str(idle.work.wakeups),
        "0 with 0",
    )
    yield Row(
        "  switches a second of all threads, which are those of gRPC",
        f"{idle.work.switches / IDLE_S:.1f}",
        "<= 15 with 0",
    )
    yield Row("  processor time in a second", f"{idle.work.busy_s / IDLE_S * 1000:.2f} ms", "< 0.5 ms with 0")
    if os.geteuid() != 0:
        yield Row("plug to the kubelet's stream", "-", "(needs root)")
        return
    plugs = sorted(await _plugs())
    yield Row(
        f"plug to the kubelet's stream, median of {PLUGS}", f"{statistics.median(plugs):.1f} ms", "< 5 ms"
    )
    yield Row("  the slowest of them", f"{plugs[-1]:.1f} ms")
    storm = await _storm()
    yield Row(
        f"messages in {STORM_S:.0f} s of {storm.changes / STORM_S:.0f} plugs and unplugs a second",
        str(storm.messages),
        f"<= {STORM_S / COALESCE_S + 1:.0f}, one in {COALESCE_S * 1000:.0f} ms",
    )
    yield Row("  processor time of the daemon meanwhile", f"{storm.busy:.0%}")
    yield Row("  resident memory after it, more than before", f"{storm.grown_mib:.1f} MiB")
    yield Row("  a pod's admission meanwhile, median", f"{statistics.median(storm.admissions):.1f} ms")
    yield Row("  the slowest of them", f"{max(storm.admissions):.1f} ms")


@dataclass(frozen=True, slots=True)
class Running:
    """A daemon as a process of its own, below a directory of its own. `ready_ms`: from its start to READY."""

    process: Process
    ready_ms: float


def uevents_so_far() -> int:
    """How many the kernel has sent; another program may cause some meanwhile."""
    return int(Path("/sys/kernel/uevent_seqnum").read_text())


def configure(root: Path, rules: str, *, coalesce: str = "0s", more: str = QUIET) -> None:
    """Write these rules, and settings with all directories below the root. `more`: further settings."""
    # In a directory of its own: the one above it is watched too, and much happens in /tmp.
    (root / "rules.d").mkdir(mode=0o755)
    (root / "rules.d/rules.toml").write_text(rules)
    (root / "rules.d/rules.toml").chmod(0o644)
    (root / "genericdp.toml").write_text(
        f'kubelet_dir = "{root}/device-plugins"\nlink_dir = "{root}/links"\nstate_dir = "{root}/state"\n'
        f'run_dir = "{root}/run"\npod_resources_socket = "{root}/pod-resources/kubelet.sock"\n'
        f'cdi_dir = "{root}/cdi"\ncoalesce = "{coalesce}"\n{more}'
    )
    (root / "genericdp.toml").chmod(0o644)


def environment_of_the_unit() -> dict[str, str]:
    """What systemd sets for the daemon, without what depends on the machine."""
    unit = (CHECKOUT / "systemd/genericdp.service").read_text()
    return dict(re.findall(r"^Environment=(\w+)=([^%\n]+)$", unit, re.MULTILINE))


@contextlib.asynccontextmanager
async def started(
    root: Path, *, module: str = "genericdp", log: BinaryIO | int | None = None
) -> AsyncIterator[Running]:
    """`genericdp run` as configured below the root, READY. `log`: instead of this stderr."""
    command = [
        "-m",
        module,
        "run",
        "--config",
        f"{root}/genericdp.toml",
        "--rules",
        f"{root}/rules.d",
    ]
    path = os.pathsep.join([str(CHECKOUT), *site.getsitepackages()])
    environment = {
        **os.environ,
        **environment_of_the_unit(),
        "NOTIFY_SOCKET": f"{root}/notify",
        "PYTHONPATH": path,
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{root}/notify")  # of the daemon before
        manager.bind(f"{root}/notify")
        manager.setblocking(False)
        began = time.perf_counter()
        process = await asyncio.create_subprocess_exec(sys.executable, *command, env=environment, stderr=log)
        try:
            async with asyncio.timeout(30):
                while b"READY=1" not in await asyncio.get_running_loop().sock_recv(manager, 4096):
                    pass
            ready_ms = (time.perf_counter() - began) * 1000
            # As systemd does: the daemon waits for a service manager that does not read.
            asyncio.get_running_loop().add_reader(manager, manager.recv, 4096)
            yield Running(Process(process.pid), ready_ms)
        finally:
            asyncio.get_running_loop().remove_reader(manager)
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


@contextlib.asynccontextmanager
async def daemon(
    root: Path,
    rules: str,
    *,
    coalesce: str = "0s",
    more: str = QUIET,
    module: str = "genericdp",
    log: BinaryIO | None = None,
) -> AsyncIterator[Running]:
    """`genericdp run` with these rules, READY; see `configure` and `started`."""
    configure(root, rules, coalesce=coalesce, more=more)
    async with started(root, module=module, log=log) as running:
        yield running


@contextlib.contextmanager
def a_root() -> Iterator[Path]:
    """A directory for everything, with a short name (unix sockets)."""
    root = Path(tempfile.mkdtemp(prefix="gdp-", dir="/tmp"))
    root.chmod(0o755)
    try:
        yield root
    finally:
        shutil.rmtree(root)


def consoles(count: int) -> str:
    """Rules of so many resources; the first 60 of them have a device."""
    tables = (
        f'[[resource]]\nname = "console-{n}"\nmatch = {{ SUBSYSTEM = "tty", DEVNAME = "/dev/tty{n + 1}" }}\n'
        for n in range(count)
    )
    return "".join(tables)


async def _start_to_ready() -> float:
    with a_root() as root:
        async with daemon(root, consoles(10)) as running:
            return running.ready_ms


async def _registering(count: int) -> float:
    with a_root() as root:
        async with daemon(root, consoles(count)):
            async with Kubelet(root) as kubelet:
                started = time.perf_counter()
                await kubelet.wait_until(lambda: sum(kubelet.allocatable.values()) == count, timeout_s=30)
                return (time.perf_counter() - started) * 1000


async def _memory(count: int) -> Memory:
    with a_root() as root:
        async with Kubelet(root) as kubelet, daemon(root, consoles(count)) as running:
            await kubelet.wait_until(lambda: len(kubelet.capacity) == count, timeout_s=30)
            await asyncio.sleep(SETTLED_S)
            return running.process.memory()


@dataclass(frozen=True, slots=True)
class Idle:
    """What a daemon does while nothing happens, unless there were uevents."""

    messages: int
    work: Work
    uevents: int


async def _idle() -> Idle:
    with a_root() as root:
        async with Kubelet(root) as kubelet, daemon(root, consoles(10) + BARE) as running:
            await kubelet.wait_until(lambda: sum(kubelet.allocatable.values()) == 10, timeout_s=30)
            await asyncio.sleep(SETTLED_S)
            names = tuple(kubelet.capacity)
            messages = sum(kubelet.messages(name) for name in names)
            work, uevents = running.process.work(), uevents_so_far()
            await asyncio.sleep(IDLE_S)
            return Idle(
                sum(kubelet.messages(name) for name in names) - messages,
                running.process.work() - work,
                uevents_so_far() - uevents,
            )


async def _plugs() -> list[float]:
    """From opening a console, which makes the kernel add its screen, to the kubelet's new list."""
    console = reserve_console()
    rules = f'[[resource]]\nname = "screen"\nmatch = {{ SUBSYSTEM = "vc", DEVNAME = "{console.node}" }}\n'
    took = []
    with a_root() as root:
        async with Kubelet(root) as kubelet, daemon(root, rules):
            await kubelet.wait_until(lambda: kubelet.capacity, timeout_s=30)
            for _ in range(PLUGS):
                started = time.perf_counter()
                with console.plugged():
                    await kubelet.wait_until(lambda: sum(kubelet.allocatable.values()) == 1)
                    took.append((time.perf_counter() - started) * 1000)
                await kubelet.wait_until(lambda: sum(kubelet.allocatable.values()) == 0)
    return took


@dataclass(frozen=True, slots=True)
class Storm:
    """What a flapping cable costs. `busy` is the part of one processor that the daemon took."""

    changes: int
    messages: int
    busy: float
    grown_mib: float
    admissions: tuple[float, ...]


async def _storm() -> Storm:
    """A console comes and goes all the time, while pods ask for others that stay. Ends in the right state."""
    console = reserve_console()
    rules = consoles(10) + (
        f'[[resource]]\nname = "screen"\nmatch = {{ SUBSYSTEM = "vc", DEVNAME = "{console.node}" }}\n'
    )
    screen = "genericdp.io/screen"
    with a_root() as root:
        async with (
            Kubelet(root) as kubelet,
            daemon(root, rules, coalesce=f"{COALESCE_S * 1000:.0f}ms") as running,
        ):
            await kubelet.wait_until(lambda: len(kubelet.capacity) == 11, timeout_s=30)
            kubelet.tick()
            steady = next(name for name, count in kubelet.allocatable.items() if count)
            before, memory = kubelet.messages(screen), running.process.memory()
            admissions: list[float] = []
            changes, work, started = 0, running.process.work(), time.monotonic()
            with contextlib.ExitStack() as plugged:
                while (passed := time.monotonic() - started) < STORM_S:
                    await asyncio.sleep(max(0.0, changes / CHANGES_PER_S - passed))
                    if changes % 2:
                        plugged.close()
                    else:
                        plugged.enter_context(console.plugged())
                    changes += 1
                    if changes % CHANGES_PER_S == 0:
                        admissions.append(await _admission(kubelet, steady))
                taken = (running.process.work() - work).busy_s
                if not changes % 2:
                    plugged.enter_context(console.plugged())
                await kubelet.wait_until(lambda: kubelet.allocatable[screen] == 1)
                messages = kubelet.messages(screen) - before
                grown = running.process.memory().resident - memory.resident
    return Storm(changes, messages, taken / STORM_S, grown, tuple(admissions))


async def _admission(kubelet: Kubelet, resource: str) -> float:
    """How long it takes to admit a pod, in ms."""
    started = time.perf_counter()
    pod = await kubelet.admit(Pod("app", [Container("main", limits={resource: 1})]))
    took = (time.perf_counter() - started) * 1000
    assert pod.phase is Phase.RUNNING, pod.message
    kubelet.delete(pod)
    return took
