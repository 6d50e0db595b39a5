"""The names in rules: resources, their domains and envs, udev properties, CDI devices.

The rules of this file:

* A name that the kubelet or the CDI library would refuse is refused here, with the reason.
"""

import re
from functools import lru_cache

#: The name of a udev property.
PROPERTY_NAME = re.compile(r"[A-Z][A-Z0-9_.:-]*")

#: The part of a resource name behind the domain (at most 63 characters), and each label of the domain.
QUALIFIED_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")

#: The vendor and the class of a CDI kind. The CDI library crashes on one of a single letter.
_CDI_PART = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]")

#: The name of a CDI device within its kind.
_CDI_DEVICE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.:-]*[A-Za-z0-9])?")

#: How the keys of annotations begin that name CDI devices for the runtime, separated by commas.
CDI_ANNOTATION = "cdi.k8s.io/"

#: How the class of a resource begins whose own name cannot be a CDI kind.
_RENAMED = "x-"

#: How the envs begin that every container gets.
ENV_PREFIX = "GENERICDP_"

_NOT_IN_ENV = re.compile(r"[^A-Z0-9_]")


def env_names(resource: str) -> tuple[str, str]:
    """The env in which a container finds the paths of its devices, and the one with their ids.

    `GENERICDP_` and the full resource name in capitals, other characters as `_`. When two resources give a
    container the same env, the kubelet uses either value (1.36 iterates over a map).
    """
    paths = ENV_PREFIX + _NOT_IN_ENV.sub("_", resource.upper())
    return paths, f"{paths}_IDS"


def kubevirt_env(resource: str) -> str:
    """The env in which KubeVirt looks for the bus and device numbers of USB devices."""
    return "USB_RESOURCE_" + resource.upper().replace("/", "_").replace(".", "_")


@lru_cache(maxsize=100)
def cdi_kind(resource: str) -> str:
    """The CDI kind, `vendor/class`, of a full resource name: the same, if CDI permits it. No two share one.

    Both parts of a kind begin with a letter, unlike those of a resource name.
    """
    domain, _, short = resource.partition("/")
    if _CDI_PART.fullmatch(domain) and _CDI_PART.fullmatch(short) and not short.startswith(_RENAMED):
        return resource
    # A domain has no "_".
    return f"genericdp.io/{_RENAMED}{domain}_{short}"


def why_not_a_cdi_name(name: str) -> str:
    """What to write instead of a name that is no `vendor/class=device`; "" when it is one.

    The rules are ParseQualifiedName of CDI 1.1 (`pkg/parser`).
    """
    kind, _, device = name.partition("=")
    vendor, _, class_ = kind.partition("/")
    if not (vendor and class_ and device):
        return 'write "vendor.example/class=name"'
    for what, part in (("vendor", vendor), ("class", class_)):
        if _CDI_PART.fullmatch(part) is None:
            return (
                f"the {what} has two or more letters, digits, '_', '-' and '.', "
                "with a letter first and a letter or digit last"
            )
    if _CDI_DEVICE.fullmatch(device) is None:
        return "behind '=' are letters, digits, '_', '-', '.' and ':', with a letter or digit at both ends"
    return ""


def why_not_a_resource_name(name: str) -> str:
    """Why the kubelet would refuse a full resource name; "" when it accepts the name.

    The rules are IsExtendedResourceName of kubelet 1.36 (`pkg/apis/core/v1/helper`): a domain of
    at most 244 characters, a name part of at most 63, nothing of kubernetes.io, no `requests.`.
    """
    domain, slash, short = name.partition("/")
    if not slash or "/" in short:
        return "a resource name has the form domain/name, with one slash"
    if "kubernetes.io/" in name:
        return "domains that end in 'kubernetes.io' belong to Kubernetes"
    if name.startswith("requests."):
        return "a resource name must not start with 'requests.'"
    if len(domain) > 244:
        return f"the domain has {len(domain)} characters; at most 244 are allowed"
    if not all(DNS_LABEL.fullmatch(label) for label in domain.split(".")):
        return f"'{domain}' is not a domain: use lower-case letters, digits and '-', labels joined by '.'"
    if len(short) > 63:
        return f"the name part has {len(short)} characters; at most 63 are allowed"
    if QUALIFIED_NAME.fullmatch(short) is None:
        return (
            f"'{short}' is not a name: use letters, digits, '-', '_' and '.', "
            "with a letter or digit at both ends"
        )
    return ""
