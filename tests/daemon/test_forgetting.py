"""When the kubelet is asked who holds devices, and what its answers prove."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio
import pytest

from genericdp import forgetting
from genericdp.core.memory.answer import Answer, Named
from genericdp.core.memory.held import PODS_SETTLE_S, Held, Holding
from genericdp.core.status.holdings import KUBELET_SETTLES_S, Holder, Holdings
from genericdp.errors import GenericdpError
from genericdp.forgetting import ASK_NOW_S, FIRST_TRIES, Forgetting
from genericdp.kubelet.checkpoint import Checkpoint
from genericdp.kubelet.socket import KubeletSocket
from tests.scenes.answering import a_grpc_server
from tests.scenes.rules import FTDI
from tests.scenes.scene import LoopTime
from tests.scenes.waiting import idle, until

#: A kubelet that hangs: nothing reads from its socket, or its call goes on forever.
SILENT = ("accepts", "is called")

HELD: Holdings = {(FTDI, "ftdi_A"): (Holder("default", "pod", "main"),)}
ANSWER = frozenset(HELD)


class Asked:
    """A kubelet with a PodResources API; what is asked of it and sent to it, and what follows from it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kubelet = KubeletSocket("/var/lib/kubelet/device-plugins")
        self.starts(up_s=KUBELET_SETTLES_S + 1)
        self.times = 0
        self.silent = self.socket = 0
        self.due: float | None = None
        self.waits = False
        self.followed = True
        self.restarts_meanwhile = False
        self.listed = HELD
        # Called when the kubelet has made its answer, which has not arrived yet, and while its checkpoint is
        # read.
        self.on_answer: Callable[[], None] = lambda: None
        self.on_reading: Callable[[], None] = lambda: None
        self.answers: list[Answer] = []
        self.looks = 0
        self.held: Held = {}
        self.checkpointed: frozenset[str] | GenericdpError = frozenset()
        self.named: tuple[Named, ...] = ()
        self.saved: list[Checkpoint | None] = []
        self.tried: list[GenericdpError | None] = []
        self.sent: list[float] = []
        self.now = 1.0
        monkeypatch.setattr("genericdp.forgetting.podresources.ask", self._ask)
        monkeypatch.setattr("genericdp.forgetting.podresources.identity_of", self.take_socket)
        monkeypatch.setattr("genericdp.forgetting.checkpoint.read", self._read)

    def starts(self, *, up_s: float = 0.0) -> None:
        """Another kubelet is there, which has been up for so long."""
        self.kubelet.incarnation = (self.kubelet.incarnation or 0) + 1
        self.kubelet.since = asyncio.get_running_loop().time() - up_s

    def made(self) -> Forgetting:
        return Forgetting(
            self,
            "/pod-resources",
            "/links",
            now=lambda: self.now,
            due=lambda: self.due,
            waits=lambda: self.waits,
            held=lambda: self.held,
            tell=self._tell,
            tell_saved=self.saved.append,
            on_read=self.tried.append,
        )

    async def run_until(
        self,
        condition: Callable[[], object],
        then: Callable[[Forgetting], None] = lambda _: None,
        last: Callable[[], object] | None = None,
    ) -> None:
        """Run until something has happened, and then until `last` or until nothing more happens by itself."""
        it = self.made()
        task = asyncio.create_task(it.run())
        await until(condition)
        then(it)
        await (idle() if last is None else until(last))
        task.cancel()
        await asyncio.wait((task,))

    def _tell(self, answer: Answer | None) -> None:
        if answer is None:
            self.looks += 1
        else:
            self.answers.append(answer)

    def are_followed(self) -> bool:
        return self.followed

    def send_again(self) -> None:
        self.sent.append(self.now)

    async def _read(self, directory: str, link_dir: str) -> Checkpoint:
        assert (directory, link_dir) == ("/var/lib/kubelet/device-plugins", "/links")
        found = self.checkpointed
        await asyncio.sleep(0)
        self.on_reading()
        if isinstance(found, GenericdpError):
            raise found
        return Checkpoint(frozenset((FTDI, id_) for id_ in found), self.named)

    async def _ask(self, socket_path: str) -> Holdings | None:
        assert socket_path == "/pod-resources"
        self.times += 1
        self.now += 5.0
        if self.restarts_meanwhile:
            self.restarts_meanwhile = False
            self.starts()
        held = self.listed if self.times > self.silent else None
        self.on_answer()
        await asyncio.sleep(0)
        return held

    def take_socket(self, _: str) -> int:
        """The identity of the socket of the PodResources API."""
        return self.socket


