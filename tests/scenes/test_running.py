"""The watchdog itself: what it lets pass, and what it catches; alone, and as pytest runs a test."""

import asyncio
import socket
import subprocess
import sys
import textwrap

import pytest

from tests.scenes.running import run

pytest_plugins = ["pytester"]


def test_the_result_of_the_coroutine_is_returned() -> None:
    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    assert run(answer()) == 42


def test_a_task_left_behind_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.scenes.running._CLOSING_S", 0.01)

    async def leave_a_task() -> None:
        tasks.append(asyncio.create_task(asyncio.Event().wait()))

    tasks: list[asyncio.Task[bool]] = []
    with pytest.raises(AssertionError, match=r"tasks left behind: <coroutine object Event.wait"):
        run(leave_a_task())


def test_a_descriptor_left_behind_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.scenes.running._CLOSING_S", 0.0)
    sockets: list[socket.socket] = []

    async def leave_a_socket() -> None:
        sockets.append(socket.socket(socket.AF_UNIX))

    with pytest.raises(AssertionError, match=r"descriptors left behind: .*socket:"):
        run(leave_a_socket())
    sockets.pop().close()


def test_a_coroutine_that_hangs_fails_the_test() -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        run(hang(), timeout_s=0.01)


#: A test that leaves a running server behind, in a reference cycle, and then the garbage collector.
SERVER_LEFT = """
import gc
import grpc.aio
from tests.scenes import running


async def leave_a_server():
    server = grpc.aio.server()
    await server.start()
    server.itself = server


running._CLOSING_S = 0.01
try:
    running.run(leave_a_server())
except AssertionError as error:
    print(error)
gc.collect()
print("collected", flush=True)
"""


def test_a_server_left_behind_fails_the_test_and_does_not_hang_the_garbage_collector() -> None:
    command = [sys.executable, "-c", SERVER_LEFT]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60.0, check=False)
    first, last = ended.stdout.splitlines()
    assert first.startswith("tasks left behind: ")
    assert (last, ended.returncode) == ("collected", 0)


# As pytest runs it: each case is a test module of its own, with this prologue.

HOOK = "from tests.conftest import pytest_pyfunc_call"
SETTINGS = """
[pytest]
addopts = --strict-markers
filterwarnings = error
markers = timeout_s
"""
PROLOGUE = """
import asyncio
import socket
import textwrap
import threading

import pytest


@pytest.fixture
def number():
    return 42


@pytest.fixture
def leave():
    left = []
    yield left.append
    for each in left:
        each.close()


class Waiting(threading.Thread):
    def __init__(self, leave):
        super().__init__(name="waiting")
        self.end = threading.Event()
        leave(self)  # first: a test that ends at any moment ends the thread, too
        self.start()

    def run(self):
        self.end.wait()

    def close(self):
        self.end.set()
        if self.ident is not None:
            self.join()
"""

PASSING = {
    "async": """
        async def test_it(number):
            await asyncio.sleep(0)
            assert number == 42
    """,
    "sync": """
        def test_it(number):
            with pytest.raises(RuntimeError, match="no running event loop"):
                asyncio.get_running_loop()
            assert number == 42
    """,
    "method": """
        class TestIt:
            async def test_it(self, number):
                await asyncio.sleep(0)
                assert number == 42
    """,
    "marker of the module": """
        pytestmark = pytest.mark.timeout_s(0.01)


        @pytest.mark.timeout_s(60)
        async def test_it():
            await asyncio.sleep(0.02)
    """,
}

FAILING = {
    "assertion": (
        """
        async def test_it(number):
            await asyncio.sleep(0)
            assert number == 43
        """,
        "E       assert 42 == 43",
    ),
    "sync": (
        """
        def test_it(number):
            assert number == 43
        """,
        "E       assert 42 == 43",
    ),
    "hang": (
        """
        @pytest.mark.timeout_s(0.01)
        async def test_it():
            await asyncio.Event().wait()
        """,
        "E               TimeoutError",
    ),
    "block": (
        """
        @pytest.mark.timeout_s(0.01)
        def test_it():
            threading.Event().wait()
        """,
        "E       tests.scenes.running.HangError: the test took longer than 0.01 s",
    ),
    "block in a loop": (
        """
        @pytest.mark.timeout_s(0.5)
        def test_it():
            asyncio.run(asyncio.Event().wait())
        """,
        "E       tests.scenes.running.HangError: the test took longer than 0.5 s",
    ),
    "no end": (
        """
        @pytest.fixture(autouse=True)
        def end_soon(monkeypatch):
            monkeypatch.setattr("tests.scenes.running.ENDING_S", 0.5)


        @pytest.mark.timeout_s(0.01)
        async def test_it(leave):
            waiting = Waiting(leave)
            await asyncio.to_thread(waiting.join)
        """,
        "E       tests.scenes.running.HangError: the test took longer than 0.51 s",
    ),
    "task": (
        """
        async def test_it():
            global task
            task = asyncio.create_task(asyncio.Event().wait())
        """,
        "E       AssertionError: tasks left behind: <coroutine object Event.wait at *>",
    ),
    "thread": (
        """
        async def test_it(leave):
            Waiting(leave)
        """,
        "E       AssertionError: threads left behind: waiting",
    ),
    "descriptor": (
        """
        async def test_it(leave):
            leave(socket.socket(socket.AF_UNIX))
        """,
        "E       AssertionError: file descriptors left behind: {*: 'socket:[[]*]'}",
    ),
    "value": (
        """
        async def test_it(number):
            return number
        """,
        "*Warning: Test functions should return None, but *::test_it returned <class 'int'>.",
    ),
    "generator": (
        """
        async def test_it(number):
            yield number
        """,
        "async def functions are not natively supported.",
    ),
}


def outcome(pytester: pytest.Pytester, case: str) -> pytest.RunResult:
    pytester.makeconftest(HOOK)
    pytester.makeini(SETTINGS)
    pytester.makepyfile(PROLOGUE + textwrap.dedent(case))
    # The outer pytest has the two: one has a timer for the whole process, the other is slow to import.
    return pytester.runpytest_inprocess("-p", "no:faulthandler", "-p", "no:hypothesispytest")


@pytest.mark.parametrize("case", PASSING.values(), ids=PASSING)
def test_a_test_that_leaves_nothing_behind_passes(pytester: pytest.Pytester, case: str) -> None:
    outcome(pytester, case).assert_outcomes(passed=1)


@pytest.mark.parametrize(("case", "line"), FAILING.values(), ids=FAILING)
def test_a_test_that_hangs_or_leaves_something_behind_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, case: str, line: str
) -> None:
    monkeypatch.setattr("tests.scenes.running._CLOSING_S", 0.01)
    result = outcome(pytester, case)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([line])
