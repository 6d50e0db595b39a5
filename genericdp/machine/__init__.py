"""The devices of this machine: those that udev knows, and bare nodes, which it does not know.

Reading order:

    bare_nodes  the bare nodes below /dev that rules name or pods may hold
    node_watch  what happens to names below /dev
    devices     both kinds of devices together, and the hints about both

Does not belong here: what a bare node is, and which of them are refused (`core.bare_node`); what udev says of
its devices (`genericdp.udev`).
"""
