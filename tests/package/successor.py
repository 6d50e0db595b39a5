"""The next version of the package, made from the same tree, to test an upgrade."""

import subprocess
import sys
from pathlib import Path

from genericdp import VERSION

#: Higher than the installed version, lower than any later release.
NEXT = f"{VERSION}.post1"

#: The other difference: a comment in the new version's default settings.
SETTINGS_LINE = "# After an upgrade, this is new.\n"


def build(checkout: Path, work: Path) -> Path:
    """Build the package of the next version from a copy of the tree. Exits if that fails."""
    subprocess.run(["rm", "-rf", str(work)], check=True)
    subprocess.run([f"{checkout}/.ci/tree", str(work)], check=True)
    _replace(work / "genericdp/__init__.py", f'"{VERSION}"', f'"{NEXT}"')
    _replace(work / "packaging/debian/changelog", f"({VERSION}-", f"({NEXT}-")
    settings = work / "packaging/genericdp.toml"
    settings.write_text(SETTINGS_LINE + settings.read_text())
    # Its output is shown only if it fails.
    made = subprocess.run(
        [f"{work}/.ci/deb"],
        cwd=work,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if made.returncode:
        sys.exit(f"{made.stdout}the next version of the package could not be built in {work}")
    (deb,) = (work / "dist").glob("*.deb")
    return deb


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text, f"{file} does not contain {old}"
    file.write_text(text.replace(old, new, 1))
