"""Which running containers no longer have their device, so that stopping them gives it back.

Reading order:

    container  running containers, as their runtime tells them

Does not belong here: asking and stopping (`genericdp.comeback`, `genericdp.cri`).
"""
