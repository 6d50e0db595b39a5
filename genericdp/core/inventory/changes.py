"""The difference of two inventories: which resources came, went, or have something new for the kubelet."""

from dataclasses import dataclass

from genericdp.core.inventory.inventory import Inventory


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference, by resource name.

    added, removed   resources that came or went
    updated          resources whose list for the kubelet changed, or whose answers to it did
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.updated)


def diff(old: Inventory, new: Inventory) -> Changes:
    """What changed from one inventory to the next. Empty exactly when the offers are equal."""
    return Changes(
        added=tuple(name for name in new.offers if name not in old.offers),
        removed=tuple(name for name in old.offers if name not in new.offers),
        updated=tuple(
            name for name, offer in new.offers.items() if name in old.offers and offer != old.offers[name]
        ),
    )
