"""When attributes are to be read again: at the interval of the rules that want it, and never without one."""

from genericdp.core.device import UdevDevice
from genericdp.core.hint import Hint, Poll
from genericdp.core.inventory.inventory import Inventory
from genericdp.udev import Polling
from tests.scenes.builders import a_fuse, a_terminal, a_usb_serial
from tests.scenes.inventories import inventory_of
from tests.scenes.scene import LoopTime
from tests.scenes.waiting import idle

TEMP = frozenset({"temp"})


def a_rule(name: str, subsystem: str, more: str) -> str:
    return f'[[resource]]\nname = "{name}"\nmatch = {{ SUBSYSTEM = "{subsystem}" }}\n{more}\n'


HEALTH = 'health = { parent = { "ATTR{temp}" = { at_most = 85000 } } }\n'
EVERY_5_S = HEALTH + 'health_poll = "5s"'


class Heard:
    """What a Polling asked for so far; `time` moves its clock."""

    def __init__(self, rules: str, *devices: UdevDevice) -> None:
        self.time = LoopTime()
        self.hints: list[Hint] = []
        self.polling = Polling(self.hints.append)
        self.polling.see(inventory_of(rules, *devices))

    async def after(self, seconds: float) -> list[Hint]:
        """What was asked for within these seconds."""
        self.hints.clear()
        self.time.advance(seconds)
        await idle()
        return list(self.hints)


async def test_the_attributes_in_health_are_asked_for_at_each_interval() -> None:
    heard = Heard(a_rule("tty", "tty", EVERY_5_S), a_usb_serial())
    asked = [Poll({a_usb_serial().sys_path: TEMP})]
    assert await heard.after(4.9) == []
    assert await heard.after(0.2) == asked
    assert await heard.after(4.0) == []
    assert await heard.after(1.5) == asked
    heard.polling.close()
    assert await heard.after(6.0) == []


async def test_resources_with_one_interval_are_read_together() -> None:
    rules = a_rule("tty", "tty", EVERY_5_S) + a_rule("misc", "misc", EVERY_5_S)
    heard = Heard(
        rules + a_rule("vc", "vc", EVERY_5_S.replace("5s", "9s")), a_usb_serial(), a_fuse(), a_terminal()
    )
    assert await heard.after(5.1) == [Poll({a_usb_serial().sys_path: TEMP, a_fuse().sys_path: TEMP})]
    assert Poll({a_terminal().sys_path: TEMP}) in await heard.after(4.0)
    heard.polling.close()


async def test_without_an_interval_nothing_is_asked_for() -> None:
    heard = Heard(a_rule("tty", "tty", HEALTH), a_usb_serial())
    assert await heard.after(20.0) == []


async def test_nothing_is_asked_for_without_a_device_or_after_its_resource_has_left_the_rules() -> None:
    heard = Heard(a_rule("tty", "tty", EVERY_5_S))
    assert await heard.after(5.1) == []
    heard.polling.see(inventory_of(a_rule("tty", "tty", EVERY_5_S), a_usb_serial()))
    heard.polling.see(Inventory())
    assert await heard.after(6.0) == []
