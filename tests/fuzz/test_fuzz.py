"""The fuzzer in the size that `make test` has time for; `make fuzz` runs it for minutes or hours."""

import pytest

from tests.fuzz.target import Tally, Target, search
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_few_inputs_break_nothing(target: Target) -> None:
    search(target, Tally(), inputs=target.few)
