"""The systemd unit and its drop-ins, judged by systemd's own tool without a booted system.

What the unit does on a booted one is tried by `make test-package`.
"""

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from genericdp.cli.main import VERBS
from genericdp.core.rules.settings import Settings
from genericdp.cri.sockets import SOCKETS

SYSTEMD = Path(__file__).resolve().parents[2] / "systemd"
UNIT = SYSTEMD / "genericdp.service"
DROP_INS = sorted((SYSTEMD / "dropins").glob("*.conf"))

#: By the names that their packages and installers give them.
KUBELETS = {
    "kubelet.service",  # kubeadm and most others
    "k3s.service",
    "k3s-agent.service",
    "rke2-server.service",
    "rke2-agent.service",
    "k0scontroller.service",
    "k0sworker.service",
    "snap.microk8s.daemon-kubelite.service",
    "snap.microk8s.daemon-kubelet.service",
    "microshift.service",
}


def values_of(section: str, key: str) -> set[str]:
    """All that the unit says for a key, over all its lines."""
    lines = re.findall(rf"^{key}=(.*)$", section_of(section), re.MULTILINE)
    return {word for line in lines for word in line.split()}


def section_of(name: str) -> str:
    """The lines of one section."""
    sections = re.split(r"^\[(\w+)\]$", UNIT.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(sections[1::2], sections[2::2], strict=True))[name]


def exposure(root: Path, *drop_ins: Path) -> float:
    """What `systemd-analyze security` says about the unit with these drop-ins: 0.0 (safe) to 10.0."""
    units = root / "etc/systemd/system"
    units.mkdir(parents=True)
    shutil.copy(UNIT, units)
    (units / f"{UNIT.name}.d").mkdir()
    for drop_in in drop_ins:
        shutil.copy(drop_in, units / f"{UNIT.name}.d")
    command = ["systemd-analyze", "security", f"--root={root}", "--offline=yes", "--no-pager", UNIT.name]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", answer.stdout)
    assert found, answer.stdout + answer.stderr
    return float(found[1])


def test_the_exposure_is_at_most_1_2(tmp_path: Path) -> None:
    assert exposure(tmp_path) <= 1.2


@pytest.mark.parametrize("drop_in", DROP_INS, ids=lambda path: str(path.stem))
def test_with_a_drop_in_the_exposure_is_at_most_1_6(drop_in: Path, tmp_path: Path) -> None:
    assert exposure(tmp_path, drop_in) <= 1.6


def test_with_all_drop_ins_the_exposure_is_at_most_1_7(tmp_path: Path) -> None:
    assert [path.name for path in DROP_INS] == [
        "groups.conf",
        "metrics.conf",
        "runtime.conf",
        "usb-reset.conf",
    ]
    assert exposure(tmp_path, *DROP_INS) <= 1.7


def test_it_comes_before_every_kubelet() -> None:
    assert values_of("Unit", "Before") == KUBELETS


@pytest.mark.parametrize("key", ["Requires", "Requisite", "BindsTo", "Wants", "PartOf", "Upholds"])
def test_it_binds_itself_to_nothing(key: str) -> None:
    assert values_of("Unit", key) == set()


def test_the_first_start_is_tried_for_ever_and_the_watchdog_is_on() -> None:
    assert values_of("Unit", "StartLimitIntervalSec") == {"0"}
    assert values_of("Service", "Restart") == {"always"}
    assert values_of("Service", "Type") == {"notify"}
    assert values_of("Service", "WatchdogSec") == {"30s"}


def test_it_starts_a_verb_that_there_is() -> None:
    (start,) = re.findall(r"^ExecStart=/usr/bin/genericdp (\w+)$", section_of("Service"), re.MULTILINE)
    assert start in VERBS


def test_its_directories_are_those_of_the_settings() -> None:
    settings = Settings()
    assert {f"/var/lib/{name}" for name in values_of("Service", "StateDirectory")} == {settings.state_dir}
    assert {f"/run/{name}" for name in values_of("Service", "RuntimeDirectory")} == {
        settings.run_dir,
        settings.cdi_dir,
    }
    assert values_of("Service", "RuntimeDirectoryPreserve") == {"yes"}, "others use /run/cdi"


def test_only_the_drop_in_lets_it_use_a_container_runtime() -> None:
    hidden = {path.removeprefix("-") for path in values_of("Service", "InaccessiblePaths")}
    for socket in SOCKETS:
        assert hidden & {socket, *map(str, Path(socket).parents)}, socket
    drop_in = (SYSTEMD / "dropins/runtime.conf").read_text(encoding="utf-8")
    assert drop_in.endswith("[Service]\nInaccessiblePaths=\n")  # the empty value takes all of them back


@pytest.mark.parametrize("drop_in", DROP_INS, ids=lambda path: str(path.stem))
def test_a_drop_in_says_how_it_is_put_in_force(drop_in: Path) -> None:
    text = drop_in.read_text(encoding="utf-8")
    assert f"#   cp {drop_in.name} /etc/systemd/system/genericdp.service.d/\n" in text
    assert "#   systemctl daemon-reload && systemctl restart genericdp\n" in text
    parser = configparser.ConfigParser(strict=False)
    parser.read_string(text)
    assert parser.sections() == ["Service"]


def test_a_flood_on_a_plugins_socket_ends_the_daemon_and_not_the_pods() -> None:
    """The kernel spares the daemon when the node has no memory left, and gRPC takes what it is sent."""
    assert values_of("Service", "OOMScoreAdjust") == {"-900"}
    assert values_of("Service", "MemoryMax") == {"1G"}
    assert values_of("Service", "Restart") == {"always"}
