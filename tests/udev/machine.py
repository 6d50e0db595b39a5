"""Runs test files in a machine of their own: private /run, /sys, network and processes.

A test marked `testbed` or `hotplug` is not run by the pytest that collected it. All such tests of a
file go together to a second pytest, started in fresh namespaces, and their reports come back: each
shows up as if it had run here, with its traceback. So they may start a systemd-udevd, write a udev
database and make network devices, and nothing of it is seen outside or stays behind, whatever this
machine has of its own.

* `hotplug`: the real kernel. Uevents reach every network namespace, udev's stay in their own.
* `testbed`: also under umockdev's preload library, which shows the tree of `tests.udev.testbed`
  as /sys and /dev. It is preloaded there and nowhere else.

A folder that has such tests says in its conftest.py:

    from tests.udev.machine import pytest_configure, pytest_runtest_logreport, pytest_runtest_protocol

To have the terminal (`--pdb`, `-s`): `python -m tests.udev.machine testbed -m pytest --pdb FILE`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KINDS = {
    "testbed": "needs devices that do not exist (runs under umockdev, in a machine of its own)",
    "hotplug": "needs real hot-plug of the kernel (runs as root, in a machine of its own)",
}

#: Set inside: the kind of the machine.
INSIDE = "GENERICDP_TEST_MACHINE"
_REPORTS = "GENERICDP_TEST_REPORTS"

#: How long the tests of a file may take: less than `faulthandler_timeout`, which ends the whole process.
_TIMEOUT_S = 360

# The dgram queue is what umockdev's uevents go through; 10 messages are less than one USB hub has.
_SET_UP = """
mount -t tmpfs -o mode=755 tmpfs /run
mount -t sysfs sysfs /sys
ip link set lo up
echo 4096 > /proc/sys/net/unix/max_dgram_qlen
"$@"
"""


def command(kind: str, *arguments: str) -> list[str]:
    """The command line that runs Python with these arguments in a machine of this kind."""
    preload = ["umockdev-wrapper"] if kind == "testbed" else []
    namespaces = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    shell = ["sh", "-euc", _SET_UP, "sh"]
    return ["unshare", *namespaces, "--", *shell, *preload, sys.executable, *arguments]


def environment(kind: str) -> dict[str, str]:
    """The environment that goes with it. Temporary files lie in a tmpfs, where inodes are not reused."""
    return {**os.environ, INSIDE: kind, "TMPDIR": "/run"}


# The hooks


def pytest_configure(config: pytest.Config) -> None:
    for kind, meaning in KINDS.items():
        config.addinivalue_line("markers", f"{kind}: {meaning}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    kind = _kind(item)
    if not kind or INSIDE in os.environ:
        return None
    stash = item.session.stash.setdefault(_STASH, {})
    key = (kind, item.path)
    if key not in stash:
        batch = [each for each in item.session.items if (_kind(each), each.path) == key]
        stash[key] = _run(kind, item.config, batch)
    # What the test before left set up for its neighbours (a module, say) is over: this one sets up none.
    item.session._setupstate.teardown_exact(None)
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in stash[key][item.nodeid]:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    # Inside: pass the report out.
    path = os.environ.get(_REPORTS)
    if path is not None and INSIDE in os.environ:
        with open(path, "a", encoding="utf-8") as file:
            print(json.dumps(report._to_json()), file=file)


_STASH = pytest.StashKey[dict[tuple[str, Path], dict[str, list[pytest.TestReport]]]]()


def _kind(item: pytest.Item) -> str:
    return next((kind for kind in KINDS if item.get_closest_marker(kind)), "")


def _run(kind: str, config: pytest.Config, items: list[pytest.Item]) -> dict[str, list[pytest.TestReport]]:
    tmp_path_factory: pytest.TempPathFactory = config._tmp_path_factory  # type: ignore[attr-defined]  # its only way outside fixtures
    reports_file = tmp_path_factory.mktemp("machine") / "reports"
    reports_file.touch()
    coverage = ["-m", "coverage", "run", "--parallel-mode"] if "COVERAGE_RUN" in os.environ else []
    arguments = [*coverage, "-m", "pytest", "-q", "--durations=0", *(item.nodeid for item in items)]
    try:
        result = subprocess.run(
            command(kind, *arguments),
            env={**environment(kind), _REPORTS: str(reports_file)},
            cwd=config.rootpath,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
        output = result.stdout + result.stderr
    except subprocess.TimeoutExpired as error:
        output = f"no end after {_TIMEOUT_S} s\n{error.stdout!r}\n{error.stderr!r}"
    reports: dict[str, list[pytest.TestReport]] = {item.nodeid: [] for item in items}
    for line in reports_file.read_text(encoding="utf-8").splitlines():
        report = pytest.TestReport._from_json(json.loads(line))
        reports[report.nodeid].append(report)
    for item in items:
        # Every test ends with its teardown; one that does not took the machine down with it.
        if not any(report.when == "teardown" for report in reports[item.nodeid]):
            reports[item.nodeid].append(_lost(item, kind, output))
    return reports


def _lost(item: pytest.Item, kind: str, output: str) -> pytest.TestReport:
    what = f"the machine of its own ('{kind}') did not run this test to its end (is this root?)"
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords={},
        outcome="failed",
        longrepr=f"{what}:\n{output}",
        when="call",
    )


if __name__ == "__main__":
    os.execvpe("unshare", command(*sys.argv[1:]), environment(sys.argv[1]))  # noqa: S606  (a shell would add nothing)
