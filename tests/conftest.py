"""What every test may ask for: a coroutine run under a watchdog, a directory with a short name."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import RunAsync, run


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
