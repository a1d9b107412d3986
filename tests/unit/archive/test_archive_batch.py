"""What a batch makes of sessions, messages and edits: records, order, tombstones, queues. Nothing here is committed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon import records
from daemon.archive import Archive, keys
from daemon.archive.batch import Batch
from daemon.archive.store import changes
from daemon.model import FileEdit, Message
from tests.support.stores.records import START, message, session, text
from tests.support.stores.replaying import at, copy, move, write


@pytest.fixture
def batch(tmp_path: Path) -> Iterator[Batch]:
    with Archive(tmp_path / "archive") as archive:
        yield archive.batch()


def stored(batch: Batch, key: bytes) -> Any:
    """The JSON value under a key; None where there is none."""
    raw = batch.get(key)
    return None if raw is None else json.loads(raw)


def put(batch: Batch, new: Message, *edits: FileEdit, source: str = "db", **fields: Any) -> set[str]:
    return batch.message(new, **{"source": source, "generation": 2, "hash_": "h1", "edits": edits} | fields)


def queued(batch: Batch, stage: str) -> list[str]:
    """The messages in an outbox, the newest first; the outbox is emptied."""
    prefix = keys.outbox(stage, 0, "").split(b":")[:2]
    found = sorted(key for key, value in batch.changes.items() if key.split(b":")[:2] == prefix and value is not None)
    for key in found:
        assert (batch.changes.pop(key) or b"").split()[0] in {b"h1", b"h2"}  # the message's hash
    return [keys.unescape(key.split(b":")[3].decode()) for key in found]


def outdated(batch: Batch) -> set[str]:
    """The paths that are to be replayed anew; the marks are taken away."""
    found = [key for key in batch.changes if key.startswith(keys.outdated())]
    for key in found:
        del batch.changes[key]
    return {key.removeprefix(keys.outdated()).decode() for key in found}


# -- sessions --------------------------------------------------------------------------------------------------------


def test_a_session_is_recorded_as_it_was_read(batch: Batch) -> None:
    one = session(title="One", parent_id="ses_0", archived=START + 9, created=START, updated=START + 5)
    assert batch.session(one, "db", 2)
    assert stored(batch, keys.session_meta("ses_1")) == {
        "id": "ses_1", "project_id": "global", "directory": one.directory, "title": "One", "parent_id": "ses_0",
        "created": START, "updated": START + 5, "archived": START + 9, "version": "1.18.33", "raw": one.raw.decode(),
        "generation": 2, "source": "db", "sources": ["db"], "deleted": None,
    }  # fmt: skip
    assert batch.counts["sessions"] == 1
    assert not batch.session(one, "db", 2)
    assert batch.session(session(title="Two"), "db", 2)
    assert batch.counts["sessions"] == 1


@pytest.mark.parametrize(
    ("case", "stored_as", "read_as", "wins"),
    [
        ("the source's own newer word, whatever its time", ("db", 2, 5), ("db", 2, 4), True),
        ("a newer generation, updated earlier", ("tree", 1, 9), ("db", 2, 4), True),
        ("an older generation, updated later", ("db", 2, 4), ("tree", 1, 9), False),
        ("of one generation the one updated last", ("a", 2, 4), ("b", 2, 5), True),
        ("of one generation one updated earlier", ("b", 2, 5), ("a", 2, 4), False),
        ("at one time the later name", ("a", 2, 5), ("b", 2, 5), True),
        ("at one time the earlier name", ("b", 2, 5), ("a", 2, 5), False),
    ],
)
def test_the_newest_generation_wins_then_the_last_update(
    batch: Batch, case: str, stored_as: tuple[str, int, int], read_as: tuple[str, int, int], wins: bool
) -> None:
    for source, generation, updated in (stored_as, read_as):
        batch.session(session(title=f"{source} {updated}", updated=START + updated), source, generation)
    winner = read_as if wins else stored_as
    entry = stored(batch, keys.session_meta("ses_1"))
    assert (entry["title"], entry["source"], entry["generation"]) == (f"{winner[0]} {winner[2]}", *winner[:2]), case
    assert entry["sources"] == sorted({stored_as[0], read_as[0]})


@pytest.mark.parametrize(("generation", "wins"), [(1, False), (2, True), (3, True)])
def test_a_session_without_a_source_gives_way_to_its_generation(batch: Batch, generation: int, wins: bool) -> None:
    batch.session(session(title="old", updated=START + 9), "db", 2)
    entry = stored(batch, keys.session_meta("ses_1"))
    del entry["source"]
    batch.put(keys.session_meta("ses_1"), records.dumps(entry))
    batch.session(session(title="new"), "db", generation)
    assert (stored(batch, keys.session_meta("ses_1"))["title"] == "new") is wins


@pytest.mark.parametrize("name", ["project_id", "directory", "title", "version"])
@pytest.mark.parametrize("newest_first", [True, False])
def test_what_the_winner_leaves_blank_is_filled_from_the_other(batch: Batch, name: str, newest_first: bool) -> None:
    readings = [(session(**{name: "old"}), "tree", 1), (session(**{name: ""}), "db", 2)]
    for reading in reversed(readings) if newest_first else readings:
        batch.session(*reading)
    assert stored(batch, keys.session_meta("ses_1"))[name] == "old"


def test_a_record_that_said_something_of_its_own_is_kept_aside(batch: Batch) -> None:
    old, grown, other = session(note="a plan"), session(note="a plan for two"), session(note="nothing")
    kept = [keys.session_version("ses_1", records.digest(one.raw)) for one in (old, grown, other)]
    for reading in (old, grown):
        batch.session(reading, "db", 2)
    assert [batch.get(key) for key in kept] == [None, None, None]
    batch.session(other, "db", 2)
    assert [batch.get(key) for key in kept] == [None, grown.raw, None]
    batch.session(old, "tree", 1)  # the older one of two sources is kept aside as well
    assert [batch.get(key) for key in kept] == [old.raw, grown.raw, None]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"revert": {"messageID": "msg_1"}}, {"/w/a", "/w/b"}),
        ({"revert": {"messageID": "msg_1"}}, {}, {"/w/a", "/w/b"}),
        ({"note": "x"}, {"note": "y"}, set()),
        ({"revert": {"messageID": "msg_1"}}, {"revert": {"messageID": "msg_1"}}, set()),
    ],
)
def test_a_revert_set_or_taken_back_outdates_the_files_of_the_session(
    batch: Batch, before: dict[str, Any], after: dict[str, Any], expected: set[str]
) -> None:
    batch.session(session(**before), "db", 2)
    put(batch, message(id="msg_1"), write(1, "/w/a", "x"))
    put(batch, message(id="msg_2"), write(2, "/w/b", "x"))
    outdated(batch)
    batch.session(session(title="Two", **after), "db", 2)
    assert outdated(batch) == expected
    assert batch.places("ses_1") == {"/w/a", "/w/b"}
    assert batch.places("ses_other") == set()


def test_a_session_is_deleted_when_its_last_source_has_dropped_it(batch: Batch) -> None:
    assert not batch.forget_session_source("ses_1", "db", 5)
    batch.session(session(), "tree", 1)
    batch.session(session(), "db", 2)
    for source, is_gone, left, deleted in (("other", False, ["db", "tree"], None), ("db", False, ["tree"], None), ("tree", True, [], 7)):  # fmt: skip
        assert batch.forget_session_source("ses_1", source, 7) is is_gone
        entry = stored(batch, keys.session_meta("ses_1"))
        assert (entry["sources"], entry["deleted"]) == (left, deleted)
    assert batch.session(session(), "db", 2)
    assert stored(batch, keys.session_meta("ses_1"))["deleted"] is None


def test_a_session_without_messages_may_be_reverted_and_read_badly(batch: Batch) -> None:
    assert batch.message_ids("ses_1") == []
    batch.session(replace(session(), raw=b'{"note": "\xff"}'), "db", 2)
    assert stored(batch, keys.session_meta("ses_1"))["raw"] == '{"note": "\ufffd"}'
    assert batch.session(session(revert={"messageID": "msg_1"}), "db", 2)
    assert batch.session_extra("ses_1", {"reverts": [1]}, [])
    assert outdated(batch) == set()


def test_a_message_that_the_order_names_and_nobody_knows_stops_nothing(batch: Batch) -> None:
    batch.put(keys.session_order("ses_1"), b'["msg_lost"]')
    assert batch.places("ses_1") == set()
    put(batch, message(id="msg_1", created=START))
    assert batch.message_ids("ses_1") == ["msg_lost", "msg_1"]
    state = stored(batch, keys.message_state("msg_1"))
    del state["edits"]  # as an early archive has it
    batch.put(keys.message_state("msg_1"), records.dumps(state))
    assert batch.places("ses_1") == set()
    batch.renew_edits("msg_1", [write(1, "/w/a", "x")])
    assert batch.places("ses_1") == {"/w/a"}


# -- messages --------------------------------------------------------------------------------------------------------


def test_a_message_is_recorded_with_its_parts_state_and_edits(batch: Batch) -> None:
    one = message(text("hello", id="prt_1"), text("you", id="prt_2"), id="msg_1", created=START + 1)
    change = write(1, "/w/a", "x")
    paths = put(batch, one, change, gone=["prt_9", "prt_8"], unknown=["video"], origins={"prt_1": "db"}, versions=[("prt_1", b"{1}"), (None, b"{2}")])  # fmt: skip
    assert paths == {"/w/a"}
    assert batch.get(keys.message_raw("msg_1")) == one.raw
    assert [batch.get(keys.part("msg_1", part.id)) for part in one.parts] == [part.raw for part in one.parts]
    assert stored(batch, keys.message_state("msg_1")) == {
        "hash": "h1", "session": "ses_1", "created": START + 1, "generation": 2, "sources": ["db"], "deleted": None,
        "parts": ["prt_1", "prt_2"], "gone": ["prt_8", "prt_9"], "edits": [["/w/a", change.time, change.part_id, 0]],
        "origins": {"prt_1": "db"},
    }  # fmt: skip
    assert batch.get(keys.part_version("msg_1", "prt_1", records.digest(b"{1}"))) == b"{1}"
    assert batch.get(keys.message_version("msg_1", records.digest(b"{2}"))) == b"{2}"
    assert batch.get(keys.unknown("video", "msg_1")) == b""
    assert batch.counts == {"sessions": 0, "messages": 1, "parts": 2}
    assert (queued(batch, "lexical"), queued(batch, "semantic")) == (["msg_1"], ["msg_1"])
    assert batch.message_ids("ses_1") == ["msg_1"]


def test_rereading_a_message_replaces_its_state_and_keeps_its_sources(batch: Batch) -> None:
    put(batch, message(text("a", id="prt_1"), id="msg_1", created=START), write(1, "/w/a", "x"), source="tree")
    batch.forget_message_source("msg_1", "tree", 5)
    outdated(batch)
    grown = message(text("a", id="prt_1"), text("b", id="prt_2"), id="msg_1", created=START)
    assert put(batch, grown, write(2, "/w/b", "x"), hash_="h2") == {"/w/b"}
    state = stored(batch, keys.message_state("msg_1"))
    assert (state["hash"], state["sources"], state["deleted"]) == ("h2", ["db"], None)
    assert (state["gone"], state["origins"]) == ([], {})
    assert batch.counts == {"sessions": 0, "messages": 1, "parts": 2}
    assert outdated(batch) == {"/w/a", "/w/b"}
    put(batch, grown, source="tree")
    assert stored(batch, keys.message_state("msg_1"))["sources"] == ["db", "tree"]


def test_a_message_read_again_is_stored_as_it_is_now(batch: Batch) -> None:
    put(batch, message(text("one", id="prt_1"), id="msg_1", created=START))
    now = message(text("two", id="prt_1"), text("three", id="prt_2"), id="msg_1", created=START, agent="build")
    put(batch, now)
    assert batch.get(keys.message_raw("msg_1")) == now.raw
    assert [batch.get(keys.part("msg_1", part.id)) for part in now.parts] == [part.raw for part in now.parts]
    assert stored(batch, keys.message_state("msg_1"))["parts"] == ["prt_1", "prt_2"]


def test_a_version_that_is_current_again_is_not_kept_aside_as_well(batch: Batch) -> None:
    one = message(text("one", id="prt_1"), id="msg_1", created=START)
    two = message(text("two", id="prt_1"), id="msg_1", created=START, agent="build")
    put(batch, one)
    put(batch, two, versions=[("prt_1", one.parts[0].raw), (None, one.raw)])
    aside = [keys.part_version("msg_1", "prt_1", records.digest(one.parts[0].raw))]
    aside.append(keys.message_version("msg_1", records.digest(one.raw)))
    assert all(batch.get(key) is not None for key in aside)
    put(batch, one)
    assert [batch.get(key) for key in aside] == [None, None]


def test_messages_are_in_the_order_of_time_then_id(batch: Batch) -> None:
    for id_, second in (("msg_5", 5), ("msg_3", 3), ("msg_4b", 4), ("msg_4a", 4), ("msg_6", 6)):
        put(batch, message(id=id_, created=START + second))
    assert batch.message_ids("ses_1") == ["msg_3", "msg_4a", "msg_4b", "msg_5", "msg_6"]
    put(batch, message(id="msg_4b", created=START + 4))  # read again, nothing has moved
    assert batch.message_ids("ses_1") == ["msg_3", "msg_4a", "msg_4b", "msg_5", "msg_6"]
    put(batch, message(id="msg_5", created=START + 1))
    assert batch.message_ids("ses_1") == ["msg_5", "msg_3", "msg_4a", "msg_4b", "msg_6"]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), max_size=14))
def test_messages_stay_in_order_when_their_times_change(steps: list[tuple[int, int]]) -> None:
    times: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as place, Archive(Path(place) / "archive") as archive:
        batch = archive.batch()
        for number, second in steps:
            times[f"msg_{number}"] = second
            put(batch, message(id=f"msg_{number}", created=START + second))
            assert batch.message_ids("ses_1") == sorted(times, key=lambda id_: (times[id_], id_))


def test_the_order_of_each_session_is_put_when_the_batch_ends(batch: Batch) -> None:
    for sid in ("ses_1", "ses_2"):
        batch.session(session(id=sid), "db", 2)
        put(batch, message(id=f"msg_{sid}", session_id=sid, created=START))
    batch.finish()
    assert [stored(batch, keys.session_order(sid)) for sid in ("ses_1", "ses_2")] == [["msg_ses_1"], ["msg_ses_2"]]
    put(batch, message(id="msg_b", session_id="ses_2", created=START + 1))
    batch.drop_message("msg_ses_1")
    batch.drop_session("ses_1")
    batch.finish()
    assert stored(batch, keys.session_order("ses_1")) is None
    assert stored(batch, keys.session_order("ses_2")) == ["msg_ses_2", "msg_b"]
    assert batch.message_ids("ses_1") == []


def test_a_batch_that_writes_ahead_holds_long_orders_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the write ahead put the orders, and these were written ahead, and so on without an end."""
    monkeypatch.setattr(changes, "_FULL", 1 << 14)
    monkeypatch.setattr(changes, "_AT_ONCE", 1 << 13)
    monkeypatch.setattr(changes, "_SMALL", 1 << 6)
    names = [f"msg_{number:03}" for number in range(40)]
    with Archive(tmp_path / "archive") as archive:
        batch = archive.batch()
        for number, name in enumerate(names):
            put(batch, message(text(name * 200), id=name, created=START + number))
        archive.commit(batch)
        assert archive.message_ids("ses_1") == names
        read = [archive.message(name) for name in names]
    assert [one.parts[0].data["text"] for one in read if one is not None] == [name * 200 for name in names]


