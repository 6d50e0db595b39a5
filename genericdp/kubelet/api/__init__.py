"""The kubelet's gRPC APIs, declared in Python: device plugin, PodResources, plugin registration.

`messages` is the declaration language; the other files declare one API each. A test compares them
with `proto/`. The simulator uses this package and nothing else of `genericdp.kubelet`.
"""
