"""The files on the host that genericdp reads and keeps.

Reading order:

    rulefiles     which rule files count, and which version of each is in effect
    overlooked    files beside them that define nothing, perhaps by mistake
    rulewatch     noticing that one may have changed
    settings      `genericdp.toml`
    trust         opening only what nobody but its owner can have put there
    mountinfo     on which mount an open file is, which that depends on
    links         the stable links in /dev/genericdp
    link_upkeep   when they are repaired, and what is logged about them
    cdi           the CDI spec files, and when they are written
    kept_directory  the directories of both: open at all times, without what a killed program left
    whole_file    a file that is written whole and read whole
    directories   which directories are in force while pods hold devices
    state         what must survive a restart
    saving        when it is written
    last_good     what each rule file said before it had a mistake, for the next start

Does not belong here: what the files mean. `genericdp.core` decides that.
"""
