"""`make soak`: the daemon on real devices for an hour of random operations; its figures must stay flat.

python -m tests.soak [MINUTES] [SEED]
"""

import asyncio
import logging
import random
import sys
import time

from tests.bench.daemon import CHECKOUT
from tests.soak.figures import COLUMNS, Row, compare, line
from tests.soak.node import Node, a_node, reserve_consoles
from tests.soak.soak import Soak, SoakError

MINUTES = 60

#: The fewest operations of a minute, if the rest before it took long.
FEWEST = 50

LOG = CHECKOUT / ".cache/soak.log"


async def main(minutes: int, seed: int) -> int:
    """Soak for this long. Returns the exit status."""
    logging.disable()
    print(f"SEED={seed} MINUTES={minutes}, the log of the daemon is {LOG.relative_to(CHECKOUT)}\n\n{COLUMNS}")
    try:
        async with a_node(reserve_consoles(), LOG) as node:
            rows = await soaked(node, minutes, seed)
    except SoakError as error:
        print(error, *error.__notes__, sep="\n")
        return 1
    comparisons = compare(rows)
    print(f"\n{'':<12} {'first':>10} {'last':>10}    ratio", *comparisons, sep="\n")
    grown = [comparison.figure.name for comparison in comparisons if not comparison.holds]
    print(f"\ngrew: {', '.join(grown)}" if grown else "\nnothing grew")
    return 1 if grown else 0


async def soaked(node: Node, minutes: int, seed: int) -> list[Row]:
    """The figures of each minute; they are printed, and then how often each operation was done."""
    soak = Soak(node, seed)
    await soak.begin()
    rows, began = [], time.monotonic()
    for minute in range(1, minutes + 1):
        rows.append(await soak.round(minute, operations=FEWEST, until=began + 60 * minute))
        print(line(minute, rows[-1]), flush=True)
    print()
    for name, count in sorted(soak.done.items()):
        print(f"  {name.replace('_', ' '):<32} {count:6}")
    return rows


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    minutes = numbers[0] if numbers else MINUTES
    sys.exit(asyncio.run(main(minutes, numbers[1] if len(numbers) > 1 else random.randrange(10**6))))  # noqa: S311
