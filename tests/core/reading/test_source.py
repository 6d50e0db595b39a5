"""Where a mistake is shown when it is about something that is not in the file."""

from genericdp.core.reading.toml import parse_toml


def test_what_is_not_written_is_shown_at_the_nearest_thing_that_is() -> None:
    document, problems = parse_toml("x.toml", 'a = { b = "c" }\n')
    assert document is not None
    assert problems == ()
    source = document.source
    assert str(source.location(("a", "b"))) == "x.toml:1:11"
    assert str(source.location(("a", "b"), on_key=True)) == "x.toml:1:7"
    assert str(source.location(("a", "nothing"))) == "x.toml:1:5"
    assert str(source.location(("nothing", 0))) == "x.toml:1:1"
    assert str(source.location(())) == "x.toml:1:1"
