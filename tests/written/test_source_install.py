"""What pip installs from the sources: built without network, whole, and working.

The rules of this file:

* The build runs in a network namespace of its own, with nothing in it: what it needs is here already.
* What is built is a copy of the tree as git knows it: a forgotten file is missing there, too.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from genericdp import VERSION

CHECKOUT = Path(__file__).resolve().parents[2]
WHEEL = f"genericdp-{VERSION}-py3-none-any.whl"
SDIST = f"genericdp-{VERSION}.tar.gz"

#: A user may leave the network, too, as root of a user namespace.
LEAVE = ("unshare", "--net") if os.geteuid() == 0 else ("unshare", "--net", "--map-root-user")


def offline(*command: str, cwd: Path) -> str:
    """Run a command without network; returns what it prints."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PIP_"))}
    done = subprocess.run(
        [*LEAVE, *command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built(tree: Path, kind: str, to: Path) -> Path:
    """Build an sdist or a wheel as pip and `python -m build` do it: by the backend's own functions."""
    to.mkdir(exist_ok=True)
    script = f"from setuptools import build_meta; build_meta.build_{kind}({str(to)!r})"
    offline(sys.executable, "-c", script, cwd=tree)
    (made,) = to.iterdir()
    return made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of this tree."""
    work = tmp_path_factory.mktemp("sdist")
    subprocess.run([f"{CHECKOUT}/.ci/tree", str(work / "tree")], check=True)
    return built(work / "tree", "sdist", work / "dist")


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, made from the sdist."""
    work = tmp_path_factory.mktemp("wheel")
    # Not tarfile: the filters that make its extractall safe came with Python 3.11.4.
    subprocess.run(["tar", "--extract", f"--file={sdist}", f"--directory={work}"], check=True)
    return built(work / f"genericdp-{VERSION}", "wheel", work / "dist")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel in it, and with the libraries that the tests run on."""
    place = tmp_path_factory.mktemp("installed")
    venv.create(place, with_pip=True)
    pip = (str(place / "bin/python"), "-m", "pip", "--quiet", "--disable-pip-version-check")
    offline(*pip, "install", "--no-index", "--no-deps", str(wheel), cwd=place)
    (libraries,) = (place / "lib").glob("python*/site-packages")
    # A path and not a site directory: the editable install that is there, too, stays out.
    (libraries / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place


def test_the_sdist_has_the_whole_tree(sdist: Path, tmp_path: Path) -> None:
    subprocess.run([f"{CHECKOUT}/.ci/tree", str(tmp_path / "tree")], check=True)
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    tree = {str(path.relative_to(tmp_path / "tree")) for path in (tmp_path / "tree").rglob("*")}
    assert sdist.name == SDIST
    assert tree - packed == set()


def test_the_wheel_has_every_module_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    modules = {str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "genericdp").rglob("*.py")}
    assert wheel.name == WHEEL
    assert packed == {*modules, "genericdp/py.typed"}


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """Copies of the examples that belong to this user and that others cannot write."""
    copy = tmp_path / "examples"
    shutil.copytree(CHECKOUT / "examples", copy, copy_function=shutil.copyfile)
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return copy


def test_what_is_installed_works(installed: Path, examples: Path) -> None:
    genericdp = str(installed / "bin/genericdp")
    assert offline(genericdp, "--version", cwd=installed) == f"genericdp {VERSION}\n"
    where = "import genericdp; print(genericdp.__file__)"
    found = offline(str(installed / "bin/python"), "-c", where, cwd=installed)
    assert found.startswith(str(installed))
    assert offline(genericdp, "check", str(examples), cwd=installed).endswith(": no mistakes\n")
    output = offline(
        genericdp,
        "simulate",
        "--rules",
        str(examples / "10-shared.toml"),
        "--for",
        "1",
        cwd=installed,
    )
    assert "The node offers:\n" in output


def test_what_is_installed_is_compiled(installed: Path) -> None:
    (libraries,) = (installed / "lib").glob("python*/site-packages/genericdp")
    assert len(list(libraries.rglob("*.pyc"))) == len(list(libraries.rglob("*.py")))


def test_the_unit_of_the_install_page_differs_in_what_it_starts(tmp_path: Path) -> None:
    page = (CHECKOUT / "docs/install.md").read_text(encoding="utf-8")
    (command,) = [line.removeprefix("# ") for line in page.splitlines() if line.startswith("# sed ")]
    unit = tmp_path / "genericdp.service"
    command = command.replace("/etc/systemd/system/genericdp.service", str(unit))
    subprocess.run(["sh", "-c", command], cwd=CHECKOUT, check=True)
    shipped = (CHECKOUT / "systemd/genericdp.service").read_text(encoding="utf-8")
    changed = [
        (before, after)
        for before, after in zip(shipped.splitlines(), unit.read_text().splitlines(), strict=True)
        if before != after
    ]
    assert changed == [("ExecStart=/usr/bin/genericdp run", "ExecStart=/opt/genericdp/bin/genericdp run")]
