"""The settings on disk, `genericdp.toml`.

The rules of this file:

* Only a name that is not there means the default settings. A symlink that leads to nothing does not: its
  file system may be mounted a moment later, and with the defaults, resources have other names, so that the
  kubelet rejects pods for good.
"""

from genericdp.core.reading.parse import parse_settings
from genericdp.core.rules.settings import Settings
from genericdp.errors import ConfigError
from genericdp.files.trust import is_absent, read_text

SETTINGS_FILE = "/etc/genericdp/genericdp.toml"


def read_settings(path: str | None) -> Settings:
    """The settings in a file; None: those in SETTINGS_FILE, unless it is absent. Raises ConfigError."""
    if path is None and is_absent(SETTINGS_FILE):
        return Settings()
    text = read_text(path or SETTINGS_FILE)
    if text is None:
        return Settings()
    settings, problems = parse_settings(path or SETTINGS_FILE, text)
    if problems:
        raise ConfigError(problems)
    return settings
