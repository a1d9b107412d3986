"""A small archive of one project for the tests of views: real records, a real engine, files that are not on the disk."""

from __future__ import annotations

from pathlib import Path

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from daemon import config
from daemon.app import OneShot
from tests.e2e.talk import Talk
from tests.support.stores.make_opencode import JsonStore

DAY = "2026-11-21"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)> \"'> \u202etxt"
"""Markup, an end of an attribute, and a mark that turns the direction of writing."""
SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0" + "K1l2M3n4O5p6Q7r8"


def engine_at(root: Path) -> OneShot:
    """The engine over the store in `root`."""
    tables = {
        "opencode": {"data_dir": str(root / "oc")},
        "archive": {"dir": str(root / "archive")},
        "output": {"dir": str(root / "pages")},
        "chat": {"provider": "none"},
    }
    return OneShot(msgspec.convert(tables, config.Config))


def in_one_loop(app: ASGIApp) -> ASGIApp:
    """`app` for a TestClient that is entered, so that what a request has begun goes on after it."""

    async def asked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        for name in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{name}.complete"})

    return asked


def talk_in(root: Path, name: str = "garden", title: str = "Garden") -> tuple[Talk, str]:
    """A session in a folder of `root`, and that folder's path."""
    folder = str(root / name)
    return Talk(JsonStore(root / "oc"), "ses_a", folder, title), folder
