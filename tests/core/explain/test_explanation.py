"""Why a udev device goes where it goes."""

from genericdp.cli.survey import survey_of
from genericdp.core.device import UdevDevice
from genericdp.core.explain.explanation import Explanation, explain, nodes_below
from genericdp.core.explain.opinion import holds
from genericdp.core.rules.match import Verdict
from genericdp.core.rules.settings import Settings
from tests.scenes.builders import a_fuse, a_modem, a_terminal, a_usb_serial, by_sys_path, resources_of
from tests.scenes.rules import MODEM_RULE


def explained(subject: UdevDevice, rules: str, *others: UdevDevice) -> Explanation:
    settings, devices = Settings(domain="example.com"), by_sys_path(subject, *others)
    return explain(subject, survey_of(settings, resources_of(rules), devices))


TWO_TAKERS = """
[[resource]]
name = "first"
match = { SUBSYSTEM = "tty" }
[[resource]]
name = "second"
match = { usb = { vendor = "0403" } }
"""


def test_the_first_resource_in_file_order_that_matches_a_device_has_it() -> None:
    explanation = explained(a_usb_serial(), TWO_TAKERS)
    assert [resource.short_name for resource in explanation.taken_by] == ["first", "second"]
    assert explanation.offer is not None
    assert explanation.offer.resource.short_name == "first"
    assert explanation.device is not None
    assert explanation.device.id == "first_A50285BI"
    assert explanation.refusal == ""


def test_the_verdicts_are_those_of_the_conditions() -> None:
    explanation = explained(a_terminal(), TWO_TAKERS)
    assert explanation.taken_by == ()
    assert [opinion.match for opinion in explanation.opinions] == [
        ((Verdict("SUBSYSTEM", "'tty'", False, "vc"),),),
        ((Verdict("usb.vendor", "'0403'", False, None),),),
    ]


def test_the_nearest_miss_comes_first_and_what_is_equally_near_stays_in_file_order() -> None:
    explanation = explained(
        a_fuse(),
        """
[[resource]]
name = "far"
match = { SUBSYSTEM = "tty", DRIVER = "x" }
[[resource]]
name = "near"
match = [{ SUBSYSTEM = "tty", DRIVER = "x" }, { SUBSYSTEM = "misc", DRIVER = "x" }]
[[resource]]
name = "near-too"
match = { SUBSYSTEM = "misc", DRIVER = "y" }
[[resource]]
name = "hit"
match = { SUBSYSTEM = "misc" }
""",
    )
    names = [opinion.resource.short_name for opinion in explanation.opinions]
    assert names == ["hit", "near", "near-too", "far"]
    assert [len(opinion.failed) for opinion in explanation.opinions] == [0, 1, 1, 2]


def test_the_resources_that_take_a_device_stay_in_file_order_however_many_conditions_they_have() -> None:
    explanation = explained(
        a_usb_serial(),
        """
[[resource]]
name = "short"
match = { SUBSYSTEM = "tty" }
[[resource]]
name = "long"
match = { SUBSYSTEM = "tty", usb = { vendor = "0403", product = "6001" } }
""",
    )
    assert explanation.offer is not None
    assert explanation.offer.resource.short_name == "short"
    assert [resource.short_name for resource in explanation.taken_by] == ["short", "long"]


TYPING_ERROR = """
[[resource]]
name = "many"
match.usb = { vendor = "0403", product = "6001", serial = "B", port = "9" }
match.SUBSYSTEM = "tty"
match.DEVNAME = "/dev/tty*"
match.ID_BUS = "usb"
match."ATTR{speed}" = "9600"
[[resource]]
name = "one"
match = { usb = { vendor = "0403", product = "6010" } }
"""


def test_one_condition_of_two_is_nearer_than_three_of_eight() -> None:
    explanation = explained(a_usb_serial(), TYPING_ERROR)

    assert [len(opinion.failed) for opinion in explanation.opinions] == [1, 3]
    assert [opinion.resource.short_name for opinion in explanation.opinions] == ["one", "many"]


def test_a_value_that_the_device_lacks_is_farther_than_another_value() -> None:
    explanation = explained(
        a_usb_serial(),
        """
[[resource]]
name = "lacking"
match = { SUBSYSTEM = "tty", DEVNAME = "/dev/tty*", ID_X = "1" }
[[resource]]
name = "other"
match = { SUBSYSTEM = "tty", DEVNAME = "/dev/tty*", usb = { product = "6010" } }
""",
    )
    assert [opinion.resource.short_name for opinion in explanation.opinions] == ["other", "lacking"]
    assert [opinion.nearness for opinion in explanation.opinions] == [(False, 1, -2), (False, 2, -2)]


def test_a_rule_of_which_nothing_holds_is_farther_than_one_of_which_more_holds_than_fails() -> None:
    explanation = explained(
        a_usb_serial(),
        """
[[resource]]
name = "camera"
match = { SUBSYSTEM = "video4linux" }
[[resource]]
name = "meter"
match = { SUBSYSTEM = "tty", usb = { vendor = "0403", product = "6010", serial = "B" } }
""",
    )
    assert [opinion.resource.short_name for opinion in explanation.opinions] == ["meter", "camera"]
    assert [opinion.nearness for opinion in explanation.opinions] == [(False, 2, -2), (True, 1, 0)]


def test_a_node_that_no_node_table_matches_is_not_taken() -> None:
    usb, first, _, third, control = a_modem()
    explanation = explained(first, MODEM_RULE, usb, third, control)
    (opinion,) = explanation.opinions
    assert not opinion.takes
    assert holds(opinion.match)
    assert [holds(judged) for _, judged in opinion.tables] == [False, False]
    assert len(opinion.failed) == 1


def test_a_part_of_a_device_is_explained_by_the_whole_device() -> None:
    usb, _, _, third, control = a_modem()
    explanation = explained(third, MODEM_RULE, usb, control)
    assert explanation.device is not None
    assert [node.path for node in explanation.device.nodes] == ["/dev/ttyUSB3", "/dev/cdc-wdm0"]


def test_a_device_that_is_matched_but_refused_has_a_reason() -> None:
    explanation = explained(
        a_fuse(), '[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "misc" }\ngroup_by = "usb_device"\n'
    )
    assert explanation.device is None
    assert explanation.refusal == "it does not belong to a USB device, but the rule groups by 'usb_device'"


def test_a_match_without_conditions_holds() -> None:
    assert holds(())


def test_nodes_below_are_in_the_order_of_their_numbers() -> None:
    modem = a_modem(first=9)
    assert nodes_below(modem[0].sys_path, modem) == [
        "/dev/cdc-wdm0",
        "/dev/ttyUSB9",
        "/dev/ttyUSB10",
        "/dev/ttyUSB11",
    ]
