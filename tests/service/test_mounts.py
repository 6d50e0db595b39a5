"""What a pod says at its start about directories of the host that it lacks."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.core.reading.parse import parse_rules
from genericdp.core.rules.settings import AnswerBy, Settings
from genericdp.service.mounts import Mount, is_in_a_pod, missing, warn

#: What a container runtime mounts in every container.
OWN = [
    Mount("/", "overlay"),
    Mount("/proc", "proc"),
    Mount("/dev", "tmpfs"),
    Mount("/dev/shm", "tmpfs"),
    Mount("/sys", "sysfs"),
]
#: What the DaemonSet mounts.
OF_THE_HOST = [
    Mount("/dev", "devtmpfs"),
    Mount("/run/udev", "tmpfs"),
    Mount("/run/cdi", "tmpfs"),
    Mount("/var/lib/kubelet/device-plugins", "ext4"),
    Mount("/var/lib/kubelet/pod-resources", "ext4"),
    Mount("/var/lib/genericdp", "ext4"),
]
BY_CDI, _ = parse_rules(
    "10-a.toml", '[[resource]]\nname = "a"\nmatch = { SUBSYSTEM = "tty" }\nanswer = "cdi"\n', "example.com"
)


def paths(settings: Settings, mounts: Sequence[Mount]) -> list[str]:
    return [each.path for each in missing(settings, (), mounts)]


def test_a_pod_with_everything_lacks_nothing() -> None:
    assert paths(Settings(answer=AnswerBy.CDI), OWN + OF_THE_HOST) == []


def test_a_pod_with_nothing_lacks_what_the_daemon_uses() -> None:
    lacking = paths(Settings(), OWN)
    assert lacking == [
        "/var/lib/kubelet/device-plugins",
        "/dev",
        "/run/udev",
        "/var/lib/kubelet/pod-resources",
        "/var/lib/genericdp",
    ]


@pytest.mark.parametrize("mount", [each for each in OF_THE_HOST if each.point != "/run/cdi"])
def test_each_directory_that_is_not_mounted_is_found_alone(mount: Mount) -> None:
    assert paths(Settings(), [*OWN, *(each for each in OF_THE_HOST if each != mount)]) == [mount.point]


def test_a_directory_above_may_be_mounted_as_a_whole() -> None:
    above = [Mount("/var/lib", "ext4"), Mount("/dev", "devtmpfs"), Mount("/run/udev", "tmpfs")]
    assert paths(Settings(), OWN + above) == []


def test_the_run_of_a_container_is_not_that_of_the_host() -> None:
    mounts = [*OWN, Mount("/run", "tmpfs"), *(each for each in OF_THE_HOST if each.point != "/run/udev")]
    assert paths(Settings(), mounts) == ["/run/udev"]


def test_a_link_directory_outside_dev_has_a_mount_of_its_own() -> None:
    elsewhere = replace(Settings(), link_dir="/srv/links")
    assert paths(elsewhere, OWN + OF_THE_HOST) == ["/srv/links"]
    assert paths(elsewhere, [*OWN, *OF_THE_HOST, Mount("/srv/links", "ext4")]) == []


def test_the_directory_for_cdi_counts_only_if_a_resource_is_answered_by_cdi() -> None:
    mounts = [*OWN, *(each for each in OF_THE_HOST if each.point != "/run/cdi")]
    assert paths(Settings(), mounts) == []
    assert [each.path for each in missing(Settings(), BY_CDI, mounts)] == ["/run/cdi"]
    assert paths(Settings(answer=AnswerBy.AUTO), mounts) == ["/run/cdi"]


def test_the_warning_says_what_the_directory_is_for_and_what_works_without_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text(
        "1 0 0:30 / / ro,relatime master:1 - overlay overlay rw\n"
        "2 1 0:6 / /dev rw - devtmpfs devtmpfs rw\n"
        "3 1 0:7 / /run/udev ro - tmpfs tmpfs rw\n"
        "4 1 8:1 /var/lib/kubelet /var/lib/kubelet rw - ext4 /dev/sda1 rw\n"
        "5 1 8:1 /srv/a\\040b /srv/a\\040b rw - ext4 /dev/sda1 rw\n"
    )
    with caplog.at_level(logging.WARNING):
        warn(replace(Settings(), link_dir="/srv/a b/links"), (), str(mountinfo))
    (record,) = caplog.records
    assert record.getMessage() == "a directory of the host is not mounted"
    assert vars(record)["fields"] == {
        "path": "/var/lib/genericdp",
        "purpose": "remembering devices and who holds them",
        "without": "they are forgotten whenever this container is replaced",
        "hint": "add a hostPath volume and its volumeMount to the pod of genericdp",
    }


def test_a_mount_point_may_have_any_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever may mount with FUSE chooses it. The kernel escapes spaces, tabs, line feeds and backslashes."""
    mountinfo = tmp_path / "mountinfo"
    lines = [f"1 0 8:1 {each.point} {each.point} rw - {each.type} none rw\n" for each in (*OWN, *OF_THE_HOST)]
    odd = b"2 1 0:40 / /dev/shm/a\rb\x0cc\xc2\x85d\xff\\012\\040-\\040e rw - fuse none rw\n"
    mountinfo.write_bytes("".join(lines).encode() + odd)
    warn(Settings(), (), str(mountinfo))
    assert caplog.records == []


def test_without_proc_it_says_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    warn(Settings(), (), str(tmp_path / "missing"))
    assert caplog.records == []


def test_only_a_pod_has_the_address_of_the_api_server_in_its_environment() -> None:
    assert is_in_a_pod({"KUBERNETES_SERVICE_HOST": "10.96.0.1"})
    assert not is_in_a_pod({"NODE_NAME": "edge-7"})
