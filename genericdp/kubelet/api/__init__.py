"""The kubelet's gRPC APIs, declared in Python: device plugin, PodResources, plugin registration.

    messages            the declaration language
    deviceplugin        the device plugin API
    podresources        the PodResources API
    pluginregistration  the plugin watcher's API, which only the simulator speaks

A test compares the declarations with `proto/`. The simulator uses this folder and nothing else of
`genericdp.kubelet`.

Does not belong here: what a message means. `genericdp.kubelet` and the simulator know that.
"""
