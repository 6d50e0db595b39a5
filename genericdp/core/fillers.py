"""Values that stand where a serial number belongs and tell no unit from another.

udev writes one where a device has none, firmware keeps the one of its template, and makers of cheap chips
give the same one to every unit.

The rules of this file:

* This is the only list. A rule that `suggest` writes never relies on these values, and an id relies on one
  only together with the port.
* The value alone decides, so an id does not depend on what else was read of the device.
"""

import re
from collections.abc import Mapping

#: What such a value looks like, in lower case -> why it tells nothing.
_FILLERS: Mapping[str, str] = {
    "noserial": "udev writes it for devices without a serial number",
    r"[0:._ -]*": "it is zero",
    r"0*1|(?:sn|0x)0+1": "chips leave the factory with it, such as CP210x (0001) and RTL2832U (00000001)",
    r"(?P<sign>[fx?*#])(?P=sign)+|(?P<digit>\d)(?P=digit){3,}": "it repeats one character",
    r"[a-f0-9]{4}:[a-f0-9]{2}:[a-f0-9]{2}\.[0-7]": "it is the PCI address of the host controller",
    r"\d{1,2}(?:\.\d{1,2}){1,3}": "it is a version of the firmware",
    # Card readers of Realtek have the date, the version and zeroes: 20100201396000000.
    r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])(?:0*1?|\d{4}0{5})": "it is the date of a firmware",
    r"0x[0-9a-f]{4}": "it is the address of a disk of a mainframe, from which its label is made",
    "hid[a-z]{2}": "Arduino's library makes it of what the board can do",
    "deadbeef|55aa55aa|a5a5a5a5|cafebabe": "it is a test pattern",
    (
        r"none|null|\(null\)|nil|n/?a|not[ _](?:specified|applicable|available|set)|unknown|undefined|invalid"
        r"|empty|default(?:[ _]string)?|oem|o\.e\.m\.|to[ _]be[ _]filled[ _]by[ _]o\.e\.m\.|sample|test"
        r"|no[ _]serial(?:[ _]?number)?"
        r"|(?:(?:usb|system|chassis|product)[ _])?serial(?:[ _]?(?:number|no\.?|#))?"
    ): "it is a word that firmware keeps from its template",
}
#: All of them in one expression, because every id of every device asks.
_FILLER = re.compile("|".join(f"(?P<why{number}>{form})" for number, form in enumerate(_FILLERS)))

#: The beginning of one of these, such as `123456`, is not a serial number either. ANT sticks report `123`.
_COUNTING = ("0123456789abcdef", "123456789abcdef", "12345678901234567890", "01234567890123456789")
_SHORTEST_COUNT = 3
_WHY_COUNTING = "it counts up from its first digit"
_WHY_MODEL = "it is the name of the model"


def why_filler(value: str, *names: str) -> str:
    """Why a value is not the serial number of one unit; "" if it may be one.

    names  what the unit calls its model and its maker
    """
    text = value.strip().casefold()
    found = _FILLER.fullmatch(text)
    if found is not None:
        return next(why for number, why in enumerate(_FILLERS.values()) if found[f"why{number}"] is not None)
    if len(text) >= _SHORTEST_COUNT and any(count.startswith(text) for count in _COUNTING):
        return _WHY_COUNTING
    if any(_plain(text) == _plain(name.casefold()) for name in names if name.strip()):
        return _WHY_MODEL
    return ""


def _plain(text: str) -> str:
    """Text as udev writes it into a property, so that both forms of one name are equal."""
    return re.sub(r"[^a-z0-9]+", "_", text).strip("_")
