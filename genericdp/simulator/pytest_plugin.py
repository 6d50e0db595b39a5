"""The fixture `simulated_kubelet`, for the tests of any device plugin, in whatever language it is written.

In a conftest.py: `pytest_plugins = ["genericdp.simulator.pytest_plugin"]`.

The rules of this file:

* Nothing is loaded that a test does not ask for.
"""

import shutil
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from genericdp.simulator.blocking import BlockingKubelet


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line(
        "markers", "kubelet(**options): how `simulated_kubelet` is made, as the keywords of Kubelet"
    )


@pytest.fixture
def simulated_kubelet(request: pytest.FixtureRequest) -> "Iterator[BlockingKubelet]":
    """A simulated kubelet that runs; a panic of it fails the test. Options: the mark `kubelet`."""
    from genericdp.simulator import Kubelet  # noqa: PLC0415
    from genericdp.simulator.blocking import BlockingKubelet  # noqa: PLC0415

    marks = reversed(list(request.node.iter_markers("kubelet")))
    options = {name: value for mark in marks for name, value in mark.kwargs.items()}
    # Not pytest's tmp_path: a socket's path may have 107 bytes.
    root = tempfile.mkdtemp(prefix="kubelet-", dir="/tmp")
    try:
        with BlockingKubelet(Kubelet(root, **options)) as node:
            yield node
    finally:
        shutil.rmtree(root, ignore_errors=True)
