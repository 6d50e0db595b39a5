"""`make fuzz`: attacks the program with inputs from hypothesis for a given time.

python -m tests.fuzz [--minutes 5] [--seed N] [TARGET …]

The rules of this file:

* The targets share the time. One that is broken rests, so that the others have it.
* A batch of inputs follows from its seed alone. What broke a target is tried again first in the next run.
"""

import argparse
import logging
import os
import random
import sys
import time
import traceback
from collections.abc import Sequence

from hypothesis.database import DirectoryBasedExampleDatabase

from tests.fuzz.target import OutOfTimeError, Tally, Target, search
from tests.fuzz.targets import TARGETS

#: How many inputs belong to one seed.
BATCH = 100

#: How often progress is printed, in seconds.
TELL_S = 60.0

_DATABASE = os.environ.get("HYPOTHESIS_STORAGE_DIRECTORY", ".cache/hypothesis")


def main(targets: Sequence[Target], minutes: float, first_seed: int) -> int:
    """Attack until the time is over. Returns 1 if something broke."""
    logging.disable()  # what a daemon logs about an attack would hide what broke
    until = time.monotonic() + minutes * 60
    tallies = {target.name: Tally() for target in targets}
    seeds = {target.name: first_seed for target in targets}
    print(f"seed {first_seed}, {minutes:g} minutes", flush=True)
    told = time.monotonic()
    while time.monotonic() < until:
        if time.monotonic() - told > TELL_S:
            told = time.monotonic()
            total = sum(tally.inputs for tally in tallies.values())
            print(f"{(until - told) / 60:.0f} minutes left, {total:,} inputs", flush=True)
        sound = [target for target in targets if not tallies[target.name].failure]
        if not sound:
            break
        target = min(sound, key=lambda each: tallies[each.name].seconds)
        began = time.monotonic()
        _attack(target, tallies[target.name], seeds[target.name], until)
        tallies[target.name].seconds += time.monotonic() - began
        seeds[target.name] += 1
    _show(targets, tallies)
    return 1 if any(tally.failure for tally in tallies.values()) else 0


def _attack(target: Target, tally: Tally, seed: int, until: float) -> None:
    """One batch. What breaks is printed and noted in the tally."""
    database = DirectoryBasedExampleDatabase(_DATABASE)
    try:
        search(target, tally, inputs=BATCH, seed=seed, until=until, database=database)
    except OutOfTimeError:
        pass
    except Exception as error:  # noqa: BLE001  (whatever it is, it is what was looked for)
        tally.failure = f"{type(error).__name__}: {error}".partition("\n")[0]
        print(f"\n{target.name} broke\n")
        traceback.print_exception(error)
        print(
            f"\nto see it again: make fuzz TARGETS={target.name} SEED={seed}, "
            f"or without SEED as long as '{_DATABASE}' is there\n",
            flush=True,
        )


def _show(targets: Sequence[Target], tallies: dict[str, Tally]) -> None:
    print(f"\n{'target':<12} {'inputs':>8} {'inputs/s':>9} {'slowest':>9}")
    for target in targets:
        tally = tallies[target.name]
        rate = tally.inputs / tally.seconds if tally.seconds else 0.0
        print(f"{target.name:<12} {tally.inputs:>8,} {rate:>9.1f} {tally.slowest_s:>7.2f} s  {target.what}")
        if tally.failure:
            print(f"{'':<12} BROKE: {tally.failure}")
    broken = sum(bool(tally.failure) for tally in tallies.values())
    total = sum(tally.inputs for tally in tallies.values())
    print(f"\n{total:,} inputs, {broken} of {len(targets)} targets broke")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))  # noqa: S311
    names = [target.name for target in TARGETS]
    parser.add_argument("targets", metavar="TARGET", nargs="*", help=f"all without one: {', '.join(names)}")
    arguments = parser.parse_args()
    for name in {*arguments.targets} - {*names}:
        parser.error(f"no target {name!r}; the targets are {', '.join(names)}")
    return arguments


if __name__ == "__main__":
    asked = _arguments()
    wanted = [each for each in TARGETS if not asked.targets or each.name in asked.targets]
    sys.exit(main(wanted, asked.minutes, asked.seed))
