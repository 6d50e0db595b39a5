"""Attacks by what is in files: rule files, settings, and the saved memory."""

import io
import json
import os
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import jsonschema
import tomli
from hypothesis import strategies as st

from genericdp.cli.main import main
from genericdp.core.allocate import RefusalReason, RefusedError, allocate
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.take import take_inventory
from genericdp.core.prefer import prefer
from genericdp.core.reading import toml
from genericdp.core.reading.parse import parse_rules, parse_settings
from genericdp.core.reading.schema import rules_schema, settings_schema
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError, Problem
from genericdp.files.rulefiles import RuleFiles
from genericdp.files.state import StateFile
from genericdp.kubelet.api.deviceplugin import AllocateResponse
from genericdp.kubelet.responses import add_answer, list_of
from tests.fuzz.grammar import rule_files, settings_files
from tests.fuzz.target import Target
from tests.properties.strategies import DOMAIN, Unit, booted, machines
from tests.properties.strategies import rules as some_rules
from tests.properties.test_laws_of_the_saved_memory import (
    documents,
    mutated,
    test_a_saved_memory_is_sound_or_refused,
)
from tests.scenes.state_file import save

_TAKES_RULES = jsonschema.Draft7Validator(rules_schema())
_TAKES_SETTINGS = jsonschema.Draft7Validator(settings_schema())

#: What a message begins with whose hint says what to write instead.
_WITH_HINT = ("unknown key", "unknown condition", "unknown form", "nested more than")

_KINDS = ("dongle", "quad", "modem", "camera", "keyboard")

#: What rules are judged on. What devices can say is a target of its own, see `devices`.
MACHINES: Mapping[str, Mapping[str, UdevDevice]] = {
    "bare": {},
    "polite": booted([Unit(kind, str(port), f"S{port}", kind) for port, kind in enumerate(_KINDS, 1)]),
    "twins": booted([Unit(kind, str(port), "S", "../x") for port, kind in enumerate(_KINDS * 3, 1)]),
    "hostile": booted(
        [
            Unit(kind, str(port), text, text)
            for port, (kind, text) in enumerate(
                zip(_KINDS * 3, ["a" * 4096, "-" * 4096, "\udcff\x1b[2J\n", "../..", ""], strict=False), 1
            )
        ]
    ),
}

#: What is in effect before a file is edited.
GOOD = '[[resource]]\nname = "before"\nmatch = { DEVNAME = "/dev/fuse" }\n'


def rule_file(attack: tuple[str, str]) -> None:
    """Rule files of every form, judged on machines with hostile devices."""
    written, machine = attack
    text = written.removeprefix("\ufeff")
    resources, problems = parse_rules("x.toml", text, DOMAIN)
    assert_sound(problems, text)
    if not problems:
        assert not [error.message for error in _TAKES_RULES.iter_errors(tomli.loads(text))]
        assert _as_read_by_tomllib(text, lambda: parse_rules("x.toml", text, DOMAIN)[0]) in (None, resources)
        _judge(resources, MACHINES[machine])
    with _a_file("50-x.toml", written) as path:
        assert len(_checked("--config", os.devnull, path)["problems"]) == len(problems)
        _assert_last_good_one_holds(path, None if problems else resources)


def settings(written: str) -> None:
    """Settings of every form."""
    text = written.removeprefix("\ufeff")
    read, problems = parse_settings("genericdp.toml", text)
    assert_sound(problems, text)
    if problems:
        assert read == Settings()
    else:
        assert not [error.message for error in _TAKES_SETTINGS.iter_errors(tomli.loads(text))]
        assert _as_read_by_tomllib(text, lambda: parse_settings("x.toml", text)[0]) in (None, read)
    with _a_file("genericdp.toml", written) as path, _a_file("50-x.toml", GOOD) as rules:
        assert len(_checked("--config", path, rules)["problems"]) == len(problems)


def saved_memory(attack: tuple[bytes, tuple[Resource, ...], tuple[Unit, ...], bool]) -> None:
    """Saved memories that were changed, and the lists for the kubelet that follow."""
    data, rules, units, knows = attack
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "memory.json"
        path.write_bytes(data)
        path.chmod(0o644)
        file = StateFile(directory)
        try:
            memory = file.load()
        except GenericdpError as error:
            assert f"{error}{error.hint}".isprintable()
            save(file, StateFile(os.path.join(directory, "none")).load())
            assert Path(f"{path}.broken").read_bytes() == data
            assert StateFile(directory).load() is not None
            return
        save(file, memory)
        again = StateFile(directory).load()
        assert again == memory
    law = test_a_saved_memory_is_sound_or_refused.hypothesis.inner_test  # type: ignore[attr-defined]
    law(json.loads(data), rules, units, knows)


