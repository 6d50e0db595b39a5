"""The next version of the package, made from the same tree: what an upgrade is tried with."""

import subprocess
import sys
from pathlib import Path

from genericdp import VERSION

#: Higher than what is installed, and lower than whatever is released next.
NEXT = f"{VERSION}.post1"

#: Where the two differ besides: a default that the new version comments otherwise.
SETTINGS_LINE = "# After an upgrade, this is new.\n"


def build(checkout: Path, work: Path) -> Path:
    """Make the tree the next version and build its package as any other. Exits when it cannot be built."""
    subprocess.run(["rm", "-rf", str(work)], check=True)
    subprocess.run([f"{checkout}/.ci/tree", str(work)], check=True)
    _replace(work / "genericdp/__init__.py", f'"{VERSION}"', f'"{NEXT}"')
    _replace(work / "packaging/debian/changelog", f"({VERSION}-", f"({NEXT}-")
    settings = work / "packaging/genericdp.toml"
    settings.write_text(SETTINGS_LINE + settings.read_text())
    # What it says is only of interest when it fails, and then it is seen.
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
    assert old in text, f"{file} does not say {old}"
    file.write_text(text.replace(old, new, 1))
