"""`make bench`: what the daemon and the verbs cost, measured here and now, beside what was promised.

Numbers of one run on one machine: good for ratios and for noticing that something grew.
"""

import asyncio

from tests.bench import answers, checkpoint, daemon, rebuild, telling, verbs
from tests.bench.row import Row


async def main() -> None:
    """Make every measurement and print it as it comes."""
    show(Row("", "measured", "promised"))
    for row in rebuild.rows():
        show(row)
    async for row in answers.rows():
        show(row)
    async for row in checkpoint.rows():
        show(row)
    for row in telling.rows():
        show(row)
    for row in verbs.rows():
        show(row)
    async for row in daemon.rows():
        show(row)


def show(row: Row) -> None:
    """One line."""
    print(f"{row.what:<68} {row.measured:>9}   {row.promised}".rstrip(), flush=True)  # noqa: T201  (printing is what it is for)


if __name__ == "__main__":
    asyncio.run(main())
