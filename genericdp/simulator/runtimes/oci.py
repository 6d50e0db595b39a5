"""A device of an OCI runtime spec, as the runtime passes it to runc."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class OciDevice:
    """An entry of `linux.devices` with its rule in `linux.resources.devices`.

    kind            "c", "b" or "p"
    source          the node on the host, links resolved
    host_path       the requested path, verbatim
    from_directory  whether the requested path is a directory that contains the node
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
        """The same device with another owner."""
        return replace(self, uid=uid, gid=gid)

    def entry(self) -> dict[str, object]:
        """The device in `linux.devices` of the spec."""
        return {
            "path": self.path,
            "type": self.kind,
            "major": self.major,
            "minor": self.minor,
            "fileMode": self.mode,
            "uid": self.uid,
            "gid": self.gid,
        }
