"""`genericdp`, except that it forgets soon: for the soak, which waits until a node is as it was.

The rules of this file:

* Only waiting times differ: how long a kubelet takes to know its pods, how long an admission may take, how
  long until the kubelet is asked again, and how long devices are kept whose resource has left the rules.
* SIGUSR1 makes it say where its threads are (`peak`).
"""

import faulthandler
import signal
import sys

from genericdp import __main__ as program


def main() -> int:
    """Run the verb that the command line names; returns the exit status."""
    faulthandler.register(signal.SIGUSR1)
    program._leave_unused_modules_out()
    # As in the program, they have to be left out first.
    from genericdp import forgetting
    from genericdp.core.memory import held
    from genericdp.core.rules import resource
    from genericdp.core.status import holdings

    holdings.KUBELET_SETTLES_S, forgetting.ASK_AGAIN_S = 0.0, 1.0
    held.PODS_SETTLE_S = forgetting.ASK_AGAIN_SOON_S = 1.0
    resource.UNPLUG_GRACE_S = 1.0
    return program.main()


if __name__ == "__main__":
    sys.exit(main())
