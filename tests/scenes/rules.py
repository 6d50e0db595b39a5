"""Texts of rule files that several tests use, and the names of their resources."""

DOMAIN = "example.com"
FTDI = f"{DOMAIN}/ftdi"
MODEM = f"{DOMAIN}/modem"

#: Takes `a_usb_serial()`.
FTDI_RULE = """
[[resource]]
name = "ftdi"
match = { SUBSYSTEM = "tty", usb = { vendor = "0403" } }
container_path = "/dev/serial{index}"
"""

#: Takes `a_modem()`. What is appended belongs to its QMI node.
MODEM_RULE = """
[[resource]]
name = "modem"
match = { usb = { vendor = "2c7c" } }
group_by = "usb_device"
[[resource.node]]
match = { SUBSYSTEM = "tty", usb = { interface = "02" } }
container_path = "/dev/modem-at"
[[resource.node]]
match = { SUBSYSTEM = "usbmisc" }
container_path = "/dev/modem-qmi"
"""

#: Takes two adapters, at the ports 1 and 2, for one device that containers follow.
KIT = f"{DOMAIN}/kit"
KIT_RULE = """
[[resource]]
name = "kit"
match = { SUBSYSTEM = "tty" }
group_by = "all"
on_unplug = "stop"
on_replug = "restart"

[[resource.node]]
match.usb = { port = "1" }

[[resource.node]]
match.usb = { port = "2" }
"""
