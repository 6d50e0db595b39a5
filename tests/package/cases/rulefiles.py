"""Rule files that an administrator edits while the service runs."""

from tests.package.case import Case
from tests.package.node import FUSE, RULES_D, SCREEN, UNIT, Node

MORE = (
    '[[resource]]\nname = "more"\nmatch = { DEVNAME = "/dev/null" }\nreplicas = 2\nallow_dangerous = true\n'
)
BAD = '[[resource]]\nname = "more"\nmatch = { DEVNAME = 3 }\n'


async def a_new_rule_file_applies_at_once_and_disturbs_no_other_resource(node: Node) -> None:
    before, pid = node.registrations(FUSE), await node.pid()
    pod = await node.admit(FUSE)
    node.write_rules("70-more.toml", MORE)
    await node.until_offered("genericdp.io/more", 2)
    node.write_rules("70-more.toml", MORE.replace("= 2", "= 5"))
    await node.until_offered("genericdp.io/more", 5)
    (RULES_D / "70-more.toml").unlink()
    await node.wait_until(lambda: node.kubelet.connections("genericdp.io/more") == 0)
    assert (node.registrations(FUSE), await node.pid()) == (before, pid)
    assert node.kubelet.resource_health(pod, "main") == {
        FUSE: dict.fromkeys(node.kubelet.allocated(FUSE), "Healthy")
    }


async def a_bad_rule_file_keeps_its_last_good_version_in_force(node: Node) -> None:
    node.write_rules("70-more.toml", MORE)
    await node.until_offered("genericdp.io/more", 2)
    node.write_rules("70-more.toml", BAD)
    await node.logged(f"{RULES_D}/70-more.toml:3:")
    assert node.kubelet.allocatable["genericdp.io/more"] == 2
    assert await node.show("ActiveState") == "active"
    assert (await node.show("StatusText")).endswith("; 1 problem in rule files")
    assert f"{RULES_D}/70-more.toml:3:" in await node.run("genericdp", "check", status=1)
    before = node.registrations(FUSE)
    # A service that starts with the bad file skips it and serves the others.
    await node.run("systemctl", "restart", UNIT)
    await node.until_registered_again(FUSE, before)
    node.write_rules("70-more.toml", MORE.replace("= 2", "= 3"))
    await node.until_offered("genericdp.io/more", 3)
    assert "problem" not in await node.show("StatusText")


async def a_rule_file_that_others_may_write_is_refused(node: Node) -> None:
    draft = RULES_D / ".draft"
    draft.write_text(MORE.replace("more", "refused"))
    draft.chmod(0o666)
    draft.rename(RULES_D / "70-refused.toml")
    assert "chmod go-w" in await node.logged("70-refused.toml")
    assert "genericdp.io/refused" not in node.kubelet.capacity


async def systemctl_reload_reads_the_rules_and_keeps_process_and_streams(node: Node) -> None:
    pid, before = await node.pid(), node.registrations(SCREEN)
    await node.run("systemctl", "reload", UNIT)
    await node.logged("rules reloaded")
    # The daemon logs it before it tells systemd, which may take a while to note it.
    while await node.show("ActiveState") == "reloading":
        pass
    assert (await node.show("ActiveState"), await node.pid()) == ("active", pid)
    assert (node.kubelet.connections(SCREEN), node.registrations(SCREEN)) == (1, before)


async def a_vendors_rule_file_is_replaced_and_masked_by_name(node: Node) -> None:
    vendor = "/usr/lib/genericdp/rules.d/10-vendor.toml"
    with open(vendor, "w", encoding="utf-8") as file:
        file.write(MORE)
    try:
        await node.until_offered("genericdp.io/more", 2)
        node.write_rules("10-vendor.toml", MORE.replace("= 2", "= 4"))
        await node.until_offered("genericdp.io/more", 4)
        (RULES_D / "10-vendor.toml").unlink()
        (RULES_D / "10-vendor.toml").symlink_to("/dev/null")
        await node.wait_until(lambda: node.kubelet.connections("genericdp.io/more") == 0)
    finally:
        await node.run("rm", vendor)


CASES: tuple[Case, ...] = (
    a_new_rule_file_applies_at_once_and_disturbs_no_other_resource,
    a_bad_rule_file_keeps_its_last_good_version_in_force,
    a_rule_file_that_others_may_write_is_refused,
    systemctl_reload_reads_the_rules_and_keeps_process_and_streams,
    a_vendors_rule_file_is_replaced_and_masked_by_name,
)
