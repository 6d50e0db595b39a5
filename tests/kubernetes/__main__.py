"""`make test-chart`: renders manifests and chart, and compares with the renderings that are kept.

python -m tests.kubernetes --write, which is `make renderings`, writes those.
"""

import sys
import time
from itertools import chain

from tests.kubernetes.making import renderings
from tests.kubernetes.renderings import DIGEST, RENDERINGS, digest_of_sources


def main(arguments: list[str]) -> int:
    """Returns 0, or 1 if a rendering is not the one that is kept."""
    write = arguments == ["--write"]
    failed = 0
    made = set()
    began = before = time.monotonic()
    for name, text in chain(renderings(), [(DIGEST.name, digest_of_sources())]):
        path = RENDERINGS / name
        took_s, before = time.monotonic() - before, time.monotonic()
        made.add(name)
        same = path.exists() and path.read_text(encoding="utf-8") == text
        if write and not same:
            path.write_text(text, encoding="utf-8")
            print(f"written: {path.relative_to(RENDERINGS.parents[3])}")
        if not write:
            failed += not same
            print(f"{'ok' if same else 'DIFFERS':8} {took_s:5.1f} s  {name}")
    for path in RENDERINGS.iterdir():
        if path.name not in made:
            failed += not write
            print(f"{'removed:' if write else 'of nothing:'} {path.name}")
            if write:
                path.unlink()
    print(f"{len(made)} files in {time.monotonic() - began:.1f} s")
    if failed:
        print("run `make renderings`, look at the differences, and commit them")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
