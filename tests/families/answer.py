"""What a family's own plugin answers, and how the answer of genericdp differs from it.

`tests/data/families/NAME.toml` has the answers of the plugin, as read in its source, and the differences that
the head of the rule file explains.

The rules of this file:

* What is the same for every family is no difference: the host path is a stable link, which counts as the node
  to which it leads; the container also gets the variables `GENERICDP_…`; a NUMA node may be told where the
  plugin tells none.
* Everything else that differs has a name, such as `env UDEV_DEVNODE`.
"""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from genericdp.core.allocate import Allocation
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Offer
from genericdp.core.rules.name import env_names

FOLDER = Path(__file__).parents[1] / "data" / "families"

LINKS = "/dev/genericdp"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a container gets that requests some devices of a resource; every field by name, as text.

    nodes        container path, or path on the host -> what is behind it, and its permissions
    ids          how many ids the resource lists, and for how many containers a device is
    numa         the NUMA nodes of the devices, "" for none
    """

    nodes: Mapping[str, str] = field(default_factory=dict)
    mounts: Mapping[str, str] = field(default_factory=dict)
    envs: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    cdi: Mapping[str, str] = field(default_factory=dict)
    ids: str = ""
    shared: str = ""
    numa: str = ""

    @property
    def parts(self) -> dict[str, str]:
        """Every part of the answer by name."""
        named = {
            f"{kind} {name}": value
            for kind, values in (
                ("node", self.nodes),
                ("mount", self.mounts),
                ("env", self.envs),
                ("annotation", self.annotations),
                ("cdi", self.cdi),
            )
            for name, value in values.items()
        }
        counted = {"ids": self.ids, "shared": self.shared, "numa": self.numa}
        return {**named, **{name: value for name, value in counted.items() if value}}


@dataclass(frozen=True, slots=True)
class Case:
    """A request for devices of a family, and what its plugin answers.

    of       device nodes whose devices are requested; () for the first ones
    count    how many devices
    differs  part of the answer -> what genericdp gives there, "" for nothing
    """

    resource: str
    count: int
    of: tuple[str, ...]
    answer: Answer
    differs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Original:
    """A family's own plugin.

    source  where its answers were read
    words   part of an answer that differs -> how the head of the rule file names it
    """

    source: str
    cases: tuple[Case, ...]
    words: Mapping[str, str]


def original(name: str) -> Original:
    """What the plugin of a family answers."""
    document = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return Original(
        document["source"], tuple(_case(each) for each in document["answer"]), document.get("words", {})
    )


def _case(written: Mapping[str, Any]) -> Case:
    resource, _, count = written["request"].partition("=")
    nodes = [_node(text) for text in written.get("nodes", ())]
    return Case(
        resource,
        int(count),
        tuple(written.get("of", ())),
        Answer(
            nodes=dict(nodes),
            mounts=dict(_mount(text) for text in written.get("mounts", ())),
            envs=written.get("envs", {}),
            annotations=written.get("annotations", {}),
            cdi=dict.fromkeys(written.get("cdi", ()), "yes"),
            ids=str(written["ids"]),
            shared=str(written["shared"]),
            numa=str(written.get("numa", "")),
        ),
        written.get("differs", {}),
    )


def _node(text: str) -> tuple[str, str]:
    """From `/dev/a as /dev/b (rw)`; the name of a part is the container path."""
    path, _, permissions = text.partition(" (")
    host, _, container = path.partition(" as ")
    return container or host, f"{host} ({permissions}"


def _mount(text: str) -> tuple[str, str]:
    """From `/a at /b (ro)`; a mount that does not say it may be written."""
    path, _, access = text.partition(" (")
    host, _, container = path.partition(" at ")
    return container, f"{host} ({access or 'rw)'}"


def answer_of(allocation: Allocation, offer: Offer, ids: Collection[str], inventory: Inventory) -> Answer:
    """What genericdp answers, in the words of `Answer`."""
    leads_to = inventory.links()
    own = env_names(offer.resource.name)
    devices = [offer.ids[id_] for id_ in ids]
    return Answer(
        nodes={
            spec.container_path: f"{leads_to[spec.host_path.removeprefix(f'{LINKS}/')]} ({spec.permissions})"
            for spec in allocation.devices
        },
        mounts={
            mount.container_path: f"{mount.host_path} ({'ro' if mount.read_only else 'rw'})"
            for mount in allocation.mounts
        },
        envs={name: value for name, value in allocation.envs.items() if name not in own},
        annotations=allocation.annotations,
        cdi=dict.fromkeys(allocation.cdi_devices, "yes"),
        ids=str(len(offer.ids)),
        shared=str(offer.resource.replicas or 1),
        numa=",".join(sorted({str(device.numa) for device in devices if device.numa is not None})),
    )


def differences(theirs: Answer, ours: Answer) -> dict[str, str]:
    """Each part that differs -> what genericdp gives there, "" for nothing."""
    wanted, got = theirs.parts, ours.parts
    if not theirs.numa:
        got.pop("numa", None)
    return {name: got.get(name, "") for name in [*wanted, *got] if wanted.get(name) != got.get(name)}
