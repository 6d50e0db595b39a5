"""Laws of IOMMU groups: an id and a link are of the functions, whatever number the kernel gives the group."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.vfio import is_bridge, with_first
from tests.properties.strategies import DOMAIN
from tests.scenes.builders import a_function, a_vfio_group, by_sys_path, resources_of

RULES = resources_of('[[resource]]\nname = "gpu"\nmatch = { SUBSYSTEM = "vfio" }\n', domain=DOMAIN)

functions = st.builds(
    a_function,
    st.builds("0000:{:02x}:{:02x}.{}".format, st.integers(0, 2), st.integers(0, 1), st.integers(0, 2)),
    driver=st.sampled_from(["vfio-pci", "vfio-pci", "nvidia", ""]),
    kind=st.sampled_from(["0x030000", "0x040300", "0x060400"]),
)


@st.composite
def machines(draw: st.DrawFn) -> list[list[UdevDevice]]:
    """The functions of each group; a function is in one."""
    found = draw(st.lists(functions, min_size=1, max_size=8, unique_by=lambda each: each.sys_path))
    cuts = draw(st.lists(st.integers(1, len(found)), max_size=3, unique=True).map(sorted))
    return [
        found[start:end] for start, end in zip([0, *cuts], [*cuts, len(found)], strict=True) if start < end
    ]


def inventory(members: Sequence[Sequence[UdevDevice]], numbers: Sequence[int]) -> Inventory:
    """What the rules make of these groups under these numbers."""
    nodes = [a_vfio_group(number, *with_first(each)) for number, each in zip(numbers, members, strict=False)]
    return Builder(RULES, DOMAIN).build(by_sys_path(*nodes))


@given(machines(), st.permutations(range(8)), st.permutations(range(8)))
def test_the_number_of_a_group_and_the_order_of_its_functions_change_no_id_and_no_link(
    groups: list[list[UdevDevice]], numbers: list[int], others: list[int]
) -> None:
    before = inventory(groups, numbers)
    after = inventory([each[::-1] for each in groups], others)

    def known(found: Inventory, of: Sequence[int]) -> dict[str, object]:
        names = {f"/dev/vfio/{number}": index for index, number in enumerate(of)}
        return {
            device.id: (names[node.path], node.link, device.health, device.reason, device.port, device.numa)
            for offer in found.offers.values()
            for device in offer.devices
            for node in device.nodes
        }

    assert known(before, numbers) == known(after, others)
    assert len(known(before, numbers)) == len(groups)


@given(machines())
def test_a_group_is_healthy_exactly_while_vfio_has_all_of_it(groups: list[list[UdevDevice]]) -> None:
    by_port = {with_first(each)[0].sys_path: each for each in groups}
    (offer,) = inventory(groups, range(8)).offers.values()
    for device in offer.devices:
        handed_over = [each for each in by_port[device.port] if not is_bridge(each)]
        assert device.healthy is all(each.driver == "vfio-pci" for each in handed_over)
