"""`genericdp run` as a service manager sees it: a process, signals, sd_notify(3)."""

import errno
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from genericdp.cli.service import THREADS
from genericdp.core.rules.settings import Settings
from genericdp.simulator import Container, Kubelet, Phase, Pod
from genericdp.simulator.blocking import BlockingKubelet
from genericdp.status import client

RULES = '[[resource]]\nname = "null"\nmatch = { DEVNAME = "/dev/null" }\n'
GENERICDP = [sys.executable, "-m", "genericdp"]
PATIENCE_S = 20.0


class Manager:
    """A service manager: the notify socket, and the process behind it."""

    def __init__(self, root: Path, program: Sequence[str] = GENERICDP) -> None:
        self.root = root
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(root / "notify"))
        self.socket.settimeout(PATIENCE_S)
        (root / "rules.d").mkdir(mode=0o755)
        self.write(RULES)
        (root / "genericdp.toml").write_text(
            f'kubelet_dir = "{root}/device-plugins"\nlink_dir = "{root}/links"\nstate_dir = "{root}/state"\n'
            f'run_dir = "{root}/run"\npod_resources_socket = "{root}/pod-resources.sock"\n'
        )
        (root / "genericdp.toml").chmod(0o644)
        self.process = subprocess.Popen(
            [*program, "run", "--rules", f"{root}/rules.d", "--config", f"{root}/genericdp.toml"],
            env={**os.environ, "NOTIFY_SOCKET": str(root / "notify")},
            stderr=subprocess.PIPE,
            text=True,
        )

    def write(self, text: str) -> None:
        file = self.root / "rules.d" / "50-test.toml"
        file.write_text(text)
        file.chmod(0o644)

    def told(self, word: str) -> str:
        """The next message that has `word` in it."""
        while True:
            message = self.socket.recv(4096).decode()
            if word in message:
                return message


def changed(code: str) -> Sequence[str]:
    """The program after this code has changed it."""
    program = "import sys\nfrom genericdp.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    return [sys.executable, "-c", f"{code}\n{program}"]


@contextmanager
def manager(root: Path, program: Sequence[str] = GENERICDP) -> Iterator[Manager]:
    it = Manager(root, program)
    try:
        yield it
    finally:
        it.process.kill()
        it.process.communicate()
        it.socket.close()


def test_it_is_ready_without_a_kubelet_and_stops_on_sigterm(short_dir: Path) -> None:
    with manager(short_dir) as it:
        assert it.told("READY=1") == ("READY=1\nSTATUS=1 resource, 1 of 1 device healthy; no kubelet")
        it.process.send_signal(signal.SIGTERM)
        assert it.told("STOPPING=1")
        _, log = it.process.communicate(timeout=PATIENCE_S)
        assert it.process.returncode == 0, log
        assert os.readlink(short_dir / "links" / "null_null") == "/dev/null"


#: The unchanged program, started by a process that has blocked all signals.
WITH_SIGNALS_BLOCKED = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.execv(sys.executable, [sys.executable, "-m", "genericdp", *sys.argv[1:]])
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_even_if_who_started_it_has_blocked_signals(
    short_dir: Path, number: signal.Signals
) -> None:
    with manager(short_dir, [sys.executable, "-c", WITH_SIGNALS_BLOCKED]) as it:
        it.told("READY=1")
        it.process.send_signal(signal.SIGHUP)
        assert it.told("RELOADING=1")
        it.process.send_signal(number)
        assert it.told("STOPPING=1")
        it.process.communicate(timeout=PATIENCE_S)
        assert it.process.returncode == 0


#: The program as it is, but for a SIGHUP at the moment in which it begins to load the daemon.
HUNG_UP_EARLY = """
import os, signal, sys
class Hook:
    def find_spec(self, name, path=None, target=None):
        if name == "genericdp.daemon":
            os.kill(os.getpid(), signal.SIGHUP)
            print("hung up", file=sys.stderr)
sys.meta_path.insert(0, Hook())
"""


