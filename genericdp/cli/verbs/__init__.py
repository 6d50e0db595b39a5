"""The verbs: one file for each, named after it. `genericdp.cli.main` lists them.

Does not belong here: decisions, and what several verbs share. A verb reads the machine, asks `core`
and prints the answer.
"""
