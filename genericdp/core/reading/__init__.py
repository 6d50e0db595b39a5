"""How rule files and settings are read: from TOML to the values of `genericdp.core.rules`.

Read `parse` first: it takes the text of a file and returns values and problems. Then, from the top down:

    resource, settings          the tables of a file and their keys, declared once
    match                       the conditions of a `match = {…}`
    name, pattern, template     what one value becomes; each reads its namesake in `rules`
    scalars                     texts, numbers, durations, paths
    table, kind                 the keys of a table; a reader with the JSON Schema of what it accepts
    toml, source, positions     from text to values with their places, and the mistakes in them
    schema                      the same declarations as JSON Schema; the daemon does not load it

Every mistake becomes a `Problem` with file, line, column and a hint. One run finds all mistakes of a file.

A new rule key: a `Key` in `resource`, and the field where it arrives in `genericdp.core.rules.resource`.
A new matcher: an entry in `match.MATCHERS`, and its class in `genericdp.core.rules.match`.
CONTRIBUTING.md has a recipe for each.

Does not belong here: opening files. `genericdp.files` does that.
"""
