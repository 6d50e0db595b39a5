"""The kubelet's gRPC APIs, declared in Python: device plugin, PodResources, plugin registration.

`messages` is the declaration language; each of the other files declares one API. A test compares them
with `proto/`. The simulator uses this folder and nothing else of `genericdp.kubelet`.
"""
