"""What answers on a control socket as a daemon would, for the verbs that ask."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from genericdp.status.protocol import SOCKET


@contextmanager
def a_daemon_that_says(run_dir: Path, answer: bytes) -> Iterator[list[bytes]]:
    """Something that answers on the control socket; what it was asked."""
    asked: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{run_dir}/{SOCKET}")
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                asked.append(connection.recv(4096))
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield asked
        thread.join()


def config(root: Path) -> str:
    """Settings that name `root` as the run directory."""
    path = root / "genericdp.toml"
    path.write_text(f'run_dir = "{root}"\n')
    path.chmod(0o644)
    return str(path)
