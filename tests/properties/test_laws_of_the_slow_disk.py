"""Laws of a disk that is slow or fails, and of one who puts other memories on it meanwhile: a killed daemon
has lost nothing, and nothing old comes back.
"""

import asyncio
import errno
import os
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.memory import saved
from genericdp.core.memory.memory import Memory
from genericdp.files import state, whole_file
from genericdp.files.saving import Saving
from genericdp.files.state import SPARE, StateFile
from genericdp.files.whole_file import FileIdentity
from tests.scenes.slow_disk import SlowDisk, a_slow_disk
from tests.scenes.waiting import idle, until

#: How the disk answers one who waits, in a job or before it: looking at a file can take long, too.
ANSWERS = {
    "answer": None,
    "full": OSError(errno.ENOSPC, "No space left on device"),
    "damaged": OSError(errno.EIO, "Input/output error"),
}

#: What somebody else puts in the place of the saved memory: what was saved first, and one of another node.
OTHERS = ("backup", "stranger")

#: The file system of the links fills up, or has space again.
BESIDE = {"no room": True, "room": False}

#: A number is a memory that is saved: few, so that one comes back that was there before.
steps = st.lists(
    st.sampled_from(
        [1, 2, 3, "kill", "restore", *BESIDE, *OTHERS, *ANSWERS, *ANSWERS, "answer", "rest", "rest"]
    ),
    max_size=20,
)


class _KilledError(Exception):
    """Ends a job as a kill does: nothing is put right afterwards."""


class Node:
    """A node whose daemon is killed and started again.

    last     the memory that must not be lost
    is_full  the file system of the links is full
    """

    def __init__(self, root: Path, slow: SlowDisk) -> None:
        self.last = Memory()
        self._root = root
        self._slow = slow
        self._is_disturbed = self.is_full = False
        self._others = {"stranger": saved.dump(Memory(ties={"ftdi_SAME": "port 9"}), "another boot")}
        (root / "links").mkdir()
        (root / "state").mkdir(mode=0o700)

    def start(self) -> None:
        self._saving = self._saved()
        assert self._saving.begin() == self.last

    def _saved(self) -> Saving:
        return Saving(str(self._root / "state"), link_dir=str(self._root / "links"))

    async def do(self, step: int | str) -> None:
        if isinstance(step, int):
            self.last = Memory(ties={"ftdi_SAME": f"port {step}"})
            self._saving.save_within(0.0, self.last)
        elif step == "kill":
            was_safe = self.is_safe()
            await self._kill()
            if not was_safe:
                self.last = self.look()
            self.start()
        elif step == "restore":
            if self._is_kept():
                await self._kill()
                await self._put(self._others.get("backup", b""))
                self.start()
        elif step in BESIDE:
            self.is_full = BESIDE[step]
        elif step in OTHERS:
            if self._is_kept() or step not in self._others:
                await self._put(self._others.get(step, b""))
        elif step == "rest":
            while self._slow.waits:
                await self._answer(None)
                await self._until_stuck()
        elif self._slow.waits:
            self._is_disturbed |= ANSWERS[step] is not None
            await self._answer(ANSWERS[step])
        await self._until_stuck()

    async def _answer(self, answer: OSError | None) -> None:
        before = self._slow.begun
        self._slow.answer_one(answer)
        await until(lambda: self._slow.begun > before or not self._saving._disk.is_busy)

    def is_safe(self) -> bool:
        """Whether its last memory is saved or kept: without room beside the links, nothing promises both."""
        waits = self._saving._disk.is_busy or self._saving._retry.waits
        return self._is_kept() or not waits

    def _is_kept(self) -> bool:
        """Whether the daemon does not say that it cannot keep its memory beside the links."""
        return self._saving._state.unkept is None

    def look(self) -> Memory:
        """What a process would find that is started after a kill in this moment."""
        return self._saved().load()

    async def end(self) -> None:
        self._slow.answer()
        self._saving.close()
        await idle()
        assert StateFile(str(self._root / "state")).load() == self.last
        if not self._is_disturbed:
            assert os.listdir(self._root / "state") == ["memory.json"]

    async def _put(self, other: bytes) -> None:
        file = self._root / "state" / "memory.json"
        if other:
            self._is_disturbed = True
            (file.parent / "other").write_bytes(other)
            (file.parent / "other").rename(file)
            await idle()
        elif file.exists():
            self._others["backup"] = file.read_bytes()

    async def _kill(self) -> None:
        saving = self._saving
        for watch in saving._watches:
            watch.close()
        saving._retry.succeeded()
        if saving._late is not None:
            saving._late.cancel()
        # Nobody sees the end of its job.
        saving._disk._end = None
        if self._slow.waits:
            self._slow.answer_one(_KilledError())
            await until(lambda: not self._slow.waits)

    async def _until_stuck(self) -> None:
        await until(lambda: self._slow.waits or not self._saving._disk.is_busy)


@given(steps)
# What was there before comes back, and only the file can say so.
@example([1, "rest", 2, "answer", "answer", "full", "rest", "no room", 1, "rest"])
# The same, and only what is beside the links can say so.
@example([1, "rest", "no room", 2, "rest", "room", 1, "full", "full", "full"])
# It was there before another one, of which there is a backup.
@example([1, "rest", "no room", 2, "rest", "backup", 1, "rest", "room", "kill", "rest", "restore"])
# The disk does not even say which file is there, before the write, in the middle, and after it has failed.
@example([1, "damaged", "answer", "full", "full", 2, "damaged"])
def test_whatever_a_disk_does_a_kill_loses_nothing(steps: list[int | str]) -> None:
    async def run(root: Path) -> None:
        with a_slow_disk() as slow, pytest.MonkeyPatch.context() as patch:

            def identity_at(path: str) -> FileIdentity | None:
                try:
                    if threading.current_thread() is not threading.main_thread():
                        slow.wait()
                except OSError:
                    return None
                return whole_file.identity_at(path)

            node = Node(root, slow)

            def write_whole(path: str, data: bytes, **how: Any) -> FileIdentity:
                if path.endswith(SPARE) and node.is_full:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return whole_file.write_whole(path, data, **how)

            patch.setattr(state, "identity_at", identity_at)
            patch.setattr(state, "write_whole", write_whole)
            node.start()
            for step in steps:
                await node.do(step)
                if node.is_safe():
                    assert node.look() == node.last
            await node.end()

    with TemporaryDirectory(prefix="gdp-", ignore_cleanup_errors=True) as directory:
        asyncio.run(run(Path(directory)))
