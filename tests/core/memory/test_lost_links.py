"""The links of devices that pods hold and of which nothing is remembered: only the kubelet still names them.

CRI-O starts a container without the device if a link that the saved answer names is missing.
"""

import pytest

from genericdp.core.memory import saved
from genericdp.core.memory.answer import Answer, Named
from genericdp.core.memory.answered import LEARNED_LIMIT, learn_links
from genericdp.core.memory.held import Held, Holding
from genericdp.core.memory.memory import Memory, resumed
from genericdp.core.memory.room import HELD_LINK_LIMIT, ID_LIMIT
from tests.scenes.builders import a_gpu, a_kfd, a_modem, a_usb_serial
from tests.scenes.edits import Node, rule
from tests.scenes.rules import MODEM, MODEM_RULE

AT, QMI = "modem_EC25-17@if02", "modem_EC25-17@if04-cdc-wdm"
ID = "modem_EC25-17"
LOST = {ID: "only its id is known"}
BOTH = Named(MODEM, frozenset({ID}), links=(AT, QMI))

KIT = rule("kit", 'group_by = "all"') + "".join(
    f'[[resource.node]]\nmatch.usb = {{ port = "{port}" }}\noptional = true\n' for port in "12"
)
GPS, RADIO = a_usb_serial(0, port="1", serial="A"), a_usb_serial(1, port="2", serial="B", devnum=5)

SHARED = '[[resource.node]]\nmatch = { DEVNAME = "/dev/kfd" }\nshared = true'
GPU = rule("gpu", 'group_by = "parent"', SHARED, match='{ SUBSYSTEM = "drm" }')


def begun(node: Node, *named: Named) -> Answer:
    """What the kubelet's checkpoint says when the daemon starts."""
    earlier = frozenset((each.resource, id_) for each in named for id_ in each.ids)
    ids = frozenset(id_ for _, id_ in earlier)
    return Answer(frozenset(), node.now, complete=False, checkpointed=ids, earlier=earlier, named=named)


def given(node: Node, id_: str) -> tuple[str, ...]:
    """The links that a pod gets with this id, in no order."""
    node.allocate(id_)
    return node.memory.held[id_].links


def lose(node: Node) -> None:
    node.memory = resumed(Memory(), node.now)


def test_the_links_of_a_pod_are_dead_while_its_device_is_absent() -> None:
    node = Node()
    assert node.look(MODEM_RULE, answer=begun(node, BOTH)) == LOST
    assert node.inventory.links() == {AT: None, QMI: None}
    assert node.memory.held[ID].links == (AT, QMI)
    assert node.look(MODEM_RULE) == LOST
    assert node.inventory.links() == {AT: None, QMI: None}


def test_a_device_that_returns_under_the_id_of_a_pod_has_the_links_of_the_pod() -> None:
    node = Node()
    modem = a_modem()
    node.look(MODEM_RULE, *modem)
    wanted = node.inventory.links()
    assert {*given(node, ID)} == {AT, QMI}
    lose(node)
    node.look(MODEM_RULE, answer=begun(node, BOTH))
    assert node.look(MODEM_RULE, *modem) == {ID: "Healthy"}
    assert node.inventory.links() == wanted
    lose(node)
    assert node.look(MODEM_RULE, *modem, answer=begun(node, BOTH)) == {ID: "Healthy"}
    assert node.inventory.links() == wanted


def test_the_links_are_saved_and_go_with_the_pod() -> None:
    node = Node()
    node.look(MODEM_RULE, answer=begun(node, BOTH))
    read = saved.load(saved.dump(node.memory))
    assert read.held[ID].links == (AT, QMI)
    node.memory = read
    assert node.look(MODEM_RULE) == LOST
    assert node.inventory.links() == {AT: None, QMI: None}
    node.look(MODEM_RULE, answer=node.nobody_holds_anything())
    node.now += 1e6
    assert node.look(MODEM_RULE, answer=node.nobody_holds_anything()) == {}
    assert node.inventory.links() == {}


def test_what_is_told_only_after_the_device_was_taken_for_unknown_counts_as_well() -> None:
    """The checkpoint could not be read at first."""
    node = Node()
    listed = Answer(frozenset({(MODEM, ID)}), node.now, complete=False, checkpointed=None)
    assert node.look(MODEM_RULE, answer=listed) == LOST
    assert node.inventory.links() == {ID: None}
    node.look(MODEM_RULE, answer=begun(node, BOTH))
    assert node.inventory.links() == {ID: None, AT: None, QMI: None}


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_to_what_a_kit_lacks_now_is_dead_and_leads_to_it_again_afterwards(is_there: bool) -> None:
    node = Node()
    node.look(KIT, GPS, RADIO)
    wanted = node.inventory.links()
    named = Named("example.com/kit", frozenset({"kit"}), links=given(node, "kit"))
    assert {*named.links} == wanted.keys()
    lose(node)
    if not is_there:
        node.look(KIT, answer=begun(node, named))
        assert node.inventory.links() == dict.fromkeys(wanted)
    answer = begun(node, named) if is_there else None
    assert node.look(KIT, GPS, answer=answer) == {"kit": "Healthy"}
    assert node.inventory.links() == {
        link: path if path == "/dev/ttyUSB0" else None for link, path in wanted.items()
    }
    node.look(KIT, GPS, RADIO)
    assert node.inventory.links() == wanted


