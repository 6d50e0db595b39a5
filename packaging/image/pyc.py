"""pyc.py ROOT FOLDER…: compiles all modules in folders of a root file system. Runs on the image's Python.

The rules of this file:

* unchecked-hash (PEP 552): nobody edits the sources in an image, and each start would compare them in vain.
* The same source makes the same bytes. marshal marks an object as shared if anything else in the process
  refers to it, by accident or not. So here everything is shared.
"""

import importlib.util
import marshal
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

_PARTS = (
    "co_cellvars",
    "co_consts",
    "co_exceptiontable",
    "co_filename",
    "co_freevars",
    "co_linetable",
    "co_name",
    "co_names",
    "co_qualname",
    "co_varnames",
)

#: Hash-based, not to be checked.
_FLAGS = (1).to_bytes(4, "little")


def compiled(source: bytes, path: str) -> bytes:
    """The byte code of a module that will be found under this path."""
    code = compile(source, path, "exec", dont_inherit=True)
    shared = list(_parts(code))
    content = marshal.dumps(code)
    del shared
    return importlib.util.MAGIC_NUMBER + _FLAGS + importlib.util.source_hash(source) + content


def _parts(value: object) -> Iterator[object]:
    yield value
    if isinstance(value, CodeType):
        for name in _PARTS:
            yield from _parts(getattr(value, name))
    elif isinstance(value, tuple | frozenset):
        for each in value:
            yield from _parts(each)


def main(root: Path, folders: list[str]) -> None:
    """Compile all modules in folders of `root`, which will be found below /."""
    for folder in folders:
        for source in sorted((root / folder).rglob("*.py")):
            target = Path(importlib.util.cache_from_source(os.fspath(source)))
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(compiled(source.read_bytes(), f"/{source.relative_to(root)}"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
