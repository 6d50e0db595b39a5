"""Which containers to stop: holders only, and only those that a restart would mend."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import permutations

import pytest

from genericdp.core.comeback.container import Container, Inside
from genericdp.core.comeback.judge import Answers, Evidence, Judgement, Saved, judge, newest
from genericdp.core.comeback.plugs import Case, Numbers, Plug, Plugs, cases, follow
from genericdp.core.device import DeviceNumber
from genericdp.core.inventory.offer import Offer
from genericdp.core.inventory.plugged import NOTHING_PLUGGED
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remember import remember
from genericdp.core.rules.name import cdi_kind
from genericdp.core.status.holdings import Holder
from tests.scenes.builders import a_device, a_kfd, a_modem, a_usb_serial
from tests.scenes.inventories import inventory_of
from tests.scenes.rules import FTDI_RULE, KIT_RULE, MODEM_RULE
from tests.scenes.work import FACTOR, IN_PROPORTION, growth

LINKS = "/dev/genericdp"
MAIN = Container("1", Holder("default", "app", "main"), "uid-1", created=5)
TTY0, TTY3 = DeviceNumber("c", 188, 0), DeviceNumber("c", 188, 3)


def plugged(rules: str, *devices: object) -> Case:
    """The case of the one device of these rules, which is there."""
    (offer,) = inventory_of(rules, *devices).offers.values()  # type: ignore[arg-type]
    (device,) = offer.devices
    numbers = {node.link: node.number for node in device.nodes_inside if node.number}
    return Case(offer, device, Plug(numbers, 0.0, 0.0))


STICK = plugged(FTDI_RULE, a_usb_serial(3, serial="A"))
UNPLUGGED = replace(STICK, plug=Plug(None, 0.0, 0.0))
LINK = f"{LINKS}/ftdi_A"
BY_CDI = f"{cdi_kind('example.com/x')}=all"

#: Path in the container -> device number.
Nodes = Mapping[str, DeviceNumber]


def judged(case: Case, containers: Iterable[Container], nodes: Nodes | None = None) -> Judgement:
    """The judgement of these containers, if the holder is called as MAIN and MAIN has these nodes."""
    return judge(case, [MAIN.holder], newest(containers), Evidence(inside_of(nodes), {}, LINKS))


def inside_of(nodes: Nodes | None, envs: Mapping[str, str] | None = None) -> dict[str, Inside | None]:
    """What MAIN was created with."""
    return {"1": None if nodes is None else Inside(nodes, envs or {})}


def is_stopped(case: Case, nodes: Nodes | None, saved: Saved | None = None, **envs: str) -> bool:
    """Whether MAIN, which holds the device and was created with this, is stopped."""
    judgement = judge_main(case, nodes, saved, **envs)
    assert judgement.sure is (nodes is not None)
    return judgement.stops == (MAIN,)


def judge_main(case: Case, nodes: Nodes | None, saved: Saved | None, **envs: str) -> Judgement:
    answers = {} if saved is None else {("uid-1", "main", case.key[0]): saved}
    return judge(case, [MAIN.holder], newest([MAIN]), Evidence(inside_of(nodes, envs), answers, LINKS))


@pytest.mark.parametrize("saved", [None, Saved({"/dev/serial0": LINK})], ids=["not known", "known"])
def test_other_numbers_are_a_reason_and_the_same_are_none(saved: Saved | None) -> None:
    assert is_stopped(STICK, {"/dev/serial0": TTY0}, saved)
    assert not is_stopped(STICK, {"/dev/serial0": TTY3}, saved)


def test_a_container_that_started_without_the_device_is_given_it() -> None:
    assert is_stopped(STICK, {}, Saved({"/dev/serial0": LINK}))
    assert is_stopped(STICK, {})


def test_what_the_runtime_does_not_tell_is_no_reason() -> None:
    assert not is_stopped(STICK, None, Saved({"/dev/serial0": LINK}))


def test_the_number_counts_at_the_path_that_the_kubelet_has_saved() -> None:
    """Two devices of one container have exchanged their numbers."""
    saved = Saved({"/dev/a": LINK, "/dev/b": f"{LINKS}/ftdi_B"})
    assert is_stopped(STICK, {"/dev/a": TTY0, "/dev/b": TTY3}, saved)
    assert not is_stopped(STICK, {"/dev/a": TTY3, "/dev/b": TTY0}, saved)


def test_what_a_restart_would_not_mend_is_left_alone() -> None:
    """The saved answer names other links: of an earlier id of the device, say."""
    assert not is_stopped(STICK, {"/dev/serial0": TTY0}, Saved({"/dev/serial0": f"{LINKS}/old"}))


@pytest.mark.parametrize("name", ["ftdi_A", "ftdi_A:0123456789"])
def test_the_name_of_a_cdi_device_means_what_is_there_now(name: str) -> None:
    """It may be that of all ids of the container."""
    saved = Saved({}, (f"example.com/ftdi={name}",), ("ftdi_A",))
    assert not is_stopped(STICK, {"/dev/serial0": TTY3}, saved)
    assert is_stopped(STICK, {"/dev/serial0": TTY0}, saved)
    assert is_stopped(STICK, {"/dev/elsewhere": TTY3}, saved)


def test_the_name_of_a_cdi_device_of_others_tells_no_path() -> None:
    saved = Saved({}, ("vendor.example/class=name",), ("ftdi_A",))
    assert not is_stopped(STICK, {"/dev/elsewhere": TTY3}, saved)
    assert is_stopped(STICK, {"/dev/serial0": TTY0}, saved)


PATHS, IDS = "GENERICDP_EXAMPLE_COM_FTDI", "GENERICDP_EXAMPLE_COM_FTDI_IDS"
TWO = Saved({}, ("example.com/ftdi=ftdi_A", "example.com/ftdi=ftdi_B"), ("ftdi_A", "ftdi_B"))


def case_of(id_: str, rules: str, *devices: object) -> Case:
    """The case of one of several devices."""
    (offer,) = inventory_of(rules, *devices).offers.values()  # type: ignore[arg-type]
    (device,) = [each for each in offer.devices if each.id == id_]
    return Case(offer, device, Plug({node.link: node.number for node in device.nodes}, 0.0, 0.0))  # type: ignore[misc]


def test_two_devices_that_have_exchanged_their_numbers_and_with_these_their_paths() -> None:
    """Every path has the number that it would have now. The program takes one device for the other."""
    rules = FTDI_RULE.replace("/dev/serial{index}", "/dev/{devname}")
    inside = {"/dev/ttyUSB0": TTY0, "/dev/ttyUSB3": TTY3}
    a, b = a_usb_serial(3, serial="A"), a_usb_serial(0, serial="B", port="2")
    for id_ in ("ftdi_A", "ftdi_B"):
        case = case_of(id_, rules, a, b)
        assert is_stopped(case, inside, TWO, **{IDS: "ftdi_A,ftdi_B", PATHS: "/dev/ttyUSB0,/dev/ttyUSB3"})
        assert not is_stopped(case, inside, TWO, **{IDS: "ftdi_A,ftdi_B", PATHS: "/dev/ttyUSB3,/dev/ttyUSB0"})
        assert not is_stopped(case, inside, TWO), "a runtime may not tell the envs"
        for told in ("", "/dev/ttyUSB0", "/dev/ttyUSB0,/dev/other", "/dev/ttyUSB0,/dev/ttyUSB3,/dev/ttyUSB3"):
            assert not is_stopped(case, inside, TWO, **{IDS: "ftdi_A,ftdi_B", PATHS: told})
        assert not is_stopped(case, inside, TWO, **{IDS: "a,b", PATHS: "/dev/ttyUSB0,/dev/ttyUSB3"})


def test_without_the_saved_answer_a_node_that_its_program_takes_for_another_one_is_in_doubt() -> None:
    """A container that got device nodes would find the same after a restart."""
    inside = {"/dev/serial0": TTY0, "/dev/serial1": TTY3}
    envs = {IDS: "ftdi_A,ftdi_B", PATHS: "/dev/serial0,/dev/serial1"}
    case = case_of("ftdi_A", FTDI_RULE, a_usb_serial(3, serial="A"), a_usb_serial(0, serial="B", port="2"))
    assert judge_main(case, inside, None, **envs) == Judgement((), sure=False)
    links = Saved({"/dev/serial0": f"{LINKS}/old", "/dev/serial1": f"{LINKS}/older"})
    assert not is_stopped(case, inside, links, **envs)


def test_a_container_with_no_node_of_its_device_is_in_no_doubt_whatever_its_envs_tell() -> None:
    envs = {IDS: "ftdi_A", PATHS: "/dev/serial0"}
    assert is_stopped(STICK, {"/dev/serial0": TTY0}, None, **envs)
    assert not is_stopped(STICK, {"/dev/serial0": TTY3}, None, **envs)


def test_the_parts_of_a_device_may_exchange_their_numbers() -> None:
    """One that is optional may have left since."""
    rules = KIT_RULE + '[[resource.node]]\nmatch.usb = { port = "3" }\noptional = true\n'
    parts = [a_usb_serial(number, port=port, serial=port) for number, port in ((1, "1"), (0, "2"), (2, "3"))]
    saved = Saved({}, ("example.com/kit=kit",), ("kit",))
    numbers = {f"/dev/ttyUSB{n}": DeviceNumber("c", 188, n) for n in range(3)}
    for there in (parts, parts[:2]):
        case = case_of("kit", rules, *there)
        for order, stopped in (("102", False), ("012", True), ("021", True)):
            paths = ",".join(f"/dev/ttyUSB{n}" for n in order)
            envs = {"GENERICDP_EXAMPLE_COM_KIT_IDS": "kit", "GENERICDP_EXAMPLE_COM_KIT": paths}
            assert is_stopped(case, numbers, saved, **envs) is stopped


def test_every_node_of_a_device_counts() -> None:
    modem = plugged(MODEM_RULE, *a_modem())
    at, qmi = DeviceNumber("c", 188, 3), DeviceNumber("c", 180, 176)
    paths = {"/dev/modem-at": at, "/dev/modem-qmi": qmi}
    given = dict(zip(paths, (f"{LINKS}/{node.link}" for node in modem.device.nodes), strict=True))
    for known in (None, Saved(given)):
        assert not is_stopped(modem, paths, known)
    assert is_stopped(modem, {**paths, "/dev/modem-qmi": DeviceNumber("c", 180, 177)}, Saved(given))


def test_which_nodes_a_container_got_is_not_known_without_the_saved_answer() -> None:
    """The rules may have counted fewer nodes to the device when the container got it."""
    modem = plugged(MODEM_RULE, *a_modem())
    for inside in (
        {"/dev/modem-at": DeviceNumber("c", 188, 3)},
        {"/dev/modem-at": DeviceNumber("c", 188, 3), "/dev/modem-qmi": DeviceNumber("c", 180, 177)},
    ):
        assert judge_main(modem, inside, None) == Judgement((), sure=False)
    gone = {"/dev/modem-at": TTY0, "/dev/modem-qmi": DeviceNumber("c", 180, 177)}
    assert is_stopped(modem, gone), "whichever it got, it has none of them"


def test_a_node_that_is_optional_is_not_missed_if_nobody_knows_what_was_saved() -> None:
    rules = MODEM_RULE + "optional = true\n"
    modem = plugged(rules, *a_modem())
    assert not is_stopped(modem, {"/dev/modem-at": DeviceNumber("c", 188, 3)})


def test_every_holder_of_an_unplugged_device_is_stopped_whatever_is_in_it() -> None:
    assert judged(UNPLUGGED, [MAIN]) == Judgement((MAIN,))


def test_only_those_that_hold_the_device_are_stopped() -> None:
    other = replace(MAIN, id="2", holder=Holder("default", "other", "main"))
    beside = replace(MAIN, id="3", holder=Holder("default", "app", "beside"))
    assert judged(UNPLUGGED, [other, beside, MAIN]) == Judgement((MAIN,))


def test_of_two_pods_of_one_name_the_newer_is_the_holder() -> None:
    older = replace(MAIN, id="0", pod="uid-0", created=4)
    assert judged(UNPLUGGED, [older, MAIN]) == Judgement((MAIN,))
    assert judged(UNPLUGGED, [MAIN, older]) == Judgement((MAIN,))


def test_within_a_pod_the_container_that_runs_is_the_holder_though_the_clock_was_set_back() -> None:
    left_over = replace(MAIN, id="0", runs=False, created=MAIN.created + 10)
    older = replace(MAIN, id="9", pod="uid-0", created=MAIN.created - 1)
    for containers in permutations([left_over, MAIN, older]):
        assert judged(UNPLUGGED, containers) == Judgement((MAIN,))


@pytest.mark.parametrize("case", [STICK, UNPLUGGED], ids=["plugged", "unplugged"])
def test_a_holder_without_a_container_may_be_starting_one(case: Case) -> None:
    beside = replace(MAIN, id="3", holder=Holder("default", "app", "beside"))
    assert judged(case, [beside]) == Judgement(starting=True)


@pytest.mark.parametrize("case", [STICK, UNPLUGGED], ids=["plugged", "unplugged"])
def test_a_container_that_lacks_the_device_is_not_stopped_before_it_runs(case: Case) -> None:
    created = replace(MAIN, runs=False)
    assert judged(case, [created], {"/dev/serial0": TTY0}) == Judgement(starting=True)
    # A kubelet that restarted creates another one.
    older = replace(MAIN, id="0", created=4, runs=False)
    assert judged(case, [older, MAIN], {"/dev/serial0": TTY0}) == Judgement((MAIN,))


def test_a_container_that_was_created_with_the_device_is_left_alone() -> None:
    assert judged(STICK, [replace(MAIN, runs=False)], {"/dev/serial0": TTY3}) == Judgement()


@pytest.mark.parametrize("numbers", [STICK.plug.numbers, None], ids=["plugged", "unplugged"])
def test_a_pod_that_was_deleted_by_force_is_left_alone_when_only_its_successor_got_the_device(
    numbers: Numbers | None,
) -> None:
    case = replace(STICK, plug=Plug(numbers, 0.0, 0.0))
    saved = {("uid-2", "main", case.key[0]): Saved({"/dev/ttyUSB3": LINK})}

    def stopped(answers: Answers) -> Judgement:
        evidence = Evidence(inside_of({"/dev/ttyUSB0": TTY0}), answers, LINKS)
        return judge(case, [MAIN.holder], newest([MAIN]), evidence)

    assert stopped(saved) == Judgement(starting=True), "the successor may be starting"
    of_both = {**saved, ("uid-1", "main", case.key[0]): Saved({"/dev/ttyUSB0": LINK})}
    assert stopped(of_both) == Judgement((MAIN,))


@pytest.mark.parametrize("by_cdi", [False, True])
def test_the_work_grows_in_proportion_to_the_devices_of_a_container(by_cdi: bool) -> None:
    rule = '[[resource]]\nname = "x"\nmatch.SUBSYSTEM = "misc"\non_replug = "restart"\ndebounce = "0s"\n'

    def work(count: int) -> Callable[[], object]:
        misc = [
            a_device(f"/sys/devices/virtual/misc/m{n}", node=f"/dev/m{n}", number=f"c 10:{n}")
            for n in range(count)
        ]
        inventory = inventory_of(rule, *misc)
        (offer,) = inventory.offers.values()
        nodes = [device.nodes[0] for device in offer.devices]
        links = {node.path: f"{LINKS}/{node.link}" for node in nodes}
        known = Saved({}, (BY_CDI,), tuple(offer.ids)) if by_cdi else Saved(links)
        numbers = {node.path: node.number for node in nodes if node.number is not None}
        told = {
            "GENERICDP_EXAMPLE_COM_X": ",".join(numbers),
            "GENERICDP_EXAMPLE_COM_X_IDS": ",".join(offer.ids),
        }
        inside = inside_of(numbers, told)
        containers = newest([MAIN])
        due = cases(follow(Plugs(), inventory, NOTHING_PLUGGED, 0.0), 1.0)
        assert len(due) == count

        def judge_all() -> None:
            evidence = Evidence(inside, {("uid-1", "main", "example.com/x"): known}, LINKS)
            assert not any(judge(case, [MAIN.holder], containers, evidence).stops for case in due)

        return judge_all

    ready = {count: work(count) for count in (200, 200 * FACTOR)}
    assert growth(lambda count: ready[count](), 200) < IN_PROPORTION


def test_an_edit_that_brings_a_template_does_not_hide_what_a_container_got_by_cdi() -> None:
    """One of its devices is unplugged, so the value of the field is not known. The device nodes are."""
    rule = '[[resource]]\nname = "x"\nmatch.SUBSYSTEM = "tty"\n'
    devices = [a_usb_serial(n, port=f"{n + 1}", serial=f"S{n}") for n in range(2)]
    _, memory = remember(inventory_of(rule, *devices), Memory(), 0.0)
    inventory, _ = remember(inventory_of(f'{rule}env = {{ X = "{{sysname}}" }}\n', devices[1]), memory, 1.0)
    (offer,) = inventory.offers.values()
    saved = Saved({}, (BY_CDI,), tuple(offer.ids))
    evidence = Evidence(inside_of({}), {(MAIN.pod, MAIN.holder.container, offer.resource.name): saved}, LINKS)
    assert evidence.paths(MAIN, offer) == {f"{LINKS}/x_S{n}": [f"/dev/ttyUSB{n}"] for n in range(2)}


def test_what_was_stopped_for_the_plug_is_not_stopped_again_in_its_next_container() -> None:
    case = replace(STICK, plug=replace(STICK.plug, stopped=frozenset({("uid-1", "main")})))
    assert judged(case, [replace(MAIN, id="9")]) == Judgement()


def test_an_id_that_is_refused_is_no_reason() -> None:
    offer = Offer(STICK.offer.resource, STICK.offer.devices, refused={"ftdi_A": "it has to wait"})
    case = replace(STICK, offer=offer)
    named = Saved({}, ("example.com/ftdi=ftdi_A",), ("ftdi_A",))
    assert not is_stopped(case, {"/dev/serial0": TTY3}, named)
    assert is_stopped(case, {"/dev/serial0": TTY0}, named), "but its new number is"


def test_a_shared_node_counts_as_one_of_the_device() -> None:
    rules = FTDI_RULE + '[[resource.node]]\nmatch = { SUBSYSTEM = "kfd" }\nshared = true\n'
    kfd, other = DeviceNumber("c", 510, 0), DeviceNumber("c", 511, 0)
    saved = Saved({"/dev/serial0": LINK, "/dev/kfd": f"{LINKS}/shared+kfd"})
    by_cdi = Saved({}, ("example.com/ftdi=ftdi_A",), ("ftdi_A",))
    stick = plugged(rules, a_usb_serial(3, serial="A"), a_kfd())
    without, with_another = {"/dev/serial0": TTY3}, {"/dev/serial0": TTY3, "/dev/kfd": other}
    for known in (None, saved, by_cdi):
        assert not is_stopped(stick, {"/dev/serial0": TTY3, "/dev/kfd": kfd}, known)
        assert is_stopped(stick, {"/dev/serial0": TTY0, "/dev/kfd": kfd}, known)
    for known in (saved, by_cdi):
        assert is_stopped(stick, with_another, known)
        assert is_stopped(stick, without, known)
    for inside in (without, with_another):
        assert judge_main(stick, inside, None) == Judgement((), sure=False), "it may be new in the rules"
    optional = plugged(f"{rules}optional = true\n", a_usb_serial(3, serial="A"), a_kfd())
    assert not is_stopped(optional, without)
