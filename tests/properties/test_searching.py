"""Each search goes by the profile."""

import pytest
from hypothesis import settings


def test_no_search_depends_on_how_fast_the_machine_is(request: pytest.FixtureRequest) -> None:
    profile = settings()
    found = {
        each.nodeid: used
        for each in request.session.items
        if isinstance(each, pytest.Function)
        and (used := getattr(each.function, "_hypothesis_internal_use_settings", None)) is not None
    }

    assert profile.deadline is None
    assert {id_ for id_, used in found.items() if used.deadline is not None} == set()
    assert {id_ for id_, used in found.items() if used.max_examples > profile.max_examples} == set()
