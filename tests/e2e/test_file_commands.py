"""files, history, show, restore and alias against a real daemon and without one: the same answers, the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.talk import PROJECT, Talk
from tests.support.processes.daemon_process import CHECKOUT, Daemon, until
from tests.support.stores.git_trees import Repository
from tests.support.stores.make_opencode import T0, Database, JsonStore, assistant, session

FILES = {
    "plain.lua": "x = 1\n",
    "crlf.txt": "one\r\ntwo\r\n",
    "bom.txt": "\ufeffx\n",
    "no newline": "last",
    "empty": "",
    "deep/er/ünï cödé 日本.txt": "ß\n",
    'tab\tand "quote"': "odd\n",
    "red\x1b[31m": "odder\n",
    "n" * 255: "long\n",
}


@pytest.fixture
def talk(data_dir: Path) -> Talk:
    made = Talk(JsonStore(data_dir))
    for name, content in FILES.items():
        made.write(f"{PROJECT}/{name}", content)
    made.write(f"{PROJECT}/removed.lua", "was here\n")
    made.call(
        "apply_patch", {"patchText": f"*** Begin Patch\n*** Delete File: {PROJECT}/removed.lua\n*** End Patch"}, "Done"
    )
    made.call("edit", {"filePath": f"{PROJECT}/plain.lua", "oldString": "1", "newString": "2"}, "Done")
    return made


def answer(daemon: Daemon, *arguments: str, code: int = 0) -> Any:
    done = daemon.ask(*arguments, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def raw(daemon: Daemon, *arguments: str) -> bytes:
    return subprocess.run(
        daemon.command(*arguments), cwd=CHECKOUT, env=daemon.environment, capture_output=True, check=True, timeout=240
    ).stdout


def commands(daemon: Daemon, to: Path) -> dict[str, Any]:
    return {
        "files": answer(daemon, "files", PROJECT)["files"],
        "lost": answer(daemon, "files", PROJECT, "--lost")["files"],
        "before": answer(daemon, "files", PROJECT, "--at", str(T0 + 3500))["files"],
        "history": answer(daemon, "history", f"{PROJECT}/plain.lua", "--diff", "--lines"),
        "show": answer(daemon, "show", f"{PROJECT}/plain.lua"),
        "gone": answer(daemon, "show", f"{PROJECT}/removed.lua", code=4),
        "bytes": raw(daemon, "show", f"{PROJECT}/crlf.txt", "--raw"),
        "restore": answer(daemon, "restore", PROJECT, "--to", str(to), "--deleted"),
        "alias": answer(daemon, "alias", "--list"),
    }


def test_file_commands_give_the_same_bytes_with_and_without_a_daemon(
    make_daemon: Callable[..., Daemon], talk: Talk, tmp_path: Path
) -> None:
    daemon = make_daemon()
    alone = commands(daemon, tmp_path / "alone")
    daemon.run(fork=False)
    until(lambda: daemon.status()["archive"]["messages"] == len(FILES) + 3)
    served = commands(daemon, tmp_path / "served")

    assert alone == served
    wanted = {name: content.encode() for name, content in FILES.items()} | {
        "plain.lua": b"x = 2\n",
        "removed.lua": b"was here\n",
    }
    for to in (tmp_path / "alone", tmp_path / "served"):
        assert {str(path.relative_to(to)): path.read_bytes() for path in to.rglob("*") if path.is_file()} == wanted
    assert {entry["file"]: entry["sha256"] for entry in served["restore"]["written"]} == {
        name: hashlib.sha256(content).hexdigest() for name, content in wanted.items()
    }
    assert served["restore"]["skipped"] == []
    assert {file["path"] for file in served["files"]} == {f"{PROJECT}/{name}" for name in wanted}
    assert {file["disk"] for file in served["files"] if not file["deleted"]} == {"missing"}
    assert len(served["before"]) == 3
    assert served["bytes"] == b"one\r\ntwo\r\n"
    assert [revision["grade"] for revision in served["history"]["revisions"]] == ["proven", "proven"]


def test_a_restore_into_what_is_not_a_new_folder_writes_nothing(daemon: Daemon, talk: Talk, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "work").write_text("mine")
    (tmp_path / "link").symlink_to(full)
    for to in (full, full / "work", tmp_path / "link", daemon.archive_dir / "x", talk.store.storage.parent / "x"):
        done = daemon.ask("restore", PROJECT, "--to", str(to))
        assert (done.returncode, done.stdout) == (73, ""), to
    assert [path.name for path in full.iterdir()] == ["work"]
    assert not (talk.store.storage.parent / "x").exists()


def test_the_running_daemon_sees_recent_writes_and_disk_changes(daemon: Daemon, talk: Talk, tmp_path: Path) -> None:
    daemon.run()
    place = tmp_path / "real.txt"
    talk.write(str(place), "written\n")
    until(lambda: daemon.ask("files", str(place)).returncode == 0)  # as long as nothing is known, it is 4
    assert answer(daemon, "files", str(place))["files"][0]["disk"] == "missing"
    place.write_text("written\n")
    assert answer(daemon, "files", str(place))["files"][0]["disk"] == "identical"
    os.truncate(place, 3)
    [found] = answer(daemon, "files", str(place), "--lost")["files"]
    assert (found["disk"], found["grade"]) == ("differs", "proven")


def test_an_alias_set_at_the_daemon_is_kept(daemon: Daemon, talk: Talk) -> None:
    daemon.run()
    until(lambda: daemon.ask("files", PROJECT).returncode == 0)
    assert daemon.ask("alias", PROJECT, "/home/dev/orchard").returncode == 0
    assert [file["path"] for file in answer(daemon, "files", "/home/dev/orchard/empty")["files"]] == [
        "/home/dev/orchard/empty"
    ]
    daemon.terminate()
    assert answer(daemon, "alias", "--list")["aliases"] == [{"old": PROJECT, "new": "/home/dev/orchard"}]


def test_names_that_are_not_utf_8_in_a_snapshot_are_told_apart(daemon: Daemon, data_dir: Path, tmp_path: Path) -> None:
    """One such name must not keep the other files from being listed."""
    work, first, second = tmp_path / "work", os.fsdecode(b"caf\xe9.txt"), os.fsdecode(b"caf\xe8.txt")
    tree = Repository(data_dir, "pid", work).write({first: b"1\n", second: b"two\n", "plain.txt": b"three\n"})
    database = Database(data_dir / "opencode.db")
    database.session(session("ses_a", str(work)))
    ids = {"sessionID": "ses_a", "messageID": "msg_a"}
    answer = assistant("msg_a", "ses_a", T0 + 10, path={"cwd": str(work), "root": str(work)})
    database.message(answer, {"id": "prt_a", "type": "step-finish", "snapshot": tree, **ids})
    database.close()
    daemon.run()
    daemon.wait_until_drained()
    until(lambda: daemon.ask("files", str(work)).returncode == 0 and len(listed(daemon, str(work))) == 3)
    assert {os.path.basename(entry["path"]): entry["grade"] for entry in listed(daemon, str(work))} == {
        first: "proven",
        second: "proven",
        "plain.txt": "proven",
    }
    assert daemon.ask("show", f"{work}/{first}").stdout == "1\n"
    assert daemon.ask("restore", str(work), "--to", str(tmp_path / "back")).returncode == 0
    assert (tmp_path / "back" / second).read_bytes() == b"two\n"
    assert daemon.ask(str(work), "--output", str(tmp_path / "out")).returncode == 0
    assert daemon.ask("forget", f"{work}/{first}", "--yes").returncode == 0
    assert sorted(os.path.basename(entry["path"]) for entry in listed(daemon, str(work))) == [second, "plain.txt"]


def listed(daemon: Daemon, folder: str) -> list[dict[str, Any]]:
    return json.loads(daemon.ask("files", folder, "--json").stdout)["files"]
