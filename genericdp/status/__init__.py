"""The sockets on which the daemon answers `genericdp status`, `monitor` and `probe`, and Prometheus.

Reading order:

    recorder   what happens: logged, counted, announced as an event
    answers    opens the sockets; loads what an answer needs when a client asks
    subject    the parts of the daemon that they show
    pages      the answers themselves; loaded when somebody asks
    lasting    what is made once for many who ask
    control    the control socket, for `status`, `monitor` and `probe`
    broadcast  the events on their way to the clients that follow them
    exporter   metrics and probes over HTTP
    listener   one socket, for all of them
    protocol   what the control socket and its client agree on
    client     how the verbs ask

Does not belong here: the contents of the answers. `core.status` decides them.
"""
