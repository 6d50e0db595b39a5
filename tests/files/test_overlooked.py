"""Files in rule directories that look like rule files and define nothing."""

from pathlib import Path

import pytest

from genericdp.files.overlooked import is_overlooked, notes


@pytest.mark.parametrize(
    "name", ["60.TOML", "meter.Toml", "60-meter", "60-meter.txt", "meter.conf", "meter.tml"]
)
def test_a_name_that_is_nearly_right_may_have_been_meant(name: str) -> None:
    assert is_overlooked(name)


@pytest.mark.parametrize(
    "name",
    [
        "60-meter.toml",
        "60-meter.toml~",
        "60-meter.toml.dpkg-old",
        "60-meter.bak",
        ".60-meter.toml.swp",
        ".60.TOML",
        "#60-meter.toml#",
        "README",
        "README.md",
        "rules.schema.json",
        "LICENSE",
    ],
)
def test_rule_files_backups_and_other_files_were_not(name: str) -> None:
    assert not is_overlooked(name)


def test_an_empty_file_is_noted_unless_it_disables_another(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    for folder in (first, second, first / "70-folder"):
        folder.mkdir()
    (first / "50-a.toml").write_text("# a rule file\n")
    (first / "60.TOML").write_text("")
    (first / ".hidden.toml").write_text("")
    (second / "50-a.toml").write_text("")
    (second / "55-b.toml").symlink_to("/dev/null")
    (second / "60-c.toml").write_text("")
    alone = tmp_path / "d.toml"
    alone.write_text("")

    assert notes([str(first), str(second), str(alone), str(tmp_path / "missing")]) == (
        f"{first}/60.TOML is not read: the name of a rule file ends in .toml",
        f"{second}/60-c.toml is empty: it defines no resource",
        f"{alone} is empty: it defines no resource",
    )
