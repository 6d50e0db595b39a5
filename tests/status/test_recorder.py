"""What happens is recorded three times: in words for the log and the events, by its value for the metrics."""

import json
from pathlib import Path

import pytest

from genericdp.core.allocate import RefusalReason
from genericdp.core.hint import Deafness, RescanCause, Resync, Silence, SilenceCause
from genericdp.core.inventory.inventory import Inventory, diff
from genericdp.core.inventory.offer import Offer
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.memory import Memory
from genericdp.core.rules.match import Match
from genericdp.core.rules.resource import Resource
from genericdp.core.status.history import Since
from genericdp.errors import Location, Problem
from genericdp.kubelet.api import deviceplugin as api
from genericdp.kubelet.plugin import Allocated
from genericdp.kubelet.registration import Phase, Progress
from genericdp.log_lines import JournalLines, JsonLines
from genericdp.status import recorder
from genericdp.status.recorder import Recorder
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI
from tests.scenes.scene import a_scene


class RefusedError(Exception):
    """What a call that did not come over a socket makes of a refusal."""


class Context:
    """A call that did not come over a socket."""

    async def abort(self, code: object, details: str) -> None:
        del code
        raise RefusedError(details)


@pytest.mark.parametrize("cause", RescanCause)
def test_a_rescan_is_counted_by_its_cause_whatever_the_log_says(
    cause: RescanCause, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "why_rescan", lambda _: "a periodic rescan, after a USB device overflowed")
    it = Recorder(lambda: 0.0)

    it.see_hint(Resync(cause, "udev", "no memory"))

    assert it.history.rescans.by_kind == {(cause.value,): 1}
    assert it.history.overflows == (cause is RescanCause.OVERFLOW)


def test_a_number_is_a_number_in_json_and_stands_as_it_is_in_text(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    offer = Offer(Resource(FTDI, Match()), ())
    before, after = Inventory(), Inventory({FTDI: offer})

    Recorder(lambda: 0.0).see_step(before, after, diff(before, after))

    (record,) = caplog.records
    assert json.loads(JsonLines().format(record))["devices"] == 0
    assert JournalLines().format(record) == f"<6>resource is offered  resource={FTDI} devices=0"


def test_a_silence_is_logged_and_reported_in_the_same_words(caplog: pytest.LogCaptureFixture) -> None:
    it = Recorder(lambda: 5.0)

    it.see_hint(Deafness(Silence(SilenceCause.NO_SOCKET, "udev", "Too many open files")))

    why = "no socket for udev events: Too many open files"
    assert it.history.silence == Since(why, 5.0)
    (record,) = caplog.records
    assert record.getMessage() == "no udev events; using kernel events and periodic rescans"
    assert getattr(record, "fields", {}) == {"why": why}


def test_why_a_registration_failed_is_logged_once_however_often_it_is_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    it = Recorder(lambda: 0.0)

    for phase, error in (
        (Phase.REGISTERING, ""),
        (Phase.WAITING, "no such resource"),
        (Phase.REGISTERING, "no such resource"),
    ):
        it.see_progress(Progress(FTDI, phase, error))

    (record,) = caplog.records
    assert record.getMessage() == "resource not registered"
    assert getattr(record, "fields", {}) == {"resource": FTDI, "why": "no such resource"}


def test_without_udev_the_log_says_how_to_start_it(caplog: pytest.LogCaptureFixture) -> None:
    Recorder(lambda: 5.0).see_hint(Deafness(Silence(SilenceCause.NO_UDEV, detail="/run/udev/control")))

    (record,) = caplog.records
    assert getattr(record, "fields", {}) == {
        "why": "udev is not running ('/run/udev/control' does not exist)",
        "hint": "in a pod, mount the host's '/run/udev'; on a host, systemctl start systemd-udevd",
    }


async def test_a_refused_allocation_is_counted_under_its_true_reason(short_dir: Path) -> None:
    stick = a_usb_serial(0)
    async with a_scene(short_dir, stick, kubelet_runs=False) as scene:
        await scene.service.stop()
        scene.unplug(stick)
        await scene.service.start()
        plugin = scene.daemon.plugins.plugins[FTDI]
        refusals = []
        for id_ in ("ftdi_A50285BI", "ftdi_other"):
            asked = [api.ContainerAllocateRequest(devices_ids=[id_])]
            with pytest.raises(RefusedError) as refused:
                await plugin.Allocate(api.AllocateRequest(container_requests=asked), Context())  # type: ignore[arg-type]
            refusals.append(str(refused.value))
        assert refusals == [
            f"device 'ftdi_A50285BI' of {FTDI} is unplugged; plug it in again",
            f"{FTDI} has no device 'ftdi_other'",
        ]
        assert scene.daemon.recorder.history.refusals.by_kind == {
            (FTDI, RefusalReason.UNPLUGGED.value): 1,
            (FTDI, RefusalReason.UNKNOWN.value): 1,
        }


def test_a_log_line_names_some_ids_of_an_allocation_and_counts_the_rest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    it = Recorder(lambda: 5.0)
    it.see_allocated(Allocated(FTDI, ("x" * 200, "ftdi\x1b")))
    it.see_allocated(Allocated(FTDI, tuple(f"ftdi_{n}" for n in range(20_000))))

    assert [vars(record)["fields"]["ids"] for record in caplog.records] == [
        f"{'x' * 64}...,ftdi_",
        "ftdi_0,ftdi_1,ftdi_2,ftdi_3,ftdi_4,ftdi_5,ftdi_6,ftdi_7,ftdi_8,ftdi_9,19990 more",
    ]


def test_unknown_ids_without_room_are_logged_when_their_number_changes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    it = Recorder(lambda: 5.0)
    inventory = Inventory({FTDI: Offer(Resource(FTDI, Match()), ())})
    for listed in (3, 3, 4, 0, 3):
        ids = frozenset((FTDI, f"ftdi_{n}") for n in range(listed))
        it.see_answer(Answer(ids, 0.0, complete=True), inventory, Memory())
        it.see_answer(None, inventory, Memory())

    assert {record.message for record in caplog.records} == {
        "the kubelet says that pods hold more unknown ids than a resource can list"
    }
    assert [vars(record)["fields"]["ignored"] for record in caplog.records] == [3, 4, 3]


def test_only_new_mistakes_in_rule_files_are_logged_and_not_all_of_many(
    caplog: pytest.LogCaptureFixture,
) -> None:
    it = Recorder(lambda: 5.0)
    mistakes = tuple(Problem(Location("a.toml", n), "unknown key 'x'") for n in range(1, 301))

    it.see_problems(mistakes)
    first = [record.message for record in caplog.records]
    assert first == [
        *(f"a.toml:{n}:1: unknown key 'x'" for n in range(1, 21)),
        "the rule files have more mistakes",
    ]
    assert vars(caplog.records[-1])["fields"] == {"more": 280, "hint": "genericdp check"}

    caplog.clear()
    it.see_problems(mistakes)
    assert caplog.records == []
    it.see_problems((*mistakes[1:], Problem(Location("b.toml", 7), "unknown key 'y'")))
    it.see_problems(mistakes)
    assert [record.message for record in caplog.records] == [
        "b.toml:7:1: unknown key 'y'",
        "a.toml:1:1: unknown key 'x'",
    ]
