"""The commands of docs/install.md, to be run exactly as documented.

The rules of this file:

* In a console block, `# ` begins a command for root, and a here-document belongs to its command. The
  lines after it are its output, where `…` stands for any text. Blocks that begin with `$ ` are ignored.
"""

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/install.md"

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HERE_DOCUMENT = re.compile(r"<<'?(\w+)'?$")


@dataclass(frozen=True, slots=True)
class Step:
    """A command and its documented output ("" if the page shows none)."""

    command: str
    prints: str

    def agrees(self, output: str) -> bool:
        """Whether the output is the documented one."""
        wanted = ".*".join(re.escape(part) for part in self.prints.split("…"))
        return not self.prints or re.fullmatch(wanted, output, re.DOTALL) is not None


def steps(heading: str) -> list[Step]:
    """The commands for root in a section."""
    page = PAGE.read_text(encoding="utf-8")
    _, _, section = page.partition(f"\n## {heading}\n")
    blocks = _BLOCK.findall(section.partition("\n## ")[0])
    found = [step for block in blocks if block.startswith("# ") for step in _steps(block)]
    assert found, f"section '{heading}' of {PAGE} shows no commands"
    return found


def _steps(block: str) -> list[Step]:
    found: list[Step] = []
    lines = iter(block.splitlines())
    for line in lines:
        if line.startswith("# "):
            command = line.removeprefix("# ")
            here = _HERE_DOCUMENT.search(command)
            if here:
                for more in lines:
                    command += f"\n{more}"
                    if more == here[1]:
                        break
            found.append(Step(command, ""))
        elif found:
            last = found.pop()
            found.append(Step(last.command, f"{last.prints}{line}\n"))
    return found