def test_the_two_messages_behind_one_are_indexed_again_with_it(batch: Batch) -> None:
    for second in range(1, 6):
        put(batch, message(id=f"msg_{second}", created=START + second))
    queued(batch, "lexical"), queued(batch, "semantic")
    put(batch, message(id="msg_2", created=START + 2), hash_="h2")
    assert queued(batch, "lexical") == ["msg_4", "msg_3", "msg_2"]
    assert queued(batch, "semantic") == ["msg_2"]
    for id_, expected in (("msg_4", ["msg_5", "msg_4"]), ("msg_5", ["msg_5"])):
        put(batch, message(id=id_, created=START + int(id_[-1])), hash_="h2")
        assert queued(batch, "lexical") == expected


def test_a_dropped_message_leaves_the_order_and_requeues_the_others(batch: Batch) -> None:
    batch.session(session(), "db", 2)
    for second in (1, 2, 3):
        put(batch, message(id=f"msg_{second}", created=START + second))
    queued(batch, "lexical"), queued(batch, "semantic")
    batch.drop_message("msg_unknown")
    assert queued(batch, "lexical") == []
    batch.drop_message("msg_1")
    assert batch.message_ids("ses_1") == ["msg_2", "msg_3"]
    assert queued(batch, "lexical") == queued(batch, "semantic") == ["msg_3", "msg_2", "msg_1"]
    for key in (keys.message_raw, keys.message_state):
        assert batch.get(key("msg_1")) is None
        assert batch.get(key("msg_2")) is not None
    assert batch.counts == {"sessions": 1, "messages": 2, "parts": 0}
    batch.drop_session("ses_unknown")
    assert batch.counts["sessions"] == 1
    batch.drop_session("ses_1")
    assert (batch.get(keys.session_meta("ses_1")), batch.get(keys.session_order("ses_1"))) == (None, None)
    assert batch.counts["sessions"] == 0


