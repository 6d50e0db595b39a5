"""genericdp: a generic Kubernetes device plugin driven by udev properties."""

VERSION = "0.1.0"
