"""`make torture`: a long search with the model of a node, ended by a violation, which prints its steps.

python -m tests.torture [STEPS] [SEED]
"""

import logging
import random
import sys
import time

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from genericdp import forgetting
from genericdp.core.memory.saved import delay
from tests.torture.model import DONE, NodeMachine

STEPS = 20_000

#: Steps for each node, and nodes for each search; searches are repeated until STEPS is reached.
STEPS_OF_A_NODE = 60
NODES = 50


def main(steps: int, first_seed: int) -> None:
    """Search until `steps` steps are done."""
    logging.disable()  # a violation prints the steps that led to it
    delay.SAVE_WITHIN_S, forgetting.ASK_AGAIN_S, forgetting.ASK_AGAIN_SOON_S = 1e-6, 0.01, 0.01
    started = time.monotonic()
    number = first_seed
    while DONE["steps"] < steps:
        print(f"seed {number}: {DONE['steps']:6} steps, {time.monotonic() - started:4.0f} s", flush=True)
        search = settings(
            max_examples=NODES,
            stateful_step_count=STEPS_OF_A_NODE,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        run_state_machine_as_test(seed(number)(NodeMachine), settings=search)
        number += 1
    print(f"\n{DONE['steps']} steps in {time.monotonic() - started:.0f} s, no violation\n")
    for kind, count in sorted(DONE.items()):
        print(f"  {kind:<32} {count:6}")


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    main(numbers[0] if numbers else STEPS, numbers[1] if len(numbers) > 1 else random.randrange(10**6))  # noqa: S311
