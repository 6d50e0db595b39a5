"""`make test-image`: the container image, unpacked and started as the DaemonSet starts it.

Prints a table with times. Needs root, runc, umoci and skopeo (the Makefile installs them), and the image that
`make image` built. python -m tests.image [WORD …]: only cases with one of the words in their names.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.image import cgroup
from tests.image.case import Outcome, name_of, tried
from tests.image.cases import contents, handover, serving
from tests.image.unpacked import archive, unpack
from tests.udev.hotplug import udevd

_CASES = (*contents.CASES, *serving.CASES, *handover.CASES)

_SET_UP = """
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/cgroup
mount --rbind /sys/fs/cgroup /run/cgroup
mount -t sysfs sysfs /sys
mount --rbind /run/cgroup /sys/fs/cgroup
mkdir /run/image
mount -t tmpfs tmpfs /run/image
ip link set lo up
exec "$@"
"""


def main(words: Sequence[str]) -> int:
    """Run the cases. Returns 0 if all pass, else 1."""
    if cgroup.RUN not in os.environ:
        _enter(words)
    started = time.monotonic()
    wanted = [case for case in _CASES if not words or any(word in name_of(case) for word in words)]
    image = unpack(archive(), _native(), Path("/run/image/own"))
    # A container runtime could still make mount points; here it cannot, so the image has to have them.
    subprocess.run(["mount", "-o", "remount,ro", "/run/image"], check=True)
    try:
        with udevd():
            _coldplug()
            outcomes = [_shown(tried(case, image)) for case in wanted]
    finally:
        cgroup.remove()
    failed = sum(bool(each.problem) for each in outcomes)
    print(f"{len(outcomes)} cases, {failed} failed, in {time.monotonic() - started:.0f} s")
    return 1 if failed or not outcomes else 0


def _enter(words: Sequence[str]) -> None:
    namespaces = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    command = ["unshare", *namespaces, "--", "sh", "-euc", _SET_UP, "sh", sys.executable, "-m", "tests.image"]
    os.execvpe("unshare", [*command, *words], {**os.environ, cgroup.RUN: str(os.getpid())})  # noqa: S606


def _coldplug() -> None:
    """Leave what udevd leaves after a boot: it knows every device. An event would reach the whole machine."""
    database = Path("/run/udev/data")
    database.mkdir(exist_ok=True)
    for kind, letter in (("char", "c"), ("block", "b")):
        for number in os.listdir(f"/sys/dev/{kind}"):
            if not (database / f"{letter}{number}").exists():
                (database / f"{letter}{number}").write_text("I:1\n", encoding="ascii")


def _native() -> str:
    return subprocess.run(
        ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
    ).stdout.strip()


def _shown(outcome: Outcome) -> Outcome:
    verdict = "FAILED" if outcome.problem else "ok"
    print(f"{verdict:<7}{outcome.case:<92}{outcome.took_s:6.1f} s  {outcome.measured}".rstrip(), flush=True)
    for line in outcome.problem.splitlines():
        print(f"    {line}", flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
