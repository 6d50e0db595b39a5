"""A simulated kubelet in a thread of its own, for tests and programs that know no asyncio.

The rules of this file:

* The kubelet lives in the event loop of that thread, and whatever it is asked to do is done there.
* An error, a panic of the kubelet too, is raised in the thread that asked.
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
    """Runs a kubelet for the length of a `with` block. What only looks, ask `kubelet` itself.

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
            raise SimulatorError("the kubelet is asked outside its `with` block")

        async def there() -> object:
            result = method(*args, **kwargs)
            return await result if inspect.isawaitable(result) else result

        return asyncio.run_coroutine_threadsafe(there(), self._loop).result()

    def wait_until(self, predicate: Callable[[], object], *, timeout_s: float = 30.0) -> None:
        """Return once `predicate()` is true; it is asked after every change. Raises TimeoutError."""
        self.call(self.kubelet.wait_until, predicate, timeout_s=timeout_s)

    def _end(self) -> None:
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._thread = None
        self._loop.close()
