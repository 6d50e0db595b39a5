"""The pages of the reference, each of them as a manual page and as a page of docs/.

The rules of this file:

* Name, synopsis and references, which only manual pages have, are here. The text is in `pages/`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from generate.blocks import Block, Heading, Paragraph
from generate.declared import synopsis
from generate.markdown import markdown
from generate.parse import blocks
from generate.roff import inline, literal, roff, short_lines
from genericdp import RELEASED, VERSION

FOLDER = Path(__file__).parent / "pages"


@dataclass(frozen=True, slots=True)
class Page:
    """A page: the name of its file in `pages/` and docs/, and the frame of its manual page."""

    file: str
    name: str
    section: int
    summary: str
    synopsis: tuple[str, ...]
    see_also: str


PAGES = (
    Page(
        "commands.md",
        "genericdp",
        1,
        "Kubernetes device plugin for everything that udev knows",
        (*synopsis(), "`genericdp` [`help`] *verb* [`--help`]", "`genericdp` `--help`|`--version`"),
        "genericdp-rules(5), genericdp.toml(5), udev(7), udevadm(8)",
    ),
    Page(
        "rules.md",
        "genericdp-rules",
        5,
        "which udev devices belong to which resource",
        tuple(f"`{folder}/genericdp/rules.d/*.toml`" for folder in ("/etc", "/run", "/usr/lib")),
        "genericdp(1), genericdp.toml(5), udev(7), udevadm(8)",
    ),
    Page(
        "settings.md",
        "genericdp.toml",
        5,
        "settings of genericdp",
        ("`/etc/genericdp/genericdp.toml`",),
        "genericdp(1), genericdp-rules(5)",
    ),
)


def manual_pages() -> Iterator[tuple[str, str]]:
    """Name and text of each manual page."""
    for page in PAGES:
        _, *rest = _blocks(page)
        ends = Heading(2, "See also"), Paragraph(page.see_also)
        body = roff([Heading(2, "Description"), *rest, *ends])
        yield f"{page.name}.{page.section}", _head(page) + body


def docs_pages() -> Iterator[tuple[str, str]]:
    """Name and text of each page of docs/."""
    for page in PAGES:
        note = f'<!-- Written by "make generate" from generate/pages/{page.file}: change that. -->\n'
        title, *rest = _blocks(page)
        also = Paragraph(f"The packages install this page as the manual page `{page.name}({page.section})`.")
        yield page.file, note + markdown([title, also, *rest])


def _blocks(page: Page) -> list[Block]:
    return list(blocks((FOLDER / page.file).read_text(encoding="utf-8")))


def _head(page: Page) -> str:
    lines = (
        f'.\\" Written by "make generate" from generate/pages/{page.file}.',
        f'.TH {literal(page.name.upper())} {page.section} {RELEASED} "genericdp {VERSION}" "genericdp"',
        ".nh",
        ".ad l",
        ".SH NAME",
        f"{literal(page.name)} \\- {literal(page.summary)}",
        ".SH SYNOPSIS",
        "\n.br\n".join(map(inline, page.synopsis)),
    )
    return short_lines("\n".join(lines))
