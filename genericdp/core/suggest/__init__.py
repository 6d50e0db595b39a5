"""Writing the smallest rule that matches exactly the devices that an operator points at.

Read `suggestion` first: it tries candidates from the best clue to the last resort, as text that the
parser reads, until one takes exactly these nodes. Then:

    units                 which device nodes the operator means, and what else their unit has
    clues                 what distinguishes them from all others, as conditions
    serials, fixed_names  which serial numbers, and what of the kernel's names, a rule can rely on
    present               which of the nodes that are there a match would take
    conditions, quoting,
    rule_text             conditions, and as TOML that reads back as the same values
    title, reasons        what the comments say: what the device is, why the rule is written so
    cautions              what a container could do to the host
    alternatives          what the operator may want instead
    starter, left_out     the file for everything that no rule matches yet, and what is not in it

Does not belong here: how a rule is read or matched. `reading` and `rules` do that, for suggestions too.
"""