def test_a_message_is_deleted_when_its_last_source_has_dropped_it(batch: Batch) -> None:
    put(batch, message(id="msg_1", created=START), write(1, "/w/a", "x"), source="tree")
    batch.keep_source("msg_1", "db")

    def state() -> tuple[list[str], int | None]:
        entry = stored(batch, keys.message_state("msg_1"))
        return entry["sources"], entry["deleted"]

    def effects() -> tuple[set[str], list[str], list[str]]:
        return outdated(batch), queued(batch, "lexical"), queued(batch, "semantic")

    changed = ({"/w/a"}, ["msg_1"], ["msg_1"])
    assert state() == (["db", "tree"], None)
    effects()
    batch.keep_source("msg_1", "db")
    batch.keep_source("msg_unknown", "db")
    assert effects() == (set(), [], [])
    assert not batch.forget_message_source("msg_1", "other", 5)
    assert not batch.forget_message_source("msg_1", "db", 5)
    assert state() == (["tree"], None)
    assert effects() == ({"/w/a"}, [], [])
    assert batch.forget_message_source("msg_1", "tree", 6)
    assert (state(), effects()) == (([], 6), changed)
    assert not batch.forget_message_source("msg_1", "tree", 7)
    assert not batch.forget_message_source("msg_unknown", "tree", 7)
    assert state() == ([], 6)
    effects()
    batch.keep_source("msg_1", "db")
    assert (state(), effects()) == ((["db"], None), changed)
    batch.tombstone("msg_1", 8)
    assert (state(), effects()) == ((["db"], 8), changed)
    batch.tombstone("msg_1", 9)
    batch.tombstone("msg_unknown", 9)
    assert (state(), effects()) == ((["db"], 8), (set(), [], []))
    batch.keep_source("msg_1", "db")
    assert (state(), effects()) == ((["db"], None), changed)


