"""A port of a USB hub: what identifies it, and how it is written for people."""

import re
from dataclasses import dataclass

_EXACT = re.compile(r"(?P<controller>\S+) usb(?P<generation>\S*) (?P<chain>\S+)")


@dataclass(frozen=True, slots=True)
class UsbPort:
    """Where a USB device is plugged in: what ID_PATH says, without bus numbers, which follow the order
    in which controllers were found.

    controller  its sys path
    generation  the USB generation of the root hub: a socket has a root hub for each
    chain       the ports from the root hub down, `2.3`; "0" for a root hub itself
    """

    controller: str
    generation: str
    chain: str

    @property
    def exact(self) -> str:
        """Distinguishes any two ports of the node. It is saved, so its form must not change."""
        return f"{self._root} {self.chain}"

    @property
    def hub(self) -> str:
        """The hub that the port belongs to, told apart from all others."""
        return f"{self._root} {self.chain.rpartition('.')[0]}"

    @property
    def _root(self) -> str:
        return f"{self.controller} usb{self.generation}"

    @classmethod
    def of_exact(cls, exact: str) -> "UsbPort | None":
        """The port with this exact form; None when it is not a USB port."""
        found = _EXACT.fullmatch(exact)
        return None if found is None else cls(**found.groupdict())

    def __str__(self) -> str:
        return f"USB port {self.chain} of {self.controller}"
