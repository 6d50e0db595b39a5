"""What is reported about a node that is not as it was at rest."""

from dataclasses import replace

from tests.soak.state import State

STATE = State(
    listed={"example.com/screen": {"screen_vcs20": "Healthy"}},
    streams={"example.com/screen": 1},
    links={"screen_vcs20": "/dev/vcs20"},
    files=("run/control.sock",),
    remembered=("screen_vcs20",),
    plugin_sockets=1,
    descriptors={"socket": 20},
    complaints=(),
)


def test_the_same_differs_in_nothing() -> None:
    assert STATE.difference(replace(STATE)) == ""


def test_each_difference_is_named_and_nothing_else() -> None:
    other = replace(
        STATE,
        links={**STATE.links, "screen_vcs21": "screen_vcs21"},
        streams={},
        descriptors={"socket": 21},
    )
    assert STATE.difference(other) == (
        "streams: example.com/screen was 1, is not there\n"
        "links: screen_vcs21 was not there, is screen_vcs21\n"
        "descriptors: socket was 20, is 21"
    )