def test_a_sighup_while_it_starts_does_not_end_it(short_dir: Path) -> None:
    with manager(short_dir, changed(HUNG_UP_EARLY)) as it:
        assert it.told("READY=1")
        it.process.send_signal(signal.SIGTERM)
        _, log = it.process.communicate(timeout=PATIENCE_S)
        assert log.startswith("hung up\n")


#: The unchanged program where no thread can start: there is no room for its stack.
WITHOUT_THREADS = """
import sys, threading
threading.stack_size(1 << 46)
"""


def test_without_threads_it_ends_and_says_so_rather_than_serve_nothing_for_good(short_dir: Path) -> None:
    with manager(short_dir, changed(WITHOUT_THREADS)) as it:
        _, log = it.process.communicate(timeout=PATIENCE_S)
        assert it.process.returncode == 1
        assert log == (
            f"genericdp: error: too few threads: only 0 of {THREADS} can be started\n"
            "  hint: raise the limit: TasksMax= of the unit, the limit of process ids of the pod, "
            "or the sysctls kernel.pid_max and kernel.threads-max; or free some memory\n"
        )


#: The unchanged program with one descriptor less than it needs to start.
WITHOUT_DESCRIPTORS = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (63, 63))
"""


def test_with_too_few_descriptors_it_ends_and_says_so_before_grpc_aborts(short_dir: Path) -> None:
    with manager(short_dir, changed(WITHOUT_DESCRIPTORS)) as it:
        _, log = it.process.communicate(timeout=PATIENCE_S)
        assert it.process.returncode == 1
        assert log == (
            "genericdp: error: too few open files: the limit is 63, and at least 64 are needed\n"
            "  hint: raise the limit of open files: LimitNOFILE= of the unit, or 'ulimit -n'\n"
        )


def test_it_starts_with_as_many_descriptors_as_it_needs(short_dir: Path) -> None:
    with manager(short_dir, changed(WITHOUT_DESCRIPTORS.replace("63", "64"))) as it:
        assert it.told("READY=1")


#: The program as it is, but what it closes at its end never ends, as gRPC's servers without threads.
WITHOUT_END = """
import asyncio
from genericdp.kubelet.socket import KubeletSocket
async def never(self):
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
KubeletSocket.follow = never
"""


def test_it_ends_soon_after_sigterm_even_if_grpc_does_not(short_dir: Path) -> None:
    with manager(short_dir, changed(WITHOUT_END)) as it:
        it.told("READY=1")
        it.process.send_signal(signal.SIGTERM)
        _, log = it.process.communicate(timeout=PATIENCE_S)
        assert it.process.returncode == 1
        last = events_of(log)[-1]
        assert last["msg"] == "the daemon does not end; ending the process"
        assert "kubelet.sock" in last["left"]


#: The program as it is, but at its end the disk takes a minute, on the clock of the event loop.
SLOW_AT_THE_END = """
import asyncio, time
from genericdp.service.presence import Presence
close = Presence.close
def slowly(self):
    asyncio.get_running_loop().time = lambda: time.monotonic() + 60
    close(self)
