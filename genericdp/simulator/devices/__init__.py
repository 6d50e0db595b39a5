"""The kubelet's device manager: which devices are listed, allocated and saved.

Read in this order:

* `resource`      the devices of one resource, as the plugin's last list has them
* `ledger`        all resources, and which container holds which device
* `allocation`    choosing devices for a container and asking the plugin for them
* `topology`      NUMA hints, and the topology manager's policy
* `checkpoint`    kubelet_internal_checkpoint, what outlives the process

How a plugin is reached belongs into `plugins/`, what happens to a pod into `node/`.
"""
