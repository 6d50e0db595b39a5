"""The unit as systemd judges it."""

import json
import re
from pathlib import Path

from tests.package.case import Case
from tests.package.node import DROP_INS, FUSE, SCREEN, STATE, UNIT, Node

#: The highest exposure that `systemd-analyze security` may report.
MOST_EXPOSED = 1.2
MOST_EXPOSED_WITH_A_DROP_IN = 1.6

SHIPPED_DROP_INS = Path("/usr/share/doc/genericdp/examples/dropins")


async def the_service_is_enabled_and_nothing_failed_at_boot(node: Node) -> None:
    assert (await node.run("systemctl", "is-enabled", UNIT)).strip() == "enabled"
    assert (await node.run("systemctl", "is-system-running")).strip() == "running"


async def systemd_finds_no_mistake_in_the_unit_and_its_manual_page(node: Node) -> None:
    assert await node.run("systemd-analyze", "verify", "--man=yes", UNIT) == ""


async def the_exposure_is_as_low_as_promised(node: Node) -> None:
    exposure = await _exposure(node)
    assert exposure <= MOST_EXPOSED, f"systemd-analyze security says {exposure}"


async def with_each_drop_in_it_works_with_no_more_exposure_than_promised(node: Node) -> None:
    drop_ins = sorted(SHIPPED_DROP_INS.glob("*.conf"))
    assert [path.name for path in drop_ins] == [
        "groups.conf",
        "metrics.conf",
        "runtime.conf",
        "usb-reset.conf",
    ]
    for drop_in in drop_ins:
        before = node.registrations(FUSE)
        await node.write_drop_in(drop_in.name, drop_in.read_text())
        await node.until_registered_again(FUSE, before)
        exposure = await _exposure(node)
        assert exposure <= MOST_EXPOSED_WITH_A_DROP_IN, f"{drop_in.name}: {exposure}"
        (DROP_INS / drop_in.name).unlink()


async def after_a_boot_the_start_lasts_until_the_device_is_back_whatever_the_limit(node: Node) -> None:
    await node.write_drop_in("short-start.conf", "[Service]\nTimeoutStartSec=3s\n")
    with node.console.plugged():
        await node.until_offered(SCREEN, 1)
        await node.run("systemctl", "stop", UNIT)
    presence = STATE / "presence.json"
    saved = json.loads(presence.read_text())
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
    id_ = f"screen_vcs{node.console.number}"
    assert (saved["boot"], id_ in saved["healthy"]) == (boot_id, True)
    presence.write_text(json.dumps({**saved, "boot": "the one before"}))
    await node.run("systemctl", "start", "--no-block", UNIT)
    await node.logged("waiting for devices that were there before the reboot")
    await node.run("sleep", "6")
    assert await node.show("ActiveState") == "activating"
    assert (await node.show("StatusText")).startswith(f"waiting for {id_}, there before the reboot; ")
    with node.console.plugged():
        # Returns once the service is READY.
        await node.run("systemctl", "start", UNIT)
        await node.logged("all devices that were there before the reboot are back")
        await node.until_offered(SCREEN, 1)


async def the_daemon_has_no_capability_and_cannot_get_one(node: Node) -> None:
    status = Path(f"/proc/{await node.pid()}/status").read_text()
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert re.search(rf"^{name}:\t0+$", status, re.MULTILINE), status
    assert "NoNewPrivs:\t1\n" in status


async def it_is_installed_compiled_so_that_a_start_compiles_nothing(node: Node) -> None:
    compiled = set(Path("/usr/share/genericdp/genericdp").rglob("*.pyc"))
    sources = set(Path("/usr/share/genericdp/genericdp").rglob("*.py"))
    assert len(compiled) == len(sources) > 50, f"{len(compiled)} of {len(sources)} files are compiled"


async def the_tests_that_debian_would_run_pass(node: Node) -> None:
    control = Path("/src/packaging/debian/tests/control").read_text()
    commands = re.findall(r"^Test-Command: (.*)$", control, re.MULTILINE)
    assert len(commands) == control.count("Restrictions:") > 0
    for command in commands:
        await node.run("sh", "-c", command)


async def _exposure(node: Node) -> float:
    output = await node.run("systemd-analyze", "security", "--no-pager", UNIT)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", output)
    assert found, output
    return float(found[1])


CASES: tuple[Case, ...] = (
    the_service_is_enabled_and_nothing_failed_at_boot,
    systemd_finds_no_mistake_in_the_unit_and_its_manual_page,
    the_exposure_is_as_low_as_promised,
    with_each_drop_in_it_works_with_no_more_exposure_than_promised,
    after_a_boot_the_start_lasts_until_the_device_is_back_whatever_the_limit,
    the_daemon_has_no_capability_and_cannot_get_one,
    it_is_installed_compiled_so_that_a_start_compiles_nothing,
    the_tests_that_debian_would_run_pass,
)
