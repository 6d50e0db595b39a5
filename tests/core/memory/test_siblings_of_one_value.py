"""Siblings that share a value of a property that a rule names: it does not tell which of them comes."""

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.offer import Health
from tests.core.memory.test_siblings_on_boards import Booting
from tests.scenes.builders import a_device
from tests.scenes.edits import rule

CARD = a_device("/sys/devices/pci0000:00/0000:00:1c.0/0000:05:00.0", subsystem="pci", driver="serial")
IN_DOUBT = "the device plugged in now may not be the one that a pod got; delete that pod"

DEFAULT, BY_VALUE, OF_VALUE = rule("x"), rule("x", 'identity = ["BOARD"]'), rule("x", 'group_by = "BOARD"')
KIT = rule("x", 'group_by = "parent"')
RULES = {
    "default": DEFAULT,
    "identity": BY_VALUE,
    "group": OF_VALUE,
    "group at a port": rule("x", 'group_by = "BOARD"', 'identity = "port"'),
    "kit": KIT,
    "kit by identity": rule("x", 'group_by = "parent"', 'identity = ["BOARD"]'),
    "all": rule("x", 'group_by = "all"'),
    "port": rule("x", 'identity = "port"'),
}
by_all = pytest.mark.parametrize(
    ("before", "after"),
    [pytest.param(RULES[one], RULES[other], id=f"{one}-{other}") for one in RULES for other in RULES],
)


def a_port(n: int, since: int, board: str = "1", name: str = "") -> UdevDevice:
    """A serial port of a card, whose name is the next one that is free when the driver is loaded."""
    return a_device(
        f"{CARD.sys_path}/tty/ttyS{n}",
        subsystem="tty",
        number=f"c 4:{64 + n}",
        node=f"/dev/ttyS{n}",
        parent=CARD,
        properties={"BOARD": board, "ACME_PORT": name},
        incarnation=since,
    )


def links(node: Booting) -> dict[str, str | None]:
    """The links that pods may have, with the device nodes to which they lead."""
    return {link: path for link, path in node.links().items() if not link.startswith("held+")}


@by_all
@pytest.mark.parametrize("edit", ["when it is gone", "before it goes"])
@pytest.mark.parametrize("name", [4, 5])
def test_one_that_was_gone_when_a_pod_got_another_one_is_not_taken_for_that(
    before: str, after: str, edit: str, name: int
) -> None:
    node, first, second = Booting(), a_port(4, 10), a_port(5, 11)
    node.look(before, first, second)
    node.look(before if edit == "when it is gone" else after, first)
    node.look(after, first)
    link = node.give(after, first)
    node.reboot()
    node.look(after)
    assert "Healthy" not in node.look(after, a_port(name, 20)).values()
    assert links(node)[link] is None


@by_all
@pytest.mark.parametrize("name", [4, 5])
def test_an_edit_does_not_end_a_doubt(before: str, after: str, name: int) -> None:
    node, both = Booting(), (a_port(4, 10), a_port(5, 11))
    told = node.look(before, *both)
    node.allocate([*told][-1])
    node.look(before, *both)
    node.look(before)
    one = a_port(name, 20)
    for rules in (before, after, before):
        told = node.look(rules, one)
        assert "Healthy" not in told.values(), told
    node.look(after, one, answer=node.nobody_holds_anything())
    assert "Healthy" in node.look(after, one).values()


def test_one_that_comes_with_its_value_while_another_one_is_away_leaves_the_other_ones_untold() -> None:
    node, first, second = Booting(), a_port(4, 10), a_port(5, 11)
    node.look(OF_VALUE, first, second, a_port(6, 12, "2"))
    (id_,) = (id_ for id_ in node.look(OF_VALUE, second, a_port(6, 12, "2")) if id_.startswith("x_1"))
    node.allocate(id_)
    node.look(OF_VALUE, second, a_port(6, 12, "2"))
    (link,) = (link for link, path in node.links().items() if path == "/dev/ttyS5")
    assert link is not None
    third = a_port(6, 13, "2")
    for there in ((second,), (second, third), (third,)):
        node.look(OF_VALUE, *there)
    told = node.look(OF_VALUE, a_port(4, 20), third)
    assert (told[id_], node.links()[link]) == (IN_DOUBT, None)


