"""The fixture `simulated_kubelet`, for the tests of a device plugin written in any language.

In a conftest.py: `pytest_plugins = ["genericdp.simulator.pytest_plugin"]`.

The rules of this file:

* Loading this plugin imports nothing of the simulator; only using the fixture does.
"""

import shutil
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from genericdp.simulator.blocking import BlockingKubelet


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker `kubelet`."""
    config.addinivalue_line(
        "markers", "kubelet(**options): the keyword arguments of Kubelet for `simulated_kubelet`"
    )


@pytest.fixture
def simulated_kubelet(request: pytest.FixtureRequest) -> "Iterator[BlockingKubelet]":
    """A running simulated kubelet. If it panics, the test fails. Options: the marker `kubelet`."""
    from genericdp.simulator import Kubelet  # noqa: PLC0415
    from genericdp.simulator.blocking import BlockingKubelet  # noqa: PLC0415

    marks = reversed(list(request.node.iter_markers("kubelet")))
    options = {name: value for mark in marks for name, value in mark.kwargs.items()}
    # pytest's tmp_path is too long: the path of a unix socket is limited to 107 bytes.
    root = tempfile.mkdtemp(prefix="kubelet-", dir="/tmp")
    try:
        with BlockingKubelet(Kubelet(root, **options)) as node:
            yield node
    finally:
        shutil.rmtree(root, ignore_errors=True)
