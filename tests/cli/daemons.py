"""What answers on a control socket as a daemon would, for the verbs that ask.

The rules of this file:

* It ends with its `with` block, asked or not: a verb that does not ask fails its test, and the test ends.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from genericdp.status.protocol import SOCKET


@contextmanager
def a_daemon_that_says(run_dir: Path, answer: bytes) -> Iterator[list[bytes]]:
    """Something that answers the first who asks; what it was asked."""
    asked: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{run_dir}/{SOCKET}")
        listening.listen()

        def serve() -> None:
            try:
                connection, _ = listening.accept()
            except OSError:  # it was shut down, and nobody has asked
                return
            with connection:
                asked.append(connection.recv(4096))
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield asked
        finally:
            # Wakes `accept`; closing the socket would not.
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def config(root: Path) -> str:
    """Settings that name `root` as the run directory."""
    path = root / "genericdp.toml"
    path.write_text(f'run_dir = "{root}"\n')
    path.chmod(0o644)
    return str(path)
