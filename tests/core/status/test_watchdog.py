"""When the watchdog is told that all is well, and when not."""

from genericdp.core.status.watchdog import STUCK_AFTER_S, Seen, Sign, look, stuck

LONG = STUCK_AFTER_S + 0.1


def test_a_resource_with_a_stream_is_well_for_ever() -> None:
    seen = look({}, {"a/b": Sign(content=True, tries=1)}, 0.0)
    seen = look(seen, {"a/b": Sign(content=True, tries=1)}, LONG)
    assert stuck(seen, LONG) == ()


def test_a_resource_without_a_stream_that_does_not_try_is_stuck() -> None:
    quiet = {"a/b": Sign(content=False, tries=3), "a/a": Sign(content=False, tries=1)}
    seen = look({}, quiet, 10.0)
    assert stuck(look(seen, quiet, 10.0 + STUCK_AFTER_S), 10.0 + STUCK_AFTER_S) == ()
    assert stuck(look(seen, quiet, 10.0 + LONG), 10.0 + LONG) == ("a/a", "a/b")


def test_a_resource_that_is_refused_and_tries_again_is_not_stuck() -> None:
    seen: dict[str, Seen] = {}
    for tries in range(10):
        now = tries * 45.0
        seen = look(seen, {"a/b": Sign(content=False, tries=tries)}, now)
        assert stuck(seen, now) == ()


def test_the_time_without_a_kubelet_does_not_count() -> None:
    seen = look({}, {"a/b": Sign(content=True, tries=0)}, 0.0)
    seen = look(seen, {"a/b": Sign(content=False, tries=0)}, 3600.0)
    assert stuck(seen, 3600.0) == ()
    assert stuck(seen, 3600.0 + LONG) == ("a/b",)


def test_what_no_rule_names_any_more_is_forgotten() -> None:
    seen = look({}, {"a/b": Sign(content=False, tries=0)}, 0.0)
    assert look(seen, {}, LONG) == {}
