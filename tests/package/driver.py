"""Runs cases inside the machine: `python3 -m tests.package.driver PART CONSOLE`.

Prints one JSON line for each case as soon as it ends. It runs on the distribution's Python, but not on
the installed package: the simulated kubelet comes from the checkout.
"""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from genericdp.simulator import Kubelet
from tests.package.case import Case, tried
from tests.package.cases import asked, devices, failures, lifecycle, rulefiles, unit
from tests.package.node import KUBELET_ROOT, Node, make_device_nodes
from tests.udev.hotplug import Console

#: part -> its cases, and whether each of them begins with a running service
PARTS: Mapping[str, tuple[Sequence[Case], bool]] = {
    # `asked` comes first: later cases unplug devices, which then stay listed as absent.
    "installed": (
        (*asked.CASES, *devices.CASES, *unit.CASES, *rulefiles.CASES, *failures.CASES, *lifecycle.UPGRADE),
        True,
    ),
    "rebooted": (lifecycle.REBOOTED, True),
    "end": (lifecycle.END, False),
    "sources": (lifecycle.SOURCES, False),
}


async def main(part: str, console: Console) -> None:
    """Run the cases of a part in turn; a failed one does not stop the others."""
    cases, running = PARTS[part]
    async with Kubelet(KUBELET_ROOT) as kubelet:
        node = Node(kubelet, console)
        if part == "end":
            await node.begin()
        for case in cases:
            outcome = await tried(case, node, [node.begin] if running else [])
            print(json.dumps(asdict(outcome)), flush=True)


if __name__ == "__main__":
    make_device_nodes()
    asyncio.run(main(sys.argv[1], Console(int(sys.argv[2]))))
