"""The kubelet's pods.

Pods are admitted, run and reported here. Read in this order:

* `node`               the pods of the node, which outlive the kubelet's process
* `workload`           admitting pods and running their containers
* `worker`, `back_off`   which of them is started when, and again
* `predicate`          the scheduler's check of resources, repeated at admission
* `container_config`   from the plugins' answers to the request to the container runtime
* `node_status`        capacity and allocatable as the API server gets them
* `pod_resources`, `rate_limit`   the PodResources API
* `container_runtime`  the container runtime's side of CRI: what runs, and stopping it

Which devices a container gets is decided in `devices/`, what the container finds in `runtimes/`.
"""
