"""What the kernel permits, to the byte."""

import pytest

from genericdp.core.limits import size_of_env, why_too_long


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/" + "x" * 255 + "/y", ""),
        ("/" + "x" * 256, "a name of 256 bytes, and Linux permits 255"),
        ("/" + "é" * 127, ""),
        ("/" + "é" * 128, "a name of 256 bytes, and Linux permits 255"),
        ("/x" * 2047 + "/", ""),
        ("/x" * 2048, "4096 bytes, and Linux permits 4095"),
        ("/é" * 1365, ""),
        ("/é" * 1366, "4098 bytes, and Linux permits 4095"),
    ],
)
def test_a_path_is_too_long_if_its_bytes_or_those_of_a_name_are_too_many(path: str, why: str) -> None:
    assert why_too_long(path) == why


def test_an_env_is_as_long_as_its_name_its_value_and_the_sign_between_them() -> None:
    assert size_of_env("A", "é") == 4


def test_a_name_that_is_not_utf_8_has_a_size() -> None:
    assert size_of_env("X", "\udcff") == 3
    assert why_too_long("/dev/\udcff") == ""
    assert why_too_long("/dev/" + 256 * "\udcff") == "a name of 256 bytes, and Linux permits 255"
