"""A path that no session touched: every command that takes one says so, names what is near, and ends with 4."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import click
import pytest

from daemon.archive.paths import similar
from daemon.cli import COMMANDS, main, reconstitute
from daemon.cli.settings import Settings
from daemon.config import load
from daemon.errors import BadRequest, NotRecorded
from daemon.mcp import ServiceCaller, tools
from tests.e2e.talk import Talk
from tests.support.stores.make_opencode import JsonStore, one_written_file

KNOWN, UNKNOWN = "/work/shop", "/elsewhere/work/shop"

CALLS: dict[str, list[list[str]]] = {
    "files": [["files", "PATH"], ["files", "PATH", "--lost"], ["files", "PATH", "--json"]],
    "history": [["history", "PATH/a.txt"], ["history", "PATH/a.txt", "--lines", "--diff"]],
    "show": [["show", "PATH/a.txt"], ["show", "PATH/a.txt", "--raw", "--json"]],
    "restore": [["restore", "PATH", "--to", "TO"], ["restore", "PATH/a.txt", "--to", "TO", "--deleted", "--json"]],
    "recall-files": [["recall-files", "PATH"], ["recall-files", "PATH", "--json"]],
    "recall": [["recall", "kingfisher", "--path", "PATH", "--match", "literal"]],
    "export": [["export", "--format", "jsonl", "--path", "PATH"]],
    ":path": [["PATH"], ["PATH", "--json"]],
}
"""Every way to name a path, by command; of a known one each ends with something else than 4."""

OTHERWISE = {
    "trajectory": "says that no run of the path is kept, and which paths have one",
    "search": "is `recall`",
    "open": "knows the pages alone, and says how to make them",
    "alias": "is what one says of a path; of an unknown one it warns, see below",
}
_NAMES = {"path", "file", "old", "--path"}
"""What a parameter that takes a recorded path is called."""

each_call = pytest.mark.parametrize("words", [words for calls in CALLS.values() for words in calls], ids=" ".join)


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JsonStore:
    store = one_written_file(tmp_path / "opencode", "shop", "kingfisher")
    places = {"OPENCODE_DIR": "opencode", "ARCHIVE_DIR": "archive", "OUTPUT_DIR": "output"}
    for name, place in places.items():
        monkeypatch.setenv(f"RECONSTITUTE_{name}", str(tmp_path / place))
    return store


def _run(words: list[str], path: str, tmp_path: Path) -> int:
    return main([word.replace("PATH", path).replace("TO", str(tmp_path / "new")) for word in words])


def test_each_command_that_takes_a_path_is_among_these() -> None:
    context = click.Context(reconstitute)
    taking = set()
    for name in (*COMMANDS, ":path"):
        command = reconstitute.get_command(context, name)
        assert command is not None
        named = {word for param in command.params for word in (param.name, *param.opts)}
        if named & _NAMES:
            taking.add(name)
    assert taking == set(CALLS) | set(OTHERWISE)


@each_call
def test_an_unknown_path_is_said_to_be_so_and_ends_with_4(words: list[str], tmp_path: Path, capfd: Any) -> None:
    assert _run(words, UNKNOWN, tmp_path) == 4
    out, err = capfd.readouterr()
    assert "no session touched it" in out + err
    assert KNOWN in err or KNOWN in out
    assert "missing" not in out


@each_call
def test_a_known_path_does_not_end_with_4(words: list[str], tmp_path: Path, capfd: Any) -> None:
    assert _run(words, KNOWN, tmp_path) == 0
    assert "no session touched it" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("words", [[], ["--lost"]], ids=["all", "lost"])
def test_before_its_first_record_a_path_is_not_said_to_be_whole(words: list[str], capfd: Any) -> None:
    assert main(["files", KNOWN, "--at", "2020-01-01", *words]) == 4
    out, err = capfd.readouterr()
    assert out == ""
    assert "nothing was recorded of it by then" in err


@pytest.mark.parametrize("command", ["history", "show"])
def test_a_folder_is_not_said_to_be_unknown(command: str, capfd: Any) -> None:
    assert main([command, KNOWN]) == 4
    assert "is a folder; `reconstitute files /work/shop` lists what is recorded" in capfd.readouterr().err


@pytest.mark.parametrize("command", ["files", "history", "show"])
def test_a_folder_without_files_is_called_one(command: str, store: JsonStore, capfd: Any) -> None:
    Talk(store, "ses_empty", "/work/empty").call("bash", {"command": "mkdir -p /work/shop/new"}, "")
    for folder in ("/work/empty", "/work/shop/new"):
        assert main([command, folder]) == 4
        assert f"{folder}: is a folder; no file in it is recorded" in capfd.readouterr().err


def test_an_alias_of_an_unknown_folder_is_warned_of(capfd: Any) -> None:
    assert main(["files", KNOWN]) == main(["alias", UNKNOWN, "/work/new"]) == 0
    assert f"{UNKNOWN}: no session touched it" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["recall_files", "file_history", "read_file", "reconstitute"])
def test_an_agent_is_told_what_is_near(name: str) -> None:
    settings = Settings()
    caller = ServiceCaller(load, lambda config: settings.log(config, default_level="error"))

    def call() -> str:
        answer = caller.ask(lambda service: tools.call(service, name, {"path": UNKNOWN}, "/"), threading.Event())
        return " ".join(answer["warnings"])

    refused = {"reconstitute": NotRecorded, "read_file": BadRequest}
    if name in refused:
        with pytest.raises(refused[name], match=f"near it: {KNOWN}"):
            call()
    else:
        assert f"near it: {KNOWN}" in call()


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("/root/code/csv-cli", "/home/dev/code/csv-cli"),
        ("/home/dev/code/csv-cli/main.py", "/home/dev/code/csv-cli/csvcli/main.py"),
        ("/home/dev/code/cvs-cli", "/home/dev/code/csv-cli"),
        ("/home/dev/code/csv-cli/unheard", "/home/dev/code/csv-cli"),
        ("/nowhere/at-all", ""),
    ],
)
def test_the_likeliest_recorded_path_comes_first(path: str, near: str) -> None:
    recorded = [f"/home/dev/code/{name}" for name in ("csv-cli/csvcli/main.py", "csv-cli/poem.txt", "todo-api/app.py")]
    assert (similar(path, recorded) or [""])[0] == near
