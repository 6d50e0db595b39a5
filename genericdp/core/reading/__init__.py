"""How rule files and settings are read: from TOML to the values of `genericdp.core.rules`.

A file here reads what the file of the same name in `rules` defines. Every mistake becomes a `Problem`
with file, line, column and a hint; all mistakes of a file are found in one run.

Does not belong here: opening files. `genericdp.files` does that.
"""
