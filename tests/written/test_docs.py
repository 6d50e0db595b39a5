"""What is written about the project is true: examples are good rule files, no key is left out."""

import re
import subprocess
import tomllib
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

import pytest

from genericdp.cli.main import VERBS, parser_of
from genericdp.cli.verbs.monitor import WORDS
from genericdp.core.hint import Deafness, RescanCause, Resync, Uevent
from genericdp.core.reading.match import PROPERTY_DOCS, USB_KEYS
from genericdp.core.reading.parse import parse_rules, parse_settings
from genericdp.core.reading.resource import MOUNT_KEYS, NODE_KEYS, PRESTART_KEYS, RESOURCE_KEYS
from genericdp.core.reading.settings import SETTINGS_KEYS
from genericdp.core.reading.table import Key
from genericdp.core.rules.pitfalls import pitfalls
from genericdp.core.rules.settings import DEFAULT_DOMAIN, Settings
from genericdp.core.status import events
from genericdp.core.status.events import Kind
from genericdp.core.status.facts import Facts, InEffect
from genericdp.core.status.history import History
from genericdp.core.status.holdings import Holder
from genericdp.core.status.logged import Logged
from genericdp.core.status.metrics import FAMILIES
from genericdp.core.status.news import news
from genericdp.core.status.report import report
from genericdp.errors import Location, Problem
from tests.scenes.builders import a_terminal, a_usb_serial
from tests.scenes.inventories import inventory_of

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: Everything that is written for people, in Markdown.
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
TABLES: tuple[tuple[Key, ...], ...] = (RESOURCE_KEYS, NODE_KEYS, MOUNT_KEYS, PRESTART_KEYS)
TTYS = '[[resource]]\nname = "a"\nmatch = { SUBSYSTEM = "tty" }\n'
EXAMPLES = sorted((ROOT / "examples").rglob("*.toml"))


