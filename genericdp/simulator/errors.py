"""The errors of the simulated kubelet: answered, fatal, or caused by wrong use."""

import grpc
import grpc.aio

_GO_NAMES = {"CANCELLED": "Canceled", "OK": "OK"}


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
    details = "context deadline exceeded" if name == "DEADLINE_EXCEEDED" else error.details()
    return f"rpc error: code = {words} desc = {details}"
