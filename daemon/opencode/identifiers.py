"""What an OpenCode id tells; its clock is in daemon.opencode_ids, where transcript can reach it too."""

from __future__ import annotations

from daemon.opencode_ids import time_of

__all__ = ["time_of"]
