"""A soak says what the daemon took so much memory for."""

import faulthandler
import os
import signal
import tempfile
import time

from tests.bench.process import Process
from tests.soak.peak import LOOK_S, Peak


def test_the_moment_in_which_a_process_takes_much_is_caught() -> None:
    with tempfile.TemporaryFile() as log:
        faulthandler.register(signal.SIGUSR1, log)
        try:
            peak = Peak(os.getpid(), Process(os.getpid()).memory().resident + 50)
            with peak.looking():
                much = bytearray(b"x" * (100 << 20))
                while not peak.found:  # Not a task: a stack shows none that waits.
                    time.sleep(LOOK_S)
            del much
        finally:
            faulthandler.unregister(signal.SIGUSR1)
        log.seek(0)
        assert b"test_the_moment_in_which_a_process_takes_much_is_caught" in log.read()
    assert any(" MiB of " in line for line in peak.found[1:])


async def test_nothing_is_caught_otherwise() -> None:
    peak = Peak(os.getpid(), 1 << 20)
    with peak.looking():
        pass
    assert peak.found == []
