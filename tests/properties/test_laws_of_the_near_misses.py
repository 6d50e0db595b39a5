"""A near miss is what it says, for every machine and all rules."""

from hypothesis import given

from genericdp.core.explain.near_misses import near_misses
from genericdp.core.explain.opinion import opinion
from genericdp.core.inventory.claims import Claims
from genericdp.core.rules.resource import Resource
from tests.properties.strategies import Boot, Unit, booted, boots, machines, rules


@given(machines(), boots, rules)
def test_a_near_miss_is_what_the_daemon_would_say(
    units: tuple[Unit, ...], boot: Boot, resources: tuple[Resource, ...]
) -> None:
    nodes = [device for device in booted(units, boot).values() if device.device_node is not None]
    claims = Claims(resources)
    for resource in resources:
        for miss in near_misses(opinion(resource, node, claims) for node in nodes):
            takers = [claim.resource.name for claim in claims.on(miss.node)]
            assert resource.name not in takers[:1]
            assert miss.elsewhere == (takers[0] if takers else "")
            assert all(not verdict.holds for verdict in miss.failed)
            # With nothing that fails, another resource is first, or udev has not finished.
            if not miss.failed:
                assert resource.name in takers or not miss.node.initialized
            else:
                assert resource.name not in takers


@given(machines(), boots, rules)
def test_what_is_nearest_does_not_depend_on_the_order_of_devices(
    units: tuple[Unit, ...], boot: Boot, resources: tuple[Resource, ...]
) -> None:
    nodes = [device for device in booted(units, boot).values() if device.device_node is not None]
    claims = Claims(resources)
    for resource in resources:
        opinions = [opinion(resource, node, claims) for node in nodes]
        assert near_misses(opinions) == near_misses(opinions[::-1])
