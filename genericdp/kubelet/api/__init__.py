"""The kubelet's gRPC APIs, declared in Python: device plugin, PodResources, plugin registration.

Reading order:

    deviceplugin         the device plugin API
    podresources         the PodResources API
    pluginregistration   the API of the plugin watcher

A test compares them with `proto/`. The simulator uses this folder and nothing else of `genericdp.kubelet`.

Does not belong here: behaviour. Servers and clients are in `genericdp.kubelet` and in the simulator.
"""
