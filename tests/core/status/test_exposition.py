"""The text format of metrics, as Prometheus' own parser reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.hostile import for_label
from genericdp.core.status.exposition import SAMPLE_LIMIT, Family, Samples
from tests.scenes.scrape import read

GAUGE = Family("a_gauge", "gauge", ("one", "two"), "What it is for.")
COUNTER = Family("a_total", "counter", (), "What is counted.")
HISTOGRAM = Family("a_seconds", "histogram", (), "How long it took.")


def test_a_family_is_there_without_samples() -> None:
    assert Samples((GAUGE, COUNTER)).render() == (
        "# HELP a_gauge What it is for.\n"
        "# TYPE a_gauge gauge\n"
        "# HELP a_total What is counted.\n"
        "# TYPE a_total counter\n"
    )


def test_samples_come_below_their_family_whatever_the_order_they_were_added_in() -> None:
    samples = Samples((GAUGE, COUNTER))
    samples.add("a_total", 3)
    samples.add("a_gauge", 0.5, "x", "y")
    samples.add("a_gauge", True, "x", "z")
    assert samples.render() == (
        "# HELP a_gauge What it is for.\n"
        "# TYPE a_gauge gauge\n"
        'a_gauge{one="x",two="y"} 0.5\n'
        'a_gauge{one="x",two="z"} 1\n'
        "# HELP a_total What is counted.\n"
        "# TYPE a_total counter\n"
        "a_total 3\n"
    )


def test_a_histogram_is_cumulative() -> None:
    samples = Samples((HISTOGRAM,))
    samples.add_histogram("a_seconds", (0.1, 1.0), [2, 0, 1], 7.25)
    assert read(samples.render()) == {
        "a_seconds_bucket": [({"le": "0.1"}, 2.0), ({"le": "1"}, 2.0), ({"le": "+Inf"}, 3.0)],
        "a_seconds_sum": [({}, 7.25)],
        "a_seconds_count": [({}, 3.0)],
    }


@given(st.text(), st.text(alphabet='\\"\n\r\t ,={}#', max_size=20))
def test_no_label_value_can_end_its_label_or_its_line(one: str, two: str) -> None:
    samples = Samples((GAUGE,))
    samples.add("a_gauge", 1, one, two)
    assert read(samples.render()) == {"a_gauge": [({"one": for_label(one), "two": for_label(two)}, 1.0)]}


def test_a_label_value_is_printable_and_on_one_line() -> None:
    samples = Samples((GAUGE,))
    samples.add("a_gauge", 1, 'a\n# "b"', "50-tür.toml\x1b\udcff")
    line = r'a_gauge{one="a\\x0a# \"b\"",two="50-tür.toml\\x1b\\udcff"} 1'
    assert samples.render().splitlines()[-1] == line


DIFFERENT = st.sampled_from(
    ["ü", "ö", "\x1b", r"\x1b", "\\", "\udcfe", "\udcff", "\N{REPLACEMENT CHARACTER}", "_"]
)


@given(st.lists(st.lists(DIFFERENT | st.characters(), max_size=4).map("".join), unique=True, max_size=5))
def test_labels_with_different_values_make_different_series(values: list[str]) -> None:
    samples = Samples((GAUGE,))
    for value in values:
        samples.add("a_gauge", 1, value, "")
    assert samples.render().encode()
    assert len({labels["one"] for labels, _ in read(samples.render()).get("a_gauge", [])}) == len(values)


def test_a_family_has_so_many_samples_and_says_how_many_were_too_many() -> None:
    samples = Samples((GAUGE,))
    for number in range(SAMPLE_LIMIT + 3):
        samples.add("a_gauge", 1, str(number), "")
    assert samples.left_out == {"a_gauge": 3}
    assert len(read(samples.render())["a_gauge"]) == SAMPLE_LIMIT


def test_a_sample_has_a_value_for_each_label() -> None:
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        Samples((GAUGE,)).add("a_gauge", 1, "x")
