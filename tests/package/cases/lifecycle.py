"""Upgrade, reboot, remove, reinstall, purge: what happens to devices and to files, ours and others'."""

import os
from pathlib import Path

from tests.package.case import Case
from tests.package.node import FUSE, LINKS, RULES_D, SCREEN, SETTINGS, STATE, UNIT, Node
from tests.package.successor import NEXT, SETTINGS_LINE

FUSE_RULES = '[[resource]]\nname = "fuse"\nmatch = { DEVNAME = "/dev/fuse" }\nreplicas = 100\n'

#: The folders of the packages under test and of the Debian package's next version.
DEBS = Path("/debs")
NEXT_DEB = Path("/debs-next")

EDITED = '\n# By the administrator.\nlog_level = "debug"\n'
FOREIGN = Path("/etc/genericdp/notes.txt")
FOREIGN_RULES = RULES_D / "README.ours"

#: A kubelet that only records the state of genericdp when it starts.
_KUBELET_UNIT = """\
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'systemctl show --value --property=SubState genericdp.service >/run/%n.saw'
[Install]
WantedBy=multi-user.target
"""

#: Folders in which package managers keep records, and those of this test.
_RECORDS = (
    "/var/log/",
    "/var/cache/",
    "/var/lib/apt/",
    "/var/lib/dpkg/",
    "/var/lib/rpm/",
    "/debs/",
    "/debs-next/",
    "/root/",
    "/src/",
    "/sys/",
)


async def an_upgrade_keeps_devices_edited_files_and_the_pods_that_run(node: Node) -> None:
    with SETTINGS.open("a") as settings:
        settings.write(EDITED)
    edited = SETTINGS.read_text()
    with node.console.plugged():
        await node.until_offered(SCREEN, 1)
        pod = await node.admit(SCREEN)
        held, links, before = node.kubelet.allocated(SCREEN), node.links(), node.registrations(SCREEN)
        await _apt("install", str(_deb(NEXT_DEB)), node=node)
        assert NEXT in await node.run("genericdp", "--version")
        await node.until_registered_again(SCREEN, before)
        await node.until_offered(SCREEN, 1)
        assert (node.kubelet.allocated(SCREEN), node.links()) == (held, links)
        assert node.kubelet.resource_health(pod, "main") == {SCREEN: dict.fromkeys(held, "Healthy")}
        restarted = await node.kubelet.restart_container(pod, "main")
        assert restarted.created is not None
        assert restarted.created.nodes[0].source == node.console.node
    await node.until_offered(SCREEN, 0)
    assert SETTINGS.read_text() == edited
    offered = SETTINGS.with_name("genericdp.toml.dpkg-dist").read_text()
    assert offered.startswith(SETTINGS_LINE)
    assert await node.show("NRestarts") == "0"
    installed = Path(f"/proc/{await node.pid()}/cmdline").read_bytes()
    assert b"/usr/bin/genericdp\0run\0" in installed


async def the_machine_is_made_ready_for_a_reboot(node: Node) -> None:
    for name in await _kubelets(node):
        Path(f"/etc/systemd/system/{name}").write_text(_KUBELET_UNIT)
        await node.run("systemctl", "--quiet", "enable", name)
    with node.console.plugged():
        await node.until_offered(SCREEN, 1)
    await node.until_offered(SCREEN, 0)


async def after_a_reboot_it_runs_before_every_kubelet_and_knows_its_devices(node: Node) -> None:
    kubelets = await _kubelets(node)
    assert "kubelet.service" in kubelets
    saw = {name: Path(f"/run/{name}.saw").read_text().strip() for name in kubelets}
    assert saw == dict.fromkeys(kubelets, "running")
    # It is absent now, but a pod may still hold it.
    assert set(node.kubelet.devices(SCREEN)) == {f"screen_vcs{node.console.number}"}
    assert node.kubelet.allocatable[SCREEN] == 0
    for name in kubelets:
        await node.run("systemctl", "--quiet", "disable", "--now", name)
        Path(f"/etc/systemd/system/{name}").unlink()
    await node.run("systemctl", "daemon-reload")


async def remove_takes_the_program_and_leaves_configuration_and_links(node: Node) -> None:
    foreign_socket = node.kubelet.directory / "somebody-else.sock"
    foreign_socket.touch()
    FOREIGN.write_text("not genericdp's\n")
    rules = {path.name: path.read_text() for path in RULES_D.iterdir()}
    pod = await node.admit(FUSE)
    links = node.links()
    await _apt("remove", "genericdp", node=node)
    await node.wait_until(lambda: node.kubelet.connections(FUSE) == 0)
    assert {path.name for path in node.kubelet.directory.glob("*.sock")} == {
        "kubelet.sock",
        "somebody-else.sock",
    }
    assert {path.name: path.read_text() for path in RULES_D.iterdir()} == rules
    assert SETTINGS.read_text().endswith(EDITED)
    assert STATE.is_dir()
    for gone in ("/usr/bin/genericdp", "/usr/share/genericdp"):
        assert not os.path.exists(gone), f"{gone} is left"
    # A container that has such a device may still be restarted.
    assert node.links() == links
    restarted = await node.kubelet.restart_container(pod, "main")
    assert restarted.created is not None
    assert restarted.created.nodes[0].source == "/dev/fuse"


