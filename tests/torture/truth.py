"""The true state of a small machine, as a model: its units, their places, its rules.

The rules of this file:

* Nothing here knows ids, links or kubelets. A unit is a physical device.
* Only this file defines which units cannot be told apart.
"""

from dataclasses import dataclass, field

#: name -> serial number. A and C are twins, D and E have no serial number at all.
UNITS: dict[str, str | None] = {"A": "SAME", "B": "OTHER", "C": "SAME", "D": None, "E": None}

#: USB ports, and the numbers that the kernel may give: few, so that names are reused all the time.
PORTS = ("1", "2", "3", "4", "5")
NUMBERS = tuple(range(5))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a plugged unit is: `/dev/ttyUSB<number>`, on a port."""

    port: str
    number: int


#: The match of the control node, which udev may know or not; @DEV@ is the directory of the machine's nodes.
CONTROL = '[{ SUBSYSTEM = "kfd" }, { DEVNAME = "@DEV@/kfd*" }]'


@dataclass(frozen=True, slots=True)
class Table:
    """The part of a [[resource]] table that the model knows.

    takes     the only serial number that it takes; None: every unit
    at        the only port at which it takes units; None: every port
    follows   whether running containers follow their device when it is plugged in again
    stops     whether they are stopped while it is unplugged
    answer    how containers get its units: as devices or by CDI; None: as the node's setting says
    control   whether the control node goes along with every unit
    grouped   whether a match says what a device is: the USB interface of the unit
    """

    name: str
    takes: str | None = None
    at: str | None = None
    identity: str = "serial"
    replicas: int | None = None
    prestart: bool = False
    follows: bool = False
    stops: bool = False
    answer: str | None = None
    control: bool = False
    grouped: bool = False

    def text(self) -> str:
        """The table as an operator writes it."""
        usb = 'vendor = "0403"' + ("" if self.takes is None else f', serial = "{self.takes}"')
        usb += "" if self.at is None else f', port = "{self.at}"'
        lines = [
            "[[resource]]",
            f'name = "{self.name}"',
            f'match = {{ SUBSYSTEM = "tty", usb = {{ {usb} }} }}',
            f'identity = "{self.identity}"',
            *(['group_by = { SUBSYSTEM = "usb", DEVTYPE = "usb_interface" }'] if self.grouped else []),
            *([] if self.replicas is None else [f"replicas = {self.replicas}"]),
            *([] if self.answer is None else [f'answer = "{self.answer}"']),
            *(['prestart = { wait = "100ms" }'] if self.prestart else []),
            *(['on_replug = "restart"'] if self.follows else []),
            *(['on_unplug = "stop"'] if self.stops else []),
            *(['debounce = "0s"'] if self.follows else []),
            *([f"[[resource.node]]\nmatch = {CONTROL}\nshared = true"] if self.control else []),
        ]
        return "\n".join(lines) + "\n"


BASE = Table("ftdi")

#: Contents of the rule file, by name. The first table that takes a unit gets it.
RULES: dict[str, tuple[Table, ...]] = {
    "base": (BASE,),
    "restarting": (Table("ftdi", follows=True),),
    "following": (Table("ftdi", follows=True, stops=True),),
    "shared": (Table("ftdi", replicas=2),),
    "shared and following": (Table("ftdi", replicas=2, follows=True, stops=True),),
    "less shared": (Table("ftdi", replicas=1),),
    "renamed": (Table("serial", follows=True, stops=True),),
    "renamed and shared": (Table("serial", replicas=2),),
    "by port": (Table("ftdi", identity="port", follows=True),),
    "guarded": (Table("ftdi", prestart=True, follows=True, stops=True),),
    "by CDI": (Table("ftdi", answer="cdi"),),
    "by devices": (Table("ftdi", answer="devices"),),
    "with control": (Table("ftdi", control=True),),
    "with control and following": (Table("ftdi", replicas=2, control=True, follows=True, stops=True),),
    "with control by CDI": (Table("ftdi", answer="cdi", control=True, follows=True, stops=True),),
    "B with control": (Table("special", takes="OTHER", control=True), BASE),
    "grouped": (Table("ftdi", grouped=True),),
    "grouped and following": (Table("ftdi", replicas=2, grouped=True, follows=True),),
    "B grouped by CDI": (Table("special", takes="OTHER", grouped=True, answer="cdi"), BASE),
    "one more": (BASE, Table("none", takes="NOBODY")),
    "B apart": (Table("special", takes="OTHER", follows=True), BASE),
    "a twin apart": (Table("twin", takes="SAME", at="1"), BASE),
    "a twin apart, renamed": (Table("serial", takes="SAME", at="1"), Table("twin")),
    "a twin alone": (Table("ftdi", takes="SAME", at="2"),),
    "nothing": (),
}

#: Those by which running containers follow their device, and which no edit to them makes outdated.
FOLLOWING = sorted(
    name
    for name, tables in RULES.items()
    if any(table.follows for table in tables) and not any(table.control for table in tables)
)

BAD_RULES = '[[resource]]\nname = "ftdi"\nmatch = { usb = { vendor = 0403 } }\n'


@dataclass(slots=True)
class Truth:
    """The machine's state.

    control  the device number of the control node; None: there is none
    """

    plugged: dict[str, Place] = field(default_factory=dict)
    rules: str = "base"
    control: int | None = 0

    @property
    def tables(self) -> tuple[Table, ...]:
        return RULES[self.rules]

    def free_ports(self) -> list[str]:
        taken = {place.port for place in self.plugged.values()}
        return [port for port in PORTS if port not in taken]

    def free_numbers(self) -> list[int]:
        taken = {place.number for place in self.plugged.values()}
        return [number for number in NUMBERS if number not in taken]

    def at(self, number: int) -> str:
        """The unit that is `/dev/ttyUSB<number>` now. KeyError when there is none."""
        return {place.number: unit for unit, place in self.plugged.items()}[number]

    def taken_by(self, table: Table) -> set[str]:
        """The plugged units that a table takes."""
        return {unit for unit in self.plugged if self.table_of(unit) == table}

    def lacks_control(self, table: Table) -> bool:
        """Whether no unit of a table can be given out."""
        return table.control and self.control is None

    def table_of(self, unit: str) -> Table | None:
        """The resource table that takes a unit."""
        serial, place = UNITS[unit], self.plugged.get(unit)
        ports = (None, place.port if place else "")
        fitting = (table for table in self.tables if table.takes in (None, serial) and table.at in ports)
        return next(fitting, None)

    def twins_of(self, unit: str) -> set[str]:
        """The plugged units with the same serial number, including the unit itself."""
        serial = UNITS[unit]
        return {other for other in self.plugged if serial is not None and UNITS[other] == serial}


def may_stand_in(identity: str, was: tuple[str, str], now: tuple[str, str]) -> bool:
    """Whether a container that got one (unit, port) first may get another one later.

    It may get the same unit; with identity "port", any unit in the same port; and units that cannot be
    told apart: one without a serial number in the same port, or a twin.
    """
    if was[0] == now[0]:
        return True
    if identity == "port" or (UNITS[was[0]] is None and UNITS[now[0]] is None):
        return was[1] == now[1]
    return UNITS[was[0]] is not None and UNITS[was[0]] == UNITS[now[0]]
