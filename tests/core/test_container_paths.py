"""The container paths of one answer: each is somebody's own, and no device node is a directory."""

from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.container_paths import ContainerPaths

PATHS = st.lists(st.sampled_from(["a", "a-1", "a-2", "a-1-1", "b"]), min_size=1, max_size=4).map("/".join)
WANTED = st.lists(st.tuples(PATHS.map("/dev/{}".format), st.sampled_from("xyz")), max_size=12)


def placed(wanted: list[tuple[str, str]], *, nested: bool = False) -> list[tuple[str, str, str]]:
    places = ContainerPaths[str](nested=nested)
    given_paths = [places.place(path, host_path, "rw") for path, host_path in wanted]
    entered = list(places)
    assert [(host_path, "rw") for _, host_path in wanted] == [
        next((there, access) for path, there, access in entered if path == each) for each in given_paths
    ]
    # What is asked for again is there already.
    assert [places.place(path, host_path, "rw") for path, host_path in wanted] == given_paths
    assert list(places) == entered
    return entered


@given(WANTED)
def test_no_path_is_below_another_one(wanted: list[tuple[str, str]]) -> None:
    paths = [path for path, _, _ in placed(wanted)]
    assert [(one, other) for one in paths for other in paths if other.startswith(f"{one}/")] == []


@given(WANTED)
def test_a_path_of_a_mount_may_be_below_another_one(wanted: list[tuple[str, str]]) -> None:
    paths = {path for path, _, _ in placed(wanted, nested=True)}
    assert {path for path, _ in wanted} <= paths
