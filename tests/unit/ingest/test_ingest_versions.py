"""Which version of a message is current when it changes, or comes from several sources, in whatever order they are read."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon import records
from daemon.archive import Archive
from daemon.ingest.versions import Origin, combine
from daemon.model import Message, Parts
from daemon.opencode import Source
from daemon.opencode.connection import Connection
from daemon.opencode.database import Database as DatabaseSource
from daemon.opencode.database_v2 import Database2 as Database2Source
from daemon.opencode.json_tree import JsonTree
from tests.support.examples import examples
from tests.support.stores.intake import intake_of
from tests.support.stores.make_opencode import T0, Database, JsonStore, assistant, session, text, tool, user
from tests.support.stores.make_opencode_v2 import Session2, make_v2
from tests.support.stores.make_opencode_v2 import assistant as assistant2
from tests.support.stores.make_opencode_v2 import text as text2

LONG, SHORT = "the long first wording of it", "short now"


def read(archive: Archive, *sources: Source) -> None:
    intake = intake_of(archive, quiet_s=0.0, free_mb=1)
    for source in sources:
        intake.scan(source)


def texts(archive: Archive, message_id: str = "msg_1") -> list[str]:
    message = archive.message(message_id)
    assert message is not None
    return [part.data["text"] for part in message.parts if part.type == "text"]


@pytest.mark.parametrize("updated", [None, T0 + 3], ids=["later", "same-millisecond"])
def test_a_text_that_a_database_shortened_is_current_and_the_old_one_kept(tmp_path: Path, updated: int | None) -> None:
    database = Database(tmp_path / "opencode.db")
    database.session(session("ses_1"))
    database.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", LONG), updated=updated)
    source = DatabaseSource(Connection(database.path))
    with Archive(tmp_path / "archive", clock=lambda: T0) as archive:
        read(archive, source)
        database.part(text("prt_1", "msg_1", "ses_1", SHORT), updated=updated and updated + 1)
        read(archive, source)
        assert texts(archive) == [SHORT]
        assert [LONG.encode() in raw for raw in archive.versions("msg_1")] == [True]
        database.part(text("prt_1", "msg_1", "ses_1", LONG))  # and back again
        read(archive, source)
        assert texts(archive) == [LONG]
        assert [SHORT.encode() in raw for raw in archive.versions("msg_1")] == [True]
    source.close()
    database.close()


def test_a_text_that_a_file_shortened_is_current_and_a_blanked_one_is_not(tmp_path: Path) -> None:
    store = JsonStore(tmp_path)
    store.session(session("ses_1"))
    store.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", LONG))
    with Archive(tmp_path / "archive") as archive:
        for content, current in ((LONG, LONG), (SHORT, SHORT), ("", SHORT), ("s", "s")):
            store.part(text("prt_1", "msg_1", "ses_1", content))
            read(archive, JsonTree(store.storage))
            assert texts(archive) == [current]


def test_a_message_record_lost_by_a_revert_keeps_what_it_said(tmp_path: Path) -> None:
    store = JsonStore(tmp_path)
    store.session(session("ses_1"))
    name = "msg_1fc13507f001aaaaaaaaaaaaaa"
    store.message(user(name, "ses_1", agent="plan"), text("prt_1", name, "ses_1", LONG))
    tree = JsonTree(store.storage)
    with Archive(tmp_path / "archive") as archive:
        read(archive, tree)
        store.drop_message("ses_1", name)
        read(archive, tree)
        message = archive.message(name)
        assert message is not None
        assert message.data.get("agent") == "plan"
        assert archive.is_deleted(name)


def json_copy(root: Path, content: str, **head: Any) -> Source:
    store = JsonStore(root / "json")
    store.session(session("ses_1", title="The title"))
    ids = ("msg_1", "ses_1")
    store.message(assistant("msg_1", "ses_1", **head), text("prt_1", *ids, content), text("prt_2", *ids, "only here"))
    for path in store.storage.rglob("*.json"):
        os.utime(path, (2e9, 2e9))  # a copied tree looks newer than every row
    return JsonTree(store.storage)


def row_copy(root: Path, content: str, name: str = "opencode.db", updated: int = T0 + 5, title: str = "Rows") -> Source:
    database = Database(root / name)
    database.session(session("ses_1", title=title))
    database.message(assistant("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", content), updated=updated)
    database.close()
    return DatabaseSource(Connection(database.path))


def v2_copy(root: Path, content: str) -> Source:
    row = assistant2("msg_1", [text2(content)])
    make_v2(root / "v2.db", [Session2("ses_1", [row], [], in_old=False)])
    return Database2Source(Connection(root / "v2.db"))


SETS: dict[str, tuple[Callable[[Path], Sequence[Source]], str, str]] = {
    "migrated, then shortened": (lambda p: [json_copy(p, LONG), row_copy(p, SHORT)], SHORT, "Rows"),
    "migrated, then blanked": (lambda p: [json_copy(p, LONG), row_copy(p, "", title="")], LONG, "The title"),
    "a backup beside the database": (
        lambda p: [row_copy(p, LONG, "opencode-old.db", T0 + 5), row_copy(p, SHORT, updated=T0 + 9)], SHORT, "Rows",
    ),
    "a copy that went on": (
        lambda p: [row_copy(p, SHORT, "opencode-x.db", T0 + 9), row_copy(p, LONG, updated=T0 + 5)], SHORT, "Rows",
    ),
    "OpenCode 2 says less": (lambda p: [row_copy(p, LONG), v2_copy(p, "the long first")], "the long first", ""),
    "all three": (lambda p: [json_copy(p, LONG), row_copy(p, SHORT), v2_copy(p, "newest")], "newest", ""),
}  # fmt: skip


@pytest.mark.parametrize("is_large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("name", SETS)
def test_the_order_in_which_sources_are_read_makes_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_large: bool
) -> None:
    if is_large:  # every message is one whose parts are loaded one by one
        monkeypatch.setattr("daemon.opencode.shared.LARGE", 1)
        monkeypatch.setattr("daemon.archive.session_records.LARGE", 1)
    make, current, title = SETS[name]
    sources = make(tmp_path)
    found = []
    for number, order in enumerate(itertools.permutations(sources)):
        with Archive(tmp_path / f"archive{number}") as archive:
            read(archive, *order)
            read(archive, *reversed(order))
            message, state, kept = archive.message("msg_1"), archive.state("msg_1"), archive.session("ses_1")
            assert message is not None
            assert state is not None
            assert kept is not None
            assert texts(archive)[0] == current
            everything = [message.raw, *(part.raw for part in message.parts), *archive.versions("msg_1")]
            assert any(LONG.encode() in raw for raw in everything)
            if title:
                assert kept.title == title
            assert isinstance(message.parts, Parts) == is_large
            origins = {name: origin[:2] for name, origin in (state["origins"].get("others") or {}).items()}
            said = (message.raw, [part.raw for part in message.parts], state["gone"], state["generation"], origins)
            found.append((said, kept, set(archive.versions("msg_1"))))
    for source in sources:
        source.close()
    assert all(one == found[0] for one in found)


def make(part_text: str, *, numbered: bool = False) -> Message:
    """A message with one text; `numbered` as OpenCode 2 has it."""
    record = assistant("msg_1", "ses_1") | ({"v2": {"text": part_text}} if numbered else {})
    part = text("msg_1.0000" if numbered else "prt_1", "msg_1", "ses_1", part_text)
    return records.message(records.dumps(record), (records.part(records.dumps(part), "msg_1", "ses_1"),))


_READINGS = st.lists(
    st.tuples(st.sampled_from(["json", "db", "copy"]), st.sampled_from(["alpha", "be", "al", "", "  "])), max_size=8
)


@settings(max_examples=examples(200), deadline=None)
@given(_READINGS)
def test_the_newest_source_that_says_something_is_current(readings: list[tuple[str, str]]) -> None:
    """The model: of each source the last text that is not blank; of the sources the one that ranks highest."""
    ranks = {"json": 1, "db": 2, "copy": 2}
    said: dict[str, tuple[tuple[int, int, str], str]] = {}
    stored: Message | None = None
    state: dict[str, Any] | None = None
    kept: list[bytes] = []
    for moment, (source, words) in enumerate(readings):
        message, origin = make(words), Origin(ranks[source], moment, source)
        result = combine(stored, state, message, origin, f"hash {moment}")
        stored, kept = result.message, kept + [raw for _, raw in result.versions]
        state = {"gone": result.gone, "generation": result.generation, "hash": result.hash_, "origins": result.origins}
        if words.strip():
            said[source] = (origin, words)
        assert state["gone"] == []
        if said:
            assert stored.parts[0].data["text"] == max(said.values())[1]
        for _, words_kept in said.values():
            assert any(words_kept.encode() in raw for raw in [stored.parts[0].raw, *kept])


def test_opencode_2_goes_on_after_its_import_without_saying_anything_twice(tmp_path: Path) -> None:
    """The import says all that the older copy says, so that one stays; the next change is of OpenCode 2 alone."""
    older, imported, edited = make("Done."), make("Done.", numbered=True), make("No.", numbered=True)
    first = combine(None, None, older, Origin(2, 5, "db"), "1")
    state = {"gone": first.gone, "generation": 2, "hash": "1", "origins": first.origins}
    second = combine(first.message, state, imported, Origin(3, 6, "db2"), "2")
    assert [part.id for part in second.message.parts] == ["prt_1"]
    state = {"gone": [], "generation": second.generation, "hash": "2", "origins": second.origins}
    third = combine(second.message, state, edited, Origin(3, 7, "db2"), "3")
    assert [part.data["text"] for part in third.message.parts] == ["No."]
    assert any(b"Done." in raw for _, raw in third.versions)


def test_an_archive_of_an_older_release_follows_its_source(tmp_path: Path) -> None:
    """Its states do not tell where a record came from."""
    state = {"gone": [], "generation": 2, "hash": "1"}
    made = combine(make(LONG), state, make(SHORT), Origin(2, 5, "db"), "2")
    assert made.message.parts[0].data["text"] == SHORT
    older = combine(make(LONG), state, make(SHORT), Origin(1, 5, "json"), "2")
    assert older.message.parts[0].data["text"] == LONG


def test_an_edited_file_keeps_what_a_stripped_call_showed_of_it(tmp_path: Path) -> None:
    path = "/home/dev/p/a.txt"
    state: dict[str, Any] = {
        "status": "completed", "output": "Edit applied successfully.", "title": "", "time": {"start": 1, "end": 2},
        "input": {"filePath": path, "oldString": "a", "newString": "b"},
        "metadata": {"filediff": {"file": path, "before": "a\nrest\n", "after": "b\nrest\n"}},
    }  # fmt: skip
    database = Database(tmp_path / "opencode.db")
    database.session(session("ses_1", directory="/home/dev/p"))
    database.message(assistant("msg_1", "ses_1"), tool("prt_1", "msg_1", "ses_1", "edit", state))
    source = DatabaseSource(Connection(database.path))
    with Archive(tmp_path / "archive") as archive:
        read(archive, source)
        stripped = state | {"metadata": {"filediff": {"file": path, "patch": "@@ -1 +1 @@"}}}
        database.part(tool("prt_1", "msg_1", "ses_1", "edit", stripped))
        read(archive, source)
        assert [edit.after for edit in archive.files.edits(path)] == ["b\nrest\n"]
        shortened = state | {"input": {"filePath": path, "oldString": "a", "newString": ""}, "metadata": {}}
        database.part(tool("prt_1", "msg_1", "ses_1", "edit", shortened))
        read(archive, source)
        assert [edit.new for edit in archive.files.edits(path)] == [""]
    source.close()
    database.close()