async def test_a_kubelet_is_asked_once_when_it_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer counts from when the question was asked: what was given meanwhile may not be in it."""
    asked = Asked(monkeypatch)
    await asked.run_until(lambda: asked.answers)
    assert asked.answers == [Answer(ANSWER, asked=1.0, complete=True, first=True)]
    assert asked.times == 1


async def test_what_the_checkpoint_says_of_answers_by_cdi_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch)
    asked.named = (Named(FTDI, frozenset({"ftdi_A"}), ("example.com/ftdi=ftdi_A",)),)
    await asked.run_until(lambda: asked.answers)
    assert [answer.named for answer in asked.answers] == [asked.named]


async def test_what_the_checkpoint_says_of_answers_is_known_before_the_first_inventory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is absent needs its links before anything else."""
    asked = Asked(monkeypatch)
    asked.checkpointed = frozenset({"ftdi_A"})
    asked.named = (Named(FTDI, frozenset({"ftdi_A"}), links=("ftdi_A@if00",)),)
    began = await asked.made().begin()
    assert began is not None
    assert began.earlier == {(FTDI, "ftdi_A")}
    assert began.named == asked.named


async def test_of_a_kubelet_that_has_just_started_only_the_holders_that_it_names_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked(monkeypatch)
    asked.starts()
    await asked.run_until(lambda: asked.answers)
    assert asked.answers == [Answer(ANSWER, asked=1.0, complete=False, first=True)]


async def test_a_kubelet_that_restarts_while_it_is_asked_is_not_believed_and_the_next_one_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forgetting, "ASK_AGAIN_SOON_S", 0.0)
    asked = Asked(monkeypatch)
    asked.restarts_meanwhile = True
    await asked.run_until(lambda: asked.answers)
    assert (asked.times, [answer.complete for answer in asked.answers]) == (2, [False])


async def test_a_kubelet_that_restarts_while_its_checkpoint_is_read_is_not_believed_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The checkpoint may be that of the next one, which may have lost what the one before saved."""
    monkeypatch.setattr(forgetting, "ASK_AGAIN_SOON_S", 0.0)
    asked = Asked(monkeypatch)

    def restart() -> None:
        if asked.times == 1:
            asked.starts()

    asked.on_reading = restart
    await asked.run_until(lambda: asked.answers)
    assert (asked.times, [answer.complete for answer in asked.answers]) == (2, [False])


async def test_a_pod_that_is_admitted_between_the_answer_and_the_checkpoint_is_in_the_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other way round, it would be in neither, and nobody would be known to hold its device."""
    asked = Asked(monkeypatch)
    asked.listed = {}

    def admit() -> None:
        """It got the device from the daemon before, after the answer was made; the kubelet saves that."""
        asked.checkpointed, asked.listed = frozenset({"ftdi_A"}), HELD

    asked.on_answer = admit
    await asked.run_until(lambda: asked.answers)
    (answer,) = asked.answers
    assert not answer.ids
    assert answer.checkpointed == frozenset({"ftdi_A"})
    assert answer.earlier == {(FTDI, "ftdi_A")}


