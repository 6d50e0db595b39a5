"""A device of an OCI runtime spec: what the runtime hands to runc."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class OciDevice:
    """`linux.devices` and its rule in `linux.resources.devices` in one value.

    kind            "c", "b" or "p"
    source          the host's node, links resolved
    host_path       what was asked for, verbatim
    from_directory  whether the request named a directory above it
    """

    path: str
    kind: str
    major: int
    minor: int
    mode: int
    uid: int
    gid: int
    permissions: str
    source: str
    host_path: str
    from_directory: bool = False

    def owned_by(self, uid: int, gid: int) -> "OciDevice":
        """The same with another owner."""
        return replace(self, uid=uid, gid=gid)
