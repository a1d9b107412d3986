"""One daemon for an archive: a second is refused, a dead one leaves nothing in the way, what is new becomes searchable
within seconds however its store comes to be, and OpenCode's files stay as they are."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from tests.e2e.talk import PROJECT, Talk, snapshot, words
from tests.support.processes.daemon_process import Daemon, until
from tests.support.stores.make_opencode import T0, Database, Database2, JsonStore, text


def found(daemon: Daemon, word: str) -> list[str]:
    return [hit["messageID"] for hit in daemon.search(word)]


def _finds(daemon: Daemon, word: str, message_id: str) -> bool:
    return found(daemon, word) == [message_id]


def test_a_second_daemon_is_refused_with_the_pid_of_the_first(daemon: Daemon, data_dir: Path) -> None:
    """The first daemon goes on undisturbed."""
    asked = Talk(JsonStore(data_dir)).ask(f"Where is the {words(1)}?")
    daemon.run()
    assert daemon.process is not None

    second = daemon.ask("run")

    assert (second.returncode, second.stdout) == (73, "")
    assert f"pid {daemon.process.pid}" in second.stderr
    assert "in use by another Reconstitute" in second.stderr
    assert "wait until it has ended" in second.stderr
    assert "kill" not in second.stderr
    assert "Traceback" not in second.stderr
    until(lambda: [hit["messageID"] for hit in daemon.search(words(1))] == [asked])
    assert daemon.status()["pid"] == daemon.process.pid
    assert daemon.terminate()[0] == 0


def test_what_a_killed_daemon_leaves_behind_does_not_stop_the_next_one(daemon: Daemon, data_dir: Path) -> None:
    asked = Talk(JsonStore(data_dir)).ask(f"Where is the {words(2)}?")
    daemon.run()
    daemon.kill()
    assert stat.S_ISSOCK(daemon.socket.stat().st_mode)

    daemon.run()

    until(lambda: [hit["messageID"] for hit in daemon.search(words(2))] == [asked])
    assert daemon.terminate()[0] == 0
    assert not daemon.socket.exists()


def test_a_killed_daemon_leaves_its_lock_to_a_single_command(daemon: Daemon, data_dir: Path) -> None:
    Talk(JsonStore(data_dir)).ask(f"Where is the {words(3)}?")
    daemon.run()
    daemon.kill()

    found = daemon.ask("search", "--match", "literal", words(3))

    assert found.returncode == 0, found.stderr
    assert words(3) in found.stdout


def test_a_store_that_appears_after_the_start_is_found(make_daemon: Callable[..., Daemon], data_dir: Path) -> None:
    daemon = make_daemon(make_data_dir=False)
    daemon.run()
    assert not data_dir.exists()
    nothing = until(lambda: daemon.status()["sources"])
    assert "OpenCode has not run here yet" in nothing[0]["state"]

    tree = Talk(JsonStore(data_dir), "ses_tree")
    first = tree.ask(f"The {words(1)}.")
    until(lambda: found(daemon, words(1)) == [first])
    database = Database(data_dir / "opencode.db")
    second = Talk(database, "ses_db").ask(f"The {words(2)}.")
    until(lambda: found(daemon, words(2)) == [second])
    third = tree.ask(f"The {words(3)}.")
    until(lambda: found(daemon, words(3)) == [third])
    assert {source["state"] for source in daemon.status()["sources"]} == {"ok"}
    database.close()


def test_tables_that_come_long_after_their_file_are_found(daemon: Daemon, data_dir: Path) -> None:
    tree = Talk(JsonStore(data_dir), "ses_tree")
    daemon.run()
    path = data_dir / "opencode.db"
    sqlite3.connect(path).execute("PRAGMA journal_mode=WAL").connection.close()
    for number in (41, 42):  # the daemon has looked since
        seen = tree.ask(f"The {words(number)}.")
        until(partial(_finds, daemon, words(number), seen))

    database = Database(path)
    told = Talk(database).ask(f"The {words(4)}.")

    until(lambda: found(daemon, words(4)) == [told])
    database.close()


def test_a_database_taken_over_by_opencode_2_is_followed_in_its_new_tables(daemon: Daemon, data_dir: Path) -> None:
    database = Database(data_dir / "opencode.db")
    told = Talk(database).ask(f"The {words(5)}.")
    daemon.run()
    until(lambda: found(daemon, words(5)) == [told])

    newer = Database2(data_dir / "opencode.db")
    newer.session("ses_two")
    newer.message("msg_two", "ses_two", "user", 1, {"text": f"The {words(6)}."})
    until(lambda: found(daemon, words(6)) == ["msg_two"])
    newer.message("msg_two", "ses_two", "user", 1, {"text": f"The {words(7)}."})
    until(lambda: found(daemon, words(7)) == ["msg_two"])
    database.close()
    newer.close()


def test_without_any_file_events_new_messages_are_found_all_the_same(
    make_daemon: Callable[..., Daemon], data_dir: Path
) -> None:
    tree = Talk(JsonStore(data_dir), "ses_tree")
    daemon = make_daemon(tables={"watch": {"enabled": False, "scan_minutes": 0.02}})
    daemon.run()
    database = Database(data_dir / "opencode.db")
    told = {words(10 + n): tree.ask(f"The {words(10 + n)}.") for n in range(5)}
    told |= {words(20 + n): Talk(database, f"ses_db{n}").ask(f"The {words(20 + n)}.") for n in range(5)}

    assert set(daemon.wait_until_found(told)) == set(told)
    database.close()


def test_a_burst_of_new_nested_folders_is_complete_at_once(daemon: Daemon, data_dir: Path) -> None:
    store = JsonStore(data_dir)
    daemon.run()
    told = {words(n): Talk(store, f"ses_{n:03d}", f"/home/dev/{n}").ask(f"The {words(n)}.") for n in range(60)}

    assert set(daemon.wait_until_found(told)) == set(told)
    assert daemon.status()["archive"]["messages"] == 60


def test_a_store_deleted_and_recreated_is_followed_and_loses_nothing(daemon: Daemon, data_dir: Path) -> None:
    before = Talk(JsonStore(data_dir), "ses_old").ask(f"The {words(1)}.")
    daemon.run()
    until(lambda: found(daemon, words(1)) == [before])

    shutil.rmtree(data_dir)
    until(lambda: any("gone" in source["state"] for source in daemon.status()["sources"]))
    after = Talk(JsonStore(data_dir), "ses_new").ask(f"The {words(2)}.")

    until(lambda: found(daemon, words(2)) == [after])
    assert found(daemon, words(1)) == [before]


def test_a_database_locked_at_the_first_scan_is_read_as_soon_as_it_is_free(daemon: Daemon, data_dir: Path) -> None:
    database = Database(data_dir / "opencode.db")
    told = Talk(database).ask(f"The {words(3)}.")
    database.close()
    blocker = sqlite3.connect(data_dir / "opencode.db", isolation_level=None)
    blocker.execute("PRAGMA locking_mode=EXCLUSIVE")
    blocker.execute("BEGIN EXCLUSIVE")
    blocker.execute("UPDATE session SET time_updated = ?", (T0,))
    daemon.run()
    until(lambda: any("locked" in source["state"] for source in daemon.status()["sources"]))

    blocker.execute("COMMIT")
    blocker.close()

    until(lambda: found(daemon, words(3)) == [told])


@pytest.mark.parametrize("kind", ["json", "database"])
def test_an_answer_becomes_searchable_when_it_is_finished(daemon: Daemon, data_dir: Path, kind: str) -> None:
    store = JsonStore(data_dir) if kind == "json" else Database(data_dir / "opencode.db")
    talk = Talk(store)
    talk.ask("Tell me.")
    daemon.run()
    told = talk.answer("It begins")
    for word in ("and goes on", f"and ends with {words(9)}."):
        store.part({"id": f"prt_{told}_0", "sessionID": "ses_a", "messageID": told, "type": "text", "text": word})

    until(lambda: found(daemon, words(9)) == [told])
    if isinstance(store, Database):
        store.close()


def test_the_daemon_leaves_opencode_files_byte_for_byte_unchanged(
    make_daemon: Callable[..., Daemon], data_dir: Path
) -> None:
    tree = Talk(JsonStore(data_dir), "ses_json")
    database = Database(data_dir / "opencode.db")
    talk = Talk(database, "ses_db")
    newer = Database2(data_dir / "opencode-next.db")
    newer.session("ses_new")
    newer.message("msg_new", "ses_new", "user", 1, {"text": f"About {words(13)}."})
    tree.ask(f"About {words(11)}.")
    talk.write(f"{PROJECT}/notes.md", f"{words(12)}\n")
    before = snapshot(data_dir)
    assert {path.split("/")[0] for path in before} >= {"storage", "opencode.db", "opencode.db-wal", "opencode-next.db"}
    daemon = make_daemon(targets=[{"path": PROJECT}])
    daemon.run()
    for number in (11, 12, 13):
        until(partial(daemon.search, words(number)))
    daemon.drop_request("garden.txt", f"{PROJECT}\n")
    assert [path.parent.name for path in daemon.wait_for_results(1)] == ["done"]
    daemon.wait_until_drained()
    assert daemon.terminate()[0] == 0
    for arguments in (["index"], ["search", words(11)], ["status"], [PROJECT], ["run", "--once"]):
        done = daemon.ask(*arguments)
        assert done.returncode == 0, done.stderr

    assert snapshot(data_dir) == before
    database.close()
    newer.close()


def test_a_database_nobody_has_open_gets_at_most_an_empty_wal(daemon: Daemon, data_dir: Path) -> None:
    database = Database(data_dir / "opencode.db")
    Talk(database).ask(f"About {words(14)}.")
    database.close()
    before = snapshot(data_dir)
    assert set(before) == {"opencode.db"}

    found = daemon.ask("search", "--match", "literal", words(14))

    assert words(14) in found.stdout
    nothing = {"opencode.db-wal": sha256(b"").hexdigest()}  # SQLite makes it for any reader
    assert before | nothing == snapshot(data_dir) | nothing


def test_a_shortened_text_is_shown_and_found_and_its_old_wording_is_not(daemon: Daemon, data_dir: Path) -> None:
    database = Database(data_dir / "opencode.db")
    talk = Talk(database)
    asked = talk.ask(f"Please plant the {words(1)} beside the {words(2)}, with plenty of room between them.")
    talk.answer(f"The {words(3)} is planted.")
    daemon.run()
    until(lambda: found(daemon, words(1)) == [asked])
    daemon.wait_until_drained()

    database.part(text(f"prt_{asked}", asked, talk.session_id, f"Plant the {words(4)}."))

    until(lambda: found(daemon, words(4)) == [asked])
    daemon.wait_until_drained()
    assert found(daemon, words(1)) == []
    hits = [hit for mode in ("semantic", "hybrid") for hit in daemon.search("please plant with plenty of room", mode)]
    assert asked in [hit["messageID"] for hit in hits]
    assert words(1) not in str(hits)
    for command in (
        ["recall", f"plant {words(4)}"],
        ["recall-messages", talk.session_id],
        ["recall-get", asked],
        ["export", "--format", "jsonl"],
    ):
        shown = daemon.ask(*command)
        assert shown.returncode == 0, shown.stderr
        assert words(4) in shown.stdout, command
        assert words(1) not in shown.stdout, command
    database.close()
