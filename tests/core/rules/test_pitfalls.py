"""What rules may say but hardly mean."""

from collections.abc import Callable

import pytest

from genericdp.core.rules.pitfalls import pitfalls
from tests.scenes.builders import resources_of
from tests.scenes.steps import growth

GPU = '[[resource]]\nname = "gpu"\nmatch = { SUBSYSTEM = "drm" }\ngroup_by = "parent"\n'


def table(names: str, *keys: str) -> str:
    return "\n".join(["[[resource.node]]", f"match = {{ DEVNAME = {names} }}", *keys, ""])


def bundle(names: str, *keys: str) -> str:
    return "\n".join(["[[resource]]", 'name = "bundle"', f"match = {{ DEVNAME = {names} }}", *keys, ""])


ALL = 'group_by = "all"'
SHARED = "shared = true"

EACH = "write a [[resource.node]] for each node that must be there"
A_AND_B = bundle('["/dev/a", "/dev/b"]', ALL)

WHOLE = (
    "bundle: in '{}', the device chooses the whole name, and may take that of something else in the "
    "container; write '{}'"
)

DOUBTFUL = {
    "a name lacks a character": (
        bundle('"/dev/a"').replace("DEVNAME", "DEVNAM"),
        "bundle: 'DEVNAM' is not a standard udev property; did you mean 'DEVNAME'?",
    ),
    "a name has a character too many": (
        bundle('"/dev/a"', 'identity = ["ID_SERIALL_SHORT"]'),
        "bundle: 'ID_SERIALL_SHORT' is not a standard udev property; did you mean 'ID_SERIAL_SHORT'?",
    ),
    "two characters are swapped": (
        bundle('"/dev/a"', 'group_by = "ID_PAHT"'),
        "bundle: 'ID_PAHT' is not a standard udev property; did you mean 'ID_PATH'?",
    ),
    "a character of a parent's property is wrong": (
        GPU.replace('SUBSYSTEM = "drm"', 'parent = { DRIVEN = "i915" }'),
        "gpu: 'DRIVEN' is not a standard udev property; did you mean 'DRIVER'?",
    ),
    "group_by matches a misspelled property": (
        GPU.replace('"parent"', '{ SUBSYTEM = "pci" }'),
        "gpu: 'SUBSYTEM' is not a standard udev property; did you mean 'SUBSYSTEM'?",
    ),
    "a table of a node is misspelled": (
        GPU + table('"/dev/kfd"', SHARED).replace("DEVNAME", "DEVNAMES"),
        "gpu: 'DEVNAMES' is not a standard udev property; did you mean 'DEVNAME'?",
    ),
    "udev has another word for it": (
        bundle('"/dev/a"').replace("DEVNAME", "ID_PRODUCT_ID"),
        "bundle: 'ID_PRODUCT_ID' is not a standard udev property; did you mean 'ID_MODEL_ID'?",
    ),
    "a device chooses the whole name of its node": (
        bundle('"/dev/a"', 'container_path = "/dev/{ID_MODEL}"'),
        WHOLE.format("/dev/{ID_MODEL}", "/dev/bundle-{ID_MODEL}"),
    ),
    "a device chooses the whole name of a directory": (
        bundle('"/dev/a"', 'container_path = "/dev/{index}{ID_MODEL|x}/a"'),
        WHOLE.format("/dev/{index}{ID_MODEL|x}/a", "/dev/bundle-{index}{ID_MODEL|x}/a"),
    ),
    "a device chooses where a mount is": (
        bundle('"/dev/a"', 'mounts = [{ host_path = "/srv", container_path = "/{ID_MODEL}" }]'),
        WHOLE.format("/{ID_MODEL}", "/bundle-{ID_MODEL}"),
    ),
    "a shared table names two nodes": (
        GPU + table('["/dev/a", "/dev/b"]', SHARED),
        f"gpu: one of '/dev/a' and '/dev/b' is enough; {EACH}",
    ),
    "a table of a bundle names two nodes": (
        bundle('"/dev/a|/dev/b|/dev/c"', ALL) + table('"/dev/c"') + table('"/dev/a|/dev/b"'),
        f"bundle: one of '/dev/a' and '/dev/b' is enough; {EACH}",
    ),
    "a bundle has no tables": (A_AND_B, f"bundle: one of '/dev/a' and '/dev/b' is enough; {EACH}"),
    "a bundle of many nodes": (
        bundle('"/dev/a|/dev/b|/dev/c|/dev/d|/dev/e|/dev/f"', ALL),
        f"bundle: one of '/dev/a', '/dev/b', '/dev/c', '/dev/d', '/dev/e' and 1 more is enough; {EACH}",
    ),
    "an earlier shared table takes the node": (
        GPU + table('"/dev/k*"', SHARED) + table('"/dev/kfd"', SHARED, 'container_path = "/dev/other"'),
        "gpu: the [[resource.node]] for '/dev/kfd' never gets a node: another one takes it",
    ),
    "the node is shared and owned": (
        A_AND_B + table('"/dev/a"') + table('"/dev/b"') + table('"/dev/a"', SHARED),
        "bundle: the [[resource.node]] for '/dev/a' never gets a node: another one takes it",
    ),
    "a node of the device is outside the match": (
        bundle('"/dev/a"', ALL) + table('"/dev/a"') + table('"/dev/b"'),
        (
            "bundle: 'match' does not hold for '/dev/b', so no device has it; write 'shared = true' in the "
            "[[resource.node]] for what goes along with every device"
        ),
    ),
    "an exclusive node is shared": (
        bundle('"/dev/kfd"') + GPU + table('"/dev/kfd"', SHARED),
        (
            "gpu: it shares '/dev/kfd', which example.com/bundle gives to one container at a time; "
            "that limit does not hold for shared nodes"
        ),
    ),
}


