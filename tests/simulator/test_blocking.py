"""The simulated kubelet in its own thread, for tests without asyncio."""

from pathlib import Path

import pytest

from genericdp.simulator import Container, KubeletPanicError, Phase, Pod, SimulatorError
from genericdp.simulator.blocking import BlockingKubelet
from genericdp.simulator.kubelet import Kubelet


def test_a_panic_is_raised_in_the_call_that_caused_it_and_at_the_end(short_dir: Path) -> None:
    kubelet = Kubelet(short_dir)

    async def admit() -> None:
        panic = KubeletPanicError("nil pointer")
        kubelet.panics.append(panic)
        raise panic

    def use() -> None:
        with BlockingKubelet(kubelet) as node:
            with pytest.raises(KubeletPanicError, match="nil pointer"):
                node.call(admit)
            assert not node.call(node.kubelet.tick)

    with pytest.raises(KubeletPanicError, match="nil pointer"):
        use()


def test_waiting_in_vain_raises_a_timeout_in_the_waiting_thread(short_dir: Path) -> None:
    with BlockingKubelet(Kubelet(short_dir)) as node:
        pod = node.call(node.kubelet.admit, Pod("p", [Container("c")]))
        assert pod.phase is Phase.RUNNING
        with pytest.raises(TimeoutError, match=r"not true after 0.01 s; .* pods \['p: Running'\]"):
            node.wait_until(lambda: False, timeout_s=0.01)


def test_a_call_outside_the_with_block_is_an_error(short_dir: Path) -> None:
    node = BlockingKubelet(Kubelet(short_dir))
    with pytest.raises(SimulatorError, match=r"^the kubelet was called outside its `with` block$"):
        node.call(node.kubelet.tick)
    with node:
        pass
    with pytest.raises(SimulatorError, match="outside"):
        node.call(node.kubelet.tick)


def test_a_kubelet_that_cannot_start_leaves_no_thread(short_dir: Path) -> None:
    (short_dir / "file").write_text("")
    with pytest.raises(NotADirectoryError), BlockingKubelet(Kubelet(short_dir / "file")):
        pass
