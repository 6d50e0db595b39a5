"""Tests here may need a machine of their own: see tests/udev/machine.py."""

from collections.abc import Iterator

import pytest

from tests.udev.machine import pytest_configure, pytest_runtest_logreport, pytest_runtest_protocol
from tests.udev.testbed import Testbed

__all__ = ["pytest_configure", "pytest_runtest_logreport", "pytest_runtest_protocol"]


@pytest.fixture
def bed() -> Iterator[Testbed]:
    """A machine made of files, empty at first; for tests marked `testbed`."""
    with Testbed() as bed:
        yield bed
