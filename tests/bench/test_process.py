"""The bench counts what all threads of a process do, and its memory without what others share."""

import mmap
import os
import socket
import threading
from pathlib import Path

from tests.bench.process import Process

ROUNDS = 50
MIB = 1024 * 1024


def test_what_other_threads_do_is_counted_but_is_not_a_wakeup_of_the_main_thread() -> None:
    process = Process(os.getpid())
    before = process.work()
    here, there, is_taken = threading.Semaphore(0), threading.Semaphore(0), threading.Event()

    def pass_on(mine: threading.Semaphore, other: threading.Semaphore) -> None:
        for _ in range(ROUNDS):
            mine.acquire()
            sum(range(10_000))
            other.release()
        is_taken.wait()

    threads = [threading.Thread(target=pass_on, args=pair) for pair in ((here, there), (there, here))]
    for thread in threads:
        thread.start()
    here.release()
    # A thread that has ended is not counted, so both stay until the figures are taken.
    while (work := process.work() - before).switches < ROUNDS:
        pass
    is_taken.set()
    for thread in threads:
        thread.join()
    assert work.switches >= ROUNDS
    assert work.busy_s > 0


def test_a_descriptor_is_named_after_what_it_is(short_dir: Path) -> None:
    process = Process(os.getpid())
    before = process.descriptors()
    path = short_dir / "sock"
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as client:
        listening.bind(str(path))
        listening.listen()
        client.connect(str(path))
        with listening.accept()[0], (short_dir / "file").open("w"):
            more = process.descriptors() - before
            connections = [line.split() for line in process.connections() if str(path) in line]
    assert more == {f"socket {path}": 2, "socket": 1, f"{short_dir}/file": 1}
    to_client, to_listener = (" ".join([*words[:3], *words[4:-1]]) for words in connections[:2])
    assert to_client == f"u_str ESTAB * -> {path}"
    assert to_listener == f"u_str ESTAB {path} -> *"


def test_what_is_written_is_private_and_anonymous_and_a_file_that_is_read_is_resident() -> None:
    process = Process(os.getpid())
    before = process.memory()
    with mmap.mmap(-1, 16 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as area:
        for page in range(0, len(area), mmap.PAGESIZE):
            area[page] = 1
        after = process.memory()
    for grown in (
        after.resident - before.resident,
        after.private - before.private,
        after.anonymous - before.anonymous,
        after.proportional - before.proportional,
    ):
        assert 15 < grown < 24
