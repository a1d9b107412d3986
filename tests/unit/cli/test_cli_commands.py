"""The command line as people and scripts meet it: a real process, a real socket, a scripted service behind it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import config, errors
from daemon.errors import ReconstituteError
from tests.support.processes.command_line import Cli
from tests.support.servers.scripted_service import RESULT, STATUS, ScriptedService, serving

HEAVY = {
    "chromadb",
    "uvicorn",
    "starlette",
    "tantivy",
    "httpx",
    "ollama",
    "rich",
    "apscheduler",
    "structlog",
    "onnxruntime",
    "regex",
}


@pytest.fixture
def service() -> ScriptedService:
    return ScriptedService()


@pytest.fixture
def cli(service: ScriptedService, tmp_path: Path) -> Iterator[Cli]:
    (tmp_path / "run").mkdir(mode=0o700)
    with serving(service, tmp_path / "run" / "reconstitute" / "control.sock"):
        yield Cli(service, tmp_path)


def found(*results: dict[str, Any]) -> dict[str, Any]:
    return {"ok": True, "results": list(results), "warnings": []}


def test_search_and_recall_are_one_command(cli: Cli) -> None:
    cli.service.answers["recall"] = found(RESULT)
    options = ("rate", "limit", "--results", "3", "--match", "literal")
    first, second = cli("search", *options), cli("recall", *options)
    assert (first.returncode, first.stdout) == (0, second.stdout)
    assert cli.service.calls[0] == cli.service.calls[1]
    assert cli.service.calls[0][2] == {"query": "rate limit", "results": "3", "match": "literal"}
    helps = [cli(command, "--help").stdout for command in ("search", "recall")]
    assert helps[0].replace("search [OPTIONS]", "recall [OPTIONS]") == helps[1]


def test_status_fits_80_columns_and_shows_every_figure(cli: Cli) -> None:
    done = cli("status")
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    for fact in (
        "running as process 4711",
        "3 sessions, 41 messages, 120 parts, 5.3 MB",
        "opencode.db: ok",
        "1 unreadable, kept aside",
        "12 sticker",
        "7 messages are not searchable by meaning yet",
        "rebuilding",
        "all-MiniLM-L6-v2",
        "/home/ada/shop: ok, continuous",
        "1 running, 2 queued",
        "127.0.0.1:11434",
    ):
        assert fact in done.stdout, fact


@pytest.mark.parametrize("gone", [*STATUS, "everything"])
def test_status_of_an_older_or_newer_daemon_is_shown_as_far_as_it_goes(cli: Cli, gone: str) -> None:
    full = {**STATUS, "weather": {"sunny": True}}
    cli.service.answers["status"] = {} if gone == "everything" else {k: v for k, v in full.items() if k != gone}
    assert cli("status").returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "called"),
    [
        (("--json", "status"), 0, "status"),
        (("-v", "--json", "status"), 0, "status"),
        (("--json", "--at", "2026-05-31", "files", "/w"), 0, "files"),
        (("--at=2026-05-31", "--json", "files", "/w"), 0, "files"),
        (("--json", "recall_sessions"), 0, "recall"),
        (("--json", "--", "status"), 0, "reconstitute"),
        (("--json", "--question", "status", "/w"), 0, "reconstitute"),
        (("--estimate", "status"), 64, ""),
    ],
)
def test_options_before_a_command_are_the_commands(cli: Cli, words: tuple[str, ...], code: int, called: str) -> None:
    cli.service.answers["recall"] = {"ok": True, "sessions": [{"id": "ses_1"}]}
    done = cli(*words)
    assert (done.returncode, [call[0] for call in cli.service.calls]) == (code, [called] if called else [])
    if called:
        assert isinstance(json.loads(done.stdout), dict)
    else:
        assert done.stderr == "reconstitute: No such option '--estimate'; see: reconstitute status --help\n"


def test_a_global_option_behind_the_command_is_told_its_place(cli: Cli) -> None:
    done = cli("status", "--verbose")
    assert done.returncode == 64
    assert "write it before the command: reconstitute --verbose" in done.stderr


def test_index_reports_what_it_did_and_prints_no_progress_if_it_is_quick(cli: Cli) -> None:
    done = cli("index")
    assert done.stdout == "3 records new or changed; 1 deleted by OpenCode and kept here; 5 embedded.\n"
    assert done.stderr == ""
    assert json.loads(cli("index", "--json").stdout)["embedded"] == 5


@pytest.mark.parametrize(
    ("answer", "code", "says"),
    [
        ({"changed": 0}, 0, "nothing new.\n"),
        ({"changed": 1}, 0, "1 record new or changed.\n"),
        ({"changed": 0, "warnings": ["db: locked"]}, 75, "nothing new, but not everything could be read or embedded"),
        ({"changed": 2, "warnings": ["db: locked"]}, 0, "2 records new or changed.\n"),
    ],
)
def test_index_that_could_not_read_does_not_say_that_all_is_well(
    cli: Cli, answer: dict[str, Any], code: int, says: str
) -> None:
    cli.service.answers["index"] = answer
    done = cli("index")
    assert (done.returncode, done.stdout[: len(says)]) == (code, says)
    assert ("db: locked" in done.stderr) is ("warnings" in answer)
    assert cli("index", "--json").returncode == code


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({}, ""),
        (
            {"waiting": 1200},
            (
                "1,200 messages are not searchable by meaning yet; "
                "run `reconstitute index --wait` once, or keep the service running"
            ),
        ),
        ({"waiting": 1, "running": True}, "1 message is not searchable by meaning yet; the service works on it"),
    ],
)
def test_index_says_in_one_line_on_stderr_what_waits(cli: Cli, answer: dict[str, Any], says: str) -> None:
    cli.service.answers["index"] = {"changed": 2, **answer}
    done = cli("index")
    assert (done.stdout, done.stderr) == (
        "2 records new or changed.\n",
        f"reconstitute: {says}\n" if says else "",
    )


def test_status_lists_the_newest_set_aside_records_one_per_line(cli: Cli) -> None:
    entries = [{"place": f"message msg_{n}", "reason": f"{HOSTILE} not JSON " * 9, "time": 9 - n} for n in range(7)]
    source = {**STATUS["sources"][0], "setAside": entries}
    cli.service.answers["status"] = {**STATUS, "sources": [source]}
    lines = [line for line in cli("status").stdout.splitlines() if "message msg_" in line]
    assert [line.split(":")[0].strip() for line in lines] == [f"message msg_{n}" for n in range(5)]
    assert all(line.startswith(" " * 14) and len(line) <= 80 and line.endswith("…") for line in lines)
    assert "\x1b" not in "".join(lines)


def test_one_is_said_in_the_singular(cli: Cli) -> None:
    archive = {"sessions": 1, "messages": 1, "parts": 1}
    cli.service.answers["status"] = {**STATUS, "archive": archive, "index": {"lexical": {"state": "ok", "count": 1}}}
    shown = cli("status").stdout
    assert "1 session, 1 message, 1 part\n" in shown
    assert "ok, 1 entry\n" in shown


@pytest.mark.parametrize("words", [["index"], ["index", "--json"]], ids=" ".join)
def test_progress_on_a_terminal_is_a_bar_with_words_that_users_know(cli: Cli, words: list[str]) -> None:
    cli.service.phase = "reading SQLite (OpenCode 1.2 and later)"
    seen = cli.on_terminal(*words)
    assert "\x1b[" in seen
    assert "sessions read: 3 of 3" in seen
    assert "SQLite" not in seen


PLACES: list[tuple[list[str], str]] = [
    (["~/shop"], "{home}/shop"),
    (["/gone/shop"], "/gone/shop"),
    (["./index"], "{cwd}/index"),
    (["notes.txt"], "{cwd}/notes.txt"),
    (["folder"], "{cwd}/folder"),
    (["--", "index"], "{cwd}/index"),
    (["--", "-odd-"], "{cwd}/-odd-"),
    (["-v", "--", "nosuch"], "{cwd}/nosuch"),
    (["a/../b"], "{cwd}/b"),
    (["--json", "/gone/shop"], "/gone/shop"),
    (["--question", "Why?", "/gone/shop"], "/gone/shop"),
    (["--question=Why?", "/gone/shop"], "/gone/shop"),
]


@pytest.mark.parametrize(("words", "place"), PLACES, ids=[" ".join(words) for words, _ in PLACES])
def test_a_path_alone_is_reconstituted(cli: Cli, words: list[str], place: str) -> None:
    (cli.home / "folder").mkdir()
    done = cli(*words)
    assert done.returncode == 0, done.stderr
    assert cli.service.calls[0][:2] == ("reconstitute", place.format(home=os.environ["HOME"], cwd=cli.home))


def test_the_options_of_a_path_reach_the_service(cli: Cli) -> None:
    done = cli("/gone/shop", "--question", "Why?", "--question", "Who?", "--at", "2026-05-31", "--output", "pages")
    assert cli.service.calls == [("reconstitute", "/gone/shop", ["Why?", "Who?"], "2026-05-31", f"{cli.home}/pages")]
    assert done.stdout == (
        f"/gone/shop: 2 files proven, 1 not proven\n4 pages: 3 written, 1 unchanged\n"
        "No chat model: the pages are made from facts alone\n"
        f"Read {cli.home}/pages\n"
    )


def test_a_name_of_a_command_is_the_command_even_where_such_a_file_is(cli: Cli) -> None:
    (cli.home / "status").mkdir()
    cli("status")
    assert cli.service.calls == [("status",)]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["serach", "x"], "serach: no such command and no such path; did you mean search"),
        (["xyzzy"], "for a path of this name, write: reconstitute -- xyzzy"),
        (["search"], "see: reconstitute search --help"),
        (["search", "x", "--limit", "3"], "--limit"),
        (["search", "x", "--match", "psychic"], "--match"),
        (["export"], "Choose from: jsonl, messages, markdown"),
        (["--nonsense"], "--nonsense"),
        (["/x", "--nonsense"], "see: reconstitute --help"),
        (["service", "explode"], "explode"),
    ],
)
def test_wrong_usage_is_one_line_with_the_way_out(cli: Cli, words: list[str], says: str) -> None:
    done = cli(*words)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith("reconstitute: ")
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert cli.service.calls == []


@pytest.mark.parametrize(
    "name", ["BadRequest", "ModelUnavailable", "OutputRefused", "ArchiveCorrupt", "ReconstituteError"]
)
def test_an_error_of_ours_is_one_line_and_its_exit_code(cli: Cli, name: str) -> None:
    kind: type[ReconstituteError] = getattr(errors, name)
    cli.service.failure = kind("thing: cause; fix")
    for words in (["status"], ["/gone/shop"]):
        done = cli(*words)
        assert (done.returncode, done.stdout) == (kind.exit_code, "")
        assert done.stderr.splitlines()[-1] == "reconstitute: thing: cause; fix"
        assert "Traceback" not in done.stderr


def test_an_error_with_json_is_also_an_object_on_stdout(cli: Cli) -> None:
    cli.service.failure = errors.BadRequest('thing: cause; `files(path="/x y")` lists them')
    done = cli("status", "--json")
    message = "thing: cause; `reconstitute files '/x y'` lists them"
    assert json.loads(done.stdout) == {"error": {"type": "BadRequest", "message": message, "exitCode": 64}}
    assert (done.returncode, done.stderr) == (64, f"reconstitute: {message}\n")
    wrong = cli("files", "--json", "--nonsense")
    assert json.loads(wrong.stdout)["error"]["type"] == "UsageError"
    assert cli("files", "--nonsense", "--", "--json").stdout == ""


HOSTILE = "a\x1b]0;owned\x07b\x1b[31mred\x9b1m\x08\x7f\u202ec\ud800"


@pytest.mark.parametrize("words", [["search", "x"], ["status"]])
def test_no_control_character_of_a_transcript_reaches_a_terminal(cli: Cli, words: list[str]) -> None:
    """T2: the only escape sequences are our own bold and faint, and with NO_COLOR there are none."""
    hostile = dict.fromkeys(("sessionTitle", "snippet", "role", "toolName"), HOSTILE) | {"matchedTerms": [HOSTILE]}
    cli.service.answers["recall"] = found(RESULT | hostile)
    error = {"time": 1, "where": HOSTILE, "message": HOSTILE}
    cli.service.answers["status"] = {**STATUS, "version": HOSTILE, "errors": [error]}
    control = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
    assert not control.search(cli.on_terminal(*words))
    coloured = cli.on_terminal(*words, NO_COLOR="-")
    assert set(re.findall(r"\x1b\[\d+m", coloured)) <= {"\x1b[0m", "\x1b[1m", "\x1b[2m"}
    assert not control.search(re.sub(r"\x1b\[[012]m", "", coloured))


def test_hostile_progress_does_not_reach_the_terminal_either(cli: Cli) -> None:
    cli.service.phase = HOSTILE
    for words in (["index"], ["/x"]):
        assert "\x07" not in cli.on_terminal(*words)
        assert "\x1b" not in cli(*words).stderr


def test_hostile_text_in_json_is_escaped_and_complete(cli: Cli) -> None:
    cli.service.answers["recall"] = found(RESULT | {"snippet": HOSTILE})
    out = cli("search", "x", "--json").stdout
    assert out.isascii()
    assert json.loads(out)["results"][0]["snippet"] == HOSTILE


def test_matched_terms_are_bold_on_a_terminal_only(cli: Cli) -> None:
    cli.service.answers["recall"] = found(RESULT)
    assert "\x1b[1mBucket\x1b[0m" in cli.on_terminal("search", "bucket", NO_COLOR="-")
    assert "\x1b" not in cli("search", "bucket", NO_COLOR="").stdout


def test_a_reader_that_goes_away_is_no_error(cli: Cli) -> None:
    cli.service.answers["recall"] = found(*[RESULT | {"snippet": "word " * 2000}] * 200)
    command = f"{sys.executable} -m daemon.cli search x | head -1"
    done = subprocess.run(
        ["bash", "-c", command], env=cli.env(), capture_output=True, text=True, check=False, timeout=60
    )
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


@pytest.mark.parametrize("words", [["index"], ["/gone/shop", "--json"]])
def test_ctrl_c_ends_with_130_and_no_traceback(cli: Cli, words: list[str]) -> None:
    cli.service.gate.clear()
    # A job in the background of a shell ignores SIGINT, and so would all that it starts; a terminal's does not.
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from daemon.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, *words]
    with subprocess.Popen(command, env=cli.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert cli.service.under_way.acquire(timeout=90)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=90)
    cli.service.gate.set()
    assert process.returncode == 130
    error = {"error": {"type": "Interrupted", "message": "interrupted", "exitCode": 130}}
    assert (json.loads(out) if "--json" in words else out) == (error if "--json" in words else b"")
    assert b"Traceback" not in err
    assert err.endswith(b"reconstitute: interrupted\n")


def test_an_encoding_without_the_letters_is_no_crash(cli: Cli) -> None:
    cli.service.answers["recall"] = found(RESULT | {"sessionTitle": "日本語 ☃"})
    done = cli("search", "x", PYTHONIOENCODING="koi8-r")
    assert done.returncode == 0
    assert "\\u65e5" in done.stdout


def loaded(*words: str) -> set[str]:
    """Top-level modules that are loaded when the command has ended."""
    code = "import sys; from daemon.cli import main; main(sys.argv[1:]); print(*{m.partition('.')[0] for m in sys.modules}, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["search", "--help"], ["config", "path"], ["/x", "--help"]]
)
def test_a_command_that_needs_little_loads_little(words: list[str]) -> None:
    assert not loaded(*words) & HEAVY


def test_the_version_loads_little_besides_click() -> None:
    assert not loaded("--version") & {"msgspec", "orjson", "email", "ssl", "http"}


def test_asking_the_daemon_loads_neither_engine_nor_server(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(cli.home / "run"))
    for words in (["search", "x"], ["recall", "x"], ["recall-sessions"]):
        assert not loaded(*words) & HEAVY, words


def test_every_command_has_help_with_an_example() -> None:
    groups = {"config": ("check", "path", "example"), "service": ("install", "status", "uninstall")}
    below = [[group, name] for group, names in groups.items() for name in names]
    about_files = [["files"], ["history"], ["show"], ["restore"], ["alias"]]
    about_recall = [
        [f"recall{kind}"] for kind in ("", "-get", "-context", "-messages", "-sessions", "-timeline", "-files")
    ]
    others = [
        ["mcp"],
        ["export"],
        *about_recall,
        ["search"],
        ["status"],
        ["index"],
        ["run"],
        ["service"],
        ["config"],
        ["/x"],
        [],
    ]
    for words in (*others, *about_files, *below):
        done = subprocess.run(
            [sys.executable, "-m", "daemon.cli", *words, "--help"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert "Example" in done.stdout, words
        assert max(map(len, done.stdout.splitlines())) <= 90


def test_no_arguments_at_all_show_the_help(cli: Cli) -> None:
    done = cli()
    assert (done.returncode, "Usage: reconstitute" in done.stdout) == (0, True)


def run_code(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)


def test_an_internal_error_is_one_redacted_line_without_a_traceback() -> None:
    """The traceback appears only when asked for."""
    code = """
