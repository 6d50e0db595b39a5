"""A ConfigMap's volume, as the kubelet writes it (pkg/volume/util/atomic_writer.go)."""

import os
from collections.abc import Mapping
from pathlib import Path


class Volume:
    """A directory whose entries are links into `..data`, which is a link to a directory of this version."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._version = 0
        path.mkdir(parents=True)
        path.chmod(0o777)

    def update(self, files: Mapping[str, str]) -> None:
        """Replace all files at once, by a rename of `..data`."""
        self._version += 1
        old = os.path.realpath(self.path / "..data")
        version = self.path / f"..2026_11_22_10_00_00.{self._version}"
        version.mkdir(mode=0o755)
        for name, text in files.items():
            (version / name).write_text(text, encoding="utf-8")
            (version / name).chmod(0o644)
        (self.path / "..data_tmp").symlink_to(version.name)
        (self.path / "..data_tmp").rename(self.path / "..data")
        for name in files:
            if not (self.path / name).is_symlink():
                (self.path / name).symlink_to(f"..data/{name}")
        for entry in list(self.path.iterdir()):
            if not entry.name.startswith("..") and entry.name not in files:
                entry.unlink()
        if self._version > 1:
            for path in Path(old).iterdir():
                path.unlink()
            os.rmdir(old)