def assert_sound(problems: tuple[Problem, ...], text: str) -> None:
    """Each problem is at a place that exists, says what, and what next where it promises that."""
    lines = text.split("\n")
    for problem in problems:
        place = problem.location
        assert 1 <= place.line <= len(lines)
        line = lines[place.line - 1].rstrip("\r")
        assert 1 <= place.column <= len(line) + 1
        assert place.length >= 1
        assert problem.source in ("", line)
        assert problem.message
        # Both may name the same key.
        assert len(problem.message) + len(problem.hint) < 2 * len(text) + 1000
        assert problem.hint or not problem.message.startswith(_WITH_HINT), problem.message
        for width in (None, 40):
            assert problem.render(width).startswith(f"{place}: error: ")


def _as_read_by_tomllib(text: str, read: Any) -> Any:
    """What is read of the text by the other reader of TOML; None if it refuses the text.

    A newer tomli reads TOML 1.1, Python's own up to 3.14 only TOML 1.0.
    """
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    toml.tomli, before = tomllib, toml.tomli  # type: ignore[attr-defined]
    try:
        return read()
    finally:
        toml.tomli = before  # type: ignore[attr-defined]


def _judge(resources: tuple[Resource, ...], devices: Mapping[str, UdevDevice]) -> None:
    # As the daemon does, which lists no more ids than the kubelet accepts.
    inventory, _ = take_inventory(Builder(resources, DOMAIN), devices, Memory(), 0.0)
    for offer in inventory.offers.values():
        listed = list_of(offer)
        assert all(device.ID for device in listed.devices)
        present = [id_ for id_, device in offer.ids.items() if device.nodes]
        try:
            answer = allocate(offer, present[:100], "/dev/genericdp")
        except RefusedError as refused:
            # A device may give itself so long a name that no container can have its path.
            assert refused.reason is RefusalReason.IMPOSSIBLE
            continue
        add_answer(AllocateResponse().container_responses, answer).SerializeToString()
        for word in (
            *(word for spec in answer.devices for word in (spec.container_path, spec.host_path)),
            *answer.envs,
            *answer.annotations,
        ):
            assert "\0" not in word
        assert len(prefer(offer, present, present[:1], min(2, len(present)), {})) == min(2, len(present))


@contextmanager
def _a_file(name: str, text: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, name)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(path, 0o644)
        yield path


def _checked(*arguments: str) -> Mapping[str, Any]:
    """What `check` prints as JSON, after it was printed for people and for GitHub."""
    _check("human", arguments)
    _check("github", arguments)
    status, shown = _check("json", arguments)
    found = json.loads(shown)
    assert isinstance(found, dict)
    assert status == (1 if found["problems"] else 0)
    return found


def _check(form: str, arguments: Sequence[str]) -> tuple[int, str]:
    """The status and the output."""
    shown, wrong = io.StringIO(), io.StringIO()
    with redirect_stdout(shown), redirect_stderr(wrong):
        status = main(["check", f"--format={form}", *arguments])
    assert status in (0, 1), wrong.getvalue()
    assert wrong.getvalue() == ""
    assert_calm(shown.getvalue())
    return status, shown.getvalue()


def assert_calm(shown: str) -> None:
    """A terminal shows it unchanged, and it can be written as UTF-8."""
    shown.encode()
    wrong = [char for char in shown if char not in "\n\t" and not char.isprintable()]
    assert not wrong, f"it prints {wrong[:5]!r}"


def _assert_last_good_one_holds(path: str, accepted: tuple[Resource, ...] | None) -> None:
    """An edit with a mistake changes nothing; `accepted`: what one without a mistake changes it to."""
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(GOOD)
    files = RuleFiles([path], DOMAIN)
    (before,) = files.resources
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    files.reload()
    assert files.resources == ((before,) if accepted is None else accepted)


@st.composite
def _memories(draw: st.DrawFn) -> bytes:
    """What the daemon saved, changed in some places, and perhaps in some bytes."""
    data = json.dumps(draw(documents | mutated())).encode()
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 3]))):
        start = draw(st.integers(0, len(data)))
        data = data[:start] + draw(st.binary(max_size=4)) + data[start + draw(st.integers(0, 20)) :]
    return data


TARGETS = (
    Target(rule_file, st.tuples(rule_files, st.sampled_from(sorted(MACHINES))), few=40, cpu_s=4.0),
    Target(settings, settings_files, few=30),
    Target(
        saved_memory,
        st.tuples(_memories(), some_rules, machines(3), st.booleans()),
        few=40,
    ),
)
