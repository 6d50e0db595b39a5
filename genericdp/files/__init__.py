"""The files on the host that genericdp reads and keeps.

    rulefiles   which rule files count, and which version of each is in force
    rulewatch   noticing that one may have changed
    settings    `genericdp.toml`
    trust       opening what only its owner can have put there
    links       the stable links in /dev/genericdp
    state       what must survive a restart

Does not belong here: what the files mean. `genericdp.core` decides that.
"""
