"""`status` says how far the archive is behind, how large everything is and what needs a person, and does no work."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from daemon.cli.subcommands import status
from daemon.control.answers import Status, from_json
from daemon.forget import erasure
from daemon.opencode.discover import Sources
from daemon.records import OWN_SESSION_TITLE
from tests.support.stores.make_opencode import T0, Database, Database2, JsonStore, session, text, user
from tests.unit.doctor.installations import Installation


def answered(there: Installation) -> tuple[int, Status]:
    code, out = there.run("status", "--json")
    return code, from_json(json.loads(out), Status)


def test_it_reads_nothing_and_says_how_far_it_is_behind(installation: Installation) -> None:
    assert answered(installation)[1].lag_seconds == 0
    installation.add("msg_9", created=T0 + 7000)
    for _ in range(2):
        code, answer = answered(installation)
        assert (answer.archive.messages, answer.outbox["lexical"]) == (6, 0)
        assert (answer.newest, answer.lag_seconds, answer.sources[0].newest) == (T0, 7.0, T0 + 7000)
    assert code == 1  # T0 is long ago, and no service follows
    assert "7 s behind the sources" in installation.run("status")[1]
    installation.run("index")
    assert answered(installation)[1].lag_seconds == 0


def test_sessions_of_our_own_make_no_lag(installation: Installation) -> None:
    database = Database(installation.source / "opencode.db")
    database.session(session("ses_own", title=f"{OWN_SESSION_TITLE} chat 0a1b2c3d-41-99"))
    database.message(user("msg_own", "ses_own", T0 + 9000), text("prt_own", "msg_own", "ses_own", "What is it?"))
    database.close()
    code, answer = answered(installation)
    assert (code, answer.lag_seconds) == (0, 0.0)


def test_what_was_forgotten_makes_no_lag(installation: Installation) -> None:
    installation.add("msg_gone", session_id="ses_gone", created=T0 + 9000)
    installation.add("msg_9", created=T0 + 8000)
    installation.run("index")
    for name in ("ses_gone", "msg_9"):
        assert installation.run("forget", name, "--yes")[0] == 0
        assert answered(installation)[1].lag_seconds == 0
    database = Database(installation.source / "opencode.db")
    database.session(session("ses_late", parentID="ses_gone"))
    database.message(user("msg_late", "ses_late", T0 + 9500), text("prt_late", "msg_late", "ses_late", "kale"))
    database.close()
    code, answer = answered(installation)
    assert (code, answer.lag_seconds, answer.newest) == (0, 0.0, T0)


def test_an_erasure_that_is_not_complete_needs_attention(installation: Installation) -> None:
    with installation.archive() as archive:
        batch = archive.batch()
        archive.forgotten.set_pending(batch, {"stage": erasure.FILES})
        archive.commit(batch)
    for _ in range(2):
        code, answer = answered(installation)
        assert (code, [row.what for row in answer.troubles]) == (1, ["forgetting"])
    assert installation.rows()[1]["forgetting"]["fix"] == f"{installation.program} index"
    assert installation.run("index")[0] == 0
    assert answered(installation)[0] == 0


def test_the_newest_message_is_found_in_every_kind_of_source(tmp_path: Path) -> None:
    tree = JsonStore(tmp_path)
    for number in range(3):
        tree.session(session(f"ses_{number}"))
        tree.message(user(f"msg_{number}", f"ses_{number}"))
    file = tree.storage / "message" / "ses_1" / "msg_1.json"
    os.utime(file, (T0 / 1000, T0 / 1000 + 10_000_000))
    os.utime(file.parent)
    database = Database2(tmp_path / "opencode.db")
    database.session("ses_new")
    for number in range(20):
        database.message(f"msg_new{number}", "ses_new", "user", number, {"text": "hello"})
    database.close()
    sources = Sources(tmp_path, 64)
    found = {source.kind.split(" ")[0]: sources.newest(source) for source in sources.refresh()}
    sources.close()
    assert (found["JSON"][0].message_id, found["JSON"][0].session_id) == ("msg_1", "ses_1")
    assert found["SQLite"][0].session_id == "ses_new"
    assert "msg_new19" in {message.message_id for message in found["SQLite"]}


def test_the_sizes_are_those_on_the_disk(installation: Installation) -> None:
    before = answered(installation)[1].sizes
    with installation.archive() as archive:
        archive.large_files.keep([os.urandom(1 << 20)] * 3, 3 << 20)
    (installation.archive_dir / "notes").write_bytes(os.urandom(1 << 20))
    after = answered(installation)[1].sizes
    assert after.total - before.total >= 1 << 20
    assert before.total >= before.archive + before.words > 0
    assert before.meaning == 0


@pytest.mark.parametrize(("tables", "code"), [({}, 0), ({"limits": {"free_mb": 1 << 40}}, 2)])
def test_it_ends_as_doctor_does_where_a_person_is_needed(
    installation: Installation, tables: dict[str, dict[str, Any]], code: int
) -> None:
    installation.write(tables)
    assert answered(installation)[0] == installation.rows()[0] == code
    shutil.rmtree(installation.source)
    assert installation.run("status")[0] == max(code, 1)
    assert "no such directory" in installation.run("status")[1]


def test_the_configuration_file_in_use_is_named(installation: Installation) -> None:
    assert answered(installation)[1].config_file == str(installation.config)
    assert list(status._settings(Status(config_file="/nowhere/c.toml"))) == [
        "/nowhere/c.toml (not there; the defaults apply)"
    ]
