"""Limits that the kernel sets and several layers check."""

#: The longest path of a unix socket, in bytes (unix(7): 108 with the zero at the end).
SOCKET_PATH_LIMIT = 107

#: The longest env of a process, in bytes: NAME=VALUE (execve(2): MAX_ARG_STRLEN with the zero at the end).
ENV_LIMIT = 131_071

#: The longest path, and the longest name in one, in bytes (PATH_MAX with the zero at the end, and NAME_MAX).
PATH_LIMIT = 4095
NAME_LIMIT = 255


def size_of_env(name: str, value: str) -> int:
    """How many bytes an env has, without the zero at its end."""
    return len(_bytes_of(f"{name}={value}"))


def why_too_long(path: str) -> str:
    """What of a path is longer than the kernel permits, and how long that is; "" for one that it can open."""
    if len(path) <= NAME_LIMIT and path.isascii():
        return ""
    size = len(_bytes_of(path))
    if size > PATH_LIMIT:
        return f"{size} bytes, and Linux permits {PATH_LIMIT}"
    if not _has_long_name(_bytes_of(path)):
        return ""
    longest = max(len(_bytes_of(name)) for name in path.split("/"))
    return f"a name of {longest} bytes, and Linux permits {NAME_LIMIT}"


def _bytes_of(text: str) -> bytes:
    """A name on the node may have bytes that are not UTF-8 (PEP 383)."""
    return text.encode(errors="surrogateescape")


def _has_long_name(path: bytes) -> bool:
    """Whether a name in a path is too long. One that is short enough ends within reach of the one before.

    An answer may have thousands of paths with as many names.
    """
    at = -1
    while len(path) - at - 1 > NAME_LIMIT:
        at = path.rfind(b"/", at + 1, at + 2 + NAME_LIMIT)
        if at < 0:
            return True
    return False
