"""A JSON document that is decoded in pieces is what it is as a whole."""

import io
import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genericdp.kubelet.pieces import Pieces

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
DOCUMENTS = st.dictionaries(
    TEXTS, st.none() | st.lists(VALUES, max_size=3) | st.dictionaries(TEXTS, VALUES, max_size=3), max_size=3
)


def taken_apart(data: bytes, at_once: int, document: Any) -> Any:
    """The document as it is found piece by piece; of an object, what is inside a member is taken apart, too.

    document  tells where there are lists and objects
    """
    with patch("genericdp.kubelet.pieces._AT_ONCE", at_once):
        pieces = Pieces(io.BytesIO(data))
        found: dict[str, Any] = {}
        for key in pieces.members():
            match document.get(key):
                case list():
                    found[key] = [pieces.value() for _ in pieces.elements()]
                case dict():
                    found[key] = {inner: pieces.value() for inner in pieces.members()}
                case _:
                    assert list(pieces.elements()) == []
                    found[key] = None
        pieces.end()
        return found


@given(DOCUMENTS, st.integers(1, 9), st.booleans(), st.sampled_from([None, 1]))
def test_all_pieces_together_are_the_document(
    document: Any, at_once: int, ensure_ascii: bool, indent: int | None
) -> None:
    data = json.dumps(document, ensure_ascii=ensure_ascii, indent=indent).encode()
    assert taken_apart(data, at_once, document) == document


@given(DOCUMENTS, st.integers(1, 9), st.data())
def test_a_document_that_is_cut_off_is_an_error(document: Any, at_once: int, data: st.DataObject) -> None:
    whole = json.dumps(document, ensure_ascii=False).encode()
    torn = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(ValueError):
        taken_apart(torn, at_once, document)


@pytest.mark.parametrize(
    "text", ["{} {}", "{},", "{}]", '{"a" 1}', '{"a": [1 2]}', "{1: 2}", '{"a": [1,]}', "7"]
)
def test_what_is_not_json_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        taken_apart(text.encode(), 1, {"a": []})


@pytest.mark.parametrize("what", ["[{}]", '["{}"]', '"{}"', "{}"])
def test_a_value_longer_than_the_limit_is_an_error(what: str) -> None:
    with patch("genericdp.kubelet.pieces.LONGEST_VALUE", 100), patch("genericdp.kubelet.pieces._AT_ONCE", 10):
        short, long = (what.replace("{}", "1" * count) for count in (90, 300))
        for value in (short, long):
            pieces = Pieces(io.BytesIO(f'{{"a": {value}, "b": 1}}'.encode()))
            keys = pieces.members()
            assert next(keys) == "a"
            if value == short:
                assert pieces.value() == json.loads(short)
                continue
            with pytest.raises(ValueError, match="a value is too long"):
                pieces.value()
