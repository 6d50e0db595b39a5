"""Which of several container runtimes is taken for the kubelet's."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.core.rules.settings import Settings
from genericdp.cri import sockets
from genericdp.cri.choice import chosen
from genericdp.cri.runtime import RuntimeSlowError
from genericdp.cri.sockets import RuntimeUnavailableError
from genericdp.simulator import Container, Kubelet, Pod
from tests.scenes.answering import a_grpc_server
from tests.scenes.runtimes import another_runtime
from tests.scenes.service import settings_below

APP, OTHER = Pod("app", [Container("main")]), Pod("other", [Container("main")])


@pytest.fixture
def settings(short_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Nobody says which runtime is the kubelet's, which comes last."""
    monkeypatch.setattr(sockets, "SOCKETS", tuple(f"{short_dir}/{name}.sock" for name in ("a", "runtime")))
    return settings_below(short_dir, runtime_socket="")


async def names_chosen(settings: Settings) -> tuple[bool, list[str]]:
    """Whether the kubelet's runtime is known, and the names of the sockets that come into question."""
    async with chosen(settings) as choice:
        return choice.known, [Path(each.socket).stem for each in choice.runtimes]


@contextmanager
def a_silent_socket(path: Path) -> Iterator[None]:
    """It accepts, and never answers."""
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen()
        yield


@pytest.mark.parametrize("turned", [False, True])
async def test_the_runtime_that_has_the_pods_of_the_kubelet_is_the_kubelets(
    short_dir: Path, settings: Settings, turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if turned:
        monkeypatch.setattr(sockets, "SOCKETS", sockets.SOCKETS[::-1])
    async with Kubelet(short_dir) as kubelet, another_runtime(short_dir / "a.sock", OTHER):
        await kubelet.admit(APP)
        assert await names_chosen(settings) == (True, ["runtime"])


async def test_pods_that_a_kubelet_left_in_its_former_runtime_do_not_count(
    short_dir: Path, settings: Settings
) -> None:
    async with Kubelet(short_dir) as kubelet, another_runtime(short_dir / "a.sock", APP, OTHER):
        await kubelet.admit(OTHER)
        assert await names_chosen(settings) == (True, ["runtime"])


async def test_a_pod_that_has_ended_tells_whose_the_runtime_is_as_well(
    short_dir: Path, settings: Settings
) -> None:
    """After a boot, before the kubelet has made anything."""
    async with Kubelet(short_dir) as kubelet, another_runtime(short_dir / "a.sock"):
        pod = await kubelet.admit(APP)
        async with chosen(settings) as choice:
            (runtime,) = choice.runtimes
            kubelet.finish(pod)
            assert await runtime.made_last([("default", "app")]) == pod.made_at
            assert await runtime.made_last([("default", "other")]) is None


async def test_before_the_first_pod_all_that_answer_come_into_question(
    short_dir: Path, settings: Settings
) -> None:
    async with Kubelet(short_dir), another_runtime(short_dir / "a.sock"):
        async with chosen(settings) as choice:
            assert not choice.lacks_pods
        assert await names_chosen(settings) == (False, ["a", "runtime"])


async def test_pods_that_no_runtime_has_are_said_to_be_lacking(short_dir: Path, settings: Settings) -> None:
    async with Kubelet(short_dir) as kubelet, another_runtime(short_dir / "a.sock"):
        await kubelet.admit(APP)
        async with chosen(replace(settings, runtime_socket=str(short_dir / "a.sock"))) as choice:
            assert choice.lacks_pods
            assert choice.listed is not None
            assert choice.listed.pods == {("default", "app")}


async def test_without_a_kubelet_nothing_is_lacking(short_dir: Path, settings: Settings) -> None:
    async with another_runtime(short_dir / "a.sock"), chosen(settings) as choice:
        assert (choice.listed, choice.known, choice.lacks_pods) == (None, False, False)


async def test_what_does_not_answer_or_is_no_runtime_does_not_count(
    short_dir: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(short_dir / "dead.sock"))
    monkeypatch.setattr(sockets, "SOCKETS", (str(short_dir / "dead.sock"), *sockets.SOCKETS))
    async with Kubelet(short_dir) as kubelet, a_grpc_server(short_dir / "a.sock"):
        assert await names_chosen(settings) == (False, ["runtime"])
        await kubelet.container_runtime.stop()
        with pytest.raises(RuntimeUnavailableError) as caught:
            await names_chosen(settings)
        assert str(caught.value).startswith(
            f"the container runtime does not answer on '{short_dir}/dead.sock': "
        )


async def test_no_other_runtime_is_taken_for_one_that_is_late_unless_it_has_the_pods(
    short_dir: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy one may be that of the kubelet, beside Docker's."""
    monkeypatch.setattr("genericdp.cri.runtime._TIMEOUT_S", 0.5)
    path = short_dir / "a.sock"
    async with Kubelet(short_dir) as kubelet:
        with a_silent_socket(path):
            with pytest.raises(RuntimeSlowError) as caught:
                await names_chosen(settings)
            assert str(caught.value) == (
                f"the container runtime does not answer on '{path}': it took longer than 0.5 s"
            )
            assert (
                caught.value.hint == "if the kubelet has another runtime, set 'runtime_socket' to its socket"
            )
            await kubelet.admit(APP)
            assert await names_chosen(settings) == (True, ["runtime"])


async def test_one_that_the_settings_name_is_the_only_one_that_is_asked(
    short_dir: Path, settings: Settings
) -> None:
    async with Kubelet(short_dir) as kubelet, another_runtime(short_dir / "a.sock"):
        await kubelet.admit(APP)
        named = replace(settings, runtime_socket=str(short_dir / "a.sock"))
        assert await names_chosen(named) == (False, ["a"])
