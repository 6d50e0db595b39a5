"""What a pod of the DaemonSet does: registers, follows devices and rules, ends."""

import json
import os
import shutil
import time

from genericdp.cli.exit_status import DEAD_MOUNT
from genericdp.simulator import Phase
from tests.image.case import Case
from tests.image.node import SCREEN, Node
from tests.image.pod import Pod

#: Run inside: tries to make a file in every directory of the root file system, and prints where it can.
_WRITABLE = """
import os
def walk(top):
    for path, names, _ in os.walk(top):
        if path in ("/proc", "/sys"):
            names.clear()
            continue
        try:
            os.close(os.open(path + "/.tried", os.O_CREAT | os.O_WRONLY))
        except OSError:
            continue
        os.unlink(path + "/.tried")
        names.clear()
        print(path)
walk("/")
"""

_IMPORTED = """
import importlib, pkgutil, sys
sys.path.insert(0, "/usr/share/genericdp")
import genericdp
for module in pkgutil.walk_packages(genericdp.__path__, "genericdp."):
    if module.name not in ("genericdp.__main__", "genericdp.simulator.pytest_plugin"):
        importlib.import_module(module.name)
from google.protobuf.internal import api_implementation
from genericdp.usb import backend
print(api_implementation.Type(), backend() is not None)
"""


async def a_pod_registers_and_a_container_gets_the_device(node: Node) -> str:
    with node.console.plugged():
        started = time.monotonic()
        pod = await node.pod()
        await node.until_offered(1)
        took_s = time.monotonic() - started
        app = await node.admit()
        assert node.opened(app.container("main")) == node.console.node
        assert list(node.links().values()) == [node.console.node]
    assert [line for line in pod.lines if line["level"] not in ("info", "debug")] == []
    rss = int(pod.status()["VmRSS"].split()[0]) / 1024
    return f"offered after {took_s:.1f} s; {rss:.0f} MiB"


