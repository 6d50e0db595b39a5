"""What is kept of plugins that are no longer served: nothing."""

import gc
import weakref
from pathlib import Path

from genericdp.core.inventory.changes import diff
from genericdp.core.inventory.inventory import Inventory
from genericdp.kubelet.plugins import Plugins
from tests.scenes.inventories import inventory_of
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.service import settings_below
from tests.scenes.waiting import until


async def test_nothing_is_kept_of_a_plugin_whose_resource_has_left(short_dir: Path) -> None:
    plugins, offered = Plugins(settings_below(short_dir)), inventory_of(FTDI_RULE)
    async with plugins.running():
        plugins.apply(offered, diff(Inventory(), offered))
        plugin = weakref.ref(plugins.plugins[FTDI])
        plugins.apply(Inventory(), diff(offered, Inventory()))
        await until(lambda: gc.collect() >= 0 and plugin() is None, timeout_s=5.0)


async def test_nothing_is_kept_of_the_plugins_that_a_resource_had_before(short_dir: Path) -> None:
    plugins = Plugins(settings_below(short_dir))
    without, with_ = inventory_of(FTDI_RULE), inventory_of(FTDI_RULE + "prestart = {}\n")
    async with plugins.running():
        plugins.apply(without, diff(Inventory(), without))
        earlier = []
        for before, after in ((without, with_), (with_, without), (without, with_)):
            earlier.append(weakref.ref(plugins.plugins[FTDI]))
            plugins.apply(after, diff(before, after))
        await until(lambda: gc.collect() >= 0 and not any(each() for each in earlier), timeout_s=5.0)