@pytest.mark.parametrize(("rules", "remark"), DOUBTFUL.values(), ids=DOUBTFUL)
def test_what_is_hardly_meant_is_named(rules: str, remark: str) -> None:
    assert pitfalls(resources_of(rules)) == (f"example.com/{remark}",)


FINE = {
    "a property of the operator's own udev rules": bundle('"/dev/a"').replace("DEVNAME", "PLANT_ROLE"),
    "a name of udev's that resembles another": bundle('"/dev/a"').replace("DEVNAME", "ID_MODEL_ENC"),
    "one of two names, each a device": bundle('["/dev/a", "/dev/b"]'),
    "what need not be there": GPU + table('["/dev/a", "/dev/b"]', SHARED, "optional = true"),
    "a table for each": GPU + table('"/dev/a"', SHARED) + table('"/dev/b"', SHARED),
    "a pattern": bundle('"/dev/video*"', ALL),
    "a part of a name": bundle('"/dev/a"', 'container_path = "/dev/a-{ID_MODEL}"'),
    "the beginning of a name": bundle('"/dev/a"', 'container_path = "/dev/{ID_MODEL}-a/b"'),
    "a name in a directory of its own": bundle('"/dev/a"', 'container_path = "/dev/a/{ID_MODEL}"'),
    "a name that no device chooses": bundle('"/dev/a"', 'container_path = ["/dev/{devname}", "/dev/{id}"]'),
    "a link": bundle('"/dev/a"', 'container_path = "{link}"'),
    "a node on some machines only": GPU + table('["/dev/a", "/dev/b*"]', SHARED),
    "a match on more than the name": (
        '[[resource]]\nname = "kfd"\nmatch = { DEVNAME = "/dev/kfd", SUBSYSTEM = "kfd" }\n'
        + GPU + table('"/dev/kfd"', SHARED)
    ),
    "a node for many containers": bundle('"/dev/kfd"', "replicas = 2") + GPU + table('"/dev/kfd"', SHARED),
    "a node that two share": (
        GPU + table('"/dev/a"', SHARED) + GPU.replace("gpu", "npu") + table('"/dev/a"', SHARED)
    ),
    "a node table of a match that does not name its nodes": GPU + table('"/dev/dri/card0"'),
}  # fmt: skip


@pytest.mark.parametrize("rules", FINE.values(), ids=FINE)
def test_what_may_well_be_meant_is_not_named(rules: str) -> None:
    assert pitfalls(resources_of(rules)) == ()


@pytest.mark.parametrize("shared", [False, True])
def test_twice_as_many_resources_are_twice_as_much_work(*, shared: bool) -> None:
    def looking(size: int) -> Callable[[], object]:
        each = table('["/dev/a", "/dev/b"]', SHARED) if shared else ""
        text = "".join(bundle(f'"/dev/n{n}"').replace('"bundle"', f'"b{n}"') + each for n in range(size))
        resources = resources_of(text)
        return lambda: pitfalls(resources)

    assert growth(looking, 30) < 2.2


def test_twice_as_many_names_are_twice_as_much_work() -> None:
    def looking(size: int) -> Callable[[], object]:
        names = ", ".join(f'"/dev/n{n}"' for n in range(size))
        resources = resources_of(
            bundle(f"[{names}]", ALL) + table(f"[{names}]") + table(f"[{names}]", SHARED)
        )
        return lambda: pitfalls(resources)

    assert growth(looking, 30) < 2.2