async def it_runs_without_any_privilege(node: Node) -> None:
    pod = await _serving(node)
    status = pod.status()
    assert {status[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    assert status["Uid"].split() == ["0"] * 4


async def it_can_write_only_to_what_the_manifest_mounts(node: Node) -> None:
    pod = await _serving(node)
    status, output = await pod.exec("/usr/bin/python3", "-c", _WRITABLE)
    assert not status, output
    assert sorted(output.split()) == [
        "/dev",
        "/run/cdi",
        "/run/genericdp",
        "/var/lib/genericdp",
        "/var/lib/kubelet/device-plugins",
    ]


async def it_cannot_open_a_device_of_the_host(node: Node) -> None:
    with node.console.plugged() as path:
        pod = await _serving(node)
        status, output = await pod.exec("/usr/bin/python3", "-c", f"open({path!r}, 'rb')")
    assert status == 1
    assert "Operation not permitted" in output, output


async def a_device_comes_and_goes(node: Node) -> str:
    await _serving(node)
    return await _replugged(node)


async def without_the_hosts_network_devices_come_and_go_too_and_the_log_says_what_it_costs(node: Node) -> str:
    pod = await node.pod(host_network=False)
    await node.until(lambda: SCREEN in node.kubelet.capacity)
    measured = await _replugged(node)
    line = await pod.logged("no udev events; using kernel events and periodic rescans")
    assert "'hostNetwork: true'" in line["hint"], line
    return measured


async def a_change_of_the_rules_takes_effect_without_a_restart(node: Node) -> str:
    with node.console.plugged():
        pod = await _serving(node)
        await node.until_offered(1)
        started = time.monotonic()
        node.rules.update({"60-monitor.toml": node.screen_rules("monitor")})
        await node.until_offered(1, "genericdp.io/monitor")
        took_s = time.monotonic() - started
        await node.until(lambda: not node.kubelet.allocatable.get(SCREEN))
        seen = len(pod.lines)
        node.rules.update({"60-monitor.toml": "[[resource]]\nnmae = 1\n"})
        await pod.logged("unknown key", after=seen)
        node.rules.update({"50-screen.toml": node.screen_rules("screen")})
        await node.until_offered(1)
    return f"offered after {took_s:.1f} s"


async def a_node_without_rules_waits_for_them(node: Node) -> None:
    node.rules.update({})
    with node.console.plugged():
        pod = await node.pod()
        await pod.logged("ready")
        node.rules.update({"50-screen.toml": node.screen_rules("screen")})
        await node.until_offered(1)


async def the_kubelets_directory_may_be_wiped(node: Node) -> None:
    with node.console.plugged():
        await _serving(node)
        await node.until_offered(1)
        before = node.registrations()
        await node.kubelet.stop()
        for entry in node.kubelet.directory.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        await node.kubelet.start()
        await node.until(lambda: node.registrations() > before)
        await node.until_offered(1)


async def the_kubelets_directory_may_be_deleted_and_a_new_container_serves(node: Node) -> str:
    with node.console.plugged():
        pod = await _serving(node)
        await node.until_offered(1)
        app, links = await node.admit(), node.links()
        before = node.registrations()
        await node.kubelet.stop()
        started = time.monotonic()
        shutil.rmtree(node.kubelet.directory)
        assert await pod.ended() == DEAD_MOUNT, pod.log()
        took_s = time.monotonic() - started
        await pod.logged("the kubelet's directory was deleted")
        assert node.links() == links
        await node.kubelet.start(readmit=False)
        await node.pod()
        await node.until(lambda: node.registrations() > before)
        await node.until_offered(1)
        node.kubelet.tick()
        await node.kubelet.readmit()
        assert app.phase is Phase.RUNNING, f"{app.reason} {app.message}"
        assert node.links() == links
    return f"ended after {took_s:.1f} s"


async def every_verb_works_by_kubectl_exec(node: Node) -> None:
    with node.console.plugged():
        pod = await _serving(node)
        await node.until_offered(1)
        status, output = await pod.exec("genericdp", "status", "--json")
        assert not status, output
        assert [each["name"] for each in json.loads(output)["resources"]] == [SCREEN]
        for what in ("health", "readiness"):
            assert await pod.exec("/usr/bin/genericdp", "probe", what) == (0, "")
        for verb in ("check", "list", "explain " + node.console.node, "schema rules"):
            status, output = await pod.exec("genericdp", *verb.split())
            assert not status, f"{verb}: {output}"
        for verb in ("complete", "monitor", "run", "simulate", "status", "suggest"):
            status, output = await pod.exec("genericdp", verb, "--help")
            assert not status, f"{verb}: {output}"
        status, output = await pod.exec("genericdp", "suggest", node.console.node)
        assert node.console.node in output, output


async def every_module_can_be_imported_and_libraries_are_found(node: Node) -> None:
    pod = await _serving(node)
    assert await pod.exec("/usr/bin/python3", "-I", "-c", _IMPORTED) == (0, "cpp True\n")


async def it_ends_at_once_when_it_is_asked_to(node: Node) -> str:
    with node.console.plugged():
        pod = await _serving(node)
        await node.until_offered(1)
        links = node.links()
        started = time.monotonic()
        status = await pod.stop()
        took_s = time.monotonic() - started
        assert status == 0, pod.log()
        assert os.listdir(node.kubelet.directory).count("kubelet.sock") == 1
        assert [name for name in os.listdir(node.kubelet.directory) if name.startswith("gdp-")] == []
        # Containers may be restarted before the next pod is there.
        assert node.links() == links
    return f"after {took_s:.1f} s"


async def _serving(node: Node) -> Pod:
    pod = await node.pod()
    await node.until(lambda: SCREEN in node.kubelet.capacity)
    return pod


async def _replugged(node: Node) -> str:
    times = []
    for _ in range(2):
        with node.console.plugged():
            started = time.monotonic()
            await node.until_offered(1)
            times.append(time.monotonic() - started)
            started = time.monotonic()
        await node.until_offered(0)
        times.append(time.monotonic() - started)
    return f"seen within {max(times):.1f} s"


CASES: tuple[Case, ...] = (
    a_pod_registers_and_a_container_gets_the_device,
    it_runs_without_any_privilege,
    it_can_write_only_to_what_the_manifest_mounts,
    it_cannot_open_a_device_of_the_host,
    every_module_can_be_imported_and_libraries_are_found,
    every_verb_works_by_kubectl_exec,
    a_device_comes_and_goes,
    without_the_hosts_network_devices_come_and_go_too_and_the_log_says_what_it_costs,
    a_change_of_the_rules_takes_effect_without_a_restart,
    a_node_without_rules_waits_for_them,
    the_kubelets_directory_may_be_wiped,
    the_kubelets_directory_may_be_deleted_and_a_new_container_serves,
    it_ends_at_once_when_it_is_asked_to,
)
