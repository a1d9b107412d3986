"""A service on one archive, and commands that mean another archive, source or output: none is answered from the wrong one.

Each command runs in this process (`main`), the service in its own: what is shown is where the answer came from.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon.cli import COMMANDS, main
from daemon.cli.settings import Settings
from daemon.config import Config, load
from daemon.control import calls, endpoint, identity
from daemon.errors import ConfigError, ServesAnother
from daemon.mcp import ServiceCaller
from daemon.recall.query import CALLS
from tests.support.processes.daemon_process import Daemon, _toml
from tests.support.stores.make_opencode import one_written_file

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
    "backup": (["backup", "TO", "--json"], "meant-archive"),
    "status": (["status", "--json"], "meant-archive"),
    "index": (["index"], ""),
    "pause": (["pause", "--resume"], "The work goes on"),
    "forget": (["forget", "ses_meant", "--dry-run"], "ses_meant"),
    "models": (["models"], "in use"),
    ":path": ([MEANT], "Read "),
}
"""Of each command a call, and what its answer holds when it comes from the archive that is meant."""

NO_CLIENTS = {
    "run": "is the service; beside another one it is refused by the socket, --once needs none",
    "mcp": "asks as `ServiceCaller` does, see below",
    "adapter": "asks OpenCode, never the service",
    "restore-archive": "makes an archive; beside a service that has one there it is refused, see test_backup.py",
    "completion": "prints a script",
    "service": "asks systemd; its status is compared in test_service_unit.py",
    "doctor": "names whatever service answers, and how it differs; see test_doctor.py",
    "config": "reads the configuration alone",
    "open": "reads the configuration and the pages on the disk",
    "web": "asks a service alone, since no command could go on serving the page; see below",
}


@dataclass
class Places:
    """A service, and the archive, source and output that it does not have."""

    service: Daemon
    root: Path

    @property
    def pid(self) -> int:
        assert self.service.process is not None
        return self.service.process.pid

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
        ("RECONSTITUTE_CHAT_URL", "http://127.0.0.1:1", ":path", 0),  # the service asks no model
        ("RECONSTITUTE_CHAT_URL", "http://127.0.0.1:1", "recall", 0),
        ("RECONSTITUTE_EMBEDDING_URL", "http://127.0.0.1:1", "recall", 0),  # the service embeds by itself
        ("RECONSTITUTE_CHROMA_URL", "http://127.0.0.1:1", "search", 78),
        ("RECONSTITUTE_CHROMA_URL", "http://127.0.0.1:1", "recall", 78),
        ("RECONSTITUTE_CHROMA_URL", "http://127.0.0.1:1", "recall-sessions", 0),
        ("RECONSTITUTE_CHROMA_URL", "http://127.0.0.1:1", "recall-files", 0),
        ("RECONSTITUTE_CHROMA_URL", "http://127.0.0.1:1", "recall-messages", 0),
        ("RECONSTITUTE_OPENCODE_URL", "http://127.0.0.1:1", ":path", 0),  # nor does it ask a model
        ("RECONSTITUTE_REQUESTS_DIR", "/nowhere", "recall", 0),
    ],
)
def test_a_call_is_refused_for_the_settings_its_answer_depends_on(
    places: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: str, value: str, command: str, code: int
) -> None:
    monkeypatch.setenv(key, value)
    served = {MEANT: SERVED, "kingfisher": "heron", f"{MEANT}/a.txt": f"{SERVED}/a.txt", "ses_meant": "ses_served"}
    words = [served.get(word, word) for word in _words(command, tmp_path)]
    assert main(["--config", str(places.service.config), *words]) == code


@pytest.mark.parametrize(
    ("section", "key", "value", "needing"),
    [
        ("limits", "indexed_kb", "2048", {"recall", "recall_messages", "recall_timeline", "recall_files"}),
        ("limits", "embedded_kb", "32", {"recall"}),
        ("embedding", "provider", '"ollama"', {"recall"}),
        ("embedding", "url", '"http://127.0.0.1:9"', set()),
        ("embedding", "model_dir", '"/srv/model"', {"recall"}),
    ],
)
def test_each_call_names_only_what_its_answer_depends_on(
    tmp_path: Path, section: str, key: str, value: str, needing: set[str]
) -> None:
    ours, theirs = (tmp_path / name for name in ("ours.toml", "theirs.toml"))
    provider = '[embedding]\nprovider = "builtin"\n' if (section, key) != ("embedding", "provider") else ""
    ours.write_text(provider)
    header = "" if section == "embedding" and provider else f"[{section}]\n"
    theirs.write_text(f"{provider}{header}{key} = {value}\n")
    calls = {"files": "files", "content": "content", "export": "export"}
    calls |= {name: f"recall/{name}" for name in CALLS}
    named = {name: identity.header(identity.meaning(load(theirs), call)) for name, call in calls.items()}
    assert {name for name, header in named.items() if identity.differences(load(ours), header)} == needing


@pytest.mark.parametrize("provider", ["auto", "ollama"])
def test_the_address_of_a_provider_in_use_counts(provider: str) -> None:
    ours = msgspec.convert({"embedding": {"provider": provider}, "chat": {"provider": provider}}, Config)
    theirs = {"embedding": {"provider": provider, "url": "http://a"}, "chat": {"provider": provider, "url": "http://b"}}
    config = msgspec.convert(theirs, Config)
    for call, keys in {
        "recall/recall": ["embedding.url"],
        "reconstitute": ["chat.url", "embedding.url"],
        "files": [],
    }.items():
        assert identity.differences(ours, identity.header(identity.meaning(config, call))) == keys


@pytest.mark.parametrize("command", COMMANDS_AND_MARKS)
def test_a_command_that_means_another_database_ends_with_the_reason(
    places: Places, command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Any
) -> None:
    monkeypatch.setenv("OPENCODE_DB", str(tmp_path / "elsewhere.db"))
    code = main(["--config", str(places.service.config), *_words(command, tmp_path)])
    out, err = capfd.readouterr()
    assert "opencode.databases" in out + err
    assert code == (0 if command == "status" else ConfigError.exit_code), out + err
    if command != "status":
        assert str(tmp_path / "elsewhere.db") in err
        assert f"kill {places.pid}" in err


def test_a_database_that_is_followed_anyway_is_no_other_source(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("opencode.db", ":memory:", str(places.root / "served-source" / "opencode-beta.db")):
        monkeypatch.setenv("OPENCODE_DB", name)
        assert main(["--config", str(places.service.config), "files", SERVED]) == 0


def test_a_shell_without_a_database_is_answered_by_a_service_with_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = identity.header(identity.meaning(Config(), "files"))
    monkeypatch.setenv("OPENCODE_DB", str(tmp_path / "elsewhere.db"))
    named = identity.header(identity.meaning(Config(), "files"))
    assert identity.differences(Config(), without) == []
    assert identity.differences(Config(), named) == []
    monkeypatch.setenv("OPENCODE_DB", str(tmp_path / "third.db"))
    assert identity.differences(Config(), named) == ["opencode.databases"]


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("RECONSTITUTE_OPENCODE_DIR", "systemctl --user restart reconstitute"),
        ("OPENCODE_DB", "reconstitute service install"),
    ],
)
def test_a_service_of_systemd_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, wanted: str
) -> None:
    ours = load()
    with pytest.MonkeyPatch.context() as caller:
        caller.setenv(key, str(tmp_path / "other"))
        named = identity.header(identity.meaning(load(), "files"))
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    with pytest.raises(ConfigError, match=wanted):
        identity.check(ours, named)


@pytest.mark.parametrize("runtime", ["", "another"])
def test_a_command_without_the_services_runtime_directory_finds_it(
    places: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], runtime: str
) -> None:
    """Cron and su know none."""
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    if runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert main(["--config", str(places.service.config), "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pid"] == places.pid


def test_a_recorded_socket_that_others_could_have_put_there_is_not_asked(tmp_path: Path) -> None:
    place, archive = tmp_path / "run" / "control.sock", tmp_path / "archive"
    listener, _ = endpoint.bind(place)
    with listener:
        endpoint.record(archive, place)
        assert endpoint.recorded(archive) == place
        place.parent.chmod(0o755)
        assert endpoint.recorded(archive) is None
        place.parent.chmod(0o700)
        (tmp_path / "link").symlink_to(place.parent)
        endpoint.record(archive, tmp_path / "link" / "control.sock")
        assert endpoint.recorded(archive) is None
        endpoint.record(archive, archive / endpoint.RECORD)
        assert endpoint.recorded(archive) is None


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
    caller = ServiceCaller(
        lambda: load(places.service.config), lambda config: settings.log(config, default_level="error")
    )
    answer = caller.ask(lambda service: service.call(calls.Files(MEANT)), threading.Event())
    assert [file.path for file in answer.files] == [f"{MEANT}/a.txt"]


@pytest.mark.parametrize(("thing", "reason"), [("archive", "keeps the archive"), ("source", "opencode.data_dir")])
@pytest.mark.parametrize("way", WAYS)
def test_the_page_of_another_archive_or_source_is_not_opened(
    places: Places, way: str, thing: str, reason: str, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    code = _called(places, way, thing, monkeypatch, ["web", "--print"])
    out, err = capfd.readouterr()
    assert (code, out) == (ServesAnother.exit_code if thing == "archive" else ConfigError.exit_code, "")
    assert reason in err
