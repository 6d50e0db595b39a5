"""The names that a rule may give, and what follows from the name of a resource.

The rules of this file:

* What the kubelet refuses is refused here, with the reason.
"""

import re

#: The name of a udev property.
PROPERTY_NAME = re.compile(r"[A-Z][A-Z0-9_.:-]*")

#: The part of a resource name behind the domain (at most 63 characters), and each label of the domain.
QUALIFIED_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")

_NOT_IN_ENV = re.compile(r"[^A-Z0-9_]")


def env_names(resource: str) -> tuple[str, str]:
    """The env in which a container finds the paths of its devices, and the one with their ids.

    `GENERICDP_` and the full resource name in capitals, other characters as `_`. Of two resources with
    the same env in one container a kubelet takes either (1.36 goes through a map).
    """
    paths = "GENERICDP_" + _NOT_IN_ENV.sub("_", resource.upper())
    return paths, f"{paths}_IDS"


def why_not_a_resource_name(name: str) -> str:
    """What the kubelet would say against a full resource name, or "" when it accepts it.

    The rules are IsExtendedResourceName of kubelet 1.36 (`pkg/apis/core/v1/helper`): a domain of
    at most 244 characters, a name part of at most 63, nothing of kubernetes.io, no `requests.`.
    """
    domain, slash, short = name.partition("/")
    if not slash or "/" in short:
        return "a resource name is domain/name, with one slash"
    if "kubernetes.io/" in name:
        return "domains that end in 'kubernetes.io' belong to Kubernetes"
    if name.startswith("requests."):
        return "a resource name must not start with 'requests.'"
    if len(domain) > 244:
        return f"the domain has {len(domain)} characters, 244 are allowed"
    if not all(DNS_LABEL.fullmatch(label) for label in domain.split(".")):
        return f"'{domain}' is no domain: lower-case letters, digits and '-', labels joined by '.'"
    if len(short) > 63:
        return f"the name part has {len(short)} characters, 63 are allowed"
    if QUALIFIED_NAME.fullmatch(short) is None:
        return (
            f"'{short}' is no name: letters, digits, '-', '_' and '.', "
            "beginning and ending with a letter or digit"
        )
    return ""