@by_all
def test_all_that_come_together_are_those_that_were_missing(before: str, after: str) -> None:
    """In the order of their paths, whatever ids an edit has given them meanwhile."""
    node, both = Booting(), (a_port(4, 10), a_port(5, 11))
    node.look(before, *both)
    node.look(after, *both)
    node.allocate(next(id_ for id_, told in node.look(after, *both).items() if told == "Healthy"))
    node.look(after, *both)
    held = {link: path for link, path in node.links().items() if path is not None}
    node.look(after)
    assert "Healthy" in node.look(after, a_port(4, 20), a_port(5, 21)).values()
    assert node.links().items() >= held.items()


def on(since: int, *names: str) -> list[UdevDevice]:
    """The ports of a card with these names, which get the numbers 4, 5, 6."""
    return [a_port(4 + n, since + n, name=name) for n, name in enumerate(names)]


def divided(keys: str, a: str, key: str = "ACME_PORT") -> str:
    """Two rules, one of which takes one sibling of a card, and the other one the others."""
    one = f'{{ SUBSYSTEM = "tty", {key} = "{a}" }}'
    return rule("a", keys, match=one) + rule("b", keys, match='{ SUBSYSTEM = "tty" }')


@pytest.mark.parametrize("keys", ['identity = ["BOARD"]', 'group_by = "BOARD"', ""])
def test_siblings_that_two_rules_take_come_back(keys: str) -> None:
    node, rules = Booting(), divided(keys, "3")
    told = node.look(rules, *on(10, "1", "2", "3"))
    for id_ in told:
        node.allocate(id_)
    node.look(rules, *on(10, "1", "2", "3"))
    had = node.links()
    node.reboot()
    assert node.look(rules, *on(20, "1", "2", "3")) == told
    assert node.links() == had


def test_the_ids_of_all_rules_that_take_siblings_with_one_value_count() -> None:
    """The second one had another value meanwhile, but a pod holds it under the first one."""
    node, rules = Booting(), divided('identity = ["BOARD"]', "1")
    first, second = a_port(4, 10, name="1"), a_port(5, 11, name="2")
    node.look(rules, first, second)
    (link,) = (link for link, path in node.links().items() if path == "/dev/ttyS5")
    node.allocate(link)
    node.look(rules, first, second)
    node.look(rules, first, a_port(5, 11, "2", name="2"))
    node.look(rules)
    told = node.look(rules, a_port(4, 20, name="1"), a_port(5, 21, name="2"))
    assert (told[link], node.links()[link]) == ("Healthy", "/dev/ttyS5")


def come_again(keys: str, comes: str, before: str, after: str, *again: UdevDevice) -> tuple[Booting, str]:
    """A node on which a pod has the sibling 3, which one rule takes alone; and the first link to it.

    Then all of them come again, after an edit of the rules.
    """
    node = Booting()
    node.look(before, *on(10, "1", "2", "3"))
    (link,) = (link for link, path in node.links().items() if path == "/dev/ttyS6")
    node.allocate(link.partition("@")[0])
    node.look(before, *on(10, "1", "2", "3"))
    if comes == "boot":
        node.reboot()
    else:
        node.look(before)
    node.look(after, *again)
    node.look(after, *again)
    return node, link


@pytest.mark.parametrize("keys", ['identity = ["BOARD"]', 'group_by = "BOARD"', ""])
@pytest.mark.parametrize("comes", ["boot", "replug"])
@pytest.mark.parametrize("how", ["names", "edit"])
def test_which_of_two_rules_takes_a_sibling_does_not_tell_it(keys: str, comes: str, how: str) -> None:
    """The kernel may give it another name, and rules may be edited. The order tells."""
    if how == "names":
        before = after = divided(keys, "/dev/ttyS6", "DEVNAME")
        again = [a_port(5 + n, 20 + n, name=str(n + 1)) for n in range(3)]
    else:
        before, after, again = divided(keys, "3"), divided(keys, "2"), on(20, "1", "2", "3")
    node, link = come_again(keys, comes, before, after, *again)
    mine = again[2].device_node
    links = [node.links().get(each) for each in (link, f"held+{link}")]
    assert links == ([None, None] if keys.startswith("group_by") else [None, mine])
    devices = (each for offer in node.inventory.offers.values() for each in offer.devices)
    healthy = [path.path for each in devices if each.health is Health.HEALTHY for path in each.nodes]
    assert mine not in healthy


