"""`make demo`: runs `genericdp simulate` on this machine while a device comes and goes.

The device is a virtual console: opening /dev/tty62 makes the kernel add vcs62, and deallocating it
removes vcs62. That part needs root and uses sudo if necessary. On a terminal the simulation then
continues until Ctrl-C; otherwise it ends by itself, and does not mention Ctrl-C. It exits with 1 if the
device was not seen to come and go. Where udevd has not looked at the devices, it says so instead. The
environment variable CONSOLE names another console.
"""

import contextlib
import os
import shlex
import subprocess
import sys
import threading

from genericdp.udev import UdevDevices

CONSOLE = int(os.environ.get("CONSOLE", "62"))
PATIENCE_S = 20.0

#: Run as root: adds the console at the first line on stdin, removes it at the second or at the end of stdin.
PLUG = """
import fcntl, os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends stdin, too, and the console goes
VT_DISALLOCATE = 0x5608  # <linux/vt.h>
def remove():
    console = os.open("/dev/tty0", os.O_WRONLY | os.O_NOCTTY)
    for attempt in range(50):  # the kernel may still be closing it
        try:
            return fcntl.ioctl(console, VT_DISALLOCATE, {0})
        except OSError:
            time.sleep(0.05)
remove()  # an earlier demo may have been killed halfway
if sys.stdin.readline():
    os.close(os.open("/dev/tty{0}", os.O_RDWR | os.O_NOCTTY))
sys.stdin.readline()
remove()
"""


def main() -> int:
    """Run the demo. Returns the exit status of the simulation, or 1 if the device did not come and go."""
    devices = UdevDevices()
    devices.resync()
    if devices.unseen is not None:
        print(f"# {devices.unseen}.\n# {devices.unseen.hint}; then run the demo again.")
        return 1
    command = [sys.executable, "-m", "genericdp", "simulate", *sys.argv[1:]]
    print(f"# genericdp simulate {shlex.join(sys.argv[1:])}")
    print("# A resource with capacity 0 is no fault: this machine has no such device.\n", flush=True)
    as_root = [] if os.geteuid() == 0 else ["sudo"]
    plug = subprocess.Popen(
        [*as_root, sys.executable, "-c", PLUG.format(CONSOLE)], stdin=subprocess.PIPE, text=True
    )
    simulation = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    watchdog = threading.Timer(PATIENCE_S, simulation.terminate)
    if not sys.stdout.isatty():
        watchdog.start()
    try:
        came_and_went = follow(simulation, plug)
        return simulation.wait() or (0 if came_and_went else 1)
    except KeyboardInterrupt:
        return simulation.wait()
    finally:
        watchdog.cancel()
        with contextlib.suppress(BrokenPipeError):
            plug.communicate()


def follow(simulation: "subprocess.Popen[str]", plug: "subprocess.Popen[str]") -> bool:
    """Print the simulation's output, and add and remove the console at the right moments.

    Returns whether the node was seen to change at both.
    """
    assert simulation.stdout is not None
    changes = 0
    for line in simulation.stdout:
        if line.startswith("Plug or unplug a device"):
            if sys.stdout.isatty():
                print(line)
            print(f"# opening /dev/tty{CONSOLE}: the kernel adds vcs{CONSOLE}", flush=True)
            send_line(plug)
            continue
        print(line, end="", flush=True)
        if "screen: capacity" in line:
            changes += 1
            if changes == 1 and plug.poll() is None:
                print(f"\n# deallocating console {CONSOLE}: the kernel removes vcs{CONSOLE}", flush=True)
                send_line(plug)
                plug.wait()
            elif not sys.stdout.isatty():
                simulation.terminate()
    return changes > 1


def send_line(plug: "subprocess.Popen[str]") -> None:
    """Let the process with root rights take its next step."""
    assert plug.stdin is not None
    try:
        plug.stdin.write("\n")
        plug.stdin.flush()
    except BrokenPipeError:
        print("# this machine has no virtual consoles; plug in a USB stick instead", flush=True)


if __name__ == "__main__":
    sys.exit(main())
