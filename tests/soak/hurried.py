"""`genericdp`, except that it forgets soon: for the soak, which waits until a node is as it was.

The rules of this file:

* Only waiting times differ: how long a kubelet takes to know its pods, how long until it is asked again, and
  how long devices are kept whose resource has left the rules.
"""

import sys

from genericdp import __main__ as program


def main() -> int:
    """Run the verb that the command line names; returns the exit status."""
    program._leave_unused_modules_out()
    # As in the program, they have to be left out first.
    from genericdp import forgetting
    from genericdp.core.rules import resource
    from genericdp.core.status import holdings

    holdings.KUBELET_SETTLES_S, forgetting.ASK_AGAIN_S = 0.0, 1.0
    resource.UNPLUG_GRACE_S = 1.0
    return program.main()


if __name__ == "__main__":
    sys.exit(main())
