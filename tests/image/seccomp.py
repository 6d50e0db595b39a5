"""The seccomp profile RuntimeDefault, for a container without capabilities.

It is the one of CRI-O and podman, from the package golang-github-containers-common. It also says to which
architectures and capabilities an entry applies, which a runtime's configuration (config-linux.md of the
runtime-spec) cannot.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PROFILE = Path("/usr/share/containers/seccomp.json")

#: uname -m -> the architecture in `archMap`, and in `includes`.
_ARCHITECTURES = {"x86_64": ("SCMP_ARCH_X86_64", "amd64"), "aarch64": ("SCMP_ARCH_AARCH64", "arm64")}


def runtime_default() -> dict[str, Any]:
    """The profile as `linux.seccomp` of a runtime's configuration."""
    profile = json.loads(_PROFILE.read_text(encoding="utf-8"))
    own, short = _ARCHITECTURES[os.uname().machine]
    (family,) = (each for each in profile["archMap"] if each["architecture"] == own)
    return {
        "defaultAction": profile["defaultAction"],
        "defaultErrnoRet": profile["defaultErrnoRet"],
        "architectures": [own, *family["subArchitectures"]],
        "syscalls": [_plain(entry) for entry in profile["syscalls"] if _applies(entry, short)],
    }


def _applies(entry: Mapping[str, Any], architecture: str) -> bool:
    """Whether an entry is meant for this architecture and for no capability."""
    includes = entry.get("includes") or {}
    return not includes.get("caps") and architecture in (includes.get("arches") or [architecture])


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    known = {key: entry[key] for key in ("names", "action", "args") if entry.get(key)}
    return {**known, "errnoRet": entry["errnoRet"]} if entry["action"] == "SCMP_ACT_ERRNO" else known
