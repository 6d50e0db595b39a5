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


@pytest.mark.parametrize(
    ("what", "why", "hint"),
    [
        (
            "a dangling symlink",
            "No such file or directory",
            "check the spelling; a symlink on the way may lead to nothing",
        ),
        (
            "a dangling symlink above",
            "No such file or directory",
            "check the spelling; a symlink on the way may lead to nothing",
        ),
        (
            "a circle",
            "Too many levels of symbolic links",
            "the symlinks on the way lead in a circle; point them at a file",
        ),
        ("a file above", "Not a directory", "check the spelling; something on the way is not a directory"),
    ],
)
def test_only_a_name_that_is_not_there_means_no_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, what: str, why: str, hint: str
) -> None:
    """A file system that is mounted late must not mean other settings until then."""
    file = tmp_path / "etc" / "genericdp.toml"
    monkeypatch.setattr(settings, "SETTINGS_FILE", str(file))
    match what:
        case "a dangling symlink":
            file.parent.mkdir(mode=0o755)
            file.symlink_to(tmp_path / "not_mounted" / "genericdp.toml")
        case "a dangling symlink above":
            file.parent.symlink_to(tmp_path / "not_mounted")
        case "a circle":
            file.parent.mkdir(mode=0o755)
            file.symlink_to("genericdp.toml")
        case _:
            write(file.parent, "")
    with pytest.raises(ConfigError) as caught:
        read_settings(None)
    assert str(caught.value) == f"{file}: error: cannot be read: {why}\n  hint: {hint}"


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
        f"  hint: it is read once it is closed; to see which process has it open: fuser -v '{file}'"
    )
