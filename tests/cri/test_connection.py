"""Connections to the container runtime that are made when they are needed."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from genericdp.cri.connection import Shared, connected
from genericdp.cri.sockets import RuntimeUnavailableError
from genericdp.simulator import Kubelet
from tests.scenes.shortage import descriptors_left
from tests.scenes.waiting import until


async def test_what_cannot_be_loaded_without_a_descriptor_is_a_runtime_that_is_not_available(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "genericdp.cri.runtime", raising=False)
    monkeypatch.delattr("genericdp.cri.runtime", raising=False)
    with descriptors_left(0), pytest.raises(RuntimeUnavailableError) as caught:
        connected("/run/runtime.sock")
    assert str(caught.value) == "cannot load the client for the container runtime: Too many open files"
    assert caught.value.hint == "raise the limit of open files: LimitNOFILE= of the unit, or 'ulimit -n'"


async def test_whoever_needs_one_at_the_same_time_shares_it(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        shared = Shared(str(kubelet.runtime_socket))
        names: list[str] = []
        done = asyncio.Event()

        async def ask() -> None:
            async with shared.connected() as runtime:
                names.append(runtime.name)
                await done.wait()

        before = len(os.listdir("/proc/self/fd"))
        async with asyncio.TaskGroup() as tasks:
            for _ in range(20):
                tasks.create_task(ask())
            await until(lambda: len(names) == 20)
            more = len(os.listdir("/proc/self/fd")) - before
            done.set()
        assert set(names) == {"containerd"}
        assert more < 20

        async with shared.connected() as runtime:
            assert (await runtime.configuration()) != {}


async def test_nobody_waits_for_those_who_failed_before(short_dir: Path) -> None:
    shared = Shared(str(short_dir / "nothing.sock"))

    async def ask() -> None:
        with pytest.raises(RuntimeUnavailableError) as caught:
            async with shared.connected():
                pass
        assert str(caught.value) == (
            f"the container runtime's socket '{short_dir}/nothing.sock' does not exist"
        )

    async with asyncio.TaskGroup() as tasks:
        for _ in range(20):
            tasks.create_task(ask())
    await ask()


async def test_one_that_is_cancelled_takes_it_from_no_other_one(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        shared = Shared(str(kubelet.runtime_socket))

        async def ask() -> None:
            async with shared.connected() as runtime:
                await runtime.configuration()

        first, second = (asyncio.ensure_future(ask()) for _ in range(2))
        await until(lambda: shared._users == 2)
        first.cancel()
        await second
        with pytest.raises(asyncio.CancelledError):
            await first
