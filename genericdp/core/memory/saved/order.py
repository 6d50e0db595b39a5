"""Which of two saved memories is the later one.

The rules of this file:

* Within a boot, the time since its start tells. Nobody can set that clock, and it goes on during suspend.
* A memory that does not say when it was saved is older than any other.
* The time is the last field. Without it, equal memories are equal bytes.
"""

import json
import re

from genericdp.core.memory import fields

_FIELD = re.compile(rb', "since_boot_ns": [0-9]{1,20}\}\Z')

#: As long as the field can be, in bytes.
_LONGEST = 50


def timed(memory: bytes, since_boot_ns: int) -> bytes:
    """A memory that `Writer` rendered, with the time of CLOCK_BOOTTIME at which it is saved."""
    return memory.removesuffix(b"}") + b', "since_boot_ns": %d}' % since_boot_ns


def untimed(saved: bytes) -> bytes:
    """A saved memory as `Writer` rendered it, without the time."""
    field = _FIELD.search(saved, max(0, len(saved) - _LONGEST))
    return saved if field is None else saved[: field.start()] + b"}"


def since_boot_ns(saved: bytes, boot: str) -> int | None:
    """When a memory was saved in the boot with this id; None if it was in another one, or nobody knows."""
    try:
        document = json.loads(saved.decode())
        if not boot or fields.text(document["boot"]) != boot:
            return None
        at = document.get("since_boot_ns", 0)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return at if type(at) is int and at > 0 else 0
