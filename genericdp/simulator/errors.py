"""The errors of the simulated kubelet: answered, fatal, or caused by wrong use."""

import zlib

import grpc
import grpc.aio

_GO_NAMES = {"CANCELLED": "Canceled", "OK": "OK"}

#: The text of a call that was not answered before the kubelet's own deadline.
DEADLINE_PASSED = "rpc error: code = DeadlineExceeded desc = context deadline exceeded"

#: A time.Time of Go: a flag, seconds since 1885 and nanoseconds; and the address of the local time zone.
_HAS_MONOTONIC = 1 << 63
_SECONDS_IN_2026 = 141 * 31_556_952
_LOCAL = 0x6CA12A0


class KubeletPanicError(Exception):
    """A real kubelet would have crashed here, the whole process, because of what the plugin did.

    It is recorded and raised again when the kubelet is closed, so no test can miss it.
    """


class SimulatorError(Exception):
    """The simulator was used wrongly, for example a stopped kubelet was asked to admit a pod."""


class DeviceError(Exception):
    """An error of the device manager, with the kubelet's text; it fails an admission or a registration."""


def go_text(error: grpc.aio.AioRpcError) -> str:
    """An RPC error as grpc-go prints it: `rpc error: code = Unknown desc = boom`."""
    name = error.code().name
    words = _GO_NAMES.get(name) or name.title().replace("_", "")
    return f"rpc error: code = {words} desc = {error.details()}"


def stopped_endpoint(resource: str, stopped_at: float, *, connected: bool) -> str:
    """The text about a stopped endpoint, which Go prints whole: mutex, name, client, time of the stop.

    `connected` is False for an endpoint from the checkpoint, which never had a client. Addresses and times
    look like Go's but mean nothing.
    """
    client = f"0xc{zlib.crc32(resource.encode()) & ~7:09x}" if connected else "<nil>"
    since_start = int(stopped_at * 1e9)
    seconds, nanoseconds = divmod(since_start, 10**9)
    wall = _HAS_MONOTONIC | (_SECONDS_IN_2026 + seconds) << 30 | nanoseconds
    fields = f"{{{{}} {{0 0}}}} {resource} {client} {{{wall} {since_start} {_LOCAL:#x}}} <nil>"
    return f"endpoint &{{{fields}}} has been stopped"
