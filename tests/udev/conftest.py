"""Tests here may need a machine of their own: see tests/udev/machine.py."""

from tests.udev.machine import pytest_configure, pytest_runtest_logreport, pytest_runtest_protocol

__all__ = ["pytest_configure", "pytest_runtest_logreport", "pytest_runtest_protocol"]
