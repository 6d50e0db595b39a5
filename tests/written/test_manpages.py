"""The manual says everything that the program declares, nothing else, and every formatter likes it."""

import argparse
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from generate.files import ROOT
from genericdp.cli.exit_status import STATUSES
from genericdp.cli.main import VERBS, parser_of
from genericdp.core.reading.match import CONDITION_DOCS, PROPERTY_DOCS, USB_KEYS
from genericdp.core.reading.pattern import FORM_DOCS
from genericdp.core.reading.resource import MOUNT_KEYS, NODE_KEYS, PRESTART_KEYS, RESOURCE_KEYS
from genericdp.core.reading.settings import SETTINGS_KEYS
from genericdp.core.reading.table import Key
from genericdp.core.rules.template import FIELDS

PAGES = sorted((ROOT / "generated" / "man").iterdir())
#: Options that pages name and that are not those of genericdp.
OF_THE_KUBELET = {"--root-dir", "--container-runtime-endpoint"}

PROGRAM, RULES, SETTINGS = "genericdp.1", "genericdp-rules.5", "genericdp.toml.5"
SOURCES = [path.read_text(encoding="utf-8") for path in (ROOT / "genericdp").rglob("*.py")]

ROFF = {
    "\\fB": "",
    "\\fI": "",
    "\\fR": "",
    "\\-": "-",
    "\\|": "",
    "\\&": "",
    "\\(dq": '"',
    "\\(aq": "'",
    "\\e": "\\",
}

#: Their texts, as they are written.
WRITTEN = sorted((ROOT / "generate" / "pages").iterdir())

#: Words that are typed and are neither keys nor verbs: units of time, a value of TERM.
OTHER_WORDS = {"ms", "dumb", "places"}

#: What they refer to beside each other.
PAGES_OF_OTHERS = {"udev(7)", "udevadm(8)", "sd_notify(3)", "systemd.exec(5)", "poll(2)", "epoll(7)"}


def plain(roff: str) -> str:
    """Roff as it is read, for what the pages use of it."""
    for written, shown in ROFF.items():
        roff = roff.replace(written, shown)
    return re.sub(r"\\\[u([0-9A-F]{4})\]", lambda found: chr(int(found.group(1), 16)), roff)


def sections(page: str, mark: str = ".SH") -> Mapping[str, str]:
    """The text below each heading."""
    text = (ROOT / "generated" / "man" / page).read_text(encoding="utf-8") if "\n" not in page else page
    parts = re.split(rf"^{re.escape(mark)} (.*)$", text, flags=re.MULTILINE)
    return {plain(heading): below for heading, below in zip(parts[1::2], parts[2::2], strict=True)}


def tags(text: str) -> list[str]:
    """What the tagged paragraphs are about."""
    return [plain(tag) for tag in re.findall(r"^\.TP\n(.*)$", text, flags=re.MULTILINE)]


def declared(verb: str) -> tuple[set[str], set[str]]:
    """The options of a verb, and those of them that every verb that reads rules has."""
    every, rules = set[str](), set[str]()
    for group in parser_of(verb)._action_groups:
        flags = {flag for action in group._group_actions for flag in action.option_strings}
        every |= flags
        rules |= flags if "--rules" in flags else set()
    return every - {"-h", "--help"}, rules


