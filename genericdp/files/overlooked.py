"""Files in rule directories that define nothing although they may have been meant to, for `genericdp check`.

The rules of this file:

* Only a file that looks like a rule file counts: its name begins with a number, as `50-modem.toml` does, or
  has nearly the right suffix. A directory may also hold a README, a schema, or whatever a repository has.
* What an editor or a package manager keeps beside a file is not meant to be read.
* An empty file that replaces a file of an earlier directory disables that one, on purpose.
"""

import os
import re
from collections.abc import Iterable

#: `60-meter`, `60.TOML`, `meter.conf`.
_LIKE_A_RULE_FILE = re.compile(r"\d.*|[^.].*\.(?:toml|tml|tom|conf|rules)", re.IGNORECASE)
#: `60-meter.toml~`, `60-meter.toml.bak`, `60-meter.bak`.
_KEPT_BESIDE = re.compile(r".*(?:~|\.toml\..*|\.(?:bak|orig|old|swp|tmp))", re.IGNORECASE)


def notes(places: Iterable[str]) -> tuple[str, ...]:
    """A sentence about each such file of these directories and files, in the order of the places."""
    found = []
    names_before: set[str] = set()
    for place in places:
        folder, names = _listed(place)
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.isfile(path):
                continue
            if not name.endswith(".toml"):
                if is_overlooked(name):
                    found.append(f"{path} is not read: the name of a rule file ends in .toml")
            elif not name.startswith(".") and name not in names_before and os.path.getsize(path) == 0:
                found.append(f"{path} is empty: it defines no resource")
        names_before.update(names)
    return tuple(found)


def is_overlooked(name: str) -> bool:
    """Whether a file with this name may have been meant as a rule file, and is not read as one."""
    if name.endswith(".toml") or _KEPT_BESIDE.fullmatch(name):
        return False
    return _LIKE_A_RULE_FILE.fullmatch(name) is not None


def _listed(place: str) -> tuple[str, list[str]]:
    if not os.path.isdir(place):
        return os.path.split(place)[0], [os.path.basename(place)]
    try:
        return place, sorted(os.listdir(place))
    except OSError:
        return place, []  # that it cannot be read is among the problems
