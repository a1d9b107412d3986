"""``python -m daemon.cli``."""

from __future__ import annotations

import sys

from daemon.cli import main

if __name__ == "__main__":
    sys.exit(main())
