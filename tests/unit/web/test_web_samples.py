"""Sessions and files of the sample archives, as a browser reads them: whole, in order, and inert."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from starlette.testclient import TestClient

from daemon import config
from daemon.app import OneShot
from daemon.control import calls
from daemon.control.calls import Service
from daemon.web.site import url
from tests.conftest import Sample
from tests.unit.web.markup import Markup
from tests.unit.web.test_web_session import HTMX, numbers


@pytest.fixture
def engine(any_sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OneShot]:
    tables = {"opencode": {"data_dir": str(any_sample.data_dir)}, "archive": {"dir": str(tmp_path / "a")}}
    with OneShot(msgspec.convert(tables, config.Config)) as opened:
        opened.call(calls.Files())
        monkeypatch.setattr(opened, "current", lambda _progress: [])  # nothing changes any more
        yield opened


def read(browser: TestClient, address: str) -> Markup:
    answer = browser.get(address, headers=HTMX if "/messages?" in address or "/lines?" in address else None)
    assert answer.status_code == 200, (address, answer.text)
    return Markup(answer.text)


def test_every_message_of_every_session_is_read(engine: OneShot, visit: Callable[[Service], TestClient]) -> None:
    browser, archive = visit(engine), engine.archive
    sessions = [session.id for session in archive.sessions()]
    assert len(sessions) >= 3
    changed = 0
    for session_id in sessions:
        pages = [read(browser, url("session", session_id))]
        waiting = [
            place for place in pages[0].attributes("hx-get") if place.startswith(url("session", session_id, "messages"))
        ]
        pages += [read(browser, address) for address in waiting]
        assert [number for page in pages for number in numbers(page)] == list(
            range(len(archive.message_ids(session_id)))
        )
        assert [danger for page in pages for danger in page.dangers()] == []
        changed += sum(page.attributes("data-change").count("") for page in pages)
    assert changed >= 3


def test_states_of_files_are_read(engine: OneShot, visit: Callable[[Service], TestClient]) -> None:
    """Of every fifth file the first states."""
    browser = visit(engine)
    paths = [row.path for row in engine.recorded.rows("/") if not row.note.startswith("a folder")][::5]
    assert len(paths) >= 3
    for path in paths:
        page = read(browser, url("file", path=path))
        assert page.dangers() == []
        for address in page.links("/file?path=")[:3]:
            state = browser.get(address, headers=HTMX)
            assert (state.status_code, Markup(state.text).dangers()) == (200, [])


def test_lines_are_those_of_the_content(engine: OneShot) -> None:
    """Of files of which the whole content is known, and no line of it is redacted."""
    compared = 0
    for row in engine.recorded.rows("/")[::3]:
        lines = engine.call(calls.Lines(row.path, count=5000))
        latest = engine.recorded.history(row.path).latest
        if lines.note or latest is None or latest.content is None or lines.redacted:
            continue
        assert lines.lines == [
            line if len(line) <= 2000 else line[:2000] for line in latest.content.decode().splitlines()
        ]
        assert len(lines.by) == len(lines.lines)
        compared += 1
    assert compared >= 3