def page(name: str) -> str:
    """A page of docs/."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def blocks(language: str, text: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.name))
def test_an_example_is_a_good_rule_file(path: Path) -> None:
    resources, problems = parse_rules(str(path), path.read_text(encoding="utf-8"), DEFAULT_DOMAIN)
    assert [problem.render() for problem in problems] == []
    assert resources
    assert pitfalls(resources) == ()


def test_the_debian_package_carries_every_example() -> None:
    carried = (ROOT / "packaging/debian/examples").read_text(encoding="utf-8").split()
    globs = [f"{line}/*" if (ROOT / line).is_dir() else line for line in carried]
    files = {str(path.relative_to(ROOT)) for path in EXAMPLES}
    assert {each for each in files if not any(fnmatch(each, glob) for glob in globs)} == set()


def test_the_rule_files_of_the_pages_are_good() -> None:
    pages = [path for path in PAGES if path.stem != "troubleshooting"]  # which is about mistakes
    rules = [
        (each.name, block)
        for each in pages
        for block in blocks("toml", each.read_text(encoding="utf-8"))
        if "[[resource]]" in block
    ]
    assert {name for name, _ in rules} >= {"rules.md", "tour.md", "coming-from.md"}
    for name, block in rules:
        _, problems = parse_rules(name, block, DEFAULT_DOMAIN)
        assert [problem.render() for problem in problems] == []


def test_the_settings_of_the_page_are_the_defaults() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \|(?: `(.+)`)? +\| [^|]+ \|$", page("settings.md"), re.MULTILINE)
    assert [name for name, _ in rows] == [key.name for key in SETTINGS_KEYS]
    shown = "\n".join(f"{name} = {default}" for name, default in rows if default)
    assert parse_settings("settings.md", shown) == (Settings(), ())


def test_the_settings_file_of_the_packages_has_every_setting_with_its_default() -> None:
    text = (ROOT / "packaging" / "genericdp.toml").read_text(encoding="utf-8")
    assert parse_settings("genericdp.toml", text) == (Settings(), ())
    shown = re.findall(r"^#(\w+ = .*)$", text, flags=re.MULTILINE)
    assert [line.partition(" = ")[0] for line in shown] == [key.name for key in SETTINGS_KEYS]
    assert parse_settings("genericdp.toml", "\n".join(shown)) == (Settings(), ())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rules.md", [key.name for table in TABLES for key in table]),
        ("rules.md", [*USB_KEYS, *PROPERTY_DOCS]),
        ("settings.md", [key.name for key in SETTINGS_KEYS]),
    ],
    ids=["keys of rules", "conditions", "settings"],
)
def test_a_page_of_the_reference_has_a_row_for_every_key(name: str, words: list[str]) -> None:
    rows = re.findall(r"^\| `(\w+)` \|", page(name), re.MULTILINE)
    assert [word for word in words if word not in rows] == []


def test_the_manual_has_an_example_of_every_key() -> None:
    written = "\n".join(blocks("toml", page("rules.md")))
    keys = [key.name for table in TABLES for key in table]
    assert [key for key in keys if re.search(rf"\b{key}( =|\]\])", written) is None] == []


def test_the_page_of_commands_has_every_verb() -> None:
    verbs = page("commands.md").partition("\n## Verbs\n")[2].partition("\n## ")[0]
    assert re.findall(r"^### (.*)$", verbs, re.MULTILINE) == [*VERBS]


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.name))
def test_every_command_that_a_page_shows_is_understood(path: Path) -> None:
    shown = re.findall(
        r"(?:(?<![\w/.-])|\.venv/bin/)genericdp (?!VERB|DEVICE)([a-z]+)((?: +[^\n`|#;]+)?)",
        "\n".join(typed(path)),
    )
    for verb, arguments in shown:
        assert verb in (*VERBS, "complete"), verb  # which no help names
        flags = {flag for action in parser_of(verb)._actions for flag in action.option_strings}
        assert {*re.findall(r"(?<!\S)--[a-z-]+", arguments)} <= flags, (verb, arguments)


def typed(path: Path) -> list[str]:
    """What a page shows as typed: commands in blocks, and in the text between backticks."""
    text = path.read_text(encoding="utf-8")
    if path.name == "CONTRIBUTING.md":
        text = text.partition("## Recipes")[0]  # which add a verb that is not there yet
    lines = [
        line for block in blocks("console", text) for line in block.splitlines() if line[:2] in ("$ ", "# ")
    ]
    return [*blocks("sh", text), *lines, *re.findall(r"`(genericdp [^`]+)`", without_blocks(path))]


def without_blocks(path: Path) -> str:
    """The text of a page without what is shown in blocks."""
    return re.sub(r"^ *```.*?^ *```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def test_all_recipes_end_with_the_same_commands() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    recipes = text.partition("## Recipes")[2].split("\n### ")[1:]
    last = [blocks("sh", recipe)[-1] for recipe in recipes]
    assert len(last) == 4
    assert {*last} == {last[0]}


def test_without_an_environment_the_tests_say_how_to_make_one(tmp_path: Path) -> None:
    script = tmp_path / ".ci" / "python-as-root"
    script.parent.mkdir()
    script.write_bytes((ROOT / ".ci" / "python-as-root").read_bytes())
    script.chmod(0o755)
    done = subprocess.run([script, "-m", "pytest"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "there is no .venv; run: make venv\n")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.name))
def test_every_link_leads_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", without_blocks(path)):
        name, _, anchor = target.partition("#")
        there = path.parent / name if name else path
        assert there.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", without_blocks(there), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings]


def test_every_key_says_what_it_is_for() -> None:
    for table in (RESOURCE_KEYS, NODE_KEYS, MOUNT_KEYS, PRESTART_KEYS, SETTINGS_KEYS):
        for key in table:
            assert key.doc
            assert key.schema


def test_architecture_draws_every_folder_with_its_files() -> None:
    program = ROOT / "genericdp"
    on_disk = {
        str(folder.relative_to(ROOT)): {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
        for folder in (program, *program.rglob("*/"))
        if (folder / "__init__.py").exists()
    }
    assert drawn_tree() == on_disk


def drawn_tree() -> dict[str, set[str]]:
    """Folder -> its modules, as the picture in ARCHITECTURE.md has them."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    picture = text.partition("## The tree\n\n")[2].partition("\n\n")[0]
    found: dict[str, set[str]] = {}
    above: list[str] = []
    for line in picture.splitlines():
        first, *modules = line.split()
        if first.endswith("/"):
            depth = (len(line) - len(line.lstrip()) - 4) // 2
            above = [*above[:depth], first.rstrip("/")]
            found["/".join(above)] = set(modules)
        else:  # the files of the folder continue
            found["/".join(above)] |= {first, *modules}
    return found


def test_architecture_is_short() -> None:
    lines = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 118
    assert [line for line in lines if len(line) > 118] == []


