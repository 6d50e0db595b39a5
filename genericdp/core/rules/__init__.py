"""What a rule file can say, as values in which nothing can be wrong.

`resource` is a `[[resource]]` table, `match`, `pattern` and `template` are what it is made of, `settings`
is `genericdp.toml`. The files of `genericdp.core.reading` have the same names: each reads its namesake.

Does not belong here: how these values are written in TOML.
"""
