"""The service under systemd: its privileges, with and without the drop-ins."""

from tests.vm.case import case
from tests.vm.cases.plugging import RULES, SERIAL, A
from tests.vm.node import EXAMPLES, Node, expect, expect_at_most

#: The highest exposure that `systemd-analyze security` may report.
EXPOSURE = 1.2
EXPOSURE_WITH_A_DROPIN = 1.6


@case
def the_service_is_exposed_no_more_than_promised(node: Node) -> None:
    node.begin(RULES)
    expect_at_most("systemd-analyze security", _exposure(node), EXPOSURE)
    dropins = node.sh(f"ls {EXAMPLES}").split()
    expect({"metrics.conf", "usb-reset.conf"} - set(dropins), set())
    for dropin in dropins:
        # Other cases run the service with it.
        node.add_drop_in(dropin)
        expect_at_most(dropin, _exposure(node), EXPOSURE_WITH_A_DROPIN)


@case
def the_service_has_no_capability_and_writes_nowhere_else(node: Node) -> None:
    node.begin(RULES)
    process = f"/proc/{node.main_pid()}"
    values = dict(line.split(":", 1) for line in node.sh(f"cat {process}/status").splitlines())
    capabilities = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
    expect({name: int(values[name], 16) for name in capabilities}, dict.fromkeys(capabilities, 0))
    expect((values["NoNewPrivs"].strip(), values["Seccomp"].strip()), ("1", "2"))
    # proc_pid_mountinfo(5): the fifth field is the mount point, the sixth its options.
    mounts = [line.split() for line in node.sh(f"cat {process}/mountinfo").splitlines()]
    read_only = {place for _, _, _, _, place, options, *_ in mounts if "ro" in options.split(",")}
    expect({"/", "/sys", "/sys/fs/cgroup"} - read_only, set())


@case
def a_usb_device_is_reset_only_where_the_drop_in_allows_it(node: Node) -> None:
    node.begin(
        {"50-serial.toml": RULES["50-serial.toml"] + "prestart = { wait = '25s', usb_reset = true }\n"}
    )
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    pod = node.admit("forbidden", {SERIAL: 1})
    expect(pod.state, "waiting")
    number = int(node.sh(f"cat {node.usb_device('UNIT-A')}/devnum"))
    refusal = f"cannot reset USB device '/dev/bus/usb/001/{number:03}': [Errno 1] Operation not permitted"
    advice = "under systemd the service needs DeviceAllow=char-usb_device rw"
    expect(pod.message.split("desc = ")[1], f"genericdp.io/serial: {refusal}; {advice}")
    node.delete("forbidden")
    node.run_with_drop_in("usb-reset.conf")
    node.wait_until("it is registered again", lambda view: view.allocatable.get(SERIAL) == 1)
    pod = node.admit("allowed", {SERIAL: 1})
    expect((pod.message, pod.phase, pod.state), ("", "Running", "running"))
    expect(node.sh("journalctl --dmesg | grep -c 'reset full-speed USB device'").strip(), "1")
    node.write_to(pod, "/dev/ttyUSB0", "after a reset")
    expect(node.usb.written_to("1"), "after a reset")


@case
def metrics_are_served_on_a_socket_and_with_the_drop_in_on_a_port(node: Node) -> None:
    node.begin(RULES)
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    node.set('metrics = "unix:/run/genericdp/metrics.sock"')
    node.wait_until("it is registered again", lambda view: view.allocatable.get(SERIAL) == 1)
    metrics = node.python(_ASK_SOCKET).splitlines()
    wanted = [
        f'genericdp_devices{{resource="{SERIAL}",health="Healthy"}} 1',
        f'genericdp_registered{{resource="{SERIAL}"}} 1',
        "genericdp_udev_up 1",
    ]
    expect([line for line in wanted if line not in metrics], [])
    # The service does not see all of /proc.
    (started,) = (line.split()[1] for line in metrics if line.startswith("process_start_time_seconds "))
    expect_at_most("seconds since the start", float(node.sh("date +%s")) - float(started), 120.0)
    node.set('metrics = "127.0.0.1:9101"')
    lines = [line for line in node.journal("--priority=warning") if "9101" in line]
    refused = "cannot listen on '127.0.0.1:9101': Address family not supported by protocol"
    expect([line.partition("  ")[0] for line in lines], [refused])
    node.run_with_drop_in("metrics.conf")
    expect("genericdp_udev_up 1" in node.python(_ASK_PORT).splitlines(), True)


_ASK_PORT = """
import urllib.request
print(urllib.request.urlopen("http://127.0.0.1:9101/metrics", timeout=30).read().decode())
"""
_ASK_SOCKET = """
import http.client, socket
connection = http.client.HTTPConnection("localhost")
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.connect("/run/genericdp/metrics.sock")
connection.request("GET", "/metrics")
print(connection.getresponse().read().decode())
"""


def _exposure(node: Node) -> float:
    """The exposure of the loaded unit, from 0 (safe) to 10 (`systemd-analyze security`)."""
    text = node.sh("systemd-analyze security --no-pager genericdp.service")
    return float(text.splitlines()[-1].rpartition(": ")[2].split()[0])
