"""Siblings: nodes that nothing but their order tells apart, such as the ports of a card without numbers.

Reading order:

    homes    where siblings were before, at another port or at the same one
    unread   where one may be that cannot be read
    seats    which numbers those have that properties tell apart
    numbers  which number each of the siblings at one spot has
    groups   which device nodes are siblings

Does not belong here: which ids siblings have (`past`).
"""
