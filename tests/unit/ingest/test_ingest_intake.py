"""What changes at the source arrives in the archive, once, whatever happens in between."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daemon.archive import Archive
from daemon.errors import Retry, SourceMissing
from daemon.ingest import Intake
from daemon.ingest.scan_result import ScanResult
from daemon.opencode import Reading, Source
from daemon.opencode.connection import Connection
from daemon.opencode.database import Database as DatabaseSource
from daemon.opencode.discover import Sources
from daemon.opencode.json_tree import JsonTree
from tests.conftest import Sample
from tests.support.examples import examples
from tests.support.stores.intake import intake_of as an_intake
from tests.support.stores.make_opencode import T0, Database, JsonStore, assistant, session, text, tool, user
from tests.support.stores.make_opencode_v2 import DIRECTORY as GARDEN
from tests.support.stores.make_opencode_v2 import OldMessage, Row2, Session2, make_v2
from tests.support.stores.make_opencode_v2 import assistant as assistant2
from tests.support.stores.make_opencode_v2 import text as text2
from tests.support.stores.make_opencode_v2 import tool as tool2


def intake_of(archive: Archive, **more: object) -> Intake:
    return an_intake(archive, **{"quiet_s": 0.3, "free_mb": 1} | more)


def take_all(archive: Archive, sources: Sources) -> ScanResult:
    total, intake = ScanResult(), intake_of(archive)
    for source in sources.refresh():
        total += intake.scan(source)
    return total


def contents(archive: Archive) -> dict[str, object]:
    """Everything that was said, whoever holds it and in whatever order it came."""
    found: dict[str, object] = {}
    for message_id in archive.all_message_ids():
        message = archive.message(message_id)
        assert message is not None
        found[message_id] = (
            message.role,
            message.created,
            [(part.id, part.data) for part in message.parts],
            archive.is_deleted(message_id),
        )
    return found


@pytest.fixture
def archive(tmp_path: Path):
    with Archive(tmp_path / "archive") as opened:
        yield opened


def test_a_second_pass_over_an_unchanged_store_takes_nothing(any_sample: Sample, archive: Archive) -> None:
    sources = Sources(any_sample.data_dir, 64)
    first = take_all(archive, sources)
    before = contents(archive)
    second = take_all(archive, sources)
    sources.close()
    assert first.changed > 100
    assert (second.changed, second.removed, second.quarantined) == (0, 0, 0)
    assert contents(archive) == before


def test_a_migrated_store_yields_each_record_once_and_the_leftovers(
    sample: Callable[[str], Sample], archive: Archive
) -> None:
    found = sample("migrated")
    sources = Sources(found.data_dir, 64)
    take_all(archive, sources)
    sources.close()
    parts = [
        part_id for message_id in archive.all_message_ids() for part_id in (archive.state(message_id) or {})["parts"]
    ]
    on_disk = {path.stem for path in (found.data_dir / "storage" / "part").glob("*/*.json")}
    assert len(parts) == len(set(parts))
    assert set(parts) == on_disk
    sizes = archive.figures()
    assert (sizes["messages"], sizes["parts"]) == (len(list(archive.all_message_ids())), len(on_disk))


def test_the_order_in_which_the_generations_are_read_makes_no_difference(
    sample: Callable[[str], Sample], tmp_path: Path
) -> None:
    results = []
    for turn in (1, -1):
        sources = Sources(
            sample("migrated").data_dir if turn == 1 else tmp_path / "sample-migrated" / "migrated-A" / "opencode", 64
        )
        with Archive(tmp_path / f"archive{turn}") as archive:
            intake = intake_of(archive)
            for source in sources.refresh()[::turn]:
                intake.scan(source)
            results.append(contents(archive))
        sources.close()
    assert results[0] == results[1]


def test_an_unfinished_message_is_read_when_quiet_and_again_when_complete(tmp_path: Path, archive: Archive) -> None:
    store = JsonStore(tmp_path)
    store.session(session("ses_1"))
    store.message(
        assistant("msg_1", "ses_1", completed=None), text("prt_1", "msg_1", "ses_1", "The ans", time={"start": 1})
    )
    late = [0.0]
    tree, intake = JsonTree(store.storage), intake_of(archive, quiet_s=60.0, clock=lambda: time.time() + late[0])
    assert intake.scan(tree).moving == {"ses_1"}
    assert archive.message("msg_1") is None
    late[0] = 61.0
    assert intake.scan(tree).changed == 1
    store.part(text("prt_1", "msg_1", "ses_1", "The answer.", time={"start": 1, "end": 2}))
    store.message(assistant("msg_1", "ses_1"))
    assert intake.scan(tree).changed == 1
    message = archive.message("msg_1")
    assert message is not None
    assert message.is_complete
    assert message.parts[0].data["text"] == "The answer."
    assert archive.figures()["parts"] == 1


def test_a_message_that_never_comes_to_rest_is_taken_in_all_the_same(tmp_path: Path, archive: Archive) -> None:
    store = JsonStore(tmp_path)
    store.session(session("ses_1"))
    now = [time.time()]
    intake = intake_of(archive, clock=lambda: now[0])
    tree = JsonTree(store.storage)
    taken = 0
    for number in range(14):
        store.message(
            assistant("msg_1", "ses_1", completed=None),
            text("prt_1", "msg_1", "ses_1", "word " * (number + 1), time={"start": 1}),
        )
        for path in store.storage.rglob("*.json"):
            os.utime(path, (now[0], now[0]))
        taken += intake.scan(tree).changed > 0
        now[0] += 0.5
    assert taken >= 2


def test_a_second_change_under_the_same_stamp_is_seen_by_a_slow_scan(tmp_path: Path, archive: Archive) -> None:
    """A scan reads several rows together, so it may archive a row long after it has read it."""
    database = Database(tmp_path / "opencode.db")
    database.session(session("ses_1"))
    database.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "before"))
    now = [database.now / 1000]

    class SlowSource(DatabaseSource):
        def readings(self, *request: Any) -> Iterator[tuple[str, Callable[[], Reading]]]:
            for reading in super().readings(*request):
                now[0] += 3
                yield reading

    source, intake = SlowSource(Connection(database.path)), intake_of(archive, clock=lambda: now[0])
    intake.scan(source)
    database.execute("UPDATE part SET data = replace(data, 'before', 'after')")
    intake.scan(source)
    assert [message.parts[0].data["text"] for message in archive.messages("ses_1")] == ["after"]
    source.close()
    database.close()


def test_a_title_that_changes_sends_the_first_message_to_the_indexes_again(tmp_path: Path, archive: Archive) -> None:
    store = JsonStore(tmp_path)
    store.session(session("ses_1", title="New session"))
    store.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "hello"))
    tree, intake = JsonTree(store.storage), intake_of(archive)
    intake.scan(tree)
    archive.done(archive.outbox("lexical", 10))
    store.session(session("ses_1", title="Fix the importer"))
    intake.scan(tree)
    assert [message_id for message_id, _, _ in archive.outbox("lexical", 10)] == ["msg_1"]


def test_what_the_source_deletes_gets_a_tombstone_and_stays(tmp_path: Path, archive: Archive) -> None:
    database = Database(tmp_path / "opencode.db")
    database.session(session("ses_1"))
    database.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "precious"))
    database.message(user("msg_2", "ses_1"), text("prt_2", "msg_2", "ses_1", "also"))
    source, intake = DatabaseSource(Connection(database.path)), intake_of(archive)
    intake.scan(source)
    database.execute("DELETE FROM part WHERE message_id = 'msg_1'")
    database.execute("DELETE FROM message WHERE id = 'msg_1'")
    assert intake.scan(source).removed == 1
    assert archive.is_deleted("msg_1")
    for table in ("part", "message", "session"):
        database.execute(f"DELETE FROM {table}")
    assert intake.scan(source).removed == 2
    assert (archive.session_state("ses_1") or {})["deleted"]
    assert [message.parts[0].data["text"] for message in archive.messages("ses_1")] == ["precious", "also"]
    source.close()
    database.close()


def test_a_source_that_vanishes_as_a_whole_deletes_nothing(tmp_path: Path, archive: Archive) -> None:
    store = JsonStore(tmp_path / "data")
    store.session(session("ses_1"))
    store.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "here"))
    tree, intake = JsonTree(store.storage), intake_of(archive)
    intake.scan(tree)
    (tmp_path / "data").rename(tmp_path / "unmounted")
    with pytest.raises(SourceMissing):
        intake.scan(tree)
    assert not archive.is_deleted("msg_1")


def test_a_bad_record_is_set_aside_and_retried_when_it_changes(tmp_path: Path, archive: Archive) -> None:
    """It is released once it can be read."""
    store = JsonStore(tmp_path)
    store.session(session("ses_1"))
    store.message(
        assistant("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "good"), text("prt_2", "msg_1", "ses_1", "bad")
    )
    path = store.storage / "part" / "msg_1" / "prt_2.json"
    path.write_text("\0" * 40)
    for each in store.storage.rglob("*.json"):
        os.utime(each, (9, 9))
    tree, intake = JsonTree(store.storage), intake_of(archive)
    assert intake.scan(tree).quarantined == 1
    (entry,) = archive.quarantined(tree.name).values()
    assert str(path) in entry["reason"]
    assert intake.scan(tree).quarantined == 0
    assert intake.counts(tree).quarantined == 1
    store.part(text("prt_2", "msg_1", "ses_1", "mended"))
    intake.scan(tree)
    assert archive.quarantined(tree.name) == {}
    message = archive.message("msg_1")
    assert message is not None
    assert [part.data["text"] for part in message.parts] == ["good", "mended"]


@pytest.mark.parametrize("is_final", [False, True])
@pytest.mark.parametrize(("prompts", "ended"), [((), 900), ((20,), 900), ((20, 500, 700), 500)])
def test_a_revert_that_was_pending_ended_before_the_next_prompt(
    tmp_path: Path, archive: Archive, prompts: tuple[int, ...], ended: int, is_final: bool
) -> None:
    store = JsonStore(tmp_path)
    revert = {"messageID": "msg_1", "snapshot": "a" * 40}
    store.message(assistant("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "done"))
    store.session(session("ses_1", time={"created": T0, "updated": T0 + 50}, revert=revert))
    tree, intake = JsonTree(store.storage), intake_of(archive)
    intake.scan(tree)
    if is_final:
        store.drop_message("ses_1", "msg_1")
    for created in prompts:
        store.message(user(f"msg_{(T0 + created) << 12 & (1 << 48) - 1:012x}aaaaaaaaaaaaaa", "ses_1"))
    store.session(session("ses_1", time={"created": T0, "updated": T0 + 900}))
    intake.scan(tree)
    (mark,) = archive.files.session_extra("ses_1")["reverts"][tree.name]
    assert (mark["time"], mark["ended"], mark["is_final"]) == (T0 + 50, T0 + ended, is_final)


def test_an_unknown_part_type_is_kept_and_counted(tmp_path: Path, archive: Archive) -> None:
    store = JsonStore(tmp_path)
    store.session(session("ses_1"))
    ids = {"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1"}
    store.message(assistant("msg_1", "ses_1"), {**ids, "type": "hologram", "beams": [1, 2]})
    tree, intake = JsonTree(store.storage), intake_of(archive)
    intake.scan(tree)
    assert intake.counts(tree).unknown == {"hologram": 1}
    message = archive.message("msg_1")
    assert message is not None
    assert [part.data.get("beams") for part in message.parts] == [[1, 2]]


def test_a_nearly_full_disk_stops_reading_before_anything_is_written(tmp_path: Path, archive: Archive) -> None:
    store = JsonStore(tmp_path)
    store.session(session("ses_1"))
    with pytest.raises(Retry, match=r"limits\.free_mb"):
        intake_of(archive, free_mb=1 << 40).scan(JsonTree(store.storage))
    assert archive.figures()["sessions"] == 0


def test_opencode_2_and_its_imports_are_one_history_without_duplicates(tmp_path: Path, archive: Archive) -> None:
    make_v2(tmp_path / "opencode.db")
    sources = Sources(tmp_path, 64)
    assert take_all(archive, sources).quarantined == 0
    assert take_all(archive, sources).changed == 0
    sources.close()
    assert set(archive.all_message_ids()) >= {f"msg_2{letter}" for letter in "adefghijmnops"} | {"msg_1q", "msg_1r"}
    events = archive.beside.events("ses_2_every_type")
    assert [(event["id"], event["type"]) for event in events] == [
        ("msg_2b", "agent-switched"), ("msg_2c", "model-switched"), ("msg_2k", "location-switched"), ("msg_2l", "idle"),
    ]  # fmt: skip
    assert events[0]["data"]["agent"] == "build"
    assert not {event["id"] for event in events} & set(archive.all_message_ids())
    shared = archive.message("msg_2o")
    assert shared is not None
    assert [part.data["text"] for part in shared.parts] == ["The newer text of a shared message."]
    assert any(b"The stale text of a shared message." in raw for raw in archive.versions("msg_2o"))
    assert archive.message_ids("ses_2_in_both") == ["msg_1q", "msg_2o", "msg_2p"]
    assert archive.unknown_types() == {}
    assert [edit.operation.value for edit in archive.files.edits(f"{GARDEN}/bed.md")][:1] == ["write"]


@pytest.mark.parametrize("order", [1, -1])
def test_an_imported_message_keeps_what_only_the_older_generation_recorded(
    tmp_path: Path, archive: Archive, order: int
) -> None:
    written = {"path": "/p/f", "content": "x"}
    row = assistant2("msg_1", [text2("Done."), tool2("write", written, "Wrote it.")])
    before = {"status": "completed", "input": written, "output": "Wrote it.", "title": "f",
              "metadata": {"filediff": {"before": "old text of the file", "after": "x"}}, "time": {"start": 1, "end": 2}}  # fmt: skip
    parts = {
        "prt_1": {"type": "text", "text": "Done."},
        "prt_2": {"type": "tool", "tool": "write", "callID": "call_1", "state": before},
    }
    old = OldMessage("msg_1", {"role": "assistant", "time": {"created": T0, "completed": T0 + 1}}, parts)
    make_v2(tmp_path / "opencode.db", [Session2("ses_1", [row], [old], in_old=True)])
    sources = Sources(tmp_path, 64)
    intake = intake_of(archive)
    for source in sources.refresh()[::order]:
        intake.scan(source)
    sources.close()
    message = archive.message("msg_1")
    assert message is not None
    assert [part.id for part in message.parts] == ["prt_1", "prt_2"]
    assert sum(part.data.get("text") == "Done." for part in message.parts) == 1


def test_a_deleted_session_with_leftover_parts_keeps_its_record(tmp_path: Path, archive: Archive) -> None:
    """The session also gets a tombstone."""
    store = JsonStore(tmp_path)
    path = store.session(session("ses_1", title="Precious title", directory="/home/dev/precious"))
    store.message(
        assistant("msg_1fc13507f001aaaaaaaaaaaaaa", "ses_1"),
        text("prt_1", "msg_1fc13507f001aaaaaaaaaaaaaa", "ses_1", "kept"),
    )
    intake = intake_of(archive)
    intake.scan(JsonTree(store.storage))
    store.drop_message("ses_1", "msg_1fc13507f001aaaaaaaaaaaaaa")
    path.unlink()
    intake.scan(JsonTree(store.storage))
    found = archive.session("ses_1")
    assert found is not None
    assert (found.title, found.directory) == ("Precious title", "/home/dev/precious")
    assert (archive.session_state("ses_1") or {})["deleted"]
    assert archive.is_deleted("msg_1fc13507f001aaaaaaaaaaaaaa")


def test_what_only_an_earlier_session_record_said_is_kept(tmp_path: Path, archive: Archive) -> None:
    store = JsonStore(tmp_path)
    revert = {"messageID": "msg_1", "diff": "-a line that the revert took away"}
    store.session(session("ses_1", revert=revert))
    store.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "hello"))
    tree, intake = JsonTree(store.storage), intake_of(archive)
    intake.scan(tree)
    store.session(session("ses_1"))
    intake.scan(tree)
    assert any(b"the revert took away" in raw for _, raw in archive._store.scan(b"sess:ses_1:was:"))


def test_an_unreadable_folder_is_named_and_everything_else_is_read(tmp_path: Path, archive: Archive) -> None:
    store = JsonStore(tmp_path)
    for number in (1, 2, 3):
        store.session(session(f"ses_{number}"))
        store.message(
            user(f"msg_{number}", f"ses_{number}"), text(f"prt_{number}", f"msg_{number}", f"ses_{number}", "hello")
        )
    for place in ("part/msg_1", "message/ses_2", "session/other"):
        path = store.storage / place
        if path.exists():
            path.rename(store.storage / f"away-{path.name}")
        path.symlink_to(path)  # a loop: it cannot be listed, whoever asks
    tree, intake = JsonTree(store.storage), intake_of(archive)
    intake.scan(tree)
    assert set(archive.all_message_ids()) == {"msg_1", "msg_3"}
    reasons = " ".join(entry["reason"] for entry in archive.quarantined(tree.name).values())
    assert "part/msg_1" in reasons
    assert "message/ses_2" in reasons
    for place in ("part/msg_1", "message/ses_2", "session/other"):
        path = store.storage / place
        path.unlink()
        if (store.storage / f"away-{path.name}").exists():
            (store.storage / f"away-{path.name}").rename(path)
    intake.scan(tree)
    assert set(archive.all_message_ids()) == {"msg_1", "msg_2", "msg_3"}
    assert archive.quarantined(tree.name) == {}
    message = archive.message("msg_1")
    assert message is not None
    assert [part.data["text"] for part in message.parts] == ["hello"]


@pytest.mark.parametrize(
    "content", [5, "text", {"type": "text", "text": "one"}, [5, None, {"type": 7}, {"type": "tool", "state": 5}], None]
)
@pytest.mark.parametrize("type_", ["assistant", "user", "shell", "compaction", "unheard-of"])
def test_an_odd_row_of_opencode_2_stops_nothing_and_is_kept(
    tmp_path: Path, archive: Archive, type_: str, content: object
) -> None:
    row = Row2(
        "msg_odd",
        type_,
        {"content": content, "files": content, "model": content, "snapshot": content, "status": content},
    )
    make_v2(tmp_path / "opencode.db", [Session2("ses_1", [row, Row2("msg_fine", "user", {"text": "still here"}, 1)])])
    sources = Sources(tmp_path, 64)
    take_all(archive, sources)
    sources.close()
    assert archive.message("msg_fine") is not None
    odd = archive.message("msg_odd")
    assert odd is not None
    assert odd.data["v2"]["content"] == content


def test_a_decoder_that_fails_sets_its_record_aside_and_the_rest_goes_on(tmp_path: Path, archive: Archive) -> None:
    """Fault injection: a record of a shape that nobody has foreseen."""

    class Stumbling(JsonTree):
        def read_message(self, session_id: str, message_id: str) -> Reading:
            if message_id == "msg_1":
                raise TypeError("'int' object is not iterable")
            return super().read_message(session_id, message_id)

    store = JsonStore(tmp_path)
    store.session(session("ses_1"))
    for number in (1, 2):
        store.message(user(f"msg_{number}", "ses_1"), text(f"prt_{number}", f"msg_{number}", "ses_1", "hello"))
    tree = Stumbling(store.storage)
    assert intake_of(archive).scan(tree).quarantined == 1
    assert list(archive.all_message_ids()) == ["msg_2"]
    (entry,) = intake_of(archive).set_aside(tree, 5)
    assert "not understood (TypeError" in entry["reason"]


def test_quarantine_ends_with_the_record_and_with_a_larger_limit(tmp_path: Path, archive: Archive) -> None:
    store = JsonStore(tmp_path)
    store.session(session("ses_1"))
    store.message(
        user("msg_1", "ses_1"),
        text("prt_1", "msg_1", "ses_1", "x" * (3 << 20)),
        text("prt_2", "msg_1", "ses_1", "small"),
    )
    store.message(user("msg_2", "ses_1"), text("prt_3", "msg_2", "ses_1", "x" * (3 << 20)))
    for each in store.storage.rglob("*.json"):
        os.utime(each, (9, 9))
    small = JsonTree(store.storage, record_mb=2)
    assert intake_of(archive, record_mb=2).scan(small).quarantined == 2
    assert intake_of(archive, record_mb=2).scan(small).quarantined == 0
    (store.storage / "part" / "msg_2" / "prt_3.json").unlink()
    store.drop_message("ses_1", "msg_2")
    intake_of(archive, record_mb=2).scan(small)
    assert set(archive.quarantined(small.name)) == {"message msg_1"}
    intake_of(archive, record_mb=8).scan(JsonTree(store.storage, record_mb=8))
    assert archive.quarantined(small.name) == {}
    message = archive.message("msg_1")
    assert message is not None
    assert len(message.parts) == 2


def test_a_bad_record_from_the_future_does_not_hide_its_message(tmp_path: Path, archive: Archive) -> None:
    store = JsonStore(tmp_path)
    store.session(session("ses_1"))
    store.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "good"))
    path = store.raw("part/msg_1/prt_2.json", "{")
    os.utime(path, (time.time() + 86400, time.time() + 86400))
    assert intake_of(archive).scan(JsonTree(store.storage)).quarantined == 1
    assert archive.message("msg_1") is not None


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["message", "part", "update", "same-ms", "drop-part", "drop-message", "drop-session", "title", "take"]
        ),
        st.integers(0, 2),
        st.integers(0, 2),
        st.text(alphabet="abc", min_size=1, max_size=5),
    ),
    max_size=25,
)


def _apply(database: Database, step: str, one: int, two: int, word: str) -> None:
    session_id, message_id, part_id = f"ses_{one}", f"msg_{one}{two}", f"prt_{one}{two}"
    match step:
        case "message":
            database.session(session(session_id))
            database.message(user(message_id, session_id, 10 + two), text(part_id, message_id, session_id, word))
        case "part" | "update":
            database.part(text(part_id + ("x" if step == "part" else ""), message_id, session_id, word))
        case "same-ms":
            database.part(text(part_id, message_id, session_id, word), updated=database.now)
        case "drop-part":
            database.execute("DELETE FROM part WHERE id = ?", part_id)
        case "drop-message":
            database.execute("DELETE FROM part WHERE message_id = ?", message_id)
            database.execute("DELETE FROM message WHERE id = ?", message_id)
        case "drop-session":
            for table in ("part", "message"):
                database.execute(f"DELETE FROM {table} WHERE session_id = ?", session_id)
            database.execute("DELETE FROM session WHERE id = ?", session_id)
        case "title":
            database.execute(
                "UPDATE session SET title = ?, time_updated = ? WHERE id = ?", word, database.now, session_id
            )


def _live(database: Database) -> dict[str, dict[str, str]]:
    """message id -> part id -> text, as the database has it."""
    found: dict[str, dict[str, str]] = {}
    for (message_id,) in database.connection.execute("SELECT id FROM message"):
        found[message_id] = {}
    for part_id, message_id, data in database.connection.execute("SELECT id, message_id, data FROM part"):
        if message_id in found:
            found[message_id][part_id] = data
    return found


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_STEPS)
def test_following_changes_ends_with_live_records_and_tombstones(
    tmp_path_factory: pytest.TempPathFactory, steps
) -> None:
    root = tmp_path_factory.mktemp("follow")
    database = Database(root / "opencode.db")
    source: Source = DatabaseSource(Connection(database.path))
    with Archive(root / "archive") as archive:
        intake = intake_of(archive)
        ever: set[str] = set()
        for step, one, two, word in steps:
            if step == "take":
                intake.scan(source, source.touched())
                ever |= set(archive.all_message_ids())
            else:
                _apply(database, step, one, two, word)
        intake.scan(source)
        live = _live(database)
        archived = set(archive.all_message_ids())
        assert archived >= ever | set(live)
        for message_id in archived:
            assert archive.is_deleted(message_id) == (message_id not in live)
        for message_id, parts in live.items():
            message = archive.message(message_id)
            assert message is not None
            kept = {part.id: part for part in message.parts}
            everything = b"".join([*(part.raw for part in message.parts), *archive.versions(message_id)])
            for part_id, data in parts.items():
                assert part_id in kept
                assert data.encode()[1:-1] in everything or data.split('"')[-2].encode() in everything
    source.close()
    database.close()


def test_a_message_rewritten_within_the_same_millisecond_is_seen(tmp_path: Path, archive: Archive) -> None:
    database = Database(tmp_path / "opencode.db")
    database.now = int(time.time() * 1000)
    database.session(session("ses_1"))
    database.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "short"))
    source, intake = DatabaseSource(Connection(database.path)), intake_of(archive)
    intake.scan(source)
    database.part(text("prt_1", "msg_1", "ses_1", "short, and then some"), updated=database.now)
    intake.scan(source, source.touched())
    message = archive.message("msg_1")
    assert message is not None
    assert message.parts[0].data["text"] == "short, and then some"
    source.close()
    database.close()


def test_the_records_and_the_file_edits_of_a_message_are_in_the_same_commit(tmp_path: Path, archive: Archive) -> None:
    store = JsonStore(tmp_path)
    store.session(session("ses_1", directory="/home/dev/p"))
    state = {
        "status": "completed",
        "input": {"filePath": "/home/dev/p/a.txt", "content": "hello\n"},
        "output": "Wrote file successfully.",
        "metadata": {"exists": False},
        "time": {"start": 5, "end": 6},
    }
    store.message(assistant("msg_1", "ses_1"), tool("prt_1", "msg_1", "ses_1", "write", state))
    taken = intake_of(archive).scan(JsonTree(store.storage))
    message = archive.message("msg_1")
    assert message is not None
    assert [part.data["state"] for part in message.parts] == [state]
    assert [edit.content for edit in archive.files.edits("/home/dev/p/a.txt")] == ["hello\n"]
    assert taken.places == {"/home/dev/p", "/home/dev/p/a.txt"}
