"""The container paths of one answer: each is somebody's own, and no device node is a directory."""

from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.container_paths import ContainerPaths, why_not_together
from genericdp.core.limits import why_too_long
from tests.scenes.work import IN_PROPORTION, growth

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


@given(WANTED, st.lists(PATHS.map("/dev/{}".format)))
def test_a_mount_at_a_device_node_or_below_it_is_found_among_all_others(
    wanted: list[tuple[str, str]], mounts: list[str]
) -> None:
    nodes = {path for path, _, _ in placed(wanted)}
    is_in_the_way = any(f"{mount}/".startswith(f"{node}/") for mount in mounts for node in nodes)
    assert bool(why_not_together(mounts, nodes)) is is_in_the_way


def test_what_the_paths_of_mounts_cost_grows_in_proportion_to_their_depth() -> None:
    nodes = [f"/dev/{number}" for number in range(100)]

    def look(depth: int) -> None:
        for number in range(20):
            path = f"/{number}" + "/a" * depth
            assert why_not_together([path], nodes) == ""

    assert growth(look, 20_000) < IN_PROPORTION


@given(st.lists(st.integers(min_value=0, max_value=300), min_size=1, max_size=12), st.sampled_from("xü"))
def test_each_name_in_a_path_may_have_as_many_bytes_as_linux_permits(lengths: list[int], letter: str) -> None:
    path = "".join(f"/{letter * length}" for length in lengths)
    longest = max(len((letter * length).encode()) for length in lengths)
    if len(path.encode()) <= 4095:
        why = f"a name of {longest} bytes, and Linux permits 255" if longest > 255 else ""
        assert why_too_long(path) == why
