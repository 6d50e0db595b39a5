"""The container runtime, over the Container Runtime Interface (CRI): the only door to it.

Reading order:

    api         the messages and calls
    sockets     where runtimes listen
    runtime     asks for pods and containers, stops these
    choice      which of several runtimes is the kubelet's
    connection  loads that when it is needed, and lets all stops share a connection
    cdi         whether the runtime reads CDI
    lookout     whether the runtime can be asked, and is the kubelet's, before it has to be
    comeback    stops the containers that no longer have their device

A test compares the messages with `proto/runtime`. The simulator's runtimes serve these calls.

Does not belong here: which container to stop, and when. `core.comeback` decides that.
"""
