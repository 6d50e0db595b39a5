"""The rule files of a soak: those at rest, and what an operator makes of them.

The rules of this file:

* At rest there is one file. All resources of the others have names that it does not use.
"""

import random
from collections.abc import Sequence

DOMAIN = "genericdp.io"
SCREEN = f"{DOMAIN}/screen"
TAP = f"{DOMAIN}/tap"
CONSOLE = f"{DOMAIN}/console"
SHARED = f"{DOMAIN}/shared"
AT_REST = (SCREEN, TAP, CONSOLE, SHARED)

#: Devices that are always there, for CONSOLE, SHARED and further resources. A new udevd has to hear of them.
FIXED = (
    *(f"/sys/devices/virtual/tty/tty{number}" for number in range(1, 20)),
    "/sys/devices/virtual/mem/full",
)

MAIN = "50-main.toml"

_GRACE = 'unplug_grace = "1s"\n'

#: What is not valid, from a missing key to no TOML at all, and what is too much.
MISTAKES = (
    '[[resource]]\nname = "x"\nmach = 1\n',
    '[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "tty", \n',
    "\x00\x01\x02",
    '[[resource]]\nname = "screen"\nmatch = { SUBSYSTEM = "vc" }\n',
    '[[resource]]\nname = "y"\nmatch = { DEVNAME = { regex = "(a+)+b" } }\n' * 200,
    "#" * 2_000_000,
)


def main(nodes: Sequence[str], *, env: str = "at rest", replicas: int = 3, prefer: str = "spread") -> str:
    """The file at rest, for these nodes of virtual consoles."""
    screens = ", ".join(f'"{node}"' for node in nodes)
    return f"""
[[resource]]
name = "screen"
match = {{ SUBSYSTEM = "vc", DEVNAME = [{screens}] }}
container_path = "/dev/screen{{index}}"
{_GRACE}
[[resource]]
name = "tap"
match = {{ SUBSYSTEM = "macvtap" }}
prestart = {{ wait = "200ms" }}
{_GRACE}
[[resource]]
name = "console"
match = {{ SUBSYSTEM = "tty", DEVNAME = "/dev/tty[1-8]" }}
prefer = "{prefer}"
prestart = {{ wait = "200ms" }}
env = {{ NOTE = "{env}" }}
{_GRACE}
[[resource]]
name = "shared"
match = {{ DEVNAME = "/dev/full" }}
replicas = {replicas}
{_GRACE}"""


def edited(rng: random.Random, nodes: Sequence[str]) -> str:
    """The main file after an edit that keeps every id that a pod may hold."""
    return main(
        nodes,
        env=f"edit {rng.randrange(1000)}",
        replicas=rng.randint(3, 5),
        prefer=rng.choice(["first", "numa", "same-hub", "same-unit", "spread", "least-recently-used"]),
    )


def further(rng: random.Random) -> str:
    """Another file: some resources under names that were perhaps never used before."""
    return "\n".join(
        f'[[resource]]\nname = "more-{rng.randrange(10_000)}"\n'
        f'match = {{ SUBSYSTEM = "tty", DEVNAME = "/dev/tty{rng.randint(10, 19)}" }}\n{_GRACE}'
        for _ in range(rng.randint(1, 5))
    )
