"""A service on one archive, and commands that mean another archive, source or output: none is answered from the wrong one.

Each command runs in this process (`main`), the service in its own: what is shown is where the answer came from.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from daemon.cli import main
from daemon.cli.commands import COMMANDS
from daemon.cli.settings import Settings
from daemon.config import load
from daemon.errors import ConfigError
from daemon.mcp.asking import Asking
from tests.daemon_process import Daemon, _toml
from tests.make_opencode import one_written_file

SERVED, MEANT = "/work/served", "/work/meant"
WAYS = ("environment", "default file", "--config")

COMMANDS_AND_MARKS: dict[str, tuple[list[str], str]] = {
    "recall": (["recall", "kingfisher", "--match", "literal"], "msg_meant"),
    "recall-get": (["recall-get", "msg_meant"], "kingfisher"),
    "recall-context": (["recall-context", "msg_meant"], "kingfisher"),
    "recall-messages": (["recall-messages", "ses_meant"], "kingfisher"),
    "recall-sessions": (["recall-sessions"], "ses_meant"),
    "recall-timeline": (["recall-timeline", "msg_meant"], "msg_meant"),
    "recall-files": (["recall-files", f"{MEANT}/a.txt"], "ses_meant"),
    "search": (["search", "kingfisher"], "msg_meant"),
    "files": (["files", MEANT], "a.txt"),
    "history": (["history", f"{MEANT}/a.txt"], "1 revision"),
    "show": (["show", f"{MEANT}/a.txt"], "kingfisher"),
    "restore": (["restore", MEANT, "--to", "TO"], "Wrote 1 file"),
    "export": (["export", "--format", "jsonl", "--session", "ses_meant"], "kingfisher"),
    "alias": (["alias", "--list"], "/old/meant is now"),
    "trajectory": (["trajectory"], ""),
    "status": (["status", "--json"], "meant-archive"),
    "index": (["index"], ""),
    ":path": ([MEANT], "Read "),
}
"""Of each command a call, and what its answer holds when it comes from the archive that is meant."""

NO_CLIENTS = {
    "run": "is the service; beside another one it is refused by the socket, --once needs none",
    "mcp": "asks as `Asking` does, see below",
    "adapter": "asks OpenCode, never the service",
    "service": "asks systemd; its status is compared in test_service_unit.py",
    "config": "reads the configuration alone",
}


@dataclass
class Places:
    """A service, and the archive, source and output that it does not have."""

    service: Daemon
    root: Path

    def other(self, thing: str) -> dict[str, str]:
        return {
            "archive": {"RECONSTITUTE_ARCHIVE_DIR": str(self.root / "meant-archive")},
            "source": {"RECONSTITUTE_OPENCODE_DIR": str(self.root / "meant-source")},
            "output": {"RECONSTITUTE_OUTPUT_DIR": str(self.root / "meant-output")},
        }[thing]


_KEYS = {
    "RECONSTITUTE_ARCHIVE_DIR": ("archive", "dir"),
    "RECONSTITUTE_OPENCODE_DIR": ("opencode", "data_dir"),
    "RECONSTITUTE_OUTPUT_DIR": ("output", "dir"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    root = tmp_path_factory.mktemp("other")
    one_written_file(root / "served-source", "served", "heron")
    one_written_file(root / "meant-source", "meant", "kingfisher")
    with Daemon(root / "served-source", root / "ours") as service:
        service.run()
        yield Places(service, root)


@pytest.fixture
def places(made: Places, monkeypatch: pytest.MonkeyPatch) -> Places:
    """The service answers, and the archive that it does not have holds what the other source had."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(made.service.runtime_dir))
    monkeypatch.chdir(made.root)
    if not (made.root / "meant-archive").exists():
        with pytest.MonkeyPatch.context() as alone:
            alone.setenv("XDG_RUNTIME_DIR", str(made.root / "nobody"))
            for name, value in (made.other("archive") | made.other("source")).items():
                alone.setenv(name, value)
            for words in (["index"], ["alias", "/old/meant", "/new/meant"]):
                assert main(["--config", str(made.service.config), *words]) == 0
    return made


