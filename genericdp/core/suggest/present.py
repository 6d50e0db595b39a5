"""What is on a machine: which of its device nodes a match would take.

The rules of this file:

* A match is tried as text that the parser reads, as it would be in a rule file.
"""

from collections.abc import Mapping

from genericdp.core.device import UdevDevice
from genericdp.core.reading.parse import parse_rules
from genericdp.core.suggest import rule_text
from genericdp.core.suggest.conditions import Conditions, labels_in
from genericdp.core.suggest.fixed_names import counted_names, lasts


class Present:
    """The device nodes of a machine, and which of them a match would take."""

    def __init__(self, devices: Mapping[str, UdevDevice], domain: str) -> None:
        self.nodes = tuple(device for device in devices.values() if device.device_node is not None)
        self.paths = frozenset(node.device_node or "" for node in self.nodes)
        self.domain = domain
        self._counted = counted_names(self.nodes)

    def lasts(self, conditions: Conditions) -> bool:
        """Whether they have no name that another device got in the order of arrival."""
        return all(lasts(label, self._counted) for label in labels_in(conditions))

    def taken_by(self, conditions: Conditions) -> frozenset[str]:
        """The sys paths of the nodes that these conditions hold for; none if no rule can have them."""
        return self.taken_by_rule(
            "\n".join(["[[resource]]", 'name = "x"', *rule_text.match_lines(conditions)])
        )

    def taken_by_rule(self, text: str) -> frozenset[str]:
        """The sys paths of the nodes that the one resource of a file takes; none if the file is wrong."""
        resources, problems = parse_rules("", text, self.domain)
        if problems or len(resources) != 1:
            return frozenset()
        match = resources[0].match
        return frozenset(node.sys_path for node in self.nodes if match.matches(node))
