"""Where the settings come from, and what an operator reads about a mistake in them."""

from pathlib import Path

import pytest

from genericdp.errors import ConfigError
from genericdp.files import settings
from genericdp.files.settings import read_settings


def write(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o644)
    return str(path)


def test_settings_without_a_file_are_the_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(settings, "SETTINGS_FILE", str(tmp_path / "nowhere.toml"))
    assert read_settings(None) == read_settings(write(tmp_path / "empty.toml", ""))


def test_settings_with_a_mistake_are_an_error(tmp_path: Path) -> None:
    file = write(tmp_path / "genericdp.toml", 'domain = "x.example"\n')
    assert read_settings(file).domain == "x.example"
    write(Path(file), "domain = 1\n")
    with pytest.raises(ConfigError) as caught:
        read_settings(file)
    assert str(caught.value) == (
        f"{file}:1:10: error: 'domain' must be a string, not the number 1\n"
        "    1 | domain = 1\n"
        "      |          ^\n"
        '  hint: write "1"'
    )


def test_settings_that_are_still_being_written_are_an_error(tmp_path: Path) -> None:
    file = write(tmp_path / "genericdp.toml", 'domain = "x.example"\n')
    with Path(file).open("a"), pytest.raises(ConfigError) as caught:
        read_settings(file)
    assert str(caught.value) == (
        f"{file}: error: is open for writing and may be incomplete\n"
        f"  hint: it is read once it is closed; 'fuser -v {file}' shows which process has it open"
    )
