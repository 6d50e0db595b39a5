"""The shape of the house: who may know whom, one door to each outside library, nothing unnamed.

The layers stand in pyproject.toml, where `lint-imports` finds them too.
"""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "genericdp").rglob("*.py"))
FOLDERS = sorted({path.parent for path in MODULES})
TESTS = sorted((ROOT / "tests").rglob("*.py"))

#: Outside library -> the modules that may import it. Everybody else asks them.
DOORS = {
    "pyudev": {"genericdp.udev"},
    "usb": {"genericdp.usb"},
    "inotify_simple": {"genericdp.watch"},
    "grpc": {"genericdp.kubelet", "genericdp.simulator"},
    "google": {"genericdp.kubelet"},
    "pytest": {"genericdp.simulator.pytest_plugin"},
    "tomli": {"genericdp.core.reading.positions", "genericdp.core.reading.toml"},
}

#: The limits of CONTRIBUTING.md: the files of a folder, `__init__.py` included, and the lines of a file.
MOST_FILES, MOST_LINES = 15, 300

#: Names that say nothing about what a module is for.
SAYING_NOTHING = {
    "base",
    "common",
    "handler",
    "helper",
    "helpers",
    "impl",
    "manager",
    "misc",
    "pool",
    "util",
    "utils",
}


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph("genericdp", include_external_packages=True, cache_dir=None)


def test_imports_go_downwards() -> None:
    # In a process of its own: import-linter configures logging, which disables our loggers.
    call = "import importlinter.cli as cli; cli.lint_imports_command()"
    result = subprocess.run(
        [sys.executable, "-c", call, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("library", DOORS)
def test_an_outside_library_has_one_door(imports: grimp.ImportGraph, library: str) -> None:
    importers = imports.find_modules_that_directly_import(library) if library in imports.modules else set()
    strangers = {
        importer
        for importer in importers
        if not any(f"{importer}.".startswith(f"{door}.") for door in DOORS[library])
    }
    assert not strangers


def test_an_outside_library_is_a_declared_one(imports: grimp.ImportGraph) -> None:
    outside = {name for name in imports.modules if name.partition(".")[0] != "genericdp"}
    assert {name.partition(".")[0] for name in outside} - {*DOORS} <= {*sys.stdlib_module_names}


@pytest.mark.parametrize("path", [*MODULES, *TESTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_why_it_exists_under_a_name_that_says_something(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_bytes())), "it opens with no docstring"
    assert not set(path.stem.split("_")) & SAYING_NOTHING


def test_contributing_lists_the_names_that_are_refused() -> None:
    text = " ".join((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    listed = text.partition("Nothing is called ")[2].partition(".")[0]
    assert {*re.findall(r"`(\w+)`", listed)} == SAYING_NOTHING


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_folder_is_small_and_introduces_its_files(folder: Path) -> None:
    files = {path.stem for path in folder.glob("*.py")}
    assert len(files) <= MOST_FILES
    introduction = ast.get_docstring(ast.parse((folder / "__init__.py").read_bytes())) or ""
    listed = ", ".join(re.findall(r"^    (\w+(?:, \w+)*)(?:  |$)", introduction, re.MULTILINE)).split(", ")
    quoted = re.findall(r"`(\w+)`", introduction)
    assert files - {"__init__", "__main__"} - {*listed, *quoted} == set()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_every_package_is_packaged() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    on_disk = {
        ".".join(path.parent.relative_to(ROOT).parts) for path in MODULES if path.name == "__init__.py"
    }
    assert listed == sorted(on_disk)
