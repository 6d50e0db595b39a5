"""The kubelet's side of plugins: how they register, what is heard from them, how they disconnect.

Read in this order:

* `registration`, `watcher`   the two ways to register: Register on kubelet.sock, a socket in plugins_registry
* `validation`     which resource names and API versions are accepted
* `lifecycle`      from registration to the end of the stream, with the effects on the ledger
* `client_table`   the decision which plugin of a resource is current, up to 1.36 and from 1.37
* `connection`     the gRPC connection to one plugin
* `dialling`       the path that is really dialled for the path of a socket
* `deadline`       calls with a deadline of the kubelet's own

What the kubelet does with the listed devices belongs into `devices/`.
"""
