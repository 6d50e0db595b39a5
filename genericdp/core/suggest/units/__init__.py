"""What units consist of: which of their device nodes an operator means, and what else there is.

Reading order:

    siblings      which device nodes an operator means by one of them
    companions    what goes along with devices of a kind
    camera        the streams of a camera, and its sensors
    disks         the disks of a drive, and their partitions
    models        of which model a unit is
    purposes      what the parts of a unit are for
    firmware      USB devices whose ids change when a program loads their firmware
    targets       what a node leads to whose hardware is elsewhere

Does not belong here: how a rule tells these nodes from others.
"""
