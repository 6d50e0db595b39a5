"""What a case is: a function of a node that ends well or raises CaseError; its name says the rule."""

from collections.abc import Callable

from tests.vm.node import Node

Case = Callable[[Node], None]

#: In the order in which they are written down.
CASES: list[Case] = []


#: The table is 80 wide.
LONGEST_TITLE = 64


def case(function: Case) -> Case:
    """Have `make test-vm` run this."""
    if len(title(function)) > LONGEST_TITLE:
        raise ValueError(f"longer than {LONGEST_TITLE} characters: '{title(function)}'")
    CASES.append(function)
    return function


def title(each: Case) -> str:
    """The rule that it is about, for people."""
    return each.__name__.replace("_", " ")
