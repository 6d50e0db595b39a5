"""Values of the core as an operator reads them: text for people, and JSON for programs.

Reading order:

    explanation   one device that is plugged in, and each resource's conditions
    absent        a device that is not plugged in, or a resource by its name
    container     what a container gets; explanations and dry runs share it
    inventory     what is offered, and what no rule matches
    dry_run       the node that `genericdp simulate` makes, and its pods

A file here is named after the value that it shows. What one verb alone shows in a few lines stays in
that verb's file.

Does not belong here: decisions, and reading the machine.
"""
