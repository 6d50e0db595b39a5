"""Siblings: nodes that nothing but their order tells apart, such as the ports of a card without numbers.

Reading order:

    former   other spots where siblings may have been before
    homes    where they were before
    unread   where one may be that cannot be read
    doubtful what is remembered of siblings in doubt
    seats    which numbers those have that properties tell apart
    numbers  which number each of the siblings at one spot has
    groups   which device nodes are siblings

Does not belong here: which ids siblings have (`past`).
"""
