"""What is plugged in and must wait, because it is or may be what a pod holds.

Reading order:

    other_ids   ids of what a pod holds under another one, because the rules were edited
    unread      devices whose serial number could not be read, so that they may be a pod's

Does not belong here: what a pod holds (`held`), and a device under its own id that may be another unit
(`renewal`).
"""
