"""What a report and the metrics are made of: all is well, apart from what a test says."""

from dataclasses import replace
from typing import Any

from genericdp.core.inventory.inventory import Inventory, diff
from genericdp.core.rules.settings import Settings
from genericdp.core.status.facts import Facts, Standing
from genericdp.core.status.history import History

REGISTERED = Standing("registered", registered=True, streams=1, lists=1)
#: 2026-11-21T12:00:00Z
NOON = 1795262400.0


def facts_of(inventory: Inventory, **others: Any) -> Facts:
    """All is well, a hundred seconds after the beginning, apart from what is given."""
    history = History(0.0)
    history.saw_kubelet(True, 10.0)
    history.stepped(inventory, diff(Inventory(), inventory), 20.0)
    for name in inventory.offers:
        history.registered_as(name, registered=True, error="", now=30.0)
    facts = Facts(
        version="1.2.3",
        pid=7,
        settings=Settings(),
        now=100.0,
        unix_now=NOON,
        history=history,
        inventory=inventory,
        kubelet=True,
        standings=dict.fromkeys(inventory.offers, REGISTERED),
        holdings={},
    )
    return replace(facts, **others)
