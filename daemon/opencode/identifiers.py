"""What an OpenCode id tells; its clock is in daemon.identifiers, where transcript can reach it too."""

from __future__ import annotations

from daemon.identifiers import time_of

__all__ = ["time_of"]
