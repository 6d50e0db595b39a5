"""Laws of volumes that somebody names otherwise while a pod has them.

`zfs rename`, `dmsetup rename` and `dmsetup rename --setuuid` are allowed on volumes in use. A volume may also
be removed, and made again under any name. Within a boot, a container that starts again gets the very volume
that it had. Only once that is gone may it get one that has been made under the same name.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory import saved
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.held import give
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.take import take_inventory
from tests.properties.pods import allocated, apart, behind_cdi, behind_links, check_lists, healthy
from tests.scenes.builders import by_sys_path, resources_of
from tests.scenes.rules import DOMAIN
from tests.scenes.storage import a_volume, a_zvol

NAMES = ("a", "b", "c")
KINDS = ("dm", "zvol")


def table(name: str, *keys: str, match: str = '{ SUBSYSTEM = "block" }') -> str:
    return "\n".join(
        (
            "[[resource]]",
            f'name = "{name}"',
            "allow_dangerous = true",
            'unplug_grace = "1s"',
            f"match = {match}",
            *keys,
            "",
        )
    )


#: The volumes with some of the names.
NAMED = '[{ DEVLINKS = "/dev/zvol/[ab]" }, { "ATTR{dm/name}" = "[ab]" }]'

RULES = {
    "base": table("x"),
    "renamed": table("y"),
    "shared": table("x", "replicas = 2"),
    "all in one": table("x", 'group_by = "all"'),
    "all in one, shared": table("x", 'group_by = "all"', "replicas = 2"),
    "some names": table("x", match=NAMED),
    "some names apart": table("y", match=NAMED) + table("x"),
    "some names in one": table("x", 'group_by = "all"', match=NAMED),
    "some names apart in one": table("y", 'group_by = "all"', match=NAMED) + table("x"),
    "one link apart": table("y", 'group_by = "all"', match='{ DEVLINKS = "/dev/zvol/a" }') + table("x"),
    "by property": table("x", 'identity = ["NAME"]'),
    "grouped by property": table("x", 'group_by = "NAME"'),
    "nothing": "",
}


@dataclass(frozen=True)
class Volume:
    """A volume as it is now.

    since  different for any two volumes of a boot
    """

    kind: str
    number: int
    name: str
    uuid: str
    since: int

    @property
    def told(self) -> tuple[str, str, str]:
        """What tells it from others, now and after a boot."""
        return (self.kind, self.uuid, "" if self.uuid else self.name)

    def device(self) -> UdevDevice:
        made = (
            a_volume(self.number, self.uuid, self.name)
            if self.kind == "dm"
            else a_zvol(16 * self.number, self.name)
        )
        return replace(made, incarnation=self.since, properties={**made.properties, "NAME": self.name})


@dataclass
class Pod:
    """A pod with one id of a resource.

    shared  whether the device was offered to several pods when it got it
    links   what its container gets
    first   the volumes at its links when it started first in this boot, None before
    last    the same, when it started last
    """

    resource: str
    id_: str
    shared: bool
    links: tuple[str, ...]
    first: Mapping[str, Volume] | None = None
    last: Mapping[str, Volume] = field(default_factory=dict)


Change = tuple[str, int, int, int]


@dataclass
class Machine:
    """A machine with its volumes, its daemon, its kubelet and its pods."""

    rules: str = "base"
    volumes: list[Volume] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)
    inventory: Inventory = field(default_factory=Inventory)
    pods: list[Pod] = field(default_factory=list)
    now: float = 0.0
    made: int = 0
    boot: int = 0

    def __post_init__(self) -> None:
        self.heard: set[str] = set()

    # What happens to volumes

    def make(self, kind: int, number: int, name: int) -> None:
        """Make a volume under a free number and name; one in four of device mapper has a UUID."""
        free = Volume(KINDS[kind % 2], number % 3, NAMES[name % 3], "", self.made + 1)
        if free.kind == "dm" and kind > 5:
            free = replace(free, uuid=f"U-{name % 3}")
        if any(
            each.kind == free.kind
            and (each.number == free.number or each.name == free.name or each.uuid == free.uuid != "")
            for each in self.volumes
        ):
            return
        self.made += 1
        self.volumes.append(free)

    def remove(self, index: int, _: int, __: int) -> None:
        if self.volumes:
            self.volumes.pop(index % len(self.volumes))

    def rename(self, index: int, name: int, _: int) -> None:
        """Name a volume otherwise. One that has this name gets the other one's."""
        if not self.volumes:
            return
        at = index % len(self.volumes)
        was, now = self.volumes[at], replace(self.volumes[at], name=NAMES[name % 3])
        self.volumes = [
            replace(each, name=was.name) if each.kind == now.kind and each.name == now.name else each
            for each in self.volumes
        ]
        self.volumes[at] = now

    def mislabel(self, index: int, name: int, _: int) -> None:
        """Udev is late: of volumes of ZFS, it says a name that another one has as well, or none."""
        mine = [each for each in self.volumes if each.kind == "zvol"]
        if mine:
            one = mine[index % len(mine)]
            self.volumes[self.volumes.index(one)] = replace(one, name=(*NAMES, "")[name % 4])

    def set_uuid(self, index: int, number: int, _: int) -> None:
        """Give a UUID to a volume of device mapper that has none."""
        uuid = f"U-{number % 3}"
        mine = [each for each in self.volumes if each.kind == "dm" and not each.uuid]
        if mine and uuid not in {each.uuid for each in self.volumes}:
            one = mine[index % len(mine)]
            self.volumes[self.volumes.index(one)] = replace(one, uuid=uuid)

    def change(self, changes: Sequence[Change]) -> None:
        """These happen before the daemon sees any of them."""
        for name, *arguments in changes:
            getattr(self, name)(*arguments)

    # What happens to the daemon and the pods

    def step(self, answer: Answer | None = None) -> None:
        self.now += 1000.0
        self.heard = healthy(self.inventory)
        builder = Builder(resources_of(RULES[self.rules], domain=DOMAIN), DOMAIN)
        if answer is not None:
            answer = replace(answer, asked=self.now)
        devices = by_sys_path(*(each.device() for each in self.volumes))
        self.inventory, self.memory = take_inventory(builder, devices, self.memory, self.now, answer)

    def see(self, changes: Sequence[Change]) -> None:
        self.change(changes)
        self.step()

    def edit(self, rules: str) -> None:
        self.rules = rules
        self.step()

    def admit(self, number: int) -> None:
        """The kubelet gives a free id to a pod, whether it has heard of the last change or not."""
        usable = (healthy(self.inventory) | self.heard) - {pod.id_ for pod in self.pods}
        found = allocated(self.inventory, usable, number)
        if found is None:
            return
        offer, id_, links = found
        self.memory = replace(self.memory, held=give(self.memory.held, offer, [id_], self.now))
        shared = (offer.resource.replicas or 1) > 1
        self.pods.append(Pod(offer.resource.name, id_, shared, links))
        self.start(self.pods[-1])
        self.step()

    def start(self, pod: Pod) -> None:
        """The container starts, again or for the first time."""
        now = behind_links(self.inventory, pod, self.at())
        pod.last = now or {}
        pod.first = pod.first or now

    def start_again(self, number: int) -> None:
        if self.pods:
            self.start(self.pods[number % len(self.pods)])

    def delete(self, number: int) -> None:
        if self.pods:
            self.pods.pop(number % len(self.pods))

    def answer(self) -> None:
        self.step(Answer(frozenset((pod.resource, pod.id_) for pod in self.pods), 0.0, complete=True))

    def save(self) -> bytes:
        return saved.dump(self.memory, f"boot {self.boot}")

    def restart(self, changes: Sequence[Change]) -> None:
        """The daemon starts again, after these changes."""
        self.memory = saved.load(self.save(), f"boot {self.boot}")
        self.see(changes)

    def reboot(self, number: int, changes: Sequence[Change]) -> None:
        """The volumes come one by one, in another order, and then all containers start again."""
        text = self.save()
        self.change(changes)
        self.boot += 1
        self.made = 0
        self.memory = saved.load(text, f"boot {self.boot}")
        for pod in self.pods:
            pod.first, pod.last = None, {}
        before, self.volumes = self.volumes, []
        first = number % max(1, len(before))
        for one in (*before[first:], *before[:first]):
            self.made += 1
            count = sum(each.kind == one.kind for each in self.volumes)
            self.volumes.append(replace(one, number=count, since=self.made))
            self.step()
            self.check()
        self.step()
        for pod in self.pods:
            self.start(pod)

    # What holds

    def at(self) -> Mapping[str, Volume]:
        """The path of a device node -> its volume."""
        return {each.device().device_node or "": each for each in self.volumes}

    def would_get(self, pod: Pod) -> tuple[Mapping[str, Volume], Mapping[str, Volume]]:
        """Link -> what the container would get now, and that by CDI; nothing: it would not start."""
        at = self.at()
        return behind_links(self.inventory, pod, at) or {}, behind_cdi(self.inventory, pod, at)

    def possibly(self, pod: Pod) -> Iterator[frozenset[int]]:
        """What the container has, and what it would have if it started now."""
        there = {each.since for each in self.volumes}
        for these in (pod.last, *self.would_get(pod)):
            yield frozenset(volume.since for volume in these.values()) & there

    def check(self) -> None:
        there = {each.since for each in self.volumes}
        for pod in self.pods:
            for now in self.would_get(pod):
                for link, volume in now.items():
                    last = pod.last.get(link)
                    if last is not None and last.since != volume.since:
                        assert last.since not in there, (pod, link, volume)
                    first = (pod.first or {}).get(link)
                    if first is not None and first.since != volume.since:
                        assert first.told == volume.told or first.name == volume.name, (pod, link, volume)
        check_lists(self.inventory, self.pods)
        for one, other in apart(self.pods):
            for mine in self.possibly(one):
                for theirs in self.possibly(other):
                    assert not mine & theirs, (one, other)
        text = self.save()
        loaded = saved.load(text, f"boot {self.boot}")
        assert saved.dump(loaded, f"boot {self.boot}") == text

    def check_that_nothing_waits(self) -> None:
        """Once all pods have gone, everything is offered that would be if there had never been any."""
        self.pods = []
        self.answer()
        # Which siblings are in doubt depends on what was held before the answer.
        self.step()
        assert self.inventory.waiting == ()
        assert self.memory.held == {}
        offered = self.offered()
        self.memory = Memory()
        self.step()
        assert offered == self.offered()

    def offered(self) -> set[tuple[str, str]]:
        """The device nodes that are offered, each with its resource."""
        return {
            (name, node.path)
            for name, offer in self.inventory.offers.items()
            for device in offer.ids.values()
            if device.healthy
            for node in device.nodes
        }


