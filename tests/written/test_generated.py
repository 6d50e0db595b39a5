"""What is made from declarations in the program is what the program declares now."""

import pytest

from generate.files import ROOT, files

FILES = files()


@pytest.mark.parametrize("name", FILES)
def test_a_generated_file_is_up_to_date(name: str) -> None:
    path = ROOT / name
    up_to_date = path.exists() and path.read_text(encoding="utf-8") == FILES[name]
    assert up_to_date, f"{name} is not what the program declares: run 'make generate' and commit it"


def test_nothing_else_lies_beside_the_generated_files() -> None:
    there = {str(path.relative_to(ROOT)) for path in (ROOT / "generated").rglob("*") if not path.is_dir()}
    assert there == {name for name in FILES if name.startswith("generated/")}
