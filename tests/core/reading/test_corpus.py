"""Rule files with a mistake, and the exact text that `genericdp check` prints for each.

To add a case, put the file into tests/data/rules/bad, run the test, read what it prints with an
operator's eyes, and save that as the .txt beside it.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from genericdp.cli.verbs.check import run

BAD = Path(__file__).resolve().parents[2] / "data" / "rules" / "bad"
CASES = sorted(path for path in BAD.iterdir() if path.suffix != ".txt")

#: Prints what `check` prints, for many files in one process.
CHECK_ALL = """
import contextlib, io, sys
from genericdp.cli.verbs.check import run
for path in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        status = run(paths=[path], format="human", rules=[], config="/dev/null", domain=None)
    print(path, status)
    print(printed.getvalue())
"""


@pytest.fixture(autouse=True)
def in_the_corpus(monkeypatch: pytest.MonkeyPatch, corpus: Path) -> None:
    monkeypatch.chdir(corpus)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy that belongs to us and that nobody else may write, whoever cloned the repository."""
    copy = tmp_path_factory.mktemp("rules") / "bad"
    shutil.copytree(BAD, copy, copy_function=shutil.copyfile)
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return copy


def expected(case: Path) -> str:
    return case.with_suffix(".txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.stem))
def test_a_mistake_is_shown_where_it_is_with_what_to_do(
    case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run(paths=[case.name], format="human", rules=[], config="/dev/null", domain=None)
    assert capsys.readouterr().out == expected(case)
    assert status == 1


def test_every_text_has_its_file() -> None:
    assert {path.stem for path in BAD.glob("*.txt")} == {case.stem for case in CASES}
    assert len(CASES) >= 50


def test_the_older_reader_of_toml_gives_the_same_texts() -> None:
    result = subprocess.run(
        [os.environ["GENERICDP_FLOOR_PYTHON"], "-c", CHECK_ALL, *(case.name for case in CASES)],
        env={**os.environ, "PYTHONPATH": str(BAD.parents[3])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "".join(f"{case.name} 1\n{expected(case)}\n" for case in CASES)