async def test_a_pod_that_goes_between_the_answer_and_the_checkpoint_is_in_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it had is free with the next answer, and nothing of another pod is."""
    asked = Asked(monkeypatch)
    asked.checkpointed = frozenset({"ftdi_A", "ftdi_B"})

    def go() -> None:
        asked.checkpointed, asked.listed = frozenset({"ftdi_B"}), {}

    asked.on_answer = go
    await asked.run_until(lambda: asked.answers)
    (answer,) = asked.answers
    assert answer.ids == ANSWER
    assert answer.checkpointed == frozenset({"ftdi_B"})


async def test_a_kubelet_that_begins_to_follow_our_lists_while_its_checkpoint_is_read_is_read_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the daemon before gave last may not have been in it yet."""
    monkeypatch.setattr(forgetting, "ASK_AGAIN_SOON_S", 0.0)
    asked = Asked(monkeypatch)
    asked.followed, asked.waits = False, True

    def follow() -> None:
        asked.followed, asked.checkpointed = True, frozenset({"ftdi_B"})

    asked.on_reading = follow
    await asked.run_until(lambda: len(asked.answers) > 2, last=lambda: True)
    earlier = frozenset({(FTDI, "ftdi_B")})
    assert [answer.earlier for answer in asked.answers[:3]] == [frozenset(), earlier, frozenset()]


async def test_a_kubelet_that_does_not_answer_is_asked_a_few_times_and_then_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forgetting, "ASK_AGAIN_SOON_S", 0.0)
    asked = Asked(monkeypatch)
    asked.silent = 1000
    await asked.run_until(lambda: asked.times == forgetting.FIRST_TRIES)
    assert (asked.times, asked.answers, asked.looks) == (forgetting.FIRST_TRIES, [], 0)


async def test_what_time_alone_decides_does_not_wait_for_a_kubelet_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked(monkeypatch)
    asked.silent, asked.due = 1000, 0.0
    await asked.run_until(lambda: asked.looks)
    assert (asked.times, asked.answers, asked.looks) == (1, [], 1)


async def test_a_kubelet_that_does_not_answer_is_given_time_before_it_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked(monkeypatch)
    asked.silent = 1000
    await asked.run_until(lambda: asked.times)
    assert asked.times == 1


@pytest.mark.parametrize("why", ["a grace period has passed", "a device has to wait"])
async def test_it_is_asked_again_when_something_depends_on_it(
    why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "ASK_AGAIN_S", 0.0)
    monkeypatch.setattr(forgetting, "ASK_AGAIN_SOON_S", 0.0)
    asked = Asked(monkeypatch)

    def happen(it: Forgetting) -> None:
        asked.due, asked.waits = (0.0, False) if why == "a grace period has passed" else (None, True)
        it.look_again()

    await asked.run_until(lambda: asked.answers, happen, lambda: asked.times > 1)


async def test_it_is_not_asked_again_before_the_grace_period_has_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked(monkeypatch)
    asked.due = 1000.0
    await asked.run_until(lambda: asked.answers)
    assert asked.times == 1


async def test_without_a_kubelet_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting, "ASK_AGAIN_SOON_S", 0.0)
    asked = Asked(monkeypatch)
    asked.kubelet.incarnation = None
    asked.waits, asked.due = True, 0.0
    await asked.run_until(lambda: True)
    assert (asked.times, asked.answers) == (0, [])


async def test_the_next_kubelet_is_not_taken_for_the_one_whose_socket_it_has_not_replaced_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its PodResources API answers first, and knows no pod yet."""
    asked = Asked(monkeypatch)

    def happen(it: Forgetting) -> None:
        asked.socket, asked.waits = 1, True
        it.look_again()

    monkeypatch.setattr(forgetting, "ASK_AGAIN_SOON_S", 0.0)
    await asked.run_until(lambda: asked.answers, happen, lambda: len(asked.answers) > 3)
    assert asked.answers[0].complete
    assert not any(answer.complete for answer in asked.answers[1:])


async def test_a_kubelet_that_did_not_know_its_pods_is_asked_again_when_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked(monkeypatch)
    asked.starts()

    def happen(it: Forgetting) -> None:
        it._since -= KUBELET_SETTLES_S
        it.look_again()

    await asked.run_until(lambda: asked.answers, happen)
    assert [answer.complete for answer in asked.answers] == [False, True]


async def test_a_kubelet_that_follows_no_list_may_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch)
    asked.followed = False
    await asked.run_until(lambda: asked.answers)
    assert [answer.complete for answer in asked.answers] == [False]


@pytest.mark.parametrize(("waits", "sent"), [(True, [6.0, 66.0]), (False, [])])
async def test_a_kubelet_whose_checkpoint_may_be_old_is_made_to_write_it_at_most_once_a_minute(
    waits: bool, sent: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only while something depends on it. An answer takes 5 s here."""
    monkeypatch.setattr(forgetting, "ASK_AGAIN_SOON_S", 0.0)
    asked = Asked(monkeypatch)
    asked.now += PODS_SETTLE_S
    asked.held = {"ftdi_B": Holding(FTDI, "ftdi_B", shared=False)}
    asked.checkpointed = frozenset({"ftdi_B"})
    asked.waits = waits
    await asked.run_until(lambda: asked.answers, last=lambda: not waits or asked.times > 20)
    assert [at - PODS_SETTLE_S for at in asked.sent[:2]] == sent
    assert {answer.checkpointed for answer in asked.answers} == {frozenset({"ftdi_B"})}


