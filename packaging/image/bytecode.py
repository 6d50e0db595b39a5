"""Python's byte code, compiled by the Python of the image.

The rules of this file:

* Byte code is the same on every architecture, so a Python that runs here compiles for all of them.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from debian import PYTHON
from tree import File

#: What is compiled; the launcher in /usr/bin is too short.
_FOLDERS = ("usr/lib/python3", f"usr/lib/{PYTHON}", "usr/share/genericdp")


_COMPILE = Path(__file__).with_name("pyc.py")


class Compiler:
    """The Python of an image for this machine, unpacked into an empty directory."""

    def __init__(self, image: Mapping[str, File], directory: Path) -> None:
        self._root = directory
        unpack(image, directory)
        (self._loader,) = (directory / "usr/lib").glob("*-linux-*/ld-linux*.so.*")

    def compiled(self, image: Mapping[str, File], directory: Path) -> dict[str, File]:
        """The byte code for all modules of an image. Works in an empty directory."""
        sources = {path: file for path, file in image.items() if path.endswith(".py")}
        unpack(sources, directory)
        self._run(str(_COMPILE), str(directory), *_FOLDERS)
        found = sorted(directory.rglob("*.pyc"))
        return {str(path.relative_to(directory)): File(path.read_bytes()) for path in found}

    def _run(self, *arguments: str) -> None:
        """Run this Python, in its own root without chroot(2), which only root may use."""
        program = self._root / "usr/bin" / PYTHON
        command = [str(self._loader), "--library-path", str(self._loader.parent), str(program)]
        # -W: warnings about the code of others help nobody.
        environment = {"PYTHONHOME": str(self._root / "usr"), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
        subprocess.run([*command, "-BsS", "-W", "ignore", *arguments], env=environment, check=True)


def unpack(image: Mapping[str, File], directory: Path) -> None:
    """Write files below a directory."""
    for path, file in image.items():
        place = directory / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if file.target:
            place.symlink_to(file.target)
        else:
            place.write_bytes(file.content)
            place.chmod(file.mode)
