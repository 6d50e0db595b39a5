"""The daemon as the service manager sees it: alone on its node, READY, alive.

Reading order:

    standby     only one genericdp serves a node
    ready       when READY is sent: after a boot, once the devices are back
    watchdog    whether it still serves

Does not belong here: how the service manager is notified (`genericdp.systemd`).
"""
