"""Tests here may need a machine of their own: see tests/udev/machine.py."""

from collections.abc import Iterator

import pytest

from tests.udev.hotplug import Console, reserve_console
from tests.udev.machine import pytest_configure, pytest_runtest_logreport, pytest_runtest_protocol
from tests.udev.testbed import Testbed

__all__ = ["pytest_configure", "pytest_runtest_logreport", "pytest_runtest_protocol"]


@pytest.fixture
def bed() -> Iterator[Testbed]:
    """A machine made of files, empty at first; for tests marked `testbed`."""
    with Testbed() as bed:
        yield bed


@pytest.fixture
def console() -> Console:
    """A console of the real kernel, reserved until the process ends; for tests marked `hotplug`."""
    return reserve_console()
