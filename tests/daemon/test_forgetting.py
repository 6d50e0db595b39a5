"""Whose word counts when an unplugged device is forgotten: that of a kubelet that knows its pods."""

import asyncio

import pytest

from genericdp import forgetting
from genericdp.core.status.holdings import KUBELET_SETTLES_S, Holdings
from genericdp.forgetting import Forgetting
from genericdp.kubelet.socket import KubeletSocket
from tests.scenes.waiting import until


class Asked:
    """A kubelet whose PodResources API answers that nobody holds anything; what follows from it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kubelet = KubeletSocket("/var/lib/kubelet/device-plugins")
        self.starts(up_s=KUBELET_SETTLES_S + 1)
        self.times = 0
        self.restarts_meanwhile = False
        self.forgotten: list[frozenset[str]] = []
        monkeypatch.setattr(forgetting, "ASK_AGAIN_S", 0.0)
        monkeypatch.setattr("genericdp.forgetting.podresources.ask", self._ask)

    def starts(self, *, up_s: float = 0.0) -> None:
        """Another kubelet is there, which has been up for so long."""
        self.kubelet.incarnation = (self.kubelet.incarnation or 0) + 1
        self.kubelet.since = asyncio.get_running_loop().time() - up_s

    async def run_until(self, condition: str) -> None:
        """Run with a grace period that has passed, until something has happened."""
        it = Forgetting(
            self.kubelet,
            "/pod-resources",
            now=lambda: 1.0,
            due=lambda: 0.0,
            forget=self.forgotten.append,
        )
        task = asyncio.create_task(it.run())
        await until(lambda: getattr(self, condition))
        for _ in range(10):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait((task,))

    async def _ask(self, socket_path: str) -> Holdings:
        assert socket_path == "/pod-resources"
        self.times += 1
        if self.restarts_meanwhile:
            self.starts()
        await asyncio.sleep(0)
        return {}


async def test_a_kubelet_that_knows_its_pods_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch)
    await asked.run_until("forgotten")
    assert asked.forgotten[0] == frozenset()


async def test_a_kubelet_that_restarts_while_it_is_asked_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked(monkeypatch)
    asked.restarts_meanwhile = True
    await asked.run_until("times")
    assert (asked.times, asked.forgotten) == (1, [])


async def test_a_kubelet_that_has_just_started_is_not_even_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch)
    asked.starts()
    await asked.run_until("kubelet")
    assert (asked.times, asked.forgotten) == (0, [])
