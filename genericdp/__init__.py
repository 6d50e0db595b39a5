"""genericdp: a generic Kubernetes device plugin driven by udev properties."""

VERSION = "0.1.0"

#: The day of this version, for the manual pages.
RELEASED = "2026-11-21"
