"""The container runtimes: containerd or CRI-O, above runc or crun.

Read in this order:

* `runtime`              the settings of a runtime, the request for a container and its result
* `creation`             the steps of creating a container
* `containerd`, `crio`   from requested devices to those of the OCI spec
* `cdi`                  device names looked up in CDI spec files
* `cdi_spec`, `cdi_cache`   the spec files as the CDI library reads them, and when
* `runc`                 from the OCI spec to the nodes that a process finds
* `filesystem`, `oci`    what they share: host paths looked up as Go does it, a device of the OCI spec

Nothing here knows the kubelet or a plugin.
"""