def test_every_key_of_the_status_is_documented() -> None:
    text = (ROOT / "docs" / "status.md").read_text(encoding="utf-8")
    logged = Logged(0.0, "error", "x")
    problem = Problem(Location("x", 1), "x")
    inventory = inventory_of(
        TTYS + '[[resource]]\nname = "b"\nmatch = { SUBSYSTEM = "vc" }\nenv = { X = "{ID_NOWHERE}" }\n',
        a_usb_serial(0),
        a_terminal(),
    )
    (id_,) = inventory.offers["example.com/a"].ids
    facts = Facts(
        version="1",
        pid=1,
        settings=Settings(),
        now=0.0,
        unix_now=0.0,
        history=History(0.0),
        inventory=inventory,
        holdings={("example.com/a", id_): (Holder("a", "b", "c"),)},
        files=[InEffect("a", "b")],
        problems=[problem],
        logged=[logged],
    )
    names = {*keys_of(report(facts))}
    assert {"heldBy", "notOffered", "outdated", "column", "count", "present"} <= names
    assert {name for name in names if not re.search(rf"`{name}(\[\])?`", text)} == set()


def keys_of(value: object) -> Iterable[str]:
    """Every key of a JSON value, however deep; the fields of a log line are of its own."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield key
            if key != "fields":
                yield from keys_of(below)
    if isinstance(value, list):
        for each in value:
            yield from keys_of(each)


def test_every_event_and_its_keys_are_documented_and_nothing_else() -> None:
    text = (ROOT / "docs" / "monitor.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z]+)` \| (.*) \|$", text, re.MULTILINE))
    assert [*rows] == ["event", *Kind]
    assert [*WORDS] == [*Kind]
    before, after = inventory_of(""), inventory_of(TTYS, a_usb_serial(0))
    (offer,) = after.offers.values()
    stick = a_usb_serial(0)
    made = [
        events.of_begin("1", "serving", "daemon"),
        *events.of_uevents([Uevent("add", stick.sys_path, "tty", "udev")], before, after),
        *events.of_changes(news(before, after)),
        events.of_list(None, offer),
        events.of_registration("a", "registering", registered=False, error=""),
        events.of_kubelet(there=True),
        events.of_allocation("a", ["b"], ""),
        events.of_stop("a", "b", Holder("c", "d", "e"), "unplug", ""),
        events.of_rules(1, 0),
        events.of_deafness(Deafness(None)),
        events.of_resync(Resync(RescanCause.DEAF)),
        events.of_lost(1),
    ]
    assert {event["event"] for event in made} == {*Kind}
    for event in made:
        names = {*keys_of(event)} - {"event"}
        assert names, event
        row = rows[str(event["event"])]
        assert {name for name in names if not re.search(rf"`{name}`", row)} == set(), event


def test_every_metric_is_documented_with_its_labels_and_nothing_else() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `((?:genericdp|process)_[a-z_]+)` \| ([^|]*) \| [^|]+ \|$", text, re.MULTILINE)
    documented = [(name, tuple(re.findall(r"`([a-z]+)`", labels))) for name, labels in rows]
    declared = [
        (family.name, ("le",) if family.kind == "histogram" else family.labels) for family in FAMILIES
    ]
    assert documented == declared


def test_architecture_draws_the_layers_that_are_held() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    held = [
        [re.split(r" [|:] ", layer) for layer in contract["layers"]]
        for contract in contracts
        if contract.get("containers") in (["genericdp"], ["genericdp.core"])
    ]
    picture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    drawn = picture.partition("and of its core:\n\n")[2].partition("\n\n")[0].splitlines()
    middle = drawn[0].index("core:")
    package = [line[:middle].strip() for line in drawn]
    core = [line[middle:].strip() for line in drawn if line[middle:]]
    assert core[0] == "core:"
    assert [[layer.split(" · ") for layer in layers] for layers in (package, core[1:])] == held


def test_every_rule_for_who_comes_from_another_plugin_is_good() -> None:
    sections = re.split(r"^## ", page("coming-from.md"), flags=re.MULTILINE)[1:]
    assert len(sections) == 6
    for section in sections[:4]:
        rows = re.findall(r"^\| (.*) \| (.*) \|$", section.replace("\\|", "\0"), re.MULTILINE)
        lines = [
            line.replace("\0", "|") for _, rule in rows for line in re.findall(r"`([^`]+ = [^`]+)`", rule)
        ]
        assert len(lines) >= 3
        for text in [*map(as_a_resource, lines), *blocks("toml", section)]:
            resources, problems = parse_rules("coming-from.md", text, DEFAULT_DOMAIN)
            assert [problem.render() for problem in problems] == []
            assert resources


def as_a_resource(line: str) -> str:
    """A rule file with one key that is shown, and what it needs beside that."""
    key = line.partition(" = ")[0]
    needed = {"name": 'name = "x"', "match": 'match = { SUBSYSTEM = "tty" }'}
    return "\n".join(["[[resource]]", line, *(each for name, each in needed.items() if name != key), ""])
