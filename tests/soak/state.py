"""What a node is like at rest, as far as it has to be the same each time."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class State:
    """One rest.

    listed          resource -> id -> health, as the kubelet has them
    streams         resource -> its ListAndWatch streams, if there are any
    links           the link directory: name -> target
    files           what is in the run directory and the state directory
    remembered      the ids that the daemon has saved for a reboot
    plugin_sockets  how many there are: each has a name of its own
    descriptors     what the daemon has open, and how often
    complaints      what `status` complains of
    """

    listed: dict[str, dict[str, str]]
    streams: dict[str, int]
    links: dict[str, str]
    files: tuple[str, ...]
    remembered: tuple[str, ...]
    plugin_sockets: int
    descriptors: dict[str, int]
    complaints: tuple[str, ...]

    def difference(self, other: "State") -> str:
        """What differs in the other one, in words; "" for nothing."""
        return "\n".join(
            f"{field.name}: {words}"
            for field in fields(self)
            if (words := _difference(getattr(self, field.name), getattr(other, field.name)))
        )


def _difference(was: object, now: object) -> str:
    """Of two dictionaries, only what differs is named."""
    if isinstance(was, dict) and isinstance(now, dict):
        keys = sorted(key for key in {**was, **now} if was.get(key) != now.get(key))
        return ", ".join(
            f"{key} was {was.get(key, 'not there')}, is {now.get(key, 'not there')}" for key in keys
        )
    return "" if was == now else f"was {was}, is {now}"
