"""A short search with the model of a node; `make torture` runs a long one."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from genericdp import forgetting
from genericdp.core.memory.saved import delay
from tests.torture.model import NodeMachine

STEPS = 40
NODES = 8


def test_the_laws_of_a_node_hold_whatever_happens_in_whatever_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delay, "SAVE_WITHIN_S", 1e-6)
    monkeypatch.setattr(forgetting, "ASK_AGAIN_S", 0.01)
    monkeypatch.setattr(forgetting, "ASK_AGAIN_SOON_S", 0.01)
    search = settings(
        max_examples=NODES,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        derandomize=True,  # the same search each time; `make torture` makes others
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(NodeMachine, settings=search)
