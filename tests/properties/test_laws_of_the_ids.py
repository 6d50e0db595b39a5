"""Laws of how ids are spelled: an id is one identity, whatever devices call themselves."""

import re

from hypothesis import assume, given
from hypothesis import strategies as st

from genericdp.core.buses.port import Port
from genericdp.core.inventory.identity import ID_LIMIT, OF_ALL, Identity, Speller
from genericdp.core.inventory.offer import ids_of
from tests.properties.strategies import DOMAIN, names

#: Texts of few letters, so that what is different often looks alike.
alike = st.text(alphabet="aA0-._", max_size=4) | st.sampled_from(["fuse", "tty1", "A.B", "a-b"]) | names
resources = st.sampled_from(["a", "A", "a.a", "a.0", "a-a", "a_a", "a" * 60]).flatmap(
    lambda short: st.sampled_from([f"{DOMAIN}/{short}", f"other.example/{short}"])
)
ports = alike.map(lambda exact: Port(f"/sys/{exact}", exact[-2:]))


@st.composite
def identities(draw: st.DrawFn) -> Identity:
    """Of all kinds. What people read of a key is the key itself or follows from it."""
    if draw(st.integers(0, 9)) == 0:
        return OF_ALL
    basis = draw(st.sampled_from(["serial", "name", "port", "property A", "property B"]))
    key = draw(alike)
    readable = f"port-{key[-2:]}" if basis == "port" else key
    return Identity(basis, key, readable, draw(alike), draw(ports), "")


def meant(resource: str, identity: Identity) -> tuple[str, ...]:
    return resource, identity.basis, identity.key, identity.place


@given(resources, identities(), resources, identities())
def test_what_differs_in_basis_key_or_place_never_shares_an_id(
    resource: str, one: Identity, other_resource: str, other: Identity
) -> None:
    first = Speller(resource, DOMAIN).device(one)
    second = Speller(other_resource, DOMAIN).device(other)
    assert (first == second) is (meant(resource, one) == meant(other_resource, other))


@given(resources, identities(), identities())
def test_the_id_of_a_twin_or_a_sibling_is_never_that_of_another_device(
    resource: str, one: Identity, other: Identity
) -> None:
    # A resource has only one device of this identity.
    assume(OF_ALL not in (one, other))
    spell = Speller(resource, DOMAIN)
    plain = spell.device(one)
    assert spell.device(other, at_port=True) != plain
    assert spell.device(other, rank=1) != plain
    same = meant(resource, one) == meant(resource, other) and one.port.exact == other.port.exact
    assert (spell.device(one, at_port=True) == spell.device(other, at_port=True)) is same


@given(resources, identities(), identities(), st.none() | st.integers(1, 12), st.none() | st.integers(1, 12))
def test_no_replica_has_the_id_of_another_device_however_replicas_were_edited(
    resource: str, one: Identity, other: Identity, count: int | None, other_count: int | None
) -> None:
    spell = Speller(resource, DOMAIN)
    if meant(resource, one) != meant(resource, other):
        ids = ids_of(spell.device(one), count)
        assert not {*ids} & {*ids_of(spell.device(other), other_count)}


@given(resources, identities())
def test_an_id_is_of_the_alphabet_of_ids_and_short_enough(resource: str, identity: Identity) -> None:
    for id_ in ids_of(Speller(resource, DOMAIN).device(identity), 10_000)[-1:]:
        assert re.fullmatch(r"[A-Za-z0-9._-]+", id_)
        assert len(id_) <= ID_LIMIT