def _called(places: Places, way: str, thing: str, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> int:
    """The exit code of a command that means another `thing`, told in this `way`."""
    other = places.other(thing)
    base = places.service.config.read_text()
    if way == "environment":
        monkeypatch.setenv("RECONSTITUTE_CONFIG", str(places.service.config))
        for name, value in other.items():
            monkeypatch.setenv(name, value)
        return main(words)
    for name, value in other.items():
        section, key = _KEYS[name]
        lines = base.replace(f"[{section}]\n", f"[{section}]\n{key} = {_toml(value)}\n#", 1)
    file = Path.home() / ".config/reconstitute/config.toml" if way == "default file" else places.root / "other.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(lines)
    return main(["--config", str(file), *words] if way == "--config" else words)


def _words(command: str, tmp_path: Path) -> list[str]:
    return [str(tmp_path / "new") if word == "TO" else word for word in COMMANDS_AND_MARKS[command][0]]


def test_each_command_is_in_the_matrix_or_is_no_client() -> None:
    assert set(COMMANDS_AND_MARKS) - {":path"} | set(NO_CLIENTS) == set(COMMANDS)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("command", COMMANDS_AND_MARKS)
def test_a_command_that_means_another_archive_does_the_work_itself(
    places: Places, command: str, way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Any
) -> None:
    code = _called(places, way, "archive", monkeypatch, _words(command, tmp_path))
    out, err = capfd.readouterr()
    assert "keeps the archive" in err
    assert str(places.service.archive_dir) in err
    assert (code, COMMANDS_AND_MARKS[command][1] in out) == (4 if command == "trajectory" else 0, True), out + err


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("command", COMMANDS_AND_MARKS)
def test_a_command_that_means_another_source_ends_with_the_reason(
    places: Places, command: str, way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Any
) -> None:
    """The archive is the service's, so nobody else can open it."""
    code = _called(places, way, "source", monkeypatch, _words(command, tmp_path))
    out, err = capfd.readouterr()
    assert "opencode.data_dir" in out + err
    assert code == (0 if command == "status" else ConfigError.exit_code), out + err


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("command", COMMANDS_AND_MARKS)
def test_another_output_matters_only_to_what_writes_pages(
    places: Places, command: str, way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Any
) -> None:
    code = _called(places, way, "output", monkeypatch, _words(command, tmp_path))
    said = "".join(capfd.readouterr())
    assert ("output.dir" in said) == (command in (":path", "status")), said
    assert (code == ConfigError.exit_code) == (command == ":path"), said


def test_pages_go_where_the_command_says_whatever_the_service_writes_to(
    places: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = [SERVED, "--output", str(tmp_path / "named")]
    assert _called(places, "environment", "output", monkeypatch, words) == 0
    assert (tmp_path / "named" / "work" / "served" / "README.md").is_file()


@pytest.mark.parametrize(
    ("key", "value", "command", "code"),
    [
        ("RECONSTITUTE_CHAT_URL", "http://127.0.0.1:1", ":path", 78),
        ("RECONSTITUTE_CHAT_URL", "http://127.0.0.1:1", "recall", 0),
        ("RECONSTITUTE_EMBEDDING_URL", "http://127.0.0.1:1", "recall", 78),
        ("RECONSTITUTE_CHROMA_URL", "http://127.0.0.1:1", "search", 78),
        ("RECONSTITUTE_REQUESTS_DIR", "/nowhere", "recall", 0),
    ],
)
def test_a_call_is_refused_for_the_settings_its_answer_depends_on(
    places: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: str, value: str, command: str, code: int
) -> None:
    monkeypatch.setenv(key, value)
    served = {MEANT: SERVED, "kingfisher": "heron"}
    words = [served.get(word, word) for word in _words(command, tmp_path)]
    assert main(["--config", str(places.service.config), *words]) == code


def test_another_spelling_of_the_same_archive_is_the_same(
    places: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link").symlink_to(places.service.archive_dir)
    monkeypatch.setenv("RECONSTITUTE_ARCHIVE_DIR", str(tmp_path / "link"))
    assert main(["--config", str(places.service.config), "files", SERVED]) == 0
    assert "a.txt" in capsys.readouterr().out


def test_an_agent_is_answered_from_the_archive_it_means(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in places.other("archive").items():
        monkeypatch.setenv(name, value)
    settings = Settings(config=places.service.config)
    asking = Asking(lambda: load(places.service.config), lambda config: settings.log(config, least="error"))
    answer = asking.ask(lambda service: service.files(MEANT), threading.Event())
    assert [file["path"] for file in answer["files"]] == [f"{MEANT}/a.txt"]
