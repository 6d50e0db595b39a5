"""What templates expand to, and that no value of a device makes them leave their place."""

import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.hostile import cdi_name, for_cdi, for_id, for_path, for_terminal, for_value
from genericdp.core.rules.name import why_not_a_cdi_name
from genericdp.core.rules.template import BadTemplateError, Field, MissingPropertyError, Template, parse


def expand(text: str, clean: Callable[[str], str], **values: str) -> str:
    """What a template becomes for one device with these values."""
    (expanded,) = parse(text).expand(1, lambda name: [values.get(name, "")], clean)
    return expanded


def test_fields_and_texts_take_turns() -> None:
    assert parse("/dev/{ID_X|no}-{index}") == Template(
        "/dev/{ID_X|no}-{index}", ("/dev/", Field("ID_X", "no"), "-", Field("index"))
    )
    assert expand("{{{id}}}", for_value, id="a") == "{a}"
    assert expand("", for_value) == ""


def test_there_is_a_text_for_each_row() -> None:
    columns = {"id": ["a", "b"], "ID_X": ["/", ""]}
    assert parse("{id}-{ID_X|x}").expand(2, columns.__getitem__, for_path) == ["a-_", "b-x"]
    assert parse("same").expand(2, columns.__getitem__, for_path) == ["same", "same"]
    assert parse("{id}").expand(0, lambda _: [], for_path) == []


def test_a_default_stands_in_for_what_is_missing_or_empty() -> None:
    assert expand("{ID_X|none}", for_value) == "none"
    assert expand("{ID_X|none}", for_value, ID_X="") == "none"
    assert expand("{ID_X|none}", for_value, ID_X="yes") == "yes"


def test_a_missing_property_is_named() -> None:
    with pytest.raises(MissingPropertyError) as caught:
        expand("{ID_X}", for_value)
    assert caught.value.name == "ID_X"
    assert parse("{ID_X}{index}{ID_Y|z}").parts == (Field("ID_X"), Field("index"), Field("ID_Y", "z"))


@pytest.mark.parametrize(
    ("text", "message", "field"),
    [
        ("{", "unmatched '{'; write '{{' for the character", ""),
        ("a}", "unmatched '}'; write '}}' for the character", ""),
        ("{indx}", "unknown template field '{indx}'", "indx"),
        ("{}", "unknown template field '{}'", ""),
        ("{a b}", "unknown template field '{a b}'", "a b"),
    ],
)
def test_a_bad_template_is_refused_with_the_reason(text: str, message: str, field: str) -> None:
    with pytest.raises(BadTemplateError) as caught:
        parse(text)
    assert str(caught.value) == message
    assert caught.value.field == field


@given(st.text(), st.text())
def test_no_value_leaves_its_directory(first: str, second: str) -> None:
    path = expand("/dev/x/{ID_A|a}{ID_B|b}/end", for_path, ID_A=first, ID_B=second)
    parts = path.split("/")
    assert parts[:3] == ["", "dev", "x"]
    assert parts[4:] == ["end"]
    assert parts[3] not in ("", ".", "..")


@given(st.text())
def test_what_reaches_a_path_an_id_a_value_or_a_terminal_is_harmless(text: str) -> None:
    assert "/" not in for_path(text)
    assert for_path(text) not in ("", ".", "..")
    assert all(char.isascii() and (char.isalnum() or char in ".-") for char in for_id(text))
    assert for_value(text).isprintable()
    assert for_terminal(text).isprintable()


@given(st.text(), st.text(), st.text())
def test_every_value_makes_a_cdi_name_that_is_valid(one: str, two: str, three: str) -> None:
    name = cdi_name(f"{for_cdi(one)}/{for_cdi(two)}={for_cdi(three)}")
    assert why_not_a_cdi_name(name) == ""
    assert cdi_name(name) == name


def test_devname_and_link_keep_their_slashes() -> None:
    assert expand("/dev/{devname}", for_path, devname="bus/usb/001/004") == "/dev/bus/usb/001/004"
    assert expand("{link}", for_path, link="/dev/genericdp/x") == "/dev/genericdp/x"


@given(st.characters(exclude_categories=["Cs"]))
def test_what_cannot_be_printed_becomes_an_escape_of_python(char: str) -> None:
    escape = char.encode("unicode_escape").decode("ascii")
    assert for_terminal(char) == (char if char.isprintable() else escape)


def test_what_reaches_a_terminal_needs_nothing_from_disk() -> None:
    """The message may be about having run out of file descriptors."""
    script = "import sys; from genericdp.core.hostile import for_terminal; known = {*sys.modules}"
    used = "for_terminal('\\0\\n\\u2028\\U000e0001\\udcff'); assert known == {*sys.modules}"
    subprocess.run([sys.executable, "-c", f"{script}; {used}"], check=True)


@given(st.text(st.characters(codec=None) | st.characters(categories=["Cs"])))
def test_half_a_surrogate_pair_keeps_no_text_from_a_terminal(text: str) -> None:
    assert for_terminal(text).isprintable()
    assert for_terminal(f"a{text}").encode()


def test_a_surrogate_that_stands_for_no_byte_is_an_escape() -> None:
    assert for_terminal("a\ud800\udc7f\udd00\udfff") == "a\\ud800\\udc7f\\udd00\\udfff"


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    assert for_terminal(b"a\xff\n".decode("utf-8", "surrogateescape")) == "a�\\n"
