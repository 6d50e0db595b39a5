"""A short soak: whatever happens to a node, at rest it is as it was. No times are measured."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.soak.node import a_node, reserve_consoles
from tests.soak.operations import OPERATIONS
from tests.soak.soak import Soak
from tests.udev.hotplug import Console

ROUNDS = 2
EACH = 2 * len(OPERATIONS)
SEED = 1


@pytest.fixture
def consoles() -> Sequence[Console]:
    return reserve_consoles()


@pytest.mark.hotplug
@pytest.mark.timeout_s(150)
async def test_at_rest_a_node_is_as_it_was_whatever_has_happened(
    tmp_path: Path, consoles: Sequence[Console]
) -> None:
    async with a_node(consoles, tmp_path / "log") as node:
        soak = Soak(node, SEED)
        await soak.begin()
        for number in range(ROUNDS):
            await soak.round(number, operations=EACH, samples=2)
        assert soak.done.total() == ROUNDS * EACH
