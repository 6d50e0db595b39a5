"""What a case is: a function of a node that ends well or raises CaseError; its name says the rule."""

from collections.abc import Callable

from tests.vm.node import Node

Case = Callable[[Node], None]

#: In the order in which they are written down.
CASES: list[Case] = []


def case(function: Case) -> Case:
    """Have `make test-vm` run this."""
    CASES.append(function)
    return function


def title(each: Case) -> str:
    """The rule that it is about, for people."""
    return each.__name__.replace("_", " ")
