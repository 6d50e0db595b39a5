"""The CDI spec files in the directory that the container runtime reads.

Reading order:

    specs   the files, which say what the names in answers by CDI mean
    upkeep  when they are written, restored and removed

Does not belong here: what the files say (`genericdp.core.cdi`).
"""
