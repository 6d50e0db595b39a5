"""Whether a link that a pod may have got led to a unit, or to another one with its serial number.

The rules of this file:

* A device chooses its serial number, and the hash of it in the name of a link is short. So what is remembered
  of the link decides, not its name.
* A node keeps the long name of its link: a pod may have got it.
"""

from collections.abc import Mapping

from genericdp.core.inventory.compose import long_name
from genericdp.core.inventory.past import Ties
from genericdp.core.inventory.place import Spot, is_of_number
from genericdp.core.memory.remembered import Remembered


class Led:
    """Whether a link that a pod may have got never led to a unit: `Past.leads_elsewhere`."""

    def __init__(self, devices: Mapping[str, Remembered], ties: Ties) -> None:
        self._devices, self._ties = devices, ties
        # Link -> where it leads, and to which model; None if nowhere.
        self._links: dict[str, Mapping[str, tuple[Spot, str] | None]] = {}

    def __call__(self, link: str, spot: Spot, model: str) -> bool:
        id_ = link.partition("@")[0]
        known = self._devices.get(id_)
        if known is None:
            return False
        if id_ not in self._links:
            leads = dict(zip(known.device.links, known.device.spots_with_models, strict=False))
            self._links[id_] = {**dict.fromkeys(known.device.links), **leads}
        links = self._links[id_]
        if link not in links or long_name(link, spot) in links:
            return link in links  # with the long name, under which a pod may have got it
        now = links[link]
        earlier = [each for each in known.earlier.items() if not is_of_number(each[0])]
        # What is there now may have come later with the same serial number, and may have left since.
        alike = [each for each in earlier if each[0][1:3] == spot[1:3]]
        # The one to whose port the name is tied had it, or else the first.
        tied = [each for each in alike if each[0].port == self._ties.get(link)]
        led = ((tied or alike)[:1] or earlier) if now is None else [now]
        return bool(led) and not any(_may_be_at(spot, model, *each) for each in led)


def _may_be_at(spot: Spot, model: str, was: Spot, was_model: str) -> bool:
    """Whether a unit may be the one that was at another spot. One that changes its mode stays at its port."""
    is_model = model == was_model or not (model and was_model)
    return spot.serial == was.serial and (is_model or spot.port == was.port)
