"""A simulated kubelet in its own thread, for tests and programs without asyncio.

The rules of this file:

* The kubelet lives in that thread's event loop, and every call runs there.
* An error, including a panic of the kubelet, is raised in the calling thread.
"""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import ParamSpec, Self, TypeVar, overload

from genericdp.simulator.errors import SimulatorError
from genericdp.simulator.kubelet import Kubelet

_Result = TypeVar("_Result")
_Parameters = ParamSpec("_Parameters")


class BlockingKubelet:
    """Runs a kubelet for the duration of a `with` block. Read its state from `kubelet` directly.

    with BlockingKubelet(Kubelet(root)) as node:
        node.wait_until(lambda: node.kubelet.allocatable.get("vendor.example/x") == 1)
        pod = node.call(node.kubelet.admit, Pod("p", [Container("c", limits={"vendor.example/x": 1})]))
    """

    def __init__(self, kubelet: Kubelet) -> None:
        self.kubelet = kubelet
        self._thread: threading.Thread | None = None
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._loop.run_forever, name="simulated kubelet")
        self._thread.start()
        try:
            self.call(self.kubelet.start)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.call(self.kubelet.__aexit__, kind, error, traceback)
        finally:
            self._end()

    @overload
    def call(
        self,
        method: Callable[_Parameters, Awaitable[_Result]],
        *args: _Parameters.args,
        **kwargs: _Parameters.kwargs,
    ) -> _Result: ...

    @overload
    def call(
        self, method: Callable[_Parameters, _Result], *args: _Parameters.args, **kwargs: _Parameters.kwargs
    ) -> _Result: ...

    def call(self, method: Callable[..., object], *args: object, **kwargs: object) -> object:
        """Call a method of the kubelet, async or not, and return or raise what it does."""
        if self._thread is None:
            raise SimulatorError("the kubelet was called outside its `with` block")

        async def run() -> object:
            result = method(*args, **kwargs)
            return await result if inspect.isawaitable(result) else result

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def wait_until(self, predicate: Callable[[], object], *, timeout_s: float = 30.0) -> None:
        """Return once `predicate()` is true, checked after every change. Raises TimeoutError."""
        self.call(self.kubelet.wait_until, predicate, timeout_s=timeout_s)

    def _end(self) -> None:
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._thread = None
        self._loop.close()
