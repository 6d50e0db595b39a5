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
PACKAGES = sorted({path.parent for path in MODULES})
TESTS = sorted((ROOT / "tests").rglob("*.py"))

#: How much one folder and one file of the program may hold.
MOST_MODULES = 15
MOST_LINES = 300

#: Outside library -> the modules that may import it. Everybody else asks them.
DOORS = {
    "pyudev": {"genericdp.udev"},
    "usb": {"genericdp.usb"},
    # A simulated runtime has a watch of its own, which overlooks what the real one overlooks.
    "inotify_simple": {
        "genericdp.watch.queue",
        "genericdp.simulator.runtimes.cdi_cache",
    },
    "grpc": {"genericdp.cri", "genericdp.kubelet", "genericdp.messages", "genericdp.simulator"},
    "google": {"genericdp.cri", "genericdp.kubelet", "genericdp.messages"},
    "pytest": {"genericdp.simulator.pytest_plugin"},
    "tomli": {"genericdp.core.reading.positions", "genericdp.core.reading.toml"},
}

#: Folders of tests that are not about one package: the whole daemon, laws, documents, manifests, scenes.
OF_NO_PACKAGE = {
    "bench",
    "daemon",
    "families",
    "fuzz",
    "image",
    "kubernetes",
    "properties",
    "scenes",
    "soak",
    "torture",
    "written",
}

#: Names that say nothing about what a module is for.
SAYING_NOTHING = {
    "base",
    "common",
    "given",
    "handler",
    "helper",
    "helpers",
    "impl",
    "manager",
    "misc",
    "once",
    "pool",
    "said",
    "sought",
    "together",
    "util",
    "utils",
    "witness",
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


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_package_names_everything_in_it(package: Path) -> None:
    names = {path.stem for path in package.glob("*.py")} | {
        path.parent.name for path in package.glob("*/*.py")
    }
    if package.name == "verbs":
        names = set()  # each is what it is called on the command line
    told = ast.get_docstring(ast.parse((package / "__init__.py").read_bytes())) or ""
    assert names - {"__init__", "__main__"} <= set(re.findall(r"\w+", told))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_package_can_be_taken_in_at_a_glance(package: Path) -> None:
    modules = list(package.glob("*.py"))
    assert len(modules) <= MOST_MODULES
    long = {path.name for path in modules if len(path.read_text().splitlines()) > MOST_LINES}
    assert not long


def test_the_tests_mirror_the_program() -> None:
    folders = {path.parent.relative_to(ROOT / "tests") for path in TESTS if path.name.startswith("test_")}
    program = {package.relative_to(ROOT / "genericdp") for package in PACKAGES}
    assert {str(folder) for folder in folders - program} == OF_NO_PACKAGE


def test_every_package_is_packaged() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    on_disk = {
        ".".join(path.parent.relative_to(ROOT).parts) for path in MODULES if path.name == "__init__.py"
    }
    assert listed == sorted(on_disk)


#: What asyncio.timeout raises. It is no error of what was awaited, and does not take a cancellation's place.
_TIMEOUTS = {"TimeoutError"}


def loops_that_may_outlive_their_cancellation(source: str) -> list[int]:
    """The lines of loops that catch errors of what they await, and do not ask whether they were cancelled.

    An error that is raised while a cancellation unwinds takes its place. A loop that catches it and goes on
    is never cancelled again.
    """
    found = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.AsyncFunctionDef):
            continue
        for loop in (node for node in ast.walk(function) if isinstance(node, ast.While)):
            for attempt in (node for node in ast.walk(loop) if isinstance(node, ast.Try)):
                awaited = any(
                    isinstance(node, ast.Await | ast.AsyncWith | ast.AsyncFor)
                    for statement in attempt.body
                    for node in ast.walk(statement)
                )
                for handler in attempt.handlers:
                    caught = "" if handler.type is None else ast.unparse(handler.type)
                    asks = "_end_if_cancelled()" in ast.unparse(handler)
                    raises = isinstance(handler.body[-1], ast.Raise)
                    if awaited and caught not in _TIMEOUTS and not asks and not raises:
                        found.append(loop.lineno)
    return found


def test_a_loop_that_goes_on_after_an_error_asks_whether_it_was_cancelled() -> None:
    loop = "async def f():\n  while True:\n    try: await g()\n    except OSError: {}\n"
    assert loops_that_may_outlive_their_cancellation(loop.format("pass")) == [2]
    assert loops_that_may_outlive_their_cancellation(loop.format("_end_if_cancelled()")) == []
    may = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in MODULES
        for line in loops_that_may_outlive_their_cancellation(path.read_text())
    }
    assert may == set()
