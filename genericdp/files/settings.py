"""The settings on disk, `genericdp.toml`."""

import os

from genericdp.core.reading.parse import parse_settings
from genericdp.core.rules.settings import Settings
from genericdp.errors import ConfigError
from genericdp.files.trust import read_text

SETTINGS_FILE = "/etc/genericdp/genericdp.toml"


def read_settings(path: str | None) -> Settings:
    """The settings in a file; None: those in SETTINGS_FILE, if it exists. Raises ConfigError."""
    if path is None and not os.path.exists(SETTINGS_FILE):
        return Settings()
    text = read_text(path or SETTINGS_FILE)
    if text is None:
        return Settings()
    settings, problems = parse_settings(path or SETTINGS_FILE, text)
    if problems:
        raise ConfigError(problems)
    return settings
