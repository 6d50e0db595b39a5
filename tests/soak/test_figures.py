"""When the figures of a soak count as flat."""

from dataclasses import replace

import pytest

from tests.soak.figures import Row, compare, percentile

ROW = Row(
    operations=1000,
    descriptors=29,
    threads=9,
    resident=48.0,
    anonymous=28.0,
    peak=50.0,
    saved=4000,
    lines=1.5,
    busy_s=0.008,
    plugs=(10.0,),
    admissions=(6.0,),
)


def grown(*rows: Row) -> list[str]:
    return [str(comparison) for comparison in compare(rows) if not comparison.holds]


def test_rows_that_stay_the_same_are_flat() -> None:
    assert grown(*[ROW] * 30) == []


@pytest.mark.parametrize(("rows", "warm_up"), [(3, 1), (11, 1), (60, 10)])
def test_the_first_sixth_of_the_rows_warms_up_but_at_least_one(rows: int, warm_up: int) -> None:
    cold = replace(ROW, threads=1)
    assert grown(*[cold] * warm_up, *[ROW] * (rows - warm_up)) == []


def test_what_grows_after_the_warm_up_is_growth() -> None:
    assert grown(*[replace(ROW, threads=4)] * 16, *[ROW] * 44) == [
        "threads               4          9    2.250   <= 1.25  GREW"
    ]


def test_two_rows_are_too_few_to_compare() -> None:
    assert compare([ROW, ROW]) == []


def test_one_descriptor_more_at_the_end_is_growth() -> None:
    assert grown(*[ROW] * 11, *[replace(ROW, descriptors=30)] * 10) == [
        "descriptors          29         30    1.034   <= 1.00  GREW"
    ]


def test_a_single_slow_minute_is_no_growth() -> None:
    assert grown(*[ROW] * 20, replace(ROW, plugs=(90.0,))) == []


def test_memory_may_grow_a_little() -> None:
    assert grown(*[ROW] * 11, *[replace(ROW, anonymous=29.3)] * 10) == []
    assert grown(*[ROW] * 11, *[replace(ROW, anonymous=29.5)] * 10) == [
        "anon MiB          28.00      29.50    1.054   <= 1.05  GREW"
    ]


def test_a_percentile_of_few_values_is_one_of_them() -> None:
    assert percentile((3.0, 1.0, 2.0), 10) == 1.0
    assert percentile((3.0, 1.0, 2.0), 50) == 2.0
    assert percentile((3.0, 1.0, 2.0), 99) == 3.0
