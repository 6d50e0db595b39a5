"""What every test has: a watchdog, a directory with a short name if it asks for one."""

import gc
import inspect
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from genericdp.watch import disk
from tests.properties import searching
from tests.scenes.running import as_limited, as_sync
from tests.udev.hotplug import Console, reserve_console
from tests.udev.machine import pytest_configure, pytest_runtest_logreport, pytest_runtest_protocol
from tests.udev.testbed import Testbed

# `searching` is here for what it does: it sets the profile of hypothesis before any test is read.
__all__ = ["pytest_configure", "pytest_runtest_logreport", "pytest_runtest_protocol", "searching"]

# How fast the disk of this machine is decides nothing. `a_slow_disk` is for that.
disk.PATIENCE_S = 60.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Put the test under the watchdog; pytest itself calls it and judges the outcome."""
    watched = as_sync if inspect.iscoroutinefunction(pyfuncitem.obj) else as_limited
    marker = pyfuncitem.get_closest_marker("timeout_s")
    pyfuncitem.obj = watched(pyfuncitem.obj, *(marker.args if marker else ()))


def pytest_collection_finish() -> None:
    """Spare the garbage collector the tests, which stay to the end: because of them, each look took 0.1 s."""
    gc.collect()
    gc.freeze()


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


@pytest.fixture
def console() -> Console:
    """A console of the real kernel, reserved until the process ends; for tests marked `hotplug`."""
    return reserve_console()
