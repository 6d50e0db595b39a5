"""Siblings: nodes that nothing but their order tells apart, such as the ports of a card without numbers.

Reading order:

    numbers  which number each of the siblings at one spot has
    groups   which device nodes are siblings, and where they were before

Does not belong here: which ids siblings have (`past`).
"""
