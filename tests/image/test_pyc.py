"""The byte code in the image: never compared with its source."""

import importlib.machinery
import importlib.util
from pathlib import Path

from pyc import compiled

SOURCE = b'''"""A module."""

NAMES = ("a", "b", ("a", 1.5, frozenset({"x"})))


def first(names: tuple[str, ...] = ("a", "b")) -> str:
    """The first one."""
    return [name for name in names if name != "b"][0]
'''


def test_the_byte_code_can_be_imported_and_is_not_checked_against_the_source(tmp_path: Path) -> None:
    content = compiled(SOURCE, "/usr/share/it.py")
    # PEP 552: hash-based, not to be checked.
    assert content[4:8] == (1).to_bytes(4, "little")
    assert content[8:16] == importlib.util.source_hash(SOURCE)
    file = tmp_path / "it.pyc"
    file.write_bytes(content)
    loader = importlib.machinery.SourcelessFileLoader("it", str(file))
    spec = importlib.util.spec_from_loader("it", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    assert module.first() == "a"
    assert module.first.__code__.co_filename == "/usr/share/it.py"
