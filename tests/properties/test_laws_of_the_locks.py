"""Laws of the locks: a genericdp waits only for another one, and two never serve, whatever else is done.

Others are a real user of the machine, who locks what can be opened, and an operator, who changes what is
there.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genericdp.lock import NAME, PATIENCE_S, DirectoryLock
from genericdp.service.flock import NodeLock
from tests.scenes.stranger import STRANGER, as_stranger


class Genericdp(Protocol):
    """One of those that run on the node. `waited_s`: how long it waits before it tries again."""

    def takes(self, waited_s: float = 0.0) -> bool:
        """Whether it serves from now on."""

    def serves(self) -> bool:
        """Whether it serves, once it has looked."""

    def ends(self) -> None:
        """It ends, and another one is started that does not look yet."""


class AtTheKubelet:
    def __init__(self, room: Path) -> None:
        self._now = 0.0
        self._lock = DirectoryLock(str(room), lambda: self._now)
        self._serves = False

    def takes(self, waited_s: float = 0.0) -> bool:
        self._serves = self._lock.is_held() or self._lock.taken()
        if waited_s and not self._serves:
            self._now += waited_s
            self._serves = self._lock.taken()
        return self._serves

    def serves(self) -> bool:
        return self._serves and self.takes()

    def ends(self) -> None:
        self._lock.close()
        self._serves = False


class AtTheNode:
    def __init__(self, room: Path) -> None:
        self._room = str(room)
        self._lock: NodeLock | None = None
        self._serves = False

    def takes(self, waited_s: float = 0.0) -> bool:
        del waited_s
        self._lock = self._lock or NodeLock(self._room)
        self._serves = self.serves() or self._lock.taken()
        return self._serves

    def serves(self) -> bool:
        self._serves = self._serves and self._lock is not None and self._lock.kept()
        return self._serves

    def ends(self) -> None:
        lock, self._lock, self._serves = self._lock, None, False
        if lock is not None:
            lock.__exit__()


class Stranger:
    """Opens whatever can be opened, and locks it as soon as it is free."""

    def __init__(self, room: Path) -> None:
        self._room = room
        self._opened: list[int] = []

    def locks(self) -> None:
        with as_stranger():
            for path in (self._room, *self._room.iterdir()):
                with suppress(OSError):
                    self._opened.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        for each in self._opened:
            with suppress(BlockingIOError):
                fcntl.flock(each, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def ends(self) -> None:
        for each in self._opened:
            os.close(each)


def change(path: Path, what: str, number: int) -> None:
    if what == "chmod":
        path.chmod(number)
    elif what == "chown":
        os.chown(path, number, number)
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


steps = st.one_of(
    st.tuples(st.just("take"), st.sampled_from([0, 1, 2])),
    st.tuples(st.sampled_from(["look", "end"]), st.sampled_from([0, 1, 2])),
    # Nothing tells that others could open for a while what is closed to them again.
    st.tuples(st.just("chmod"), st.sampled_from([0o755, 0o755, 0o644])),
    st.tuples(st.sampled_from(["chown", "remove"]), st.just(STRANGER)),
)


@pytest.mark.parametrize("kind", [AtTheKubelet, AtTheNode])
@given(course=st.lists(steps, min_size=5, max_size=20))
def test_one_waits_only_for_another_one_and_two_never_serve(
    kind: type[AtTheKubelet] | type[AtTheNode], course: list[tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        room = Path(directory)
        room.chmod(0o755)
        stranger = Stranger(room)
        all_: list[Genericdp] = [kind(room) for _ in range(3)]
        try:
            for what, number in course:
                stranger.locks()
                match what:
                    case "take":
                        others = [each for each in all_ if each is not all_[number]]
                        if all_[number].takes(PATIENCE_S):
                            assert not any(each.serves() for each in others)
                        else:
                            assert any(each.serves() for each in others)
                    case "look":
                        all_[number].serves()
                    case "end":
                        all_[number].ends()
                    case _:
                        for path in room.iterdir():
                            change(path, what, number)
        finally:
            for each in all_:
                each.ends()
            stranger.ends()


@given(
    course=st.lists(st.sampled_from(["chmod", "chown", "remove", "move", "hurry"]), min_size=1, max_size=10)
)
def test_what_is_done_to_the_lock_takes_it_from_nobody_who_looks_in_time(course: list[str]) -> None:
    """Those that wait try again and again before the holder hears of anything."""
    with tempfile.TemporaryDirectory() as directory:
        room = Path(directory) / "room"
        room.mkdir()
        holder, *others = (AtTheKubelet(room) for _ in range(3))
        try:
            assert holder.takes()
            for number, what in enumerate(course):
                assert not any(each.takes(PATIENCE_S / 3) for each in others)
                if what == "move":
                    room.rename(f"{room}{number}")
                    room.mkdir()
                elif what != "hurry":
                    change(room / NAME, what, STRANGER if what == "chown" else 0o755)
                assert not any(each.takes(PATIENCE_S / 3) for each in others)
                assert holder.serves()
                assert not any(each.takes(PATIENCE_S / 3) for each in others)
            holder.ends()
            assert [each.takes() for each in others] == [True, False]
        finally:
            for each in (holder, *others):
                each.ends()
