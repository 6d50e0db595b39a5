"""The verbs: one file for each, named after it. `genericdp.cli.main` lists them.

Reading order, from the smallest:

    schema, check            what rule files and settings can hold; the mistakes in them
    list, explain, suggest   one look at the machine
    run                      the daemon
    probe, status, monitor   what the daemon answers
    simulate                 the daemon with a simulated kubelet
    complete                 the candidates for a shell's completion

A verb imports no other verb. What several share is in `genericdp.cli`; CONTRIBUTING.md has a recipe for a
new one.

Does not belong here: decisions.
"""
