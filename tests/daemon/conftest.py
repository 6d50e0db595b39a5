"""A kubelet whose word about its pods counts at once: the daemon waits for nothing before it believes it."""

import pytest

from genericdp import forgetting
from genericdp.core.memory import held
from genericdp.core.status import holdings
from genericdp.cri import comeback


@pytest.fixture
def kubelet_knows_its_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kubelet that has just started lists all its pods."""
    monkeypatch.setattr(holdings, "KUBELET_SETTLES_S", 0.0)


@pytest.fixture
def evidence_is_asked_for_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first answers do not settle is asked for again at once, instead of some seconds later."""
    monkeypatch.setattr(comeback, "ASK_AGAIN_S", 0.05)


@pytest.fixture
def pods_leave_at_once(kubelet_knows_its_pods: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What no pod has any more is free as soon as the kubelet says so, and it is asked again and again."""
    monkeypatch.setattr(held, "PODS_SETTLE_S", 0.0)
    monkeypatch.setattr(forgetting, "ASK_AGAIN_SOON_S", 0.05)
    monkeypatch.setattr(forgetting, "ASK_AGAIN_S", 0.05)
    monkeypatch.setattr(forgetting, "WRITE_AGAIN_S", 0.0)
