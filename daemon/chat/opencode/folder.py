"""Where our sessions on an OpenCode server live, and whose they are.

A folder of our own holds a project configuration for OpenCode: one agent without any tool, no snapshots, no compaction,
no second model for titles. The bare beginnings of a repository beside it keep OpenCode from reading the instructions
(AGENTS.md) of folders above. A session's title names the process it belongs to, so that what a killed process left can
be told from what a living one uses.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from daemon import processes
from daemon.filesystem.durable import Root
from daemon.records import OWN_MARK, OWN_SESSION_TITLE

AGENT = OWN_MARK
"""The agent that `prepare` configures; a prompt that names it gets no tools and nothing of OpenCode's own prompt."""

_PROMPT = "Follow the instructions below. You have no tools of your own: answer with text only."
_STEPS = 3
"""Model calls for one prompt at most; more than one only when a model calls a tool that it does not have."""

_SETTINGS = {
    "$schema": "https://opencode.ai/config.json",
    "share": "disabled",
    "snapshot": False,
    "lsp": False,
    "formatter": False,
    "compaction": {"auto": False, "prune": False},
    "permission": {"*": "deny"},
    "agent": {
        AGENT: {
            "description": "Answers questions for Reconstitute; has no tools",
            "mode": "primary",
            "prompt": _PROMPT,
            "steps": _STEPS,
            "permission": {"*": "deny"},
        },
        "title": {"disable": True},
        "summary": {"disable": True},
    },
}
_TITLE = re.compile(re.escape(OWN_SESSION_TITLE) + r" \S+ (?P<space>[0-9a-f]{8})-(?P<pid>\d+)-(?P<start>\d+)")


def default_directory() -> Path:
    """Our folder for such sessions: nothing in it is worth keeping."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(cache) if cache.startswith("/") else Path.home() / ".cache"
    return base / "reconstitute" / "opencode"


def prepare(directory: Path) -> None:
    """Make `directory` what the module says, mode 0700; one that is so already is not written to.

    Raises:
        OutputRefused: it cannot be made or written.
    """
    settings = json.dumps(_SETTINGS, indent=2).encode() + b"\n"
    with Root(directory) as root:
        if root.read("opencode.json") != settings:
            root.write("opencode.json", settings)
    with Root(directory / ".git") as root:
        for folder in ("objects", "refs"):
            root.mkdir(folder)
        if root.stat("HEAD") is None:
            root.write("HEAD", b"ref: refs/heads/main\n")


def title(label: str) -> str:
    """A new session's title: the marker, what it is for (one word), and this process."""
    return f"{OWN_SESSION_TITLE} {label} {processes.space()}-{os.getpid()}-{processes.started(os.getpid()) or 0}"


def is_left_behind(title_: str) -> bool | None:
    """Whether the process that made a session of this title is gone.

    None where that cannot be told: it ran elsewhere or before the last boot. False for titles that we did not make.
    """
    match = _TITLE.fullmatch(title_)
    if match is None:
        return False
    if match["space"] != processes.space() or not int(match["start"]):
        return None
    return processes.started(int(match["pid"])) != int(match["start"])
