"""CDI spec files that cannot be written for a while."""

from pathlib import Path

import pytest

from genericdp.core.rules.settings import AnswerBy
from tests.daemon.test_cdi_answers import RULE, A, a_cdi_scene
from tests.scenes.builders import a_fuse
from tests.scenes.rules import DOMAIN, FTDI
from tests.scenes.waiting import until

FUSE = f"{DOMAIN}/fuse"
RULES = f"""{RULE}answer = "cdi"
[[resource]]
name = "fuse"
match = {{ DEVNAME = "*/fuse" }}
replicas = 3
"""


@pytest.mark.parametrize("is_over", [False, True])
async def test_an_allocation_of_another_resource_ends_no_retry(is_over: bool, short_dir: Path) -> None:
    rules, devices = RULES, AnswerBy.DEVICES
    async with a_cdi_scene(short_dir, A, a_fuse(), rules=rules, answer=devices, daemon_runs=False) as scene:
        in_the_way = Path(scene.settings.cdi_dir)
        in_the_way.write_text("")
        await scene.service.start()
        await scene.until_allocatable(3, FUSE)
        if is_over:
            in_the_way.unlink()
        await scene.admit(1, FUSE, "other")
        assert bool(scene.daemon.recorder.history.failing) is not is_over
        if not is_over:
            in_the_way.unlink()
        await until(lambda: scene.kubelet.allocatable.get(FTDI) == 1, timeout_s=20.0)
