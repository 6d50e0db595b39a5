"""Which client of a resource is current, in kubelets up to 1.36 and from 1.37."""

from genericdp.simulator.plugins.client_table import Client, Ended, Generation, table_of


def test_in_a_legacy_table_the_end_of_any_client_disconnects_the_current_one() -> None:
    table = table_of(Generation.LEGACY)
    old, new = Client("r", "/old"), Client("r", "/new")
    assert table.add(old) is table.add(new) is None
    assert table.ended(old) == Ended(close=new, stopped=True)
    assert table.ended(new) == Ended()


def test_a_newer_table_keeps_the_clients_of_a_resource_apart() -> None:
    table = table_of(Generation.NEWER)
    old, new = Client("r", "/old"), Client("r", "/new")
    for client in (old, new):
        assert table.add(client) is None
        client.connected = True
    assert (table.feeds(old), table.feeds(new)) == (False, True)
    assert table.add(Client("r", "/new")) == ('device plugin already connected: resource "r", socket "/new"')
    failing = Client("r", "/failing")
    assert table.add(failing) is None
    table.failed(failing)
    table.failed(failing)
    assert table.ended(new) == Ended(close=new, promoted=old)
    assert table.ended(new) == Ended()
    assert table.removed("r", "/nobody") == Ended()
    assert table.removed("r", "/old") == Ended(close=old, stopped=True)


def test_in_a_newer_table_a_client_that_is_still_connecting_can_be_replaced() -> None:
    table = table_of(Generation.NEWER)
    first, second = Client("r", "/same"), Client("r", "/same")
    assert table.add(first) is table.add(second) is None
    assert table.ended(first) == Ended()