async def a_reinstalled_package_continues_where_it_was(node: Node) -> None:
    before = node.registrations(FUSE)
    await _apt("install", str(_deb(DEBS)), node=node)
    await node.until_registered_again(FUSE, before)
    await node.until_offered(FUSE, 100)
    assert SETTINGS.read_text().endswith(EDITED)
    assert set(node.kubelet.devices(SCREEN)) == {f"screen_vcs{node.console.number}"}


async def purge_leaves_what_another_genericdp_uses(node: Node) -> None:
    await node.run("systemctl", "stop", UNIT)
    links, rules = node.links(), {path.name: path.read_text() for path in RULES_D.iterdir()}
    # The lock of a pod of the DaemonSet.
    await node.run("flock", "--nonblock", str(LINKS / ".lock"), "apt", "purge", "--quiet", "genericdp")
    assert not os.path.exists("/usr/bin/genericdp")
    assert node.links() == links
    assert (STATE / "memory.json").exists()
    assert {path.name: path.read_text() for path in RULES_D.iterdir()} == rules
    before = node.registrations(FUSE)
    await _apt("install", str(_deb(DEBS)), node=node)
    await node.until_registered_again(FUSE, before)


async def purge_removes_all_own_files_and_no_others(node: Node) -> None:
    (LINKS / ".memory.new").touch()  # a daemon was killed while it wrote the file
    await _apt("purge", "genericdp", node=node)
    assert {path.name for path in node.kubelet.directory.glob("*.sock")} == {
        "kubelet.sock",
        "somebody-else.sock",
    }
    assert FOREIGN.read_text() == "not genericdp's\n"
    FOREIGN.unlink()
    FOREIGN.parent.rmdir()
    left = await _left(node)
    assert left == [], f"left behind: {left}"
    status = await node.run("dpkg-query", "--show", "genericdp", status=1)
    assert "no packages found" in status
    assert await node.run("systemctl", "list-unit-files", "--no-legend", UNIT, status=1) == ""


async def the_rpm_works_keeps_edited_settings_and_leaves_nothing_behind(node: Node) -> None:
    (rpm,) = DEBS.glob("genericdp-*.noarch.rpm")
    # Its requirements are installed, under the names of Debian packages.
    await node.run("rpm", "--install", "--nodeps", str(rpm))
    node.write_rules("50-fuse.toml", FUSE_RULES)
    before = node.registrations(FUSE)
    await node.run("systemctl", "enable", "--quiet", "--now", UNIT)
    await node.until_registered_again(FUSE, before)
    assert list(Path("/usr/share/genericdp").rglob("__pycache__")), "it was not compiled"
    with SETTINGS.open("a") as settings:
        settings.write(EDITED)
    before = node.registrations(FUSE)
    await node.run("rpm", "--upgrade", "--nodeps", "--replacepkgs", str(rpm))
    await node.until_registered_again(FUSE, before)
    assert SETTINGS.read_text().endswith(EDITED)
    await node.run("rpm", "--erase", "genericdp")
    await node.wait_until(lambda: node.kubelet.connections(FUSE) == 0)
    assert SETTINGS.with_name("genericdp.toml.rpmsave").read_text().endswith(EDITED)
    # Files that an administrator wrote stay, as usual with RPM; so do links and memory.
    kept = (str(SETTINGS.parent), str(LINKS), str(STATE))
    left = [line for line in await _left(node) if not line.startswith(kept)]
    assert left == [], f"left behind: {left}"


async def an_installation_from_the_sources_works(node: Node) -> None:
    node.write_rules("50-fuse.toml", FUSE_RULES)
    await node.until_offered(FUSE, 100)
    assert b"/opt/genericdp/bin/genericdp\0run\0" in Path(f"/proc/{await node.pid()}/cmdline").read_bytes()
    assert "NoNewPrivs:\t1\n" in Path(f"/proc/{await node.pid()}/status").read_text()
    await node.run("systemctl", "disable", "--quiet", "--now", UNIT)


async def _left(node: Node) -> list[str]:
    """All files with genericdp's name, except those of package managers and of this test."""
    found = await node.run("find", "/", "-path", "/proc", "-prune", "-o", "-name", "*genericdp*", "-print")
    return [line for line in found.splitlines() if not line.startswith(_RECORDS)]


async def _kubelets(node: Node) -> list[str]:
    """The kubelet units that the unit is ordered before."""
    before = await node.show("Before")
    return [name for name in before.split() if name.endswith(".service")]


async def _apt(verb: str, package: str, *, node: Node) -> None:
    # A downgrade returns to the version under test.
    await node.run("apt", verb, "--quiet", "--allow-downgrades", package)


def _deb(directory: Path) -> Path:
    (deb,) = directory.glob("genericdp_*.deb")
    return deb


#: Before the reboot, and after it.
UPGRADE: tuple[Case, ...] = (
    an_upgrade_keeps_devices_edited_files_and_the_pods_that_run,
    the_machine_is_made_ready_for_a_reboot,
)
REBOOTED: tuple[Case, ...] = (after_a_reboot_it_runs_before_every_kubelet_and_knows_its_devices,)
#: In this order; the service is not running between them.
END: tuple[Case, ...] = (
    remove_takes_the_program_and_leaves_configuration_and_links,
    a_reinstalled_package_continues_where_it_was,
    purge_leaves_what_another_genericdp_uses,
    purge_removes_all_own_files_and_no_others,
    the_rpm_works_keeps_edited_settings_and_leaves_nothing_behind,
)
#: After the install page's steps for an installation from the sources.
SOURCES: tuple[Case, ...] = (an_installation_from_the_sources_works,)
