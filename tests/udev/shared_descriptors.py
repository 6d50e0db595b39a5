"""`genericdp` under umockdev: its library expects that all threads share one table of descriptors."""

import sys

from genericdp.__main__ import main
from genericdp.udev import bounded

if __name__ == "__main__":
    bounded.keep_apart = lambda: None
    sys.exit(main())