numbers = st.integers(0, 7)
changes = st.lists(
    st.tuples(
        st.sampled_from(["make", "remove", "rename", "mislabel", "set_uuid"]), numbers, numbers, numbers
    ),
    min_size=1,
    max_size=3,
)
operations = st.one_of(
    st.tuples(st.just("see"), changes),
    st.tuples(st.just("see"), changes),
    st.tuples(st.just("edit"), st.sampled_from(sorted(RULES))),
    st.tuples(st.just("admit"), numbers),
    st.tuples(st.just("admit"), numbers),
    st.tuples(st.just("start_again"), numbers),
    st.tuples(st.just("delete"), numbers),
    st.tuples(st.just("answer")),
    st.tuples(st.just("restart"), changes),
    st.tuples(st.just("reboot"), numbers, changes),
)


@example(
    "all in one",
    # A new volume takes the name of a part of the device.
    [("see", [("make", 0, 0, 0)]), ("admit", 0), ("see", [("rename", 0, 1, 0), ("make", 0, 1, 0)])],
)
@example(
    "by property",
    # One that is told by something else takes the value of the property.
    [("see", [("make", 0, 0, 1)]), ("admit", 0), ("see", [("make", 1, 0, 1), ("rename", 0, 0, 0)])],
)
@example(
    "all in one",
    # It comes after others have changed the device, and after a restart.
    [
        ("see", [("make", 0, 0, 0), ("make", 0, 1, 1)]),
        ("admit", 0),
        ("see", [("rename", 0, 2, 0)]),
        ("see", [("make", 1, 0, 0)]),
        ("restart", [("make", 1, 1, 1)]),
        ("see", [("make", 0, 2, 0)]),
    ],
)
@example(
    "some names in one",
    # The rules no longer take a part because of its new name, and are edited.
    [
        ("see", [("make", 0, 0, 0), ("make", 0, 1, 1)]),
        ("admit", 0),
        ("see", [("rename", 0, 2, 0)]),
        ("edit", "base"),
        *[("admit", 0)] * 3,
    ],
)
@example(
    "base",
    # After a boot, another pod gets it under its new name, and then it has its old name again.
    [
        ("see", [("make", 0, 0, 0)]),
        ("admit", 0),
        ("see", [("rename", 0, 1, 0)]),
        ("reboot", 0, []),
        ("admit", 0),
        ("see", [("rename", 0, 0, 0)]),
    ],
)
@given(st.sampled_from(sorted(RULES)), st.lists(operations, max_size=25))
def test_a_pod_keeps_its_volume_whatever_it_is_called_and_no_other_pod_gets_it(
    rules: str, history: list[tuple[object, ...]]
) -> None:
    machine = Machine(rules)
    machine.step()
    for name, *arguments in history:
        getattr(machine, str(name))(*arguments)
        machine.check()
    machine.check_that_nothing_waits()
