"""The image as a container runtime unpacks it, read by tools that did not build it.

The rules of this file:

* skopeo reads the archive, umoci unpacks the layers; nothing of packaging/image takes part.
"""

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The image for one architecture, in Debian's words: its root file system and configuration."""

    archive: Path
    architecture: str
    root: Path
    config: Mapping[str, Any]


def archive() -> Path:
    """The archive that `make image` wrote."""
    (found,) = (CHECKOUT / "build/image").glob("genericdp_*.oci.tar")
    return found


def unpack(source: Path, architecture: str, to: Path) -> Unpacked:
    """Unpack the image for an architecture into a new directory. Raises CalledProcessError."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    chosen = ["--override-arch=arm", "--override-variant=v7"]
    if architecture != "armhf":
        chosen = [f"--override-arch={architecture}"]
    run(
        "skopeo",
        "--insecure-policy",
        *chosen,
        "copy",
        "--quiet",
        f"oci-archive:{source}",
        f"oci:{to}/layout:it",
    )
    run("umoci", "unpack", "--image", f"{to}/layout:it", str(to / "bundle"))
    config = json.loads(run("skopeo", "inspect", "--config", f"oci:{to}/layout:it"))
    return Unpacked(source, architecture, to / "bundle/rootfs", config)


def run(*command: str) -> str:
    """What a command prints. AssertionError with all that it printed unless it succeeds."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout
