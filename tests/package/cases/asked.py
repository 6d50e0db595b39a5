"""Asking the service for its status: as an administrator, as another user, as Prometheus."""

import asyncio
import json
import stat
import urllib.request
from pathlib import Path

from tests.package.case import Case
from tests.package.node import FUSE, SETTINGS, UNIT, Node

RUN = Path("/run/genericdp")
CONTROL = RUN / "control.sock"
NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
SHIPPED_DROP_INS = Path("/usr/share/doc/genericdp/examples/dropins")
PORT = "127.0.0.1:9101"


async def status_reports_holders_and_that_all_is_well(node: Node) -> None:
    await node.admit(FUSE)
    report = json.loads(await node.run("genericdp", "status", "--json"))
    assert report["well"], report["complaints"]
    (fuse,) = (each for each in report["resources"] if each["name"] == FUSE)
    (device,) = fuse["devices"]
    assert [(each["namespace"], each["pod"]) for each in device["heldBy"]] == [("default", "app")]
    files = {file["path"]: file["digest"] for file in report["rules"]["files"]}
    path = "/etc/genericdp/rules.d/50-fuse.toml"
    assert (await node.run("sha256sum", path)).startswith(files[path])


async def a_user_other_than_root_may_not_ask_and_gets_an_error(node: Node) -> None:
    assert stat.S_IMODE(CONTROL.stat().st_mode) == 0o660
    assert await node.run(*NOBODY, "genericdp", "status", status=1) == (
        f"genericdp: error: no permission to ask the daemon on '{CONTROL}'\n"
        "  hint: ask as root: sudo genericdp status\n"
    )


async def members_of_the_units_group_may_ask(node: Node) -> None:
    before = node.registrations(FUSE)
    await node.write_drop_in("group.conf", "[Service]\nGroup=adm\n")
    await node.until_registered_again(FUSE, before)
    member = ("setpriv", "--reuid=nobody", "--regid=adm", "--clear-groups")
    await node.run(*member, "genericdp", "status")
    await node.run(*NOBODY, "genericdp", "status", status=1)


async def without_the_service_status_says_that_none_is_running(node: Node) -> None:
    await node.run("systemctl", "stop", UNIT)
    assert await node.run("genericdp", "status", status=1) == (
        f"genericdp: error: genericdp is not running on this node: '{CONTROL}' does not exist\n"
        "  hint: 'systemctl status genericdp' says why; 'genericdp list' shows what it would offer\n"
    )
    assert RUN.is_dir()


async def rule_files_in_run_outlive_a_restart_of_the_service(node: Node) -> None:
    rules = RUN / "rules.d"
    rules.mkdir(mode=0o755)
    try:
        (rules / "20-here.toml").write_text(
            '[[resource]]\nname = "here"\nmatch = { DEVNAME = "/dev/zero" }\nallow_dangerous = true\n'
        )
        await node.until_offered("genericdp.io/here", 1)
        before = node.registrations("genericdp.io/here")
        await node.run("systemctl", "restart", UNIT)
        await node.until_registered_again("genericdp.io/here", before)
    finally:
        await node.run("rm", "-r", str(rules))


async def metrics_over_a_port_need_the_drop_in_that_permits_them(node: Node) -> None:
    settings = SETTINGS.read_text()
    SETTINGS.write_text(f'{settings}metrics = "{PORT}"\n')
    try:
        before = node.registrations(FUSE)
        await node.run("systemctl", "restart", UNIT)
        line = await node.logged(f"cannot listen on '{PORT}'")
        assert "the drop-in metrics.conf permits it" in line
        await node.until_registered_again(FUSE, before)
        before = node.registrations(FUSE)
        drop_in = SHIPPED_DROP_INS / "metrics.conf"
        await node.write_drop_in(drop_in.name, drop_in.read_text())
        await node.until_registered_again(FUSE, before)
        for path, wanted in (("metrics", "genericdp_kubelet_up 1"), ("healthz", "ok")):
            # In a thread, because the daemon asks the simulated kubelet in this process meanwhile.
            answer = await asyncio.to_thread(_get, f"http://{PORT}/{path}")
            assert wanted in answer.splitlines()
    finally:
        SETTINGS.write_text(settings)


async def metrics_on_a_unix_socket_need_no_drop_in(node: Node) -> None:
    settings = SETTINGS.read_text()
    SETTINGS.write_text(f'{settings}metrics = "unix:{RUN}/metrics.sock"\n')
    try:
        before = node.registrations(FUSE)
        await node.run("systemctl", "restart", UNIT)
        await node.until_registered_again(FUSE, before)
        assert stat.S_IMODE((RUN / "metrics.sock").stat().st_mode) == 0o660
    finally:
        SETTINGS.write_text(settings)
        await node.run("systemctl", "restart", UNIT)


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310  (http, as the caller says)
        return str(answer.read().decode())


CASES: tuple[Case, ...] = (
    status_reports_holders_and_that_all_is_well,
    a_user_other_than_root_may_not_ask_and_gets_an_error,
    members_of_the_units_group_may_ask,
    without_the_service_status_says_that_none_is_running,
    rule_files_in_run_outlive_a_restart_of_the_service,
    metrics_over_a_port_need_the_drop_in_that_permits_them,
    metrics_on_a_unix_socket_need_no_drop_in,
)
