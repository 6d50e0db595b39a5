"""Which running containers no longer have their device, so that stopping them gives it back.

Reading order:

    container  running containers, as their runtime tells them
    plugs      since when each device is plugged in or not, and whose containers were judged for it
    judge      which containers of a device to stop
    reset      whether a USB unit may be reset, or would be taken from one
    unknown    since when no runtime has the pods that hold devices

Does not belong here: asking and stopping (`genericdp.comeback`, `genericdp.cri`).
"""
