"""What pods got of a device: which unit a link was given for, and which parts came later.

Reading order:

    docks    the docks in which nodes are, also while the serial numbers of the docks cannot be read
    left     whether what a pod got has left its place, as far as property values tell
    links    whether a link was given for a unit, or for another one with its serial number; where links led
    modes    what a pod got under which link, and whether another unit is there now
    moves    where nodes are now that a device has lost
    units    units that are plugged in and may be what a pod got, with its device nodes or without
    parts    parts that have come to a device since a pod got it, and were not given to it
    shared   where shared nodes are or were that go along with devices
    ports    what is remembered at ports
    reasons  why a device must not be offered that a pod may hold as something else

Does not belong here: which ids pods hold (`held`), and what the CDI devices of answers mean (`answered`).
"""