Presence.close = slowly
"""


def test_a_slow_disk_at_the_end_is_no_failure(short_dir: Path) -> None:
    with manager(short_dir, changed(SLOW_AT_THE_END)) as it:
        it.told("READY=1")
        it.process.send_signal(signal.SIGTERM)
        _, log = it.process.communicate(timeout=PATIENCE_S)
        assert it.process.returncode == 0
        assert "the daemon does not end" not in log


def test_it_may_open_more_descriptors_than_a_shell_gives(short_dir: Path) -> None:
    with manager(short_dir, ["prlimit", "--nofile=256:4096", *GENERICDP]) as it:
        it.told("READY=1")
        assert resource.prlimit(it.process.pid, resource.RLIMIT_NOFILE) == (4096, 4096)


#: The unchanged program where the processes of root already watch by epoll as much as they may.
WITHOUT_EPOLL = """
import sys
from tests.scenes.shortage import watch_nothing_by_epoll
watch_nothing_by_epoll()
from genericdp.__main__ import main
sys.exit(main())
"""


def test_it_serves_although_a_container_of_root_watches_all_that_root_may_watch_by_epoll(
    short_dir: Path,
) -> None:
    node = BlockingKubelet(Kubelet(short_dir))
    with node, manager(short_dir, [sys.executable, "-c", WITHOUT_EPOLL]) as it:
        node.wait_until(lambda: node.kubelet.allocatable == {"genericdp.io/null": 1})
        it.write(f"{RULES}replicas = 2\n")
        node.wait_until(lambda: node.kubelet.allocatable == {"genericdp.io/null": 2})
        node.call(node.kubelet.restart)
        node.wait_until(lambda: node.kubelet.allocatable == {"genericdp.io/null": 2})
        pod = node.call(node.kubelet.admit, Pod("p", [Container("c", limits={"genericdp.io/null": 1})]))
        assert pod.phase is Phase.RUNNING
        report = client.status(Settings(run_dir=f"{short_dir}/run"))
        assert not any(os.strerror(errno.ENOSPC) in each for each in report["complaints"])
        it.process.send_signal(signal.SIGTERM)
        _, log = it.process.communicate(timeout=PATIENCE_S)
        assert it.process.returncode == 0, log
        (line,) = (line for line in events_of(log) if os.strerror(errno.ENOSPC) in line.get("why", ""))
        del line["ts"]
        assert line == {
            "level": "warning",
            "msg": "cannot watch mounts, looking every few seconds instead",
            "why": f"cannot watch '/proc/self/mountinfo': {os.strerror(errno.ENOSPC)}",
            "hint": "raise the sysctl fs.epoll.max_user_watches",
        }


def test_without_a_kubelet_it_says_where_it_waits_for_one(short_dir: Path) -> None:
    with manager(short_dir) as it:
        it.told("READY=1")
        it.process.send_signal(signal.SIGTERM)
        _, log = it.process.communicate(timeout=PATIENCE_S)
        (line,) = (line for line in events_of(log) if line["msg"] == "no kubelet yet, waiting for it")
        assert line["socket"] == f"{short_dir}/device-plugins/kubelet.sock"


def test_in_a_pod_it_says_which_directories_of_the_host_are_not_mounted(short_dir: Path) -> None:
    with manager(
        short_dir, ["env", "KUBERNETES_SERVICE_HOST=10.96.0.1", "NODE_NAME=edge-7", *GENERICDP]
    ) as it:
        it.told("READY=1")
        it.process.send_signal(signal.SIGTERM)
        _, log = it.process.communicate(timeout=PATIENCE_S)
        lines = events_of(log)
        assert {line["node"] for line in lines} == {"edge-7"}
        lacking = [line["path"] for line in lines if line["msg"] == "a directory of the host is not mounted"]
        assert f"{short_dir}/device-plugins" in lacking
        assert "/dev" not in lacking


def events_of(log: str) -> list[dict[str, str]]:
    """What the daemon logged to a pipe."""
    return [json.loads(line) for line in log.splitlines()]


def test_sighup_reads_the_rules_again(short_dir: Path) -> None:
    with manager(short_dir) as it:
        it.told("READY=1")
        it.process.send_signal(signal.SIGHUP)
        assert "MONOTONIC_USEC=" in it.told("RELOADING=1")
        assert it.told("READY=1").startswith("READY=1\nSTATUS=1 resource,")


def test_a_bad_edit_is_in_the_status_and_changes_nothing(short_dir: Path) -> None:
    with manager(short_dir) as it:
        it.told("READY=1")
        it.write("[[resource]\n")
        assert it.told("problem") == (
            "READY=1\nSTATUS=1 resource, 1 of 1 device healthy; no kubelet; 1 problem in rule files"
        )


def test_a_second_start_finds_its_memory(short_dir: Path) -> None:
    with manager(short_dir) as it:
        it.told("READY=1")
        it.process.send_signal(signal.SIGINT)
        it.process.communicate(timeout=PATIENCE_S)
    assert '"null_null"' in (short_dir / "state" / "memory.json").read_text()
