"""The checks of Register: which resource names and API versions a kubelet accepts (kubelet 1.36).

The rules of this file:

* The texts are the kubelet's, verbatim: people search for them.
"""

import re

_SUPPORTED = "v1beta1"
_QUOTA_PREFIX = "requests."
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.ASCII)
_NAME = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)


def registration_error(version: str, resource: str) -> str | None:
    """The text of Register's refusal, or None."""
    if version != _SUPPORTED:
        return (
            f'requested API version "{version}" is not supported by kubelet. '
            f'Supported version is ["{_SUPPORTED}"]'
        )
    if not is_extended_resource_name(resource):
        return f'the ResourceName "{resource}" is invalid'
    return None


def is_extended_resource_name(name: str) -> bool:
    """Whether pods may request it (`pkg/apis/core/v1/helper`, `IsExtendedResourceName`)."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith(_QUOTA_PREFIX):
        return False
    # The name with "requests." in front, as quotas use it, must be qualified too: 9 characters less.
    parts = f"{_QUOTA_PREFIX}{name}".split("/")
    if len(parts) != 2:
        return False
    prefix, own = parts
    return (
        len(prefix) <= 253
        and _SUBDOMAIN.fullmatch(prefix) is not None
        and 0 < len(own) <= 63
        and _NAME.fullmatch(own) is not None
    )
