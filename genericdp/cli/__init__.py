"""What an operator can type: one verb, one file. `main` has the table of them.

Does not belong here: decisions. A verb reads the machine, asks `core`, prints what it says.
"""
