"""How ids and links are named: what an id may look like, and which links the nodes of a device have.

Reading order:

    ids     what an id may look like
    links   the names of the links of a group

Does not belong here: how an id is made of an identity (`identity`), and for what pods got links
(`genericdp.core.memory.given`).
"""
