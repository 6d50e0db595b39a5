"""The transcripts in the documentation, typed again: recorded devices, the daemon, a simulated kubelet.

A page is a script from `<!-- fresh node -->` to `<!-- end -->` or the end of the page; there may be several
nodes. On a node, each line of a `console` block that begins with the prompt of the block, `$ ` or `# `, is
typed with its here-document, and what is printed takes the place of what stands below it. A `yaml` block is
a pod that is created. A comment is something that happens: `<!-- plug stick -->`, `<!-- start daemon -->`;
`<!-- file PATH -->` writes the `toml` block that follows. `tests/udev/tour_node.py` has them all. `make tour`
writes the pages anew; `test_tour` does the same and compares.

It runs in a machine of its own (tests/udev/machine.py), whose /etc and /var/lib are thrown away with it.
"""

import asyncio
import re
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from tests.udev.tour_node import TourNode, a_node

ROOT = Path(__file__).resolve().parents[2]
PAGES = tuple(
    ROOT / name for name in ("README.md", "docs/install.md", "docs/tour.md", "docs/troubleshooting.md")
)

_STEP = re.compile(
    r"^```console\n(?P<typed>.*?)^```$"
    r"|^```yaml\n(?P<pod>.*?)^```$"
    r"|^<!-- file (?P<path>\S+) -->\n```toml\n(?P<content>.*?)^```$"
    r"|^<!-- (?P<deed>[^>]+) -->$",
    re.DOTALL | re.MULTILINE,
)


async def rewritten(page: str) -> str:
    """The page with what its commands print now."""
    done, at = "", 0
    node: TourNode | None = None
    async with AsyncExitStack() as stack:
        for step in _STEP.finditer(page):
            done += page[at : step.start()]
            at = step.end()
            if step["deed"] in ("fresh node", "end"):
                await stack.aclose()
                node = None if step["deed"] == "end" else await stack.enter_async_context(a_node())
            done += step[0] if node is None else await _taken(node, step)
    return done + page[at:]


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a `console` block, and what is printed below each."""
    prompt = re.escape(block[0])
    typed = list(re.finditer(rf"^{prompt} (.*<<'(\w+)'\n(?:.*\n)*?\2$|.*)$", block, re.MULTILINE))
    ends = [*(each.start() for each in typed[1:]), len(block)]
    return [(each[1], block[each.end() : end].strip()) for each, end in zip(typed, ends, strict=True)]


async def _taken(node: TourNode, step: re.Match[str]) -> str:
    """Take a step; returns what stands on the page for it."""
    if step["typed"] is not None:
        prompt = step["typed"][0]
        printed = [
            f"{prompt} {command}\n{await node.type(command)}" for command, _ in commands(step["typed"])
        ]
        return "```console\n" + "\n".join(printed) + "```"
    if step["pod"] is not None:
        await node.create(step["pod"])
    elif step["path"] is not None:
        node.write(step["path"], step["content"])
    elif step["deed"] != "fresh node":
        await node.happen(step["deed"])
    return step[0]


if __name__ == "__main__":
    for path in [Path(argument) for argument in sys.argv[1:]] or PAGES:
        text = path.read_text(encoding="utf-8")
        path.write_text(asyncio.run(rewritten(text)), encoding="utf-8")
