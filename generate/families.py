"""The page of the families: which rule file replaces which plugin, and what differs.

The rules of this file:

* The text comes from the heads of `examples/families/*.toml`. A head has three parts: what the file is for,
  which plugin it replaces, and what differs. Each begins on a line of its own, the last two with the words
  below.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from generate.blocks import Block, Heading, Item, Paragraph
from generate.markdown import markdown
from generate.parse import blocks
from genericdp.core.reading.parse import parse_rules
from genericdp.core.rules.settings import DEFAULT_DOMAIN

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "families"
_PAGE = Path(__file__).parent / "pages" / "families.md"

#: How the second and the third part of a head begin.
_REPLACES = ("Replaces ",)
_DIFFERS = ("Differs: ", "Nothing differs")


@dataclass(frozen=True, slots=True)
class Family:
    """A rule file that replaces another device plugin; the three parts of its head."""

    path: Path
    what: str
    replaces: str
    differs: str

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def resources(self) -> tuple[str, ...]:
        """The full names of its resources, in order."""
        text = self.path.read_text(encoding="utf-8")
        resources, problems = parse_rules(str(self.path), text, DEFAULT_DOMAIN)
        if problems:
            raise ValueError("\n".join(problem.render() for problem in problems))
        return tuple(resource.name for resource in resources)


def family(path: Path) -> Family:
    """The family of a rule file. Raises ValueError if its head does not have the three parts."""
    parts: list[str] = []
    wanted = [("",), _REPLACES, _DIFFERS, ()]
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("# "):
            break
        text = line.removeprefix("# ")
        if text.startswith(wanted[len(parts)]):
            parts.append(text)
        else:
            parts[-1] += f" {text}"
    if len(parts) != 3:
        raise ValueError(f"the head of {path} has {len(parts)} of three parts: what, 'Replaces', 'Differs'")
    return Family(path, *parts)


FAMILIES = tuple(family(path) for path in sorted(FOLDER.glob("*.toml")))


def families_page() -> str:
    """The text of docs/families.md."""
    note = '<!-- Written by "make generate" from generate/pages/families.md and examples/families. -->\n'
    text = blocks(_PAGE.read_text(encoding="utf-8"))
    return note + markdown([*text, *(block for each in FAMILIES for block in _section(each))])


def _section(family: Family) -> Iterator[Block]:
    yield Heading(3, family.name)
    yield Paragraph(family.what)
    names = ", ".join(f"`{name}`" for name in family.resources)
    yield Item("", f"[{family.path.name}](../examples/families/{family.path.name}): {names}")
    yield Item("", family.replaces)
    yield Item("", family.differs)
