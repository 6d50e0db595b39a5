"""Saves the memory in time. `core.memory.memory` decides how long a change may wait."""

import asyncio

from genericdp import log
from genericdp.core.memory.memory import Memory
from genericdp.errors import GenericdpError
from genericdp.files.state import StateFile

_log = log.get(__name__)


class Saving:
    """The memory on its way to the state directory."""

    def __init__(self, state_dir: str) -> None:
        self._state = StateFile(state_dir)
        self._memory = Memory()
        self._timer: asyncio.TimerHandle | None = None

    def load(self) -> Memory:
        """The saved memory, an empty one if it cannot be read."""
        try:
            self._memory = self._state.load()
        except GenericdpError as error:
            _log.warning(str(error), hint=error.hint)
        return self._memory

    def save_within(self, seconds: float, memory: Memory) -> None:
        """Save a new memory at once (0) or within so many seconds, together with later ones."""
        self._memory = memory
        if seconds <= 0:
            self.save()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self.save)

    def save(self) -> None:
        """Save the last memory now. A failure is logged."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            self._state.save(self._memory)
        except GenericdpError as error:
            _log.warning(str(error), hint=error.hint)
