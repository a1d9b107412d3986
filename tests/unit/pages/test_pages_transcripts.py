"""Where sessions have their pages: names, anchors, and what goes first when not all fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from daemon.model import Session
from daemon.reconstitute.answer import EMPTY_RECORD
from daemon.reconstitute.facts.session_values import Citation, Ending, SessionFacts, Turn
from daemon.reconstitute.facts.values import Facts, OpenKind, OpenPoint
from daemon.reconstitute.pages.layout import MOST_WEIGHT, Transcripts, cited_sessions, divided, slug
from daemon.reconstitute.pages.plan import Plan

NOON = 1_795_262_400_000  # 21 Nov 2026, 12:00 UTC
DAY = 86_400_000


def facts(
    title: str, session_id: str = "s", created: int = NOON, messages: int = 2, prompt: str = "", sizes: int = 100
) -> SessionFacts:
    """A session of turns of two messages each."""
    ids = tuple(f"{session_id}-{number}" for number in range(messages))
    turns = tuple(
        Turn(ids[at], created, created, prompt, Ending.ANSWERED, ids[at : at + 2]) for at in range(0, messages, 2)
    )
    session = Session(session_id, "p", "/home/me", title, created, created, b"{}")
    return SessionFacts(session, title, turns, ids, sizes=(sizes,) * messages)


def paths(*sessions: SessionFacts) -> list[str]:
    return [chapter.path for chapter in divided(sessions)]


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Build the API", "build-the-api"),
        ("Übersicht: plan & Ende!", "übersicht-plan-ende"),
        ("修复登录", "修复登录"),
        ("إصلاح الخادم", "إصلاح-الخادم"),
        ("नमस्ते दुनिया", "नमस्ते-दुनिया"),
        ("../../etc/passwd", "etc-passwd"),
        (".reconstitute.json", "reconstitute-json"),
        ('a"><img src=x>](b)\\`|#^[[c]]', "a-img-src-x-b-c"),
        ("a\x00b\u202ec\ud800d", "a-b-c-d"),
        ("word " * 40, "word-word-word-word-word-word-word-word-word"),
        ("x" * 300, "x" * 48),
        ("---", ""),
    ],
)
def test_slugs(title: str, expected: str) -> None:
    assert slug(title) == expected


@pytest.mark.parametrize(
    "title", ["", "  ", "New session - 2026-11-21T03:41:22.123Z", "Child session - 2026-11-21T03:41:22Z"]
)
def test_an_untitled_session_is_named_by_its_first_prompt(title: str) -> None:
    assert paths(facts(title, prompt="Add a\nMakefile")) == ["sessions/2026-11-21-add-a-makefile.md"]
    assert paths(facts(title)) == ["sessions/2026-11-21-session.md"]


@pytest.mark.parametrize("created", [0, -1, 1 << 62])
def test_a_session_without_a_time_has_a_page(created: int) -> None:
    assert paths(facts("A", created=created)) == ["sessions/undated-a.md"]


def test_a_secret_in_a_title_is_in_no_name() -> None:
    assert "ghp" not in paths(facts("token ghp_abcdefghijklmnopqrstuvwxyz0123456789"))[0]


def test_the_younger_of_two_alike_gets_a_number() -> None:
    old, new = facts("Fix it", "z"), facts("fix IT", "a", NOON + 1)
    assert [(chapter.facts.id, chapter.path) for chapter in divided([new, old])] == [
        ("z", "sessions/2026-11-21-fix-it.md"),
        ("a", "sessions/2026-11-21-fix-it-2.md"),
    ]


def test_later_sessions_and_messages_move_nothing() -> None:
    first = facts("A", messages=40, sizes=MOST_WEIGHT // 10)
    more = facts("A", messages=44, sizes=MOST_WEIGHT // 10)
    before, after = divided([first]), divided([more, facts("A", "t", NOON + 1)])
    places = {message: (chapter.path, number) for chapter in after for message, number in chapter.messages.items()}
    for chapter in before:
        assert all(places[message] == (chapter.path, number) for message, number in chapter.messages.items())


def test_a_long_session_is_divided_between_turns() -> None:
    chapters = divided([facts("A", messages=40, sizes=MOST_WEIGHT // 10)])
    assert [chapter.path for chapter in chapters] == [
        "sessions/2026-11-21-a.md",
        *(f"sessions/2026-11-21-a-page-{number}.md" for number in (2, 3, 4)),
    ]
    assert [len(chapter.messages) for chapter in chapters] == [10, 10, 10, 10]
    assert [number for chapter in chapters for number in chapter.messages.values()] == list(range(1, 41))


def test_a_turn_too_long_for_a_page_is_divided_between_messages() -> None:
    one = facts("A", messages=6, sizes=MOST_WEIGHT // 2)
    turn = replace(one.turns[0], message_ids=one.message_ids)
    assert [len(chapter.messages) for chapter in divided([replace(one, turns=(turn,))])] == [2, 2, 2]


def test_hrefs_lead_to_the_message_on_its_page() -> None:
    made = Transcripts([facts("Ü", "s", messages=40, sizes=MOST_WEIGHT // 10), facts("B", "t")])
    assert made.href("README.md", "s") == "sessions/2026-11-21-%C3%BC.md"
    assert made.href("src/app.py.md", "s", "s-39") == "../sessions/2026-11-21-%C3%BC-page-4.md#msg-40"
    assert made.href("sessions/2026-11-21-b.md", "t", "t-1") == "#msg-02"
    assert made.href("README.md", "s", "of another session") == "sessions/2026-11-21-%C3%BC.md"
    assert made.href("README.md", "unknown", "s-1") == ""


def test_a_partial_session_keeps_the_numbers_of_the_whole() -> None:
    part = replace(facts("A"), numbers=(7, 8), is_whole=False)
    assert Transcripts([part]).href("README.md", "s", "s-1") == "sessions/2026-11-21-a.md#msg-08"


def test_session_pages_win_names_over_files_of_the_project() -> None:
    files = {"sessions/2026-11-21-a": 0, "sessions/notes": 0, "README": 0}
    plan = Plan(files, lambda _: True, 100, [facts("A")])
    assert plan.transcripts.href("README.md", "s") == "sessions/2026-11-21-a.md"
    assert plan.layout.file("sessions/2026-11-21-a") == "sessions/2026-11-21-a-2.md"
    every = [*map(plan.layout.file, files), *map(plan.layout.folder, plan.layout.folders), *plan.layout.sessions]
    assert len({path.casefold() for path in every}) == len(every)


@pytest.mark.parametrize(
    ("most", "sessions", "files"), [(1, 0, 0), (3, 1, 1), (11, 5, 5), (16, 5, 10), (1000, 5, 100), (60, 5, 54)]
)
def test_sessions_leave_files_half_the_room(most: int, sessions: int, files: int) -> None:
    names = {f"f{number:03}": 0 for number in range(100)}
    plan = Plan(names, lambda _: True, most, [facts("A", f"s{n}", NOON + n * DAY) for n in range(5)])
    assert (len(plan.transcripts.chapters), len(plan.files)) == (sessions, files)


def test_cited_and_then_newest_sessions_go_first() -> None:
    every = [facts(f"S{n}", f"s{n}", NOON + n * DAY) for n in range(5)]
    point = OpenPoint(OpenKind.TODO, "x", NOON, Citation("s1", "s1-0", NOON))
    plan = Plan({}, lambda _: True, 3, every, cited_sessions(Facts(tuple(every), open=(point,)), EMPTY_RECORD))
    assert [PurePosixPath(chapter.path).stem[11:] for chapter in plan.transcripts.chapters] == ["s1", "s4"]
