"""The same commands with a daemon and without one: the same work, the same shape of answer. And all of it once, from cron."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.talk import PROJECT, Talk, words
from tests.support.processes.daemon_process import Daemon
from tests.support.stores.make_opencode import JsonStore

NOTES = f"{PROJECT}/notes.md"


@pytest.fixture
def talk(data_dir: Path) -> Talk:
    made = Talk(JsonStore(data_dir))
    made.ask(f"Write down {words(1)}.")
    made.write(NOTES, f"{words(2)}\n")
    return made


def answer(daemon: Daemon, *arguments: str) -> dict[str, Any]:
    done = daemon.ask(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def shape(value: Any, path: str = "") -> set[str]:
    """Every place in a JSON value, of lists their first entry."""
    if isinstance(value, dict):
        return {f"{path}/{key}" for key in value}.union(*(shape(item, f"{path}/{key}") for key, item in value.items()))
    return shape(value[0], f"{path}[]") if isinstance(value, list) and value else set()


def page(daemon: Daemon) -> str:
    return (daemon.output_dir / f"{NOTES[1:]}.md").read_text()


def commands(daemon: Daemon) -> dict[str, dict[str, Any]]:
    return {
        "index": answer(daemon, "index", "--wait"),
        "words": answer(daemon, "search", "--match", "literal", words(2)),
        "meaning": answer(daemon, "search", "--expand", "messages", f"Write down {words(1)}."),
        "pages": answer(daemon, PROJECT),
        "status": answer(daemon, "status"),
    }


def test_answers_are_the_same_with_and_without_a_daemon(make_daemon: Callable[..., Daemon], talk: Talk) -> None:
    daemon = make_daemon(targets=[{"path": PROJECT}])
    alone = commands(daemon)
    daemon.run(fork=False)
    daemon.wait_until_drained()
    served = commands(daemon)

    shapes = [{name: shape(value) for name, value in answers.items()} for answers in (alone, served)]
    status = [each.pop("status") for each in shapes]
    assert shapes[0] == shapes[1]
    assert status[1] - status[0] <= {f"/sources[]/{name}" for name in ("seen", "kept", "skipped")}  # a scan counts them
    assert status[0] <= status[1]
    for name in ("words", "meaning"):
        ids = [[hit["messageID"] for hit in answers[name]["results"]] for answers in (alone, served)]
        assert ids[0] == ids[1] != []
    assert alone["meaning"]["expanded"] == served["meaning"]["expanded"]
    assert (alone["index"]["changed"], served["index"]["changed"]) == (3, 0)
    assert (alone["pages"]["written"] > 0, served["pages"]["written"]) == (True, 0)
    assert (alone["status"]["running"], served["status"]["running"]) == (False, True)
    assert daemon.process is not None
    assert served["status"]["pid"] == daemon.process.pid
    assert words(2) in page(daemon)


def test_a_command_without_a_daemon_sees_what_was_written_just_now(daemon: Daemon, talk: Talk) -> None:
    assert [hit["snippet"] for hit in answer(daemon, "search", "--match", "literal", words(2))["results"]] != []
    talk.write(NOTES, f"{words(3)}\n")
    assert len(answer(daemon, "search", "--match", "literal", words(3))["results"]) == 1
    talk.write(NOTES, f"{words(4)}\n")
    answer(daemon, PROJECT)
    assert words(4) in page(daemon)
    assert answer(daemon, "status")["archive"]["messages"] == 4


def test_a_command_without_a_daemon_says_what_it_could_not_read(daemon: Daemon, data_dir: Path, talk: Talk) -> None:
    (data_dir / "opencode.db").write_bytes(b"no database at all" * 100)
    for arguments in (["index"], ["search", words(1)], [PROJECT]):
        warnings = answer(daemon, *arguments)["warnings"]
        assert any("opencode.db" in warning for warning in warnings), arguments


def test_once_reads_indexes_and_does_all_that_waits_and_ends(make_daemon: Callable[..., Daemon], talk: Talk) -> None:
    daemon = make_daemon(targets=[{"path": PROJECT}])
    daemon.drop_request("notes.toml", f'path = "{NOTES}"\noutput = "{daemon.output_dir}-2"\n')
    daemon.drop_request("bad.txt", "relative\n")

    done = daemon.ask("run", "--once")

    assert (done.returncode, done.stdout) == (1, ""), done.stderr  # one request is refused
    assert words(2) in page(daemon)
    assert [path.parent.name for path in daemon.wait_for_results(2, 0)] == ["done", "failed"]
    assert Path(f"{daemon.output_dir}-2/{NOTES[1:]}").exists()
    status = answer(daemon, "status")
    assert status["outbox"] == {"lexical": 0, "semantic": 0, "tools": 0}
    assert status["archive"]["messages"] == 2
    before = {path: path.stat().st_mtime_ns for path in daemon.output_dir.rglob("*")}
    assert daemon.ask("run", "--once").returncode == 0
    assert {path: path.stat().st_mtime_ns for path in daemon.output_dir.rglob("*")} == before


def test_once_follows_the_targets_that_a_request_asked_to_follow(daemon: Daemon, talk: Talk) -> None:
    daemon.drop_request("notes.toml", f'path = "{PROJECT}"\nrefresh = "continuous"\n')
    assert daemon.ask("run", "--once").returncode == 0
    talk.write(NOTES, f"{words(3)}\n")
    assert daemon.ask("run", "--once").returncode == 0
    assert words(3) in page(daemon)


def test_what_is_private_is_readable_by_us_alone(daemon: Daemon, talk: Talk) -> None:
    daemon.run()
    daemon.wait_until_drained()
    assert daemon.ask(PROJECT).returncode == 0
    daemon.terminate()
    for place in (daemon.archive_dir, daemon.output_dir, daemon.requests_dir, daemon.socket.parent):
        assert place.stat().st_mode & 0o077 == 0, place


@pytest.mark.parametrize("command", [("recall", "--match", "semantic"), ("search", "--match", "semantic")])
def test_without_a_daemon_the_first_question_by_meaning_is_answered(
    make_daemon: Callable[..., Daemon], talk: Talk, command: tuple[str, ...]
) -> None:
    done = make_daemon(tables={"embedding": {"provider": "builtin"}}).ask(*command, f"Write down {words(1)}.")
    assert done.returncode == 0, done.stderr
    assert words(1) in done.stdout
    assert "waiting" not in done.stderr


def test_without_a_daemon_and_a_model_meaning_is_not_said_to_find_nothing(
    make_daemon: Callable[..., Daemon], talk: Talk
) -> None:
    nobody = {"provider": "ollama", "url": "http://127.0.0.1:9", "model": "all-minilm"}
    done = make_daemon(tables={"embedding": nobody}).ask("recall", "--match", "semantic", words(1))
    assert (done.returncode, done.stdout) == (75, "")
    assert "http://127.0.0.1:9" in done.stderr
    assert "being built" not in done.stderr
