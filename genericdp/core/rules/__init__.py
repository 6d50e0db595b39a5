"""What a rule file can say, as values in which nothing can be wrong.

Read `resource` first: it is a `[[resource]]` table. It is made of these:

    match       conditions for udev devices
    pattern     what a condition wants of a value
    glob        globs, as regular expressions
    regex       regular expressions, matched in one pass; `expression` is their syntax
    grouping    which nodes form one device
    template    texts with `{fields}`
    name        the names of resources and udev properties
    node_names  which device nodes rules name, so that those are found that udev does not know
    pitfalls    what rules may say but hardly mean; `typos` is about names of udev properties

`settings` is `genericdp.toml`. The files of `genericdp.core.reading` with the same names read these values.

A new rule key: a field of a dataclass in `resource`, and its `Key` in `genericdp.core.reading.resource`.
A new matcher: a class in `match`, and its entry in MATCHERS of `genericdp.core.reading.match`.
CONTRIBUTING.md has a recipe for each.

Does not belong here: how these values are written in TOML.
"""
