"""The decisions: values in, values out. The daemon and every verb decide here, so they agree.

    rule files ──parse──► rules ──match──┐
                                         ├──► claims ──► inventory ──► memory ──► allocate, prefer
    udev ──snapshots──► udev devices ────┘                    └──diff──► changes

Does not belong here: anything that reads or writes the machine. No I/O, no clock, no randomness, no logging;
a contract test checks this.
"""