import sys, click
from daemon.cli import main, reconstitute
def fail(**_): raise RuntimeError("password: 'hunter2-very-secret-value'")
reconstitute.callback = fail
reconstitute.params = [p for p in reconstitute.params if p.name != 'verbose'] + [click.Option(['-v', 'verbose'], is_flag=True)]
sys.exit(main(ARGS))
"""
    brief = run_code(code.replace("ARGS", "['status']"))
    assert brief.returncode == 70
    assert brief.stderr.count("\n") == 1
    assert "RuntimeError" in brief.stderr
    verbose = run_code(code.replace("ARGS", "['-v', 'status']"))
    assert "Traceback" in verbose.stderr
    assert "hunter2" not in brief.stderr + verbose.stderr


def test_config_example_path_and_check(cli: Cli) -> None:
    assert cli("config", "example").stdout == config.example()
    expected = f"{os.environ['HOME']}/.config/reconstitute/config.toml"
    assert cli("config", "path").stdout == expected + "\n"
    assert cli("config", "check").stdout.startswith(f"{expected}: not found; the defaults apply\n")
    file = cli.home / "c.toml"
    file.write_text('[log]\nlevel = "debug"\n')
    assert cli("--config", str(file), "config", "check").stdout.startswith(f"{file}: correct\n")
    file.write_text("[log]\nlevels = 3\n")
    done = cli("--config", str(file), "config", "check")
    assert (done.returncode, done.stderr) == (
        78,
        f"reconstitute: {file}: log.levels: unknown key; did you mean log.level?\n",
    )
    file.write_text('[[targets]]\npath = "/x"\nschedule = "often"\n')
    done = cli("--config", str(file), "config", "check")
    assert done.returncode == 78
    assert "targets[0].schedule: 'often' has 1 fields" in done.stderr
    file.write_text('[log]\nlevels = 3\nlevel = "loud"\n[[targets]]\npath = "/x"\nschedule = "often"\n')
    done = cli("--config", str(file), "config", "check")
    assert (done.returncode, len(done.stderr.splitlines()), done.stdout) == (78, 3, "")
    (cli.home / "in-the-way").write_text("")
    file.write_text(f'[archive]\ndir = "{cli.home}/in-the-way/archive"\n')
    done = cli("--config", str(file), "config", "check")
    assert (done.returncode, "archive.dir" in done.stderr) == (78, True)
    assert "in-the-way is not a directory; move it away" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    file.write_text(f'[opencode]\ndata_dirs = ["{cli.home}/in-the-way", "/{"x" * 300}"]\n')
    done = cli("--config", str(file), "config", "check")
    lines = [line.removeprefix(f"reconstitute: {file}: ") for line in done.stderr.splitlines()]
    assert (done.returncode, [line.split(": ")[0] for line in lines]) == (78, ["opencode.data_dirs"] * 2)
    assert "File name too long" in lines[1]


def test_config_check_blames_the_environment_for_its_places(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    (cli.home / "in-the-way").write_text("")
    monkeypatch.setenv("RECONSTITUTE_OUTPUT_DIR", f"{cli.home}/in-the-way")
    done = cli("config", "check")
    assert done.returncode == 78
    assert done.stderr.startswith(f"reconstitute: environment variable RECONSTITUTE_OUTPUT_DIR: {cli.home}/in-the-way")


def answer_without_daemon(cli_environment: dict[str, str], *words: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "daemon.cli", *words],
        env=cli_environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    return json.loads(done.stdout)


def test_without_a_daemon_the_engine_answers_in_this_process(tmp_path: Path) -> None:
    data = tmp_path / "opencode"
    (data / "storage").mkdir(parents=True)  # without a source the status would end with 1
    environment = {
        **os.environ,
        "RECONSTITUTE_ARCHIVE_DIR": str(tmp_path / "archive"),
        "RECONSTITUTE_OPENCODE_DIR": str(data),
    }
    answer = answer_without_daemon(environment, "status", "--json")
    assert answer["running"] is False
    assert answer["archive"]["messages"] == 0
    assert (tmp_path / "archive").is_dir()