@pytest.mark.parametrize("keys", ['identity = ["BOARD"]', 'group_by = "BOARD"', ""])
@pytest.mark.parametrize("comes", ["boot", "replug"])
def test_nor_does_it_if_they_come_in_another_order(keys: str, comes: str) -> None:
    rules = divided(keys, "3")
    node, link = come_again(keys, comes, rules, rules, *on(20, "1", "3", "2"))
    id_ = link.partition("@")[0]
    assert (node.offer_of(id_).ids[id_].reason, node.links()[link]) == (IN_DOUBT, None)


EDITS_OF_MATCH = ['identity = ["BOARD"]', 'group_by = "BOARD"', 'group_by = "parent"\nidentity = ["BOARD"]']


def only(n: int, keys: str) -> str:
    return rule("x", keys, match=f'{{ SUBSYSTEM = "tty", ACME_PORT = "{n}" }}')


@pytest.mark.parametrize("keys", EDITS_OF_MATCH)
@pytest.mark.parametrize("edit", ["while it is there", "over the boot"])
def test_another_one_that_an_edited_rule_takes_is_not_what_a_pod_got(keys: str, edit: str) -> None:
    node, both = Booting(), (a_port(4, 10, name="1"), a_port(5, 11, name="2"))
    link = node.give(only(1, keys), *both)
    if edit == "while it is there":
        node.look(only(2, keys), *both)
    node.reboot()
    again = (a_port(4, 20, name="1"), a_port(5, 21, name="2"))
    for _ in range(2):
        node.look(only(2, keys), *again)
        assert links(node).get(link) is None
    node.look(only(1, keys), *again)
    assert links(node)[link] == "/dev/ttyS4"


@pytest.mark.parametrize("keys", EDITS_OF_MATCH)
@pytest.mark.parametrize("other", ["", 'identity = "port"', 'identity = ["ACME_PORT"]'])
def test_nor_is_it_if_another_rule_takes_what_the_pod_got(keys: str, other: str) -> None:
    node, both = Booting(), (a_port(4, 10, name="1"), a_port(5, 11, name="2"))
    link = node.give(only(1, keys), *both)
    edited = only(2, keys) + rule("y", other, match='{ SUBSYSTEM = "tty", ACME_PORT = "1" }')
    node.look(edited, *both)
    node.reboot()
    for _ in range(2):
        node.look(edited, a_port(4, 20, name="1"), a_port(5, 21, name="2"))
        assert links(node).get(link) is None


@pytest.mark.parametrize("keys", EDITS_OF_MATCH)
@pytest.mark.parametrize("part", [1, 2])
def test_one_that_the_rule_does_not_take_does_not_matter_after_a_boot(keys: str, part: int) -> None:
    node, both = Booting(), (a_port(4, 10, name="1"), a_port(5, 11, name="2"))
    link = node.give(only(part, keys), *both)
    for boot in (20, 30):
        node.reboot()
        again = (a_port(4, boot, name="1"), a_port(5, boot + 1, name="2"))
        assert "Healthy" in node.look(only(part, keys), *again).values()
        assert links(node)[link] == f"/dev/ttyS{3 + part}"


@pytest.mark.parametrize("keys", ['identity = ["BOARD"]', 'group_by = "BOARD"'])
def test_one_is_not_what_cannot_be_read_although_it_has_its_value(keys: str) -> None:
    node, rules = Booting(), rule("x", keys)
    first, second = a_port(4, 10), a_port(5, 11)
    told = node.look(rules, first, unread=[second.sys_path])
    node.allocate(*told)
    node.look(rules, first, unread=[second.sys_path])
    (link,) = (link for link, path in node.links().items() if path is not None)
    node.restart()
    for _ in range(2):
        assert "Healthy" not in node.look(rules, second, unread=[first.sys_path]).values()
        assert links(node)[link] is None


def test_an_order_that_contradicts_the_values_tells_nothing() -> None:
    node, keys = Booting(), 'identity = ["BOARD"]'

    def three(since: int, *names: str) -> list[UdevDevice]:
        boards = {"1": "one", "2": "two", "3": "two"}
        return [a_port(4 + n, since + n, boards[name], name) for n, name in enumerate(names)]

    link = node.give(only(2, keys), *three(10, "1", "2", "3"))
    node.reboot()
    told = node.look(only(2, keys), *three(20, "2", "1", "3"))
    assert ({*told.values()}, links(node)[link]) == ({IN_DOUBT}, None)
