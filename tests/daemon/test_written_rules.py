"""A rule file that takes seconds to be written, as over a slow line, while the daemon runs."""

from pathlib import Path

import pytest

from genericdp.files import rulefiles
from genericdp.files.rulefiles import RuleFiles
from genericdp.files.rulewatch import SETTLE_S
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import DOMAIN, FTDI, FTDI_RULE
from tests.scenes.scene import a_scene
from tests.scenes.service import Service
from tests.scenes.waiting import until


@pytest.fixture
def file(short_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a rule file is to be. If it is open for longer than changes take to settle, that is a problem."""
    monkeypatch.setattr(rulefiles, "PATIENCE_S", SETTLE_S)
    directory = short_dir / "rules.d"
    directory.mkdir(mode=0o755)
    return directory / "10-ftdi.toml"


async def test_a_new_rule_file_takes_effect_when_it_is_closed(
    short_dir: Path, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rules = RuleFiles([str(file.parent)], DOMAIN)
    async with a_scene(short_dir, a_usb_serial(0), daemon_runs=False) as scene:
        async with Service(scene.settings, rules, scene.udev) as service:
            with file.open("w") as writer:
                writer.write(FTDI_RULE)
                writer.flush()
                file.chmod(0o644)
                # Whoever has it open for long is named.
                said = f"{file}: is open for writing and may be incomplete"
                await until(lambda: said in caplog.messages)
                assert not service.daemon.inventory.offers
                assert service.daemon.status_line().endswith("; 1 problem in rule files")
            await scene.until_allocatable(1)
            assert not rules.problems
            assert caplog.messages.count(said) == 1


async def test_an_existing_rule_file_that_stays_open_for_writing_is_named(
    short_dir: Path, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text(FTDI_RULE)
    file.chmod(0o644)
    rules = RuleFiles([str(file.parent)], DOMAIN)
    async with a_scene(short_dir, a_usb_serial(0), daemon_runs=False) as scene:
        async with Service(scene.settings, rules, scene.udev):
            await scene.until_allocatable(1)
            with file.open("w"):
                await until(lambda: f"{file}: is open for writing and may be incomplete" in caplog.messages)
                assert [each.name for each in rules.resources] == [FTDI]
            # It is empty now, and an empty file has no resources.
            await scene.until_allocatable(0)
            assert not rules.problems
