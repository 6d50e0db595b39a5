"""What the verbs say of device nodes that udev does not know. The nodes are real; so this needs root."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from genericdp.cli.main import main
from tests.scenes.dev import a_directory, make_node


@pytest.fixture
def dev() -> Iterator[Path]:
    with a_directory() as path:
        yield path


@pytest.fixture
def rules(tmp_path: Path, dev: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    path = Path("50-acme.toml")
    path.write_text(f'[[resource]]\nname = "acme"\nmatch = {{ DEVNAME = "{dev}/acme*" }}\n')
    path.chmod(0o644)
    return str(path)


class Answers:
    """Runs a verb, and returns what it prints, with the directory as /dev/X and any hash as HASH."""

    def __init__(self, capsys: pytest.CaptureFixture[str], dev: Path) -> None:
        self._capsys, self._dev = capsys, dev

    def to(self, *command: str, status: int = 0) -> str:
        assert main([*command]) == status
        out, err = self._capsys.readouterr()
        text = (out + err).replace(str(self._dev), "/dev/X").replace(self._dev.name, "X")
        return re.sub(r"_[a-z2-7]{10}\b", "_HASH", text)


@pytest.fixture
def answers(capsys: pytest.CaptureFixture[str], dev: Path, monkeypatch: pytest.MonkeyPatch) -> Answers:
    monkeypatch.setenv("COLUMNS", "160")
    return Answers(capsys, dev)


def test_list_says_what_is_a_path_and_not_a_unit(answers: Answers, dev: Path, rules: str) -> None:
    make_node(dev / "acme0", 0)
    make_node(dev / "acme1", 3, major=1)

    shown = answers.to("list", "--rules", rules, "--config", "/dev/null")

    assert re.sub(" +", " ", shown) == (
        " DEVICE HEALTH NODE LINK\n"
        "genericdp.io/acme: 1 device\n"
        " acme_X-acme0_HASH Healthy /dev/X/acme0\n"
        "\n"
        "Stable links would be /dev/genericdp/DEVICE.\n"
        "\n"
        "Matched by a rule but not offered:\n"
        " genericdp.io/acme: it has the number of '/dev/null', c 1:3; match that device node instead\n"
        " /dev/X/acme1\n"
        "\n"
        "Paths, not physical units; udev does not know these device nodes:\n"
        " genericdp.io/acme\n"
        " /dev/X/acme0\n"
    )


def test_all_nodes_include_those_that_no_rule_names(answers: Answers, dev: Path) -> None:
    make_node(dev / "acme0", 0)
    make_node(dev / "acme1", 0)
    make_node(dev / "acme2", 2)

    document = json.loads(answers.to("list", "--all", "--json", "--rules", "/dev/null"))

    here = [each for each in document["notTaken"] if each["node"].startswith("/dev/X/")]
    same = "udev does not know it, and '{}' has the same number, c 4000:0"
    assert [(each["node"], each["reason"]) for each in here] == [
        ("/dev/X/acme0", same.format("/dev/X/acme1")),
        ("/dev/X/acme1", same.format("/dev/X/acme0")),
        ("/dev/X/acme2", ""),
    ]
    lines = answers.to("list", "--all", "--rules", "/dev/null").splitlines()
    (line,) = (line for line in lines if "/dev/X/acme2" in line)
    assert line.split(maxsplit=2) == ["/dev/X/acme2", "-", "udev does not know it"]


def test_check_notes_what_it_finds_here(answers: Answers, dev: Path, rules: str) -> None:
    for minor in range(12):
        make_node(dev / f"acme{minor:02}", minor)
    make_node(dev / "acme12", 3, major=1)
    known = ", ".join(f"/dev/X/acme{minor:02}" for minor in range(10))

    shown = answers.to("check", rules, "--config", "/dev/null")

    assert shown.replace("\n", " ") == (
        f"note: genericdp.io/acme: udev does not know {known} and 2 more; an id stands for a path there, "
        "not for a physical unit "
        "note: genericdp.io/acme would not get /dev/X/acme12: it has the number of '/dev/null', c 1:3; match "
        "that device node instead "
        "1 rule file, 1 resource: no mistakes "
    )
    document = json.loads(answers.to("check", "--json", rules, "--config", "/dev/null"))
    assert document["bareNodes"][0] == {
        "node": "/dev/X/acme00",
        "resource": "genericdp.io/acme",
        "reason": "",
    }


def test_explain_says_what_is_known_and_why_a_node_is_refused(
    answers: Answers, dev: Path, rules: str
) -> None:
    make_node(dev / "acme0", 0)
    make_node(dev / "acme1", 3, major=1)

    shown = answers.to("explain", "--rules", rules, f"{dev}/acme0")
    assert shown.startswith(
        "/dev/X/acme0 goes to genericdp.io/acme as device acme_X-acme0_HASH\n"
        "Healthy\n"
        "\n"
        "  device node  /dev/X/acme0 (c 4000:0)\n"
        "  access       crw-r-----, owner root (0), group root (0)\n"
        "  udev         does not know this path, which is all that identifies it\n"
        "\n"
    )
    assert "only root can open /dev/X/acme0; set the mode where the node is created\n" in shown

    refused = answers.to("explain", "--rules", rules, f"{dev}/acme1", status=1)
    assert refused.startswith(
        "/dev/X/acme1 is not offered\n"
        "genericdp.io/acme matches, but it has the number of '/dev/null', c 1:3; match that device node "
        "instead\n"
    )


def test_explain_knows_a_node_that_no_rule_names_also_by_a_link(answers: Answers, dev: Path) -> None:
    make_node(dev / "acme0", 0)
    (dev / "link").symlink_to("acme0")

    shown = answers.to("explain", "--rules", "/dev/null", f"{dev}/link", status=1)
    assert shown.startswith("/dev/X/acme0 is not offered\nno rule file defines a resource\n")
    assert shown.endswith("To write a rule for it: genericdp suggest /dev/X/acme0\n")

    make_node(dev / "null", 3, major=1)
    refused = answers.to("explain", "--rules", "/dev/null", f"{dev}/null", status=1)
    assert refused.startswith(
        "/dev/X/null is not offered\n"
        "it has the number of '/dev/null', c 1:3; match that device node instead\n"
    )
    assert "genericdp suggest" not in refused


def test_suggest_matches_it_by_its_path(answers: Answers, dev: Path) -> None:
    make_node(dev / "acme0", 0)

    assert answers.to("suggest", f"{dev}/acme0") == (
        "# /etc/genericdp/rules.d/50-X-acme0.toml\n"
        "#\n"
        "# device: /dev/X/acme0\n"
        "#\n"
        "# By its path: udev does not know it, nor which unit is behind it.\n"
        "\n"
        "[[resource]]\n"
        'name = "X-acme0"  # pods request genericdp.io/X-acme0\n'
        'match = { DEVNAME = "/dev/X/acme0" }\n'
    )


def test_suggest_writes_no_rule_that_would_be_in_vain(
    dev: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    make_node(dev / "acme0", 3, major=1)

    assert main(["suggest", f"{dev}/acme0"]) == 1
    reason = "it has the number of '/dev/null', c 1:3; match that device node instead"
    assert capsys.readouterr() == ("", f"genericdp: error: no rule can offer '{dev}/acme0': {reason}\n")