# -- edits -----------------------------------------------------------------------------------------------------------


def test_a_move_or_copy_is_kept_at_both_ends(batch: Batch) -> None:
    edits = [
        move(1, "/w/a", "/w/b"),
        copy(2, "/w/c", "/w/d"),
        move(3, "/w/e", "/w/e"),
        write(4, "/w/f", "x", other="/w/g"),
    ]
    paths = put(batch, message(id="msg_1"), *edits)
    assert paths == {"/w/a", "/w/b", "/w/c", "/w/d", "/w/e", "/w/f"} == outdated(batch)
    for number, (edit, ends) in enumerate(
        zip(edits, [("/w/a", "/w/b"), ("/w/c", "/w/d"), ("/w/e",), ("/w/f",)], strict=True)
    ):
        for path in ends:
            assert batch.get(keys.file_edit(path, edit.time, edit.part_id, number)) == records.edit_to_json(edit)


def test_edits_no_longer_in_a_message_go_and_other_edits_stay(batch: Batch) -> None:
    first, second = write(1, "/w/a", "x"), write(2, "/w/b", "x")
    put(batch, message(id="msg_1"), first, second)
    outdated(batch)
    batch.renew_edits("msg_1", [first, write(3, "/w/c", "x")])
    batch.renew_edits("msg_unknown", [second])
    assert outdated(batch) == {"/w/b", "/w/c"}
    assert batch.get(keys.file_edit("/w/a", at(1), first.part_id, 0)) is not None
    assert batch.get(keys.file_edit("/w/b", at(2), second.part_id, 1)) is None
    assert [place[0] for place in stored(batch, keys.message_state("msg_1"))["edits"]] == ["/w/a", "/w/c"]