async def test_a_checkpoint_that_cannot_be_read_is_read_again_soon_until_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forgetting, "ASK_AGAIN_SOON_S", 0.0)
    asked = Asked(monkeypatch)
    asked.checkpointed = error = GenericdpError("cannot read it")

    def happen(it: Forgetting) -> None:
        asked.checkpointed = frozenset()
        it.look_again()

    await asked.run_until(lambda: asked.times > 1, happen)
    assert asked.answers[0].checkpointed is None
    assert asked.answers[-1].checkpointed == frozenset()
    assert asked.saved == [*([None] * (len(asked.saved) - 1)), Checkpoint()]
    assert asked.tried == [*([error] * (len(asked.tried) - 1)), None]


async def test_what_the_checkpoint_names_counts_until_it_was_read_while_the_kubelet_follows_our_lists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until then, the daemon before may have given it. After that, it may only be of the past."""
    monkeypatch.setattr(forgetting, "ASK_AGAIN_S", 0.0)
    monkeypatch.setattr(forgetting, "ASK_AGAIN_SOON_S", 0.0)
    asked = Asked(monkeypatch)
    asked.checkpointed, asked.followed, asked.waits = frozenset({"ftdi_B"}), False, True

    def happen(_: Forgetting) -> None:
        asked.followed = True

    await asked.run_until(lambda: len(asked.answers) > 1, happen, lambda: len(asked.answers) > 4)
    earlier = frozenset({(FTDI, "ftdi_B")})
    counted = [answer.earlier == earlier for answer in asked.answers]
    assert counted == sorted(counted, reverse=True)
    assert (counted[0], counted[1], counted[-1]) == (True, True, False)


async def test_what_could_not_be_read_at_first_counts_when_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting, "ASK_AGAIN_SOON_S", 0.0)
    asked = Asked(monkeypatch)
    asked.checkpointed = GenericdpError("cannot read it")

    def happen(it: Forgetting) -> None:
        asked.checkpointed = frozenset({"ftdi_B"})
        it.look_again()

    await asked.run_until(lambda: asked.times > 1, happen)
    assert asked.answers[0].earlier == frozenset()
    assert asked.answers[-1].earlier == {(FTDI, "ftdi_B")}


async def test_what_the_checkpoint_names_for_the_next_kubelet_was_given_by_this_daemon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked(monkeypatch)
    asked.checkpointed = frozenset({"ftdi_B"})

    def happen(it: Forgetting) -> None:
        asked.starts(up_s=KUBELET_SETTLES_S + 1)
        it.look_again()

    await asked.run_until(lambda: asked.answers, happen)
    assert [answer.first for answer in asked.answers] == [True, True]
    assert [answer.earlier for answer in asked.answers] == [{(FTDI, "ftdi_B")}, frozenset()]


async def test_while_something_else_depends_on_it_the_kubelet_is_asked_at_once_and_then_once_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked(monkeypatch)
    await asked.run_until(lambda: asked.answers, lambda it: it.depend(depends=True))
    assert asked.times == 2
    asked = Asked(monkeypatch)
    monkeypatch.setattr("genericdp.forgetting.ASK_AGAIN_S", 0.01)
    await asked.run_until(
        lambda: asked.answers, lambda it: it.depend(depends=True), last=lambda: asked.times > 3
    )

    def does_not_depend_after_all(it: Forgetting) -> None:
        it.depend(depends=True)
        it.depend(depends=False)

    asked = Asked(monkeypatch)
    await asked.run_until(lambda: asked.answers, does_not_depend_after_all)
    assert asked.times == 1


@asynccontextmanager
async def a_silent_kubelet(path: Path, how: str) -> AsyncIterator[Callable[[], bool]]:
    """A PodResources socket that never answers; whether somebody has asked there since the last look."""
    if how == "is called":
        calls: list[bytes] = []

        async def hang(request: bytes, context: object) -> bytes:
            del context
            calls.append(request)
            await asyncio.get_running_loop().create_future()
            return b""

        method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(hang)
        service = grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": method})
        async with a_grpc_server(path, service):
            yield lambda: bool(calls and calls.pop() is not None)
        return
    with socket.socket(socket.AF_UNIX) as listening, ExitStack() as accepted:
        listening.bind(str(path))
        listening.listen()
        listening.setblocking(False)

        def is_asked() -> bool:
            try:
                accepted.enter_context(listening.accept()[0])
            except BlockingIOError:
                return False
            return True

        yield is_asked


def of_a_socket(asked: Asked, path: Path, monkeypatch: pytest.MonkeyPatch) -> Forgetting:
    """What asks the kubelet that listens there, rather than one that a test makes up."""
    monkeypatch.undo()
    monkeypatch.setattr("genericdp.forgetting.checkpoint.read", asked._read)
    it = asked.made()
    it._pod_resources = str(path)
    return it


@pytest.mark.parametrize("how", SILENT)
async def test_who_needs_an_answer_now_does_not_wait_for_a_kubelet_that_never_answers(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    asked, path, time = Asked(monkeypatch), short_dir / "kubelet.sock", LoopTime()
    it = of_a_socket(asked, path, monkeypatch)
    async with a_silent_kubelet(path, how) as is_asked:
        for _ in range(2):
            waiting = asyncio.create_task(it.ask_now())
            await until(is_asked)
            await idle()
            assert not waiting.done()
            time.advance(ASK_NOW_S)
            await waiting
    assert (asked.answers, asked.saved) == ([], [])
    path.unlink(missing_ok=True)
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(nobody)
    async with a_grpc_server(
        path, grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": handler})
    ):
        await it.ask_now()
    assert [answer.ids for answer in asked.answers] == [frozenset()]


async def nobody(request: bytes, context: object) -> bytes:
    """The answer of a kubelet without pods."""
    del request, context
    return b""


async def test_who_needs_an_answer_now_does_not_wait_for_another_who_gets_none(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, path, time = Asked(monkeypatch), short_dir / "kubelet.sock", LoopTime()
    it = of_a_socket(asked, path, monkeypatch)
    async with a_silent_kubelet(path, "is called") as is_asked:
        running = asyncio.create_task(it.run())
        await until(is_asked)
        waiting = [asyncio.create_task(it.ask_now()) for _ in range(3)]
        await idle()
        time.advance(ASK_NOW_S)
        await asyncio.gather(*waiting)
        assert not running.done()
        running.cancel()
        await asyncio.wait((running,))
    assert asked.answers == []


async def test_who_needs_an_answer_now_uses_up_none_of_the_tries_of_a_start(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kubelet that hangs while it starts is asked again when it answers, whatever pods did meanwhile."""
    asked, path, time = Asked(monkeypatch), short_dir / "kubelet.sock", LoopTime()
    it = of_a_socket(asked, path, monkeypatch)
    async with a_silent_kubelet(path, "is called") as is_asked:
        it._look()
        for _ in range(FIRST_TRIES):
            waiting = asyncio.create_task(it.ask_now())
            await until(is_asked)
            time.advance(ASK_NOW_S)
            await waiting
        assert it._is_new()
