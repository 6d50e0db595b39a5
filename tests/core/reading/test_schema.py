"""The schemas accept whatever the parser accepts; the mistakes that they cannot see are listed here."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import tomli

from genericdp.cli.main import main
from genericdp.core.reading import schema
from genericdp.core.reading.match import MATCHERS, USB_KEYS
from genericdp.core.reading.parse import parse_rules, parse_settings
from genericdp.core.reading.resource import MOUNT_KEYS, NODE_KEYS, PRESTART_KEYS, RESOURCE_KEYS
from genericdp.core.reading.settings import SETTINGS_KEYS
from genericdp.core.reading.table import Key
from genericdp.core.rules.resource import KERNEL_NAME

ROOT = Path(__file__).resolve().parents[3]
RULES = ROOT / "tests" / "data" / "rules"
GOOD = sorted([*(RULES / "good").glob("*.toml"), *(ROOT / "examples").glob("*.toml")])
BAD = sorted((RULES / "bad").glob("*.toml"))

#: Mistakes that a schema has no words for: 'genericdp check' finds them.
ONLY_CHECK_SEES = {
    "attribute-of-elsewhere",
    "bad-cdi-name",
    "bad-devlink-glob",
    "bad-glob",
    "unknown-class-in-a-glob",
    "collating-symbol-in-a-glob",
    "bad-hex-glob",
    "bad-regex",
    "bound-is-infinite",
    "bounds-exchanged",
    "cdi-name-in-an-annotation",
    "cdi-name-of-bad-parts",
    "container-path-below-another-one",
    "container-path-goes-up",
    "container-path-is-a-directory",
    "container-path-with-a-long-name",
    "devlinks-below-the-container-path",
    "devname-is-a-kernel-name",
    "devname-of-which-one-is-a-kernel-name",
    "devname-that-excludes-a-kernel-name",
    "debounce-too-long",
    "devname-without-its-first-slash",
    "domain-too-long",
    "glob-that-ends-in-a-backslash",
    "glob-too-long",
    "health-poll-of-properties",
    "health-poll-without-health",
    "health-poll-too-long",
    "hex-id-too-long",
    "identity-of-all",
    "mount-at-a-device-node",
    "mount-below-a-device-node",
    "mount-of-a-device",
    "pci-address-without-a-domain",
    "pci-class-without-its-interface",
    "pci-id-with-a-slash",
    "pci-id-without-a-device",
    "prestart-too-long",
    "nested-too-deeply",
    "regex-too-large",
    "regex-with-a-huge-number",
    "regex-with-an-anchor-inside",
    "regex-with-look-ahead",
    "same-container-path-by-default",
    "same-container-path-twice",
    "same-env-name",
    "same-name-twice",
    "shared-at-the-path-of-the-device",
    "shared-with-an-index",
    "shared-without-a-match",
    "too-many-parts",
    "usb-port-empty",
}

#: Values of all kinds, good for some keys and wrong for the others, as they are written; two spaces apart.
VALUES = RULES / "values.txt"


def values() -> list[str]:
    return VALUES.read_text(encoding="utf-8").replace("\n", "  ").strip().split("  ")


def validator(of: Mapping[str, Any]) -> Any:
    jsonschema.Draft7Validator.check_schema(of)
    jsonschema.Draft4Validator.check_schema(of)
    return jsonschema.Draft7Validator(of)


TAKES_RULES = validator(schema.rules_schema())
TAKES_SETTINGS = validator(schema.settings_schema())


def mistakes(file: Path) -> list[str]:
    return [error.message for error in TAKES_RULES.iter_errors(tomli.loads(file.read_text(encoding="utf-8")))]


@pytest.mark.parametrize("file", GOOD, ids=lambda path: str(path.name))
def test_a_good_rule_file_satisfies_the_schema(file: Path) -> None:
    _, problems = parse_rules(file.name, file.read_text(encoding="utf-8"), "example.com")
    assert [problem.render() for problem in problems] == []
    assert mistakes(file) == []


def test_the_good_rule_files_have_every_key_and_matcher() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in GOOD)
    tables = (RESOURCE_KEYS, NODE_KEYS, MOUNT_KEYS, PRESTART_KEYS)
    names = {key.name for table in tables for key in table} | {*USB_KEYS}
    names |= {matcher.name for matcher in MATCHERS}
    assert {name for name in names if f"{name} =" not in text} - {"node"} == set()


@pytest.mark.parametrize("file", BAD, ids=lambda path: str(path.stem))
def test_a_bad_rule_file_is_refused_where_a_schema_can_see_why(file: Path) -> None:
    try:
        found = mistakes(file)
    except ValueError:
        return  # no TOML, or no text: an editor says so without a schema
    where = f"if a schema cannot see what is wrong with '{file.stem}', ONLY_CHECK_SEES has to name it"
    assert bool(found) == (file.stem not in ONLY_CHECK_SEES), (where, found)


def test_what_only_check_sees_is_in_the_corpus() -> None:
    assert {path.stem for path in BAD} >= ONLY_CHECK_SEES


RESOURCE = '[[resource]]\nname = "a"\nmatch = { ID_X = "1" }\n'
TABLES = {
    "resource": (RESOURCE_KEYS, {"name": '"a"', "match": '{ ID_X = "1" }'}, "[[resource]]\n"),
    "node": (NODE_KEYS, {}, f"{RESOURCE}[[resource.node]]\n"),
    "mount": (
        MOUNT_KEYS,
        {"host_path": '"/a"', "container_path": '"/b"'},
        f"{RESOURCE}[[resource.mounts]]\n",
    ),
    "prestart": (PRESTART_KEYS, {}, f"{RESOURCE}[resource.prestart]\n"),
}
CONDITIONS = [
    "SUBSYSTEM",
    "ID_VENDOR_ID",
    *(matcher.name for matcher in MATCHERS),
    "KERNEL",
    "ATTRS{x}",
    "ATTR{x}",
    "ATTR{idVendor}",
]


def rule_files() -> Iterator[str]:
    """Every key and condition with every value, good ones and bad ones."""
    for keys, needed, head in TABLES.values():
        for key in keys:
            for value in values():
                written = {**needed, key.name: value}
                yield head + "".join(f"{name} = {text}\n" for name, text in written.items())
    start = '[[resource]]\nname = "a"\n'
    for value in values():
        yield from (f'{start}match = {{ "{key}" = {value} }}\n' for key in CONDITIONS)
        yield from (f"{start}match = {{ usb = {{ {key} = {value} }} }}\n" for key in (*USB_KEYS, "driver"))


def test_what_the_parser_takes_the_schema_takes() -> None:
    taken = refused = 0
    for number, text in enumerate(rule_files()):
        _, problems = parse_rules("x.toml", text, "example.com")
        # Of what the parser refuses, the schema may take some; a part shows that it does not take all.
        if problems and number % 5:
            continue
        sound = TAKES_RULES.is_valid(tomli.loads(text))
        assert sound or problems, text
        taken += not problems
        refused += not sound
    assert taken > 500
    assert refused > 600


def test_what_the_parser_takes_as_settings_the_schema_takes() -> None:
    taken = 0
    for key in SETTINGS_KEYS:
        for value in values():
            text = f"{key.name} = {value}\n"
            _, problems = parse_settings("x.toml", text)
            assert problems or TAKES_SETTINGS.is_valid(tomli.loads(text)), text
            taken += not problems
    assert taken > len(SETTINGS_KEYS)


def test_a_default_that_is_shown_is_the_one_that_holds() -> None:
    shown: dict[str, Any] = {name: each["default"] for name, each in _defaults(schema.settings_schema())}
    assert shown["coalesce"] == "100ms"
    text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in shown.items())
    assert parse_settings("x.toml", text) == parse_settings("x.toml", "")

    for name, (keys, needed, head) in TABLES.items():
        text = head + "".join(f"{key} = {value}\n" for key, value in needed.items())
        shown = {key: each["default"] for key, each in _defaults(schema.table(keys))}
        spelt = text + "".join(f"{key} = {json.dumps(value)}\n" for key, value in shown.items())
        assert shown, name
        assert (
            parse_rules("x", spelt, "example.com") == parse_rules("x", text, "example.com")
            or name == "prestart"
        )


def _defaults(of: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    return [(name, each) for name, each in of["properties"].items() if "default" in each]


@pytest.mark.parametrize(
    ("default", "written"),
    [
        (False, False),
        (600.0, "10m"),
        (86400.0, "1d"),
        (90.0, "90s"),
        (0.1, "100ms"),
        ("", None),
        ("rw", "rw"),
        ((KERNEL_NAME,), "/dev/{devname}"),
        ((), None),
        (None, None),
    ],
)
def test_a_default_is_shown_as_it_would_be_written(default: Any, written: Any) -> None:
    assert schema.as_written(default) == written


def test_every_key_of_the_schema_says_what_it_is_for() -> None:
    for table in (RESOURCE_KEYS, NODE_KEYS, MOUNT_KEYS, PRESTART_KEYS, SETTINGS_KEYS):
        described = schema.table(table)["properties"]
        assert {name: each["description"] for name, each in described.items()} == docs(table)


def docs(table: tuple[Key, ...]) -> dict[str, str]:
    return {key.name: key.doc for key in table}


@pytest.mark.parametrize("word", ["rules", "settings"])
def test_the_verb_prints_what_is_shipped(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", word]) == 0
    assert capsys.readouterr().out == (ROOT / f"generated/schema/{word}.json").read_text(encoding="utf-8")
