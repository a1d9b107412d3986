"""Pages name files such as .env and show nothing of what they hold; `show` and `restore` give them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon import config
from daemon.app.engine import Engine
from daemon.reconstitute.withheld import is_secret
from tests.support.secrets.outputs import Hashed
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import JsonStore, assistant, session, text, tool, user
from tests.unit.exclude.test_exclude_intake import SHOP, done


@pytest.mark.parametrize(("name", "expected"), [
    (".env", True), (".env.local", True), ("a/b/prod.env", True), ("x/server.pem", True), ("id_rsa", True),
    (".aws/credentials", True), (".npmrc", True), ("tls.key", True), (".env.example", False), (".env.sample", False),
    (".env.template", False), ("id_rsa.pub", False), ("src/credentials.ts", False), ("environment.py", False),
    ("credentials/list.py", False),
])  # fmt: skip
def test_a_name_tells_whether_a_file_holds_secrets(name: str, expected: bool) -> None:
    assert is_secret(f"/home/dev/{name}") is expected


def planted(root: Path) -> list[str]:
    """A session that writes, edits, reads and prints .env; the answer are words that stand only in its content."""
    store = JsonStore(root / "oc")
    store.session(session("ses_a", SHOP))
    store.message(user("msg_1", "ses_a"), text("prt_1", "msg_1", "ses_a", "set up the shop"))
    env, path = f"{SHOP}/.env", {"path": {"cwd": SHOP, "root": SHOP}}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("write", done({"filePath": env, "content": "PORT_NAME zyqone\n"})),
        ("edit", done({"filePath": env, "oldString": "zyqone", "newString": "zyqtwo"})),
        ("read", done({"filePath": env}, "<file>\n00001| PORT_NAME zyqthree\n</file>")),
        ("bash", done({"command": "cat .env | sort"}, "zyqfour")),
        ("bash", done({"command": "cat >> .env <<'E'\nzyqfive\nE"})),
        ("grep", done({"pattern": "PORT"}, f"Found 1\n{env}:\n  Line 1: zyqsix")),
        ("apply_patch", done({"patchText": "*** Begin Patch\n*** Add File: k/id_rsa\n+zyqseven\n*** End Patch"})),
        ("write", done({"filePath": f"{SHOP}/app.py", "content": "print('plumjam')\n"})),
        ("write", done({"filePath": f"{SHOP}/.env.example", "content": "PORT=plumpie\n"})),
    ]
    parts = [tool(f"prt_{n}", "msg_2", "ses_a", *call) for n, call in enumerate(calls, start=10)]
    store.message(assistant("msg_2", "ses_a", **path), *parts)
    return [f"zyq{number}" for number in ("one", "two", "three", "four", "five", "six", "seven")]


def opened(root: Path, **output: Any) -> PlainService:
    tables = {
        "opencode": {"data_dir": str(root / "oc")},
        "archive": {"dir": str(root / "archive")},
        "output": {"dir": str(root / "pages"), **output},
        "chat": {"provider": "none"},
    }
    return PlainService(Engine(msgspec.convert(tables, config.Config), embedder=lambda: (Hashed(), "a test")))


def pages(root: Path) -> str:
    return "\n".join(path.read_text() for path in (root / "pages").rglob("*.md"))


def test_pages_name_secret_files_and_show_nothing_of_them(tmp_path: Path) -> None:
    words = planted(tmp_path)
    with opened(tmp_path) as engine:
        engine.index(wait=True)
        engine.reconstitute(SHOP)
        written = pages(tmp_path)
        assert [word for word in words if word in written] == []
        assert "plumjam" in written
        assert "plumpie" in written
        assert "withheld" in (tmp_path / "pages" / SHOP.strip("/") / "README.md").read_text()
        page = (tmp_path / "pages" / SHOP.strip("/") / ".env.md").read_text()
        assert "its content is withheld from pages because of its name" in page
        content = base64.b64decode(engine.content(f"{SHOP}/.env")["contentBase64"])
        assert content.startswith(b"PORT_NAME zyqtwo")


def test_pages_show_them_when_the_setting_says_so(tmp_path: Path) -> None:
    words = planted(tmp_path)
    with opened(tmp_path, secret_files=True) as engine:
        engine.index(wait=True)
        engine.reconstitute(SHOP)
        assert [word for word in words if word not in pages(tmp_path)] == []


def test_a_change_of_the_setting_makes_the_pages_again(tmp_path: Path) -> None:
    planted(tmp_path)
    for shows in (True, False, True):
        with opened(tmp_path, secret_files=shows) as engine:
            engine.index(wait=True)
            engine.reconstitute(SHOP)
            assert ("zyqtwo" in pages(tmp_path)) is shows
