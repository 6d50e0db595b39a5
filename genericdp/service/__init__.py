"""The daemon as its service manager sees it, systemd or the kubelet: alone on its node, READY, alive.

Reading order:

    mounts      what a pod lacks of its host
    dead_mount  what a pod has mounted was deleted on its host
    threads     whether threads can be started at all, which gRPC needs
    flock       the lock in a directory, which one genericdp has
    standby     only one genericdp serves a node
    directories an edit of the settings that waits until no pod holds a device
    ready       when READY is sent: after a boot, once the devices are back
    presence    which devices were Healthy when the machine went down
    reloading   when the rule files are read again, and what they say is kept
    again       what is tried again, and that an error of the system does not end it
    watchdog    whether it still serves
    heap        memory that nothing uses any more is given back

Does not belong here: how the service manager is notified (`genericdp.systemd`).
"""
