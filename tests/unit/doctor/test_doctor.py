"""Each check of `doctor` fails for real, says what that means, and names what mends it."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from daemon.app.engine import Engine
from daemon.app.indexing import Interrupted
from daemon.archive import keys
from daemon.cli.subcommands import service
from daemon.config import load
from daemon.control import calls
from daemon.doctor import bundle, machine
from daemon.index.lexical import Lexical
from daemon.model import Json
from tests.support.processes.ports import free_port
from tests.support.servers.fake_ollama import FakeOllama
from tests.unit.doctor.installations import Installation

DAY_MS = 86_400_000
LEVELS = {"ok": 0, "attention": 1, "broken": 2}


def database_is_garbage(there: Installation) -> None:
    (there.source / "opencode.db").write_bytes(b"no database at all " * 300)


def source_is_gone(there: Installation) -> None:
    shutil.rmtree(there.source)


def source_is_ahead(there: Installation) -> None:
    there.add("msg_9", created=int(time.time() * 1000) - 2 * DAY_MS)


def other_database(there: Installation) -> None:
    shutil.copy(there.source / "opencode.db", there.source / "mine.db")


def words_are_emptied(there: Installation) -> None:
    for path in (there.archive_dir / "index" / "lexical").iterdir():
        path.unlink()


def words_lack_a_message(there: Installation) -> None:
    index = Lexical(there.archive_dir / "index" / "lexical")
    index.remove(["msg_3"])
    index.close()


def table_is_missing(there: Installation) -> None:
    there.archive().close()
    next((there.archive_dir / "leveldb").glob("*.ldb")).unlink()


def part_is_gone(there: Installation) -> None:
    with there.archive() as archive:
        archive._store.write({keys.part("msg_2", "prt_msg_2"): None})


def object_is_another(there: Installation) -> None:
    with there.archive() as archive:
        archive._store.write({keys.stored_object("ab" * 20): b"bsomething else"})


def large_file_is_gone(there: Installation) -> None:
    with there.archive() as archive:
        batch = archive.batch()
        entry = {"sha256": "0" * 64, "bytes": 9, "place": "opencode.db: part prt_1", "origin": [2, 5, "db"]}
        batch.put_large("msg_1", "prt_1", entry)
        archive.commit(batch)


def record_is_from_the_future(there: Installation) -> None:
    there.add("msg_9", session_id="ses_2", created=int(time.time() * 1000) + 3 * DAY_MS)
    there.run("index")


def archive_was_written_later(there: Installation) -> None:
    there.archive().close()  # moves the log into a table
    later = time.time() + 3600
    os.utime(next((there.archive_dir / "leveldb").glob("*.ldb")), (later, later))


def file_is_open_to_others(there: Installation) -> None:
    (there.archive_dir / "leveldb.made").chmod(0o644)


def folder_is_open_to_others(there: Installation) -> None:
    there.archive_dir.chmod(0o755)


def output_is_a_file(there: Installation) -> None:
    there.output.write_text("in the way")


def disk_is_short(there: Installation) -> None:
    there.write({"limits": {"free_mb": 1 << 40}})


def model_server_is_down(there: Installation) -> None:
    there.write({"chat": {"provider": "ollama", "url": f"http://127.0.0.1:{free_port()}"}})


def opencode_server_is_down(there: Installation) -> None:
    there.write({
        "chat": {"provider": "opencode"},
        "opencode": {"server_url": f"http://127.0.0.1:{free_port()}"},
    })  # fmt: skip


def embedder_is_down(there: Installation) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    there.write({"embedding": {"what": "all", "provider": "ollama", "url": url}})


def setting_is_misspelt(there: Installation) -> None:
    there.write({"limits": {"fre_mb": 3}})


def unit_is_edited(_: Installation) -> None:
    path = service.unit_place()
    path.parent.mkdir(parents=True)
    path.write_text(service.unit_text(["/bin/sh", "run"]).replace("Nice=10", "Nice=0"))


def unit_starts_what_is_gone(_: Installation) -> None:
    path = service.unit_place()
    path.parent.mkdir(parents=True)
    path.write_text(service.unit_text(["/nowhere/reconstitute", "run"]))


def target_has_failed(there: Installation) -> None:
    with there.archive() as archive:
        archive.target_put("/home/dev/p", "last", {"state": "failed: no room", "result": {}})
    with there.config.open("a") as file:
        file.write('[[targets]]\npath = "/home/dev/p"\n')


BROKEN: list[tuple[Callable[[Installation], None], str, str, str, str]] = [
    (database_is_garbage, "source", "broken", "not a database", "OpenCode may be able to repair it"),
    (source_is_gone, "source", "attention", "no such directory", "opencode.data_dir"),
    (source_is_ahead, "source", "attention", "has not been archived for 2 days", "service install"),
    (other_database, "sources", "attention", "mine.db is a database of OpenCode", "opencode.databases"),
    (words_are_emptied, "words", "attention", "6 messages not indexed yet", " index"),
    (words_lack_a_message, "words", "broken", "1 of 6 sampled messages are missing", " index"),
    (table_is_missing, "archive", "broken", ".ldb is missing", "directory aside"),
    (part_is_gone, "records", "broken", "part prt_msg_2 of message msg_2 is gone", "backup"),
    (object_is_another, "records", "broken", "another content than its id says", "backup"),
    (large_file_is_gone, "records", "broken", "is missing", "backup"),
    (record_is_from_the_future, "clock", "attention", "the clock is far behind", "timedatectl"),
    (archive_was_written_later, "clock", "attention", "the clock has gone back", "timedatectl"),
    (file_is_open_to_others, "file modes", "attention", "leveldb.made", "chmod -R go="),
    (folder_is_open_to_others, "file modes", "attention", "archive", "chmod -R go="),
    (output_is_a_file, "output.dir", "broken", "not a directory", "move it away"),
    (disk_is_short, "free space", "broken", "writing waits", "free some space"),
    (model_server_is_down, "chat model", "attention", "nothing answers", "ollama serve"),
    (opencode_server_is_down, "chat model", "attention", "nothing answers", "opencode serve"),
    (embedder_is_down, "embedding", "attention", "nothing answers", "ollama serve"),
    (setting_is_misspelt, "configuration", "broken", "did you mean limits.free_mb?", "config check"),
    (unit_is_edited, "unit", "attention", "was edited", "service install --force"),
    (unit_starts_what_is_gone, "unit", "broken", "starts /nowhere/reconstitute", "service install"),
    (target_has_failed, "target", "attention", "no room", " /home/dev/p"),
]


def test_all_is_well_after_an_index(installation: Installation) -> None:
    code, rows = installation.rows()
    assert code == 0, rows
    assert {row["state"] for row in rows.values()} <= {"ok", "not checked"}
    assert {"archive", "records", "clock", "source", "words", "meaning", "chat model"} <= rows.keys()


@pytest.mark.parametrize(("damage", "what", "state", "said", "fix"), BROKEN, ids=[row[0].__name__ for row in BROKEN])
def test_what_is_broken_has_a_row_that_says_what_mends_it(
    installation: Installation, damage: Callable[[Installation], None], what: str, state: str, said: str, fix: str
) -> None:
    damage(installation)
    code, rows = installation.rows()
    row = rows[what]
    assert row["state"] == state, row
    assert said in row["message"], row
    assert fix in row["fix"], row
    assert code == max(LEVELS.get(row["state"], 0) for row in rows.values())


def test_a_model_that_is_missing_is_named_with_its_command(installation: Installation) -> None:
    with FakeOllama() as ollama:
        installation.write({"chat": {"provider": "ollama", "url": ollama.url, "model": "qwen"}})
        row = installation.rows()[1]["chat model"]
    assert (row["state"], row["fix"]) == ("attention", "ollama pull qwen")


def test_full_finds_a_flipped_bit_that_a_sample_does_not_read(installation: Installation) -> None:
    dice = random.Random(3)
    with installation.archive() as archive:
        vector = np.frombuffer(dice.randbytes(1500), dtype=np.uint8).astype(np.float32)
        archive.put_vectors("f", [(f"{number:064x}", vector + number) for number in range(3000)])
    installation.archive().close()  # moves the log into tables
    assert installation.rows("--full")[0] == 0
    largest = max((installation.archive_dir / "leveldb").glob("*.ldb"), key=lambda path: path.stat().st_size)
    raw = bytearray(largest.read_bytes())
    raw[len(raw) // 2] ^= 4
    largest.write_bytes(raw)
    assert installation.rows()[0] == 0
    code, rows = installation.rows("--full")
    assert (code, rows["records"]["state"]) == (2, "broken")
    assert "failed a check" in rows["records"]["message"]


def test_an_emptied_index_of_meaning_is_broken_until_it_is_built(installation: Installation) -> None:
    installation.write({"embedding": {"what": "all"}})
    assert installation.run("index", "--wait")[0] == 0
    row = installation.rows()[1]["meaning"]
    assert row["state"] == "ok"
    assert "6 sampled texts finds itself" in row["message"]
    shutil.rmtree(installation.archive_dir / "index" / "semantic")
    row = installation.rows()[1]["meaning"]
    assert (row["state"], row["fix"]) == ("broken", f"{installation.program} index --wait")
    assert installation.run("index", "--wait")[0] == 0
    assert installation.rows()[1]["meaning"]["state"] == "ok"


def test_a_service_that_stops_need_not_wait_for_doctor(installation: Installation) -> None:
    with Engine(load(installation.config)) as engine:
        read = list[int]()

        def stop(event: Json) -> None:
            if event["phase"] == "entries of the archive read":
                read.append(event["done"])
                engine.stop()

        with pytest.raises(Interrupted):
            engine.call(calls.Doctor(full=True), progress=stop)
    assert len(read) == 1


def test_a_wrong_configuration_leaves_the_archive_alone(installation: Installation) -> None:
    setting_is_misspelt(installation)
    _, rows = installation.rows()
    assert rows["archive"]["state"] == "not checked"


def test_nothing_is_created_where_there_is_no_archive(installation: Installation) -> None:
    shutil.rmtree(installation.archive_dir)
    code, rows = installation.rows()
    assert (code, rows["archive"]["fix"]) == (1, f"{installation.program} index")
    assert not installation.archive_dir.exists()


def test_another_command_that_holds_the_archive_is_named(installation: Installation) -> None:
    with installation.archive():
        code, rows = installation.rows()
    assert rows["archive"]["state"] == "not checked"
    assert f"pid {os.getpid()}" in rows["archive"]["message"]
    assert code == 0


def test_each_row_is_a_line_and_its_command_one_more(installation: Installation) -> None:
    words_are_emptied(installation)
    code, out = installation.run("doctor")
    assert code == 1
    assert "attention    words: " in out
    assert f"→ {installation.program} index" in " ".join(out.split())


def test_a_bundle_holds_no_secret_no_text_and_no_home(
    installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "tok-4f9a8b7c6d5e4f3a2b1c"
    home = Path.home()
    installation.write({
        "adapter": {"token": token},
        "redact": {"extra": ["Bluebird-[0-9]+"]},
        "chat": {"provider": "ollama", "url": "http://me:hunter2secret@127.0.0.1:9"},
        "output": {"dir": str(home / "pages")},
        "exclude": {"paths": ["/w/lawsuit"], "projects": ["/w/divorce"], "agents": ["therapist"]},
    })  # fmt: skip
    file = tmp_path / "report.txt"
    assert installation.run("doctor", "--bundle", str(file))[0] == 1
    report = file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    for hidden in (
        token,
        "Bluebird",
        "hunter2secret",
        "kale",
        str(home),
        "lawsuit",
        "divorce",
        "therapist",
        "`doctor(",
    ):
        assert hidden not in report
    for shown in ("== Checks ==", "chromadb 1.5.9", "output.dir = '~/pages'", "== Log ==", "adapter.token"):
        assert shown in report
    monkeypatch.setattr(bundle, "write", pytest.fail)
    assert installation.run("doctor", "--bundle", str(file))[0] == 73  # never over something that is there


def test_a_bundle_names_our_places_and_no_project(installation: Installation) -> None:
    archive, output = installation.archive_dir, installation.output
    text = (
        f"db:{archive}/opencode.db {output}/shop/README.md: '{output}' target /w/lawsuit: x (/srv/a.py), /usr/bin/git"
    )
    told = bundle.private(text, bundle.places(load(installation.config)))
    assert told == f"db:{archive}/opencode.db {output}/…: '{output}' target /…: x (/…), /usr/bin/git"


def test_an_archive_of_another_user_is_left_to_its_owner(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as other:
        other.setattr(os, "geteuid", lambda: os.getuid() + 1)
        [row] = machine.private(load(installation.config))
    assert (row.state, row.fix.split()[:3]) == ("attention", ["sudo", "-H", "-u"])
    exists = Path.exists

    def refused(path: Path, **more: bool) -> bool:
        if path.parent == installation.archive_dir:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return exists(path, **more)

    monkeypatch.setattr(Path, "exists", refused)
    code, rows = installation.rows()
    assert (code, rows["archive"]["state"], rows["archive"]["fix"]) == (2, "broken", row.fix)


def test_the_rows_in_json_have_every_field(installation: Installation) -> None:
    _, out = installation.run("doctor", "--json")
    answer = json.loads(out)
    assert answer["pid"] is None
    assert all(row.keys() == {"what", "state", "message", "fix"} for row in answer["checks"])
