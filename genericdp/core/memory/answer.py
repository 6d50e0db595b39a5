"""What the kubelet says of pods: an answer of PodResources, with its checkpoint and where links led.

The rules of this file:

* An answer is taken as it is. What it means for the ids that pods hold is up to `held` and `answered`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Named:
    """What the kubelet's checkpoint says of an answer that named more than the ids.

    ids    what the container was given of the resource
    cdi    the CDI devices that the answer named, if it named nothing else
    links  the links that it named, of any of these ids
    """

    resource: str
    ids: frozenset[str]
    cdi: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of PodResources.

    ids           (resource, id) of every device that a container holds
    asked         when the question was asked, on the clock of `remember`
    complete      whether an id that is missing is free; a kubelet that has just started does not know its
                  pods
    checkpointed  the ids in the kubelet's checkpoint, also of pods that have gone; None: nobody knows
    first         whether it is the first one of a kubelet, as far as this daemon knows
    named         what the checkpoint says of answers, also of pods that have gone
    earlier       (resource, id) of what is in the checkpoint and may have been given before this daemon
                  serves
    led           where links led before this daemon serves: link -> path of the device node
    ours          the resources of answers in the checkpoint that name links of ours
    """

    ids: frozenset[tuple[str, str]]
    asked: float
    complete: bool
    checkpointed: frozenset[str] | None = frozenset()
    first: bool = False
    named: tuple[Named, ...] = ()
    earlier: frozenset[tuple[str, str]] = frozenset()
    led: Mapping[str, str] = field(default_factory=dict)
    ours: frozenset[str] = frozenset()


def joined(before: Answer | None, answer: Answer | None) -> Answer | None:
    """What two answers say together, if the step that took the first one has failed. Nobody asks again."""
    if before is None or answer is None:
        return answer or before
    first, led = answer.first or before.first, answer.led or before.led
    earlier, ours = answer.earlier | before.earlier, answer.ours | before.ours
    return replace(answer, first=first, earlier=earlier, led=led, ours=ours)