def flags_in(shown: Iterable[str]) -> set[str]:
    return {flag for tag in shown for flag in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", tag)}


def test_every_verb_has_its_part_with_its_options_and_nothing_else() -> None:
    verbs = sections(sections(PROGRAM)["VERBS"], ".SS")
    assert list(verbs) == list(VERBS)
    rule_options = flags_in(tags(sections(PROGRAM)["RULE OPTIONS"]))
    for verb, below in verbs.items():
        every, common = declared(verb)
        before, _, _ = below.partition("\nExamples:\n")
        assert flags_in(tags(before)) == every - common, verb
        assert common in (set(), rule_options)
        assert (f"\\fB{verb}\\fR" in sections(PROGRAM)["RULE OPTIONS"]) == bool(common)


def test_every_argument_is_in_the_manual() -> None:
    verbs = sections(sections(PROGRAM)["VERBS"], ".SS")
    for verb in VERBS:
        for action in parser_of(verb)._actions:
            if not action.option_strings and action.help != argparse.SUPPRESS:
                name = str(action.metavar) if action.choices is None else "|".join(action.choices)
                assert any(name in tag for tag in tags(verbs[verb])), (verb, name)


def test_the_synopsis_has_every_verb_and_option() -> None:
    lines = plain(sections(PROGRAM)["SYNOPSIS"]).replace("\n", " ")
    for verb in VERBS:
        every, common = declared(verb)
        (own,) = re.findall(rf"genericdp {verb}\b(.*?)(?= genericdp | \.br| \.PP)", lines)
        assert flags_in([own]) == every - common
        assert ("[rule options]" in own) == bool(common)


def test_every_exit_status_is_in_the_manual() -> None:
    assert tags(sections(PROGRAM)["EXIT STATUS"]) == [str(status) for status in STATUSES]


def test_the_environment_is_what_the_program_looks_at() -> None:
    section = sections(PROGRAM)["ENVIRONMENT"]
    named = {word for tag in tags(section) for word in re.findall(r"[A-Z_]{4,}", tag)}
    pattern = re.compile(r'environ(?:ment)?\.(?:get|setdefault)\(\s*"([A-Z_]+)"|environ\["([A-Z_]+)"\]')
    read = {name for source in SOURCES for found in pattern.findall(source) for name in found if name}
    assert named == read | {"COLUMNS"}  # which shutil.get_terminal_size reads


@pytest.mark.parametrize(
    ("page", "section", "keys"),
    [
        (RULES, "RESOURCES", RESOURCE_KEYS),
        (RULES, "NODES", NODE_KEYS),
        (RULES, "MOUNTS", MOUNT_KEYS),
        (RULES, "BEFORE A CONTAINER STARTS", PRESTART_KEYS),
        (SETTINGS, "SETTINGS", SETTINGS_KEYS),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_key_is_in_the_manual_and_nothing_else(page: str, section: str, keys: tuple[Key, ...]) -> None:
    assert [tag.partition(" = ")[0] for tag in tags(sections(page)[section])] == [key.name for key in keys]


def test_every_condition_and_field_is_in_the_manual() -> None:
    shown = [tag.strip('"') for tag in tags(sections(RULES)["MATCHES"])]
    assert shown == [*CONDITION_DOCS, *PROPERTY_DOCS, *shown[-len(USB_KEYS) :]]
    assert {*shown[-len(USB_KEYS) :]} == {*USB_KEYS}
    assert tags(sections(RULES)["TEMPLATES"]) == [f"{{{field}}}" for field in FIELDS]


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.name))
def test_what_a_page_says_in_words_names_nothing_that_is_not_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tables = (RESOURCE_KEYS, NODE_KEYS, MOUNT_KEYS, PRESTART_KEYS, SETTINGS_KEYS)
    keys = {key.name for table in tables for key in table} | {*CONDITION_DOCS, *USB_KEYS, *FORM_DOCS}
    options = {option for verb in VERBS for option in declared(verb)[0]} | {"--help", "--version"}
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    typed = re.findall(r"`([^`]+)`", prose)
    assert typed
    assert flags_in([prose]) - options - OF_THE_KUBELET == set()
    assert {word.split()[1] for word in typed if word.startswith("genericdp ")} <= {*VERBS}
    assert {word for word in typed if re.fullmatch("[a-z_]{2,}", word)} <= keys | {*VERBS} | OTHER_WORDS
    for name, section in re.findall(r"\b([a-z_.-]+)\((\d)\)", text):
        assert f"{name}({section})" in PAGES_OF_OTHERS | {
            "{}({})".format(*each.name.rsplit(".", 1)) for each in PAGES
        }
    headings = re.findall(r"^##+ (.*)$", text, flags=re.MULTILINE)
    for words, anchor in re.findall(r"\[([^]]+)\]\(#([^)]+)\)", text):
        assert words in headings
        assert anchor == words.lower().replace(" ", "-")
    for target in re.findall(r"\]\(([^#)][^)]*)\)", text):
        assert (ROOT / "docs" / target).exists()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.name))
def test_a_page_is_without_a_fault_for_mandoc_and_for_groff(path: Path) -> None:
    mandoc = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "style", path], capture_output=True, text=True, check=False
    )
    assert mandoc.stdout == ""
    groff = formatted(path, "--warnings")
    assert groff.stderr == ""
    assert [line for line in groff.stdout.splitlines() if len(line) > 80] == []


def formatted(path: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["man", *options, "--encoding=UTF-8", "--local-file", path],
        env={"PATH": os.environ["PATH"], "MANWIDTH": "80", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""},
        capture_output=True,
        text=True,
        check=True,
    )


def test_the_pages_refer_to_each_other() -> None:
    for path in PAGES:
        name, section = path.name.rsplit(".", 1)
        for other in PAGES:
            if other != path:
                assert f"{name}({section})" in formatted(other).stdout.replace("\u2010", "-")
