"""The files on the host that genericdp reads and keeps: rule files, stable links, saved state.

Does not belong here: what the files mean. `genericdp.core` decides that.
"""
