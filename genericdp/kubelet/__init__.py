"""Everything that talks to the kubelet.

Reading order:

    api           the messages and services of its gRPC APIs
    endpoints     the names of the plugins' sockets, and removal of stale ones
    socketfile    the file of a socket, and whether it is still the same one
    socket        kubelet.sock: does a kubelet listen, and which one?
    streams       who follows the list of a plugin, and which of them is the kubelet
    requests      which requests are too large to be answered; who sent them
    responses     values of the core as messages
    deadline      how long a call to the kubelet, and a turn in the event loop, may take
    settling      answers that wait until it is saved who has what
    plugin        one resource as a DevicePlugin service
    registration  the life of one resource's registration; read `serve` from top to bottom
    plugins       the plugins and registrations of all resources
    podresources  which containers hold which devices
    pieces        a JSON document that is decoded piece by piece
    checkpoint    the same as the kubelet saved it, with init containers

Does not belong here: which devices exist and what a container gets. `core` decides that.
"""
