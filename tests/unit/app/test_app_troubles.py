"""A trouble is announced when it begins, once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon.app.troubles import Announcer
from daemon.control.answers import Check
from daemon.doctor.rows import attention, broken

FULL, MODES = attention("free space", "<10 MB> left", "rm x"), attention("file modes", "open to others", "chmod")
SCRIPT = """#!/bin/sh
for word; do printf '%s\\n' "$word" >> "$SENT"; done
echo --- >> "$SENT"
"""


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """What the desktop was told so far."""
    (tmp_path / "notify-send").write_text(SCRIPT)
    (tmp_path / "notify-send").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SENT", str(tmp_path / "sent"))

    def read() -> list[str]:
        return (tmp_path / "sent").read_text().split("---\n")[:-1] if (tmp_path / "sent").exists() else []

    return read


def test_a_trouble_is_announced_once_until_it_was_away_for_long(
    sent: Callable[[], list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    now, rows = [0.0], list[Check]()
    announcer = Announcer(lambda: rows, notify=True, clock=lambda: now[0])

    def look(*current: Check) -> int:
        rows[:] = current
        now[0] += 60
        announcer.look()
        return len(sent())

    assert look() == 0
    assert look(FULL) == 1
    assert "free space: &lt;10 MB&gt; left" in sent()[0]
    assert look(attention("free space", "9 MB left", "rm x")) == 1  # the same in other figures
    assert look(FULL, MODES) == 2
    assert "file modes" in sent()[1]
    assert "free space" not in sent()[1]
    assert look(broken("free space", "none left", "rm x"), MODES) == 3  # it became worse
    assert look(MODES) == 3
    assert look(FULL, MODES) == 3  # it comes and goes
    now[0] += 3600
    assert look(FULL) == 4
    assert [record.msg["where"] for record in caplog.records if isinstance(record.msg, dict)].count("free space") == 3


def test_nothing_is_sent_unless_the_configuration_says_so(sent: Callable[[], list[str]]) -> None:
    Announcer(lambda: [FULL], notify=False).look()
    assert sent() == []


def test_a_desktop_that_is_not_there_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    Announcer(lambda: [FULL], notify=True).look()
    assert "no desktop notification" in caplog.text
