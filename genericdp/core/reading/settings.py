"""Reading the settings of `genericdp.toml`. Every key is declared here."""

import re
from collections.abc import Collection

from genericdp.core.hostile import for_terminal
from genericdp.core.limits import SOCKET_PATH_LIMIT
from genericdp.core.reading.kind import Kind
from genericdp.core.reading.name import DOMAIN
from genericdp.core.reading.scalars import ABSOLUTE_PATH, absolute_path, duration, member_of, one_of, text
from genericdp.core.reading.source import At, Mistake
from genericdp.core.reading.table import Key, keys_of, read_table
from genericdp.core.rules.settings import LAST_GOOD, LONGEST_BOOT_WAIT_S, AnswerBy, LogFormat, Settings

_LISTENING_ADDRESS = re.compile(
    r"(unix:/[!-~]+|[0-9]{1,3}(\.[0-9]{1,3}){3}:[0-9]{1,5}|\[[0-9A-Fa-f:.]+\]:[0-9]{1,5})?"
)


def _listening_address(at: At) -> str:
    """An address to listen on: "unix:/path", "127.0.0.1:9101", "[::1]:9101"; "" for none."""
    if not isinstance(at.value, str):
        return text(at)  # raises the mistake
    address = at.value
    if _LISTENING_ADDRESS.fullmatch(address) is None or not (
        not address or address.startswith("unix:") or _is_ip_address(address)
    ):
        raise Mistake(
            at,
            f"'{address}' is not an address to listen on",
            "write unix:/run/genericdp/metrics.sock, 127.0.0.1:9101 or [::1]:9101; names are not looked up",
        )
    if len(address.removeprefix("unix:").encode()) > SOCKET_PATH_LIMIT:
        raise Mistake(
            at, f"the path of a unix socket has at most {SOCKET_PATH_LIMIT} bytes", "choose a shorter path"
        )
    return address


def _is_ip_address(address: str) -> bool:
    from ipaddress import ip_address  # noqa: PLC0415  (few nodes serve metrics, and the daemon stays small)

    host, _, port = address.rpartition(":")
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return 0 < int(port) < 65536


def _noted_directory(at: At) -> str:
    """An absolute path that fits in a line of a file (`files.directories`)."""
    path = absolute_path(at)
    wrong = next((char for char in path if not char.isprintable()), "")
    if wrong:
        message = f"'{at.key}' must not contain '{for_terminal(wrong)}', which cannot be printed"
        hint = "choose another name: genericdp notes its directories in files, one on each line"
        raise Mistake(at, message, hint)
    return path


def _own_directory(at: At) -> str:
    """A directory below a top-level one: in /dev itself, the daemon would change links of udev."""
    path = _noted_directory(at)
    if path.count("/") == 1:
        hint = "a directory below it, for example '/dev/genericdp'"
        raise Mistake(at, f"'{at.key}' must be a directory of its own, not '{path}'", hint)
    return path


def _runtime_socket(at: At) -> str:
    """A path as in the kubelet's --container-runtime-endpoint, with or without "unix://"; "" to find it."""
    if at.value == "":
        return ""
    if isinstance(at.value, str) and at.value.startswith("unix://"):
        at = At(at.source, at.path, at.value.removeprefix("unix://"))
    path = absolute_path(at)
    if len(path.encode()) > SOCKET_PATH_LIMIT:
        raise Mistake(
            at, f"the path of a unix socket has at most {SOCKET_PATH_LIMIT} bytes", "choose a shorter path"
        )
    return path


_ADDRESS = Kind(_listening_address, {"type": "string", "pattern": f"^{_LISTENING_ADDRESS.pattern}$"})
_RUNTIME_SOCKET = Kind(_runtime_socket, {"type": "string", "pattern": "^((unix://)?/.*)?$"})
_DIRECTORY = Kind(_own_directory, ABSOLUTE_PATH.schema)
_STATE_DIRECTORY = Kind(_noted_directory, ABSOLUTE_PATH.schema)

#: Settings that must not be the same directory, and why.
_APART = (
    (
        ("link_dir", "state_dir"),
        "choose two: containers see what is in link_dir, and only genericdp what is in state_dir",
    ),
    (
        ("cdi_dir", "state_dir"),
        "choose two: runtimes see what is in cdi_dir, and only genericdp what is in state_dir",
    ),
    (("link_dir", "cdi_dir"), "choose two: container runtimes read every file in cdi_dir"),
)

SETTINGS_KEYS = keys_of(
    Settings,
    Key("domain", DOMAIN, "the domain of resource names without a domain"),
    Key("kubelet_dir", ABSOLUTE_PATH, "the kubelet's device plugin directory"),
    Key("pod_resources_socket", ABSOLUTE_PATH, "the kubelet's PodResources socket"),
    Key(
        "runtime_socket",
        _RUNTIME_SOCKET,
        'the CRI socket of the container runtime; "" to look where runtimes listen',
    ),
    Key("link_dir", _DIRECTORY, "where the stable links are"),
    Key("cdi_dir", _DIRECTORY, "where the CDI spec files are, a directory that the container runtime reads"),
    Key("state_dir", _STATE_DIRECTORY, "where to keep what must survive a reboot"),
    Key("run_dir", ABSOLUTE_PATH, "where `genericdp status` and `genericdp monitor` find the daemon"),
    Key("answer", member_of(AnswerBy), "how containers get device nodes, if the resource does not say it"),
    Key(
        "metrics",
        _ADDRESS,
        'where to serve metrics over HTTP: a unix socket, "unix:/run/genericdp/metrics.sock", or an IP '
        'address and port, "127.0.0.1:9101"; "" for nowhere',
    ),
    Key(
        "boot_wait",
        duration(0.0, LONGEST_BOOT_WAIT_S),
        "how long to keep the kubelet waiting after a boot for devices that were there before",
        field="boot_wait_s",
    ),
    Key(
        "coalesce",
        duration(0.0, 10.0),
        "the minimum time between two device lists of a resource",
        field="coalesce_s",
    ),
    Key(
        "rescan",
        duration(1.0, 3600.0),
        "how often to examine all devices where no udev events arrive",
        field="rescan_s",
    ),
    Key("log_format", member_of(LogFormat), "the format of log lines"),
    Key(
        "log_level", one_of("debug", "info", "warning", "error"), "the least severe messages that are logged"
    ),
)


def settings(at: At) -> Settings | None:
    """The settings of a document; None after noting what is wrong with them."""
    written = read_table(at, SETTINGS_KEYS, "the settings")
    if written is None:
        return None
    read = Settings(**written)
    mistake = _clash(at, read, written)
    if mistake is not None:
        at.source.note(mistake)
        return None
    return read


def _clash(at: At, read: Settings, written: Collection[str]) -> Mistake | None:
    """The mistake if two of these settings cannot go together."""
    for (one, other), hint in _APART:
        if getattr(read, one) == getattr(read, other):
            key = other if other in written else one
            return Mistake(at.child(key), f"'{one}' and '{other}' are the same directory", hint)
    kept = f"{read.state_dir.rstrip('/')}/{LAST_GOOD}/"
    if f"{read.cdi_dir}/".startswith(kept):
        return Mistake(
            at.child("cdi_dir"),
            f"'cdi_dir' is where genericdp keeps rule files, '{LAST_GOOD}' in 'state_dir'",
            f"choose another one, for example '{Settings().cdi_dir}', that the container runtime reads",
        )
    return None
