"""A case: a function of a node, named after the rule that it tests; a violation raises CaseError.

What it returns is what it measured, in words, for the table of results.
"""

from collections.abc import Callable

from tests.vm.node import Node

Case = Callable[[Node], str | None]

#: All cases, in the order of their definition.
CASES: list[Case] = []


#: So that the table of results is 90 wide.
LONGEST_TITLE = 64


def case(function: Case) -> Case:
    """Register a case, so that `make test-vm` runs it."""
    if len(title(function)) > LONGEST_TITLE:
        raise ValueError(f"longer than {LONGEST_TITLE} characters: '{title(function)}'")
    CASES.append(function)
    return function


def title(each: Case) -> str:
    """The rule that a case tests, in words."""
    return each.__name__.replace("_", " ")
