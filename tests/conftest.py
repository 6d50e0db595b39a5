"""What every test may ask for: a coroutine run under a watchdog, a directory with a short name."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenes.running import RunAsync, run
from tests.udev.machine import pytest_configure, pytest_runtest_logreport, pytest_runtest_protocol
from tests.udev.testbed import Testbed

__all__ = ["pytest_configure", "pytest_runtest_logreport", "pytest_runtest_protocol"]


@pytest.fixture
def run_async() -> RunAsync:
    """`run_async(coroutine)`: its result; fails when it hangs or leaves something behind."""
    return run


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """A directory for unix sockets, whose paths may have 107 bytes (unix(7)): tmp_path is too long."""
    path = Path(tempfile.mkdtemp(prefix="gdp-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def bed() -> Iterator[Testbed]:
    """A machine made of files, empty at first; for tests marked `testbed`."""
    with Testbed() as bed:
        yield bed
