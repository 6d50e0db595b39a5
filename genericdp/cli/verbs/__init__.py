"""The verbs: one file for each, named after it. `genericdp.cli.main` lists them.

A verb imports no other verb. What several share is in `genericdp.cli`; CONTRIBUTING.md has a recipe for a
new one.

Does not belong here: decisions.
"""
