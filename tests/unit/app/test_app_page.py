"""The call that gives the front page of a folder.

It stores nothing on the disk, so that what is forgotten cannot come back by it, and keeps the page in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon import config
from daemon.app import OneShot
from daemon.archive import Archive
from daemon.control import calls
from daemon.reconstitute.pages import Renderer
from daemon.reconstitute.pages.destinations import LinkedPage
from tests.e2e.talk import PROJECT, Talk
from tests.support.stores.make_opencode import JsonStore

QUESTION = "Why are there tomatoes?"


def stored(archive: Archive) -> dict[str, Any]:
    return {name: archive.target_get(PROJECT, name) for name in archive.target_names(PROJECT)}


@contextmanager
def growing(tmp_path: Path, **tables: Any) -> Iterator[OneShot]:
    """A command's engine that has indexed one session."""
    talk = Talk(JsonStore(tmp_path / "oc"))
    talk.ask("The purpose of this project is to grow tomatoes, because the old beds were too wet.")
    talk.write(f"{PROJECT}/notes.md", "Notes\n")
    tables |= {
        "opencode": {"data_dir": str(tmp_path / "oc")},
        "archive": {"dir": str(tmp_path / "archive")},
        "output": {"dir": str(tmp_path / "pages")},
        "chat": {"provider": "none"},
    }
    with OneShot(msgspec.convert(tables, config.Config)) as engine:
        engine.call(calls.Index())
        yield engine


def test_a_page_with_questions_of_its_own_stores_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with growing(tmp_path, agent={"trajectories": 1}, targets=[{"path": PROJECT, "questions": [QUESTION]}]) as engine:
        for number in range(3):  # more than are kept of a target
            engine.archive.target_put(PROJECT, f"trajectory:{number:013d}:purpose", {"started": number})
        ground = engine.ground()
        monkeypatch.setattr(engine, "ground", lambda: ground | {"pending": {}})  # else no search is cached
        before = stored(engine.archive)
        cached: list[str] = []
        monkeypatch.setattr(Archive, "cache_put", lambda _, kind, *more: cached.append(kind))
        page = engine.call(calls.Page(PROJECT))
        assert QUESTION in page.text
        assert "grow tomatoes" in page.text
        assert (stored(engine.archive), cached) == (before, [])
        engine.call(calls.Reconstitute(PROJECT))
        assert "answers" in stored(engine.archive)


def test_a_page_is_made_anew_after_a_run_and_after_a_forgetting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Renderer] = []
    front = Renderer.front

    def noting(renderer: Renderer) -> LinkedPage:
        made.append(renderer)
        return front(renderer)

    monkeypatch.setattr(Renderer, "front", noting)
    with growing(tmp_path) as engine:
        ground = engine.ground()
        monkeypatch.setattr(engine, "ground", lambda: ground | {"pending": {}})
        counts = []

        def show() -> None:
            engine.call(calls.Page(PROJECT))
            counts.append(len(made))

        show()
        show()
        engine.call(calls.Reconstitute(PROJECT))
        assert len(made) == 1
        show()
        engine.call(calls.Forget("msg_a00001", confirmed=True))
        show()
        show()
    assert counts == [1, 1, 2, 3, 3]