def test_the_link_to_a_shared_node_is_dead_although_nothing_is_known_of_it() -> None:
    node = Node()
    node.look(GPU, *a_gpu(), a_kfd())
    wanted = node.inventory.links()
    (id_,) = (device.id for device in node.inventory.offers["example.com/gpu"].devices)
    named = Named("example.com/gpu", frozenset({id_}), links=given(node, id_))
    assert {*named.links} == wanted.keys() > {"shared+kfd"}
    lose(node)
    node.look(GPU, answer=begun(node, named))
    assert node.inventory.links() == dict.fromkeys(wanted)
    assert saved.dump(saved.load(saved.dump(node.memory))) == saved.dump(node.memory)
    node.look(GPU, *a_gpu(), a_kfd())
    assert node.inventory.links() == wanted


def test_replicas_of_one_device_may_have_got_different_links() -> None:
    """An optional node came in between."""
    replicas = MODEM_RULE.replace('group_by = "usb_device"', 'group_by = "usb_device"\nreplicas = 2')
    node = Node()
    answer = begun(
        node,
        Named(MODEM, frozenset({f"{ID}.0"}), links=(AT,)),
        Named(MODEM, frozenset({f"{ID}.1"}), links=(AT, QMI)),
    )
    node.look(replicas, answer=answer)
    assert node.inventory.links() == {AT: None, QMI: None}
    assert {id_: one.links for id_, one in node.memory.held.items()} == {
        f"{ID}.0": (AT,),
        f"{ID}.1": (AT, QMI),
    }


def test_of_several_devices_in_one_answer_each_has_its_own_links() -> None:
    other = "modem_EC25-18@if02"
    node = Node()
    named = Named(MODEM, frozenset({ID, "modem_EC25-18"}), links=(AT, other, QMI, "shared+kfd"))
    node.look(MODEM_RULE, answer=begun(node, named))
    assert {id_: one.links for id_, one in node.memory.held.items()} == {
        ID: (AT, QMI, "shared+kfd"),
        "modem_EC25-18": (other, "shared+kfd"),
    }


def holding(*ids: str, **more: object) -> Held:
    return {id_: Holding(MODEM, id_, shared=False, **more) for id_ in ids}  # type: ignore[arg-type]


def learned(held: Held, *named: Named) -> Held:
    return learn_links(held, Answer(frozenset(), 0.0, complete=False, named=named))


@pytest.mark.parametrize(
    "link",
    [
        "",
        "modem",
        "modem_EC25-18@if02",
        f"{ID}@",
        f"{ID}x@if02",
        f"{ID}@../../sda",
        f"../{ID}@if02",
        f"{ID}@if02/x",
        f"{ID}@{'x' * 255}",
        f"{ID}@é",
        f"{ID}@if02\n",
        "shared",
        "shared+",
        "shared+../x",
        "shared+a/b",
    ],
)
def test_a_link_that_cannot_be_that_of_the_device_is_nobodys(link: str) -> None:
    held = holding(ID)
    assert learned(held, Named(MODEM, frozenset({ID}), links=(link,))) is held
    assert learned(held, Named(MODEM, frozenset({ID}), links=(link, AT)))[ID].links == (AT,)


def test_the_links_of_another_resource_or_of_what_nobody_holds_do_not_count() -> None:
    held = holding(ID)
    assert learned(held, Named("example.com/other", frozenset({ID}), links=(AT,))) is held
    assert learned(held, Named(MODEM, frozenset({"x"}), links=("x@if02",))) is held


def test_the_one_link_of_a_device_that_is_not_grouped_is_not_kept() -> None:
    held = holding(ID)
    assert learned(held, Named(MODEM, frozenset({ID, "b"}), links=(ID, "b@if02"))) is held


def test_what_this_daemon_has_answered_is_not_what_the_checkpoint_says() -> None:
    """It may be of a pod that has gone."""
    known = holding(ID, given=1.0)
    assert learned(known, BOTH) is known


def test_links_that_are_known_may_be_those_of_an_earlier_pod() -> None:
    """The disk was full when this one got the same id with more of them."""
    known = learned(holding(ID, links=(QMI,)), BOTH)
    assert known[ID].links == (QMI, AT)
    assert learned(known, BOTH) is known


def test_a_checkpoint_that_somebody_made_up_does_not_make_the_memory_grow_without_end() -> None:
    many = tuple(f"{ID}@{n}" for n in range(2 * HELD_LINK_LIMIT))
    assert len(learned(holding(ID), Named(MODEM, frozenset({ID}), links=many))[ID].links) == HELD_LINK_LIMIT
    # It must not take as long as there are links times ids either.
    ids = [f"x-{n}" for n in range(ID_LIMIT)]
    shared = tuple(f"shared+{n}" for n in range(10 * ID_LIMIT))
    held = learned(holding(*ids), Named(MODEM, frozenset(ids), links=shared))
    assert sum(len(one.links) for one in held.values()) == LEARNED_LIMIT
