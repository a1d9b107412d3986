"""The service manager of this system, and what to type for it: launchd on macOS, systemd's user manager elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path

UNIT = "reconstitute.service"
LABEL = "local.reconstitute"
"""The name of launchd's job."""


def has_launchd(platform: str = sys.platform) -> bool:
    """Whether services are launchd's."""
    return platform == "darwin"


def launchd_log() -> Path:
    """Where launchd writes what the service prints, because it has no journal."""
    return Path.home() / "Library" / "Logs" / "reconstitute.log"


def restart(platform: str = sys.platform) -> str:
    """The command that starts the service anew."""
    if has_launchd(platform):
        return f"launchctl kickstart -k gui/$(id -u)/{LABEL}"
    return "systemctl --user restart reconstitute"


def stop(platform: str = sys.platform) -> str:
    """The command that ends the service until the next login."""
    return f"launchctl bootout gui/$(id -u)/{LABEL}" if has_launchd(platform) else "systemctl --user stop reconstitute"


def log(platform: str = sys.platform) -> str:
    """The command that shows the last lines of its log."""
    if has_launchd(platform):
        return "tail -n 20 ~/Library/Logs/reconstitute.log"
    return f"journalctl --user --unit {UNIT} --lines 20"