def test_what_belongs_to_a_session_outdates_its_files_when_it_is_new(batch: Batch) -> None:
    put(batch, message(id="msg_1"), write(1, "/w/a", "x"))
    outdated(batch)
    assert batch.session_extra("ses_1", {"reverts": [1]}, [write(2, "/w/b", "x")])
    assert outdated(batch) == {"/w/a", "/w/b"}
    entry = stored(batch, keys.session_extra("ses_1"))
    assert (entry["reverts"], [place[0] for place in entry["edits"]]) == ([1], ["/w/b"])
    assert not batch.session_extra("ses_1", {"reverts": [1]}, [write(2, "/w/b", "x")])
    assert outdated(batch) == set()
    assert batch.session_extra("ses_1", {"reverts": [2]}, [])
    assert outdated(batch) == {"/w/a", "/w/b"}
    assert stored(batch, keys.session_extra("ses_1")) == {"reverts": [2], "edits": []}


# -- marks -----------------------------------------------------------------------------------------------------------


def test_cursors_quarantine_and_large_records_are_put_and_taken_away(batch: Batch) -> None:
    batch.mark("db", "ses_1", "msg_1", "stamp \ud800")
    assert batch.get(keys.cursor("db", "ses_1", "msg_1")) == b"stamp ?"
    batch.mark("db", "ses_1", "msg_1", None)
    assert batch.get(keys.cursor("db", "ses_1", "msg_1")) is None
    batch.quarantine("db", "row 7", {"reason": "not JSON"})
    assert stored(batch, keys.quarantine("db", "row 7")) == {"reason": "not JSON"}
    batch.release("db", "row 7")
    assert batch.get(keys.quarantine("db", "row 7")) is None
    batch.put_large("msg_1", "prt_1", {"size": 9})
    assert batch.large("msg_1", "prt_1") == {"message": "msg_1", "part": "prt_1", "size": 9}
    assert batch.large("msg_1", "") is None


def test_what_is_queued_again_has_another_value(batch: Batch) -> None:
    """Whoever is indexing the message, or replaying the path, at this moment does not take the new entry for its own."""
    seen = []
    for _ in range(2):
        batch.enqueue_in("lexical", "msg_1", START, "h1")
        batch.outdate("/w/a")
        seen.append((batch.get(keys.outbox("lexical", START, "msg_1")), batch.get(keys.outdated("/w/a"))))
    assert seen[0][0] != seen[1][0]
    assert seen[0][1] != seen[1][1]
    assert (seen[1][0] or b"").startswith(b"h1 ")
