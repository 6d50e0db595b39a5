"""What is made from declarations in the program is what the program declares now."""

import pytest

from generate.files import ROOT, files

FILES = files()


@pytest.mark.parametrize("name", FILES)
def test_a_generated_file_is_up_to_date(name: str) -> None:
    path = ROOT / name
    up_to_date = path.exists() and path.read_text(encoding="utf-8") == FILES[name]
    assert up_to_date, f"{name} is not what the program declares: run 'make generate' and commit it"


@pytest.mark.parametrize("folder", sorted({name.partition("/")[0] for name in FILES}))
def test_nothing_else_lies_beside_the_generated_files(folder: str) -> None:
    assert {f"{folder}/{path.name}" for path in (ROOT / folder).iterdir()} <= {*FILES}
