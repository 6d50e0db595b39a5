"""What a process costs, all its threads together: memory, switches, processor time (proc(5))."""

import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Memory:
    """In MiB.

    resident        what most tools show; libraries that other programs map too count whole
    private         what would be free if the process ended (USS)
    anonymous       what is in no file: heaps and stacks
    proportional    private, and a part of what it shares with others (PSS)
    peak            the most that was resident since the start, or since `forget_peak`
    """

    resident: float
    private: float
    anonymous: float
    proportional: float
    peak: float


@dataclass(frozen=True, slots=True)
class Work:
    """What was done from one moment to another.

    wakeups     how often the main thread had waited for something
    switches    switches of all threads, also of those that libraries start
    busy_s      processor time
    """

    wakeups: int
    switches: int
    busy_s: float

    def __sub__(self, before: "Work") -> "Work":
        return Work(
            self.wakeups - before.wakeups, self.switches - before.switches, self.busy_s - before.busy_s
        )


class Process:
    """A process that runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._directory = Path(f"/proc/{pid}")

    def memory(self) -> Memory:
        """What it takes now."""
        maps = _numbers(self._directory / "smaps_rollup")
        status = _numbers(self._directory / "status")
        kib = (
            maps["Rss"],
            maps["Private_Clean"] + maps["Private_Dirty"],
            status["RssAnon"],
            maps["Pss"],
            status["VmHWM"],
        )
        return Memory(*(each / 1024 for each in kib))

    def forget_peak(self) -> None:
        """Let the peak of memory begin anew."""
        (self._directory / "clear_refs").write_text("5")

    def work(self) -> Work:
        """What it has done since its start."""
        threads = dict(self._threads())
        wakeups, _ = threads[self.pid]
        # clock_getcpuclockid(3): the clock of another process. /proc counts in steps of 10 ms.
        busy_s = time.clock_gettime((~self.pid << 3) | 2)
        return Work(wakeups, sum(sum(each) for each in threads.values()), busy_s)

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._directory.exists()

    def descriptors(self) -> Counter[str]:
        """What is open, and how often: a path, a kind, or of a unix socket the path to which it is bound."""
        lines = (line.split() for line in (self._directory / "net/unix").read_text().splitlines())
        bound = {
            f"socket:[{words[6]}]": f"socket {' '.join(words[7:])}".rstrip()
            for words in lines
            if len(words) > 6
        }
        return Counter(
            bound.get(what, what.partition("[")[0] if what.startswith("socket") else what)
            for what in self._targets()
        )

    def connections(self) -> list[str]:
        """The unix sockets that are open: the path to which each is bound, and that of its peer."""
        answer = subprocess.run(["ss", "-xHna"], capture_output=True, text=True, check=True).stdout
        rows = [words for line in answer.splitlines() if len(words := line.split()) == 8]
        bound = {inode: path for _, _, _, _, path, inode, _, _ in rows}
        return sorted(
            f"{kind} {state} {path} {inode} -> {bound.get(peer, 'no peer here')} {peer}"
            for kind, state, _, _, path, inode, _, peer in rows
            if f"socket:[{inode}]" in self._targets()
        )

    def threads(self) -> int:
        """How many there are."""
        return len(list((self._directory / "task").iterdir()))

    def _targets(self) -> list[str]:
        found = []
        for path in (self._directory / "fd").iterdir():
            with suppress(FileNotFoundError):
                found.append(str(path.readlink()))
        return found

    def _threads(self) -> Iterator[tuple[int, tuple[int, int]]]:
        """Each thread with its switches, because it waited and because others had their turn."""
        for thread in (self._directory / "task").iterdir():
            try:
                numbers = _numbers(thread / "status")
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended
            yield (
                int(thread.name),
                (numbers["voluntary_ctxt_switches"], numbers["nonvoluntary_ctxt_switches"]),
            )


def _numbers(path: Path) -> dict[str, int]:
    """The lines "key: number …" of a file."""
    found = {}
    for line in path.read_text().splitlines():
        key, _, value = line.partition(":")
        first = value.split(maxsplit=1)[:1]
        if first and first[0].isdecimal():
            found[key] = int(first[0])
    return found
