"""``reconstitute export`` as people and scripts meet it: a real process, a real socket, a real archive behind it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon.errors import BadRequest, DaemonUnreachable
from daemon.exports import Export
from daemon.exports.formats import export
from tests.support.processes.command_line import Cli
from tests.support.servers.scripted_service import ScriptedService, serving
from tests.support.stores.recorded_sessions import START, Recorded, recorded

DAY = 86_400_000


class Exporting(ScriptedService):
    """Exports a real archive; while `failing` is set it is raised after the first piece."""

    def __init__(self, house: Recorded) -> None:
        super().__init__()
        self.house = house
        self.failing: Exception | None = None

    def work(self, request: Any, progress: Any, on_part: Any) -> None:
        conditions = msgspec.convert(request.arguments, Export)
        if self.failing is not None:
            on_part("half of it" * 300_000)  # more than the server gathers before it sends
            raise self.failing
        self.answers["export"] = export(self.house.archive, conditions, on_part, progress)


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    (tmp_path / "run").mkdir(mode=0o700)
    with recorded(tmp_path / "ours") as house:
        house.session("ses_a", "/w/shop", "Übersicht \x1b]0;owned\x07")
        house.say("ses_a", "user", "Why?")
        house.session("ses_b", str(tmp_path / "project"))
        service = Exporting(house)
        with serving(service, tmp_path / "run" / "reconstitute" / "control.sock"):
            yield Cli(service, tmp_path)


def test_json_lines_go_to_stdout_as_they_are(cli: Cli) -> None:
    done = cli("export", "--format", "jsonl")
    assert done.returncode == 0
    assert [json.loads(line)["session_id"] for line in done.stdout.splitlines()] == ["ses_a", "ses_b"]
    assert "Übersicht" in done.stdout
    assert "\x1b" not in done.stdout


def test_stdout_is_utf8_whatever_the_terminal_can_show(cli: Cli) -> None:
    done = cli("export", "--format", "markdown", "--session", "ses_a", LC_ALL="C", PYTHONIOENCODING="ascii")
    assert done.stdout.startswith("# Übersicht")


def test_what_is_asked_reaches_the_service_and_what_is_not_is_left_out(cli: Cli) -> None:
    (cli.home / "project").mkdir()
    cli("export", "--format", "jsonl")
    words = ["--since", "30d ago", "--until", "2026-12-01", "--results", "full", "--raw", "--no-deleted"]
    cli("export", "--format", "messages", "--session", "ses_a", "--path", "src/../a.py", *words)
    for project in ("abc123", "project", "./gone"):
        cli("export", "--format", "jsonl", "--project", project)
    asked = [arguments for _, arguments in cli.service.calls]
    assert asked[0] == {"format": "jsonl", "deleted": True, "raw": False}
    assert asked[1] == {
        "format": "messages", "session": "ses_a", "path": f"{cli.home}/a.py", "since": "30d ago", "until": "2026-12-01",
        "results": "full", "raw": True, "deleted": False,
    }  # fmt: skip
    assert [one["project"] for one in asked[2:]] == ["abc123", f"{cli.home}/project", f"{cli.home}/gone"]


def test_a_file_is_written_whole_for_its_owner_and_told(cli: Cli) -> None:
    done = cli("export", "--format", "jsonl", "--output", "out.jsonl")
    assert (done.returncode, done.stdout) == (0, f"Wrote 2 sessions with 1 message into {cli.home}/out.jsonl.\n")
    written = cli.home / "out.jsonl"
    assert written.read_text() == cli("export", "--format", "jsonl").stdout
    assert written.stat().st_mode & 0o777 == 0o600
    done = cli("export", "--format", "jsonl", "--output", "out.jsonl", "--session", "ses_a", "--json")
    assert json.loads(done.stdout) == {"sessions": 1, "messages": 1, "warnings": [], "output": str(written)}
    assert len(written.read_text().splitlines()) == 1
    assert sorted(path.name for path in cli.home.iterdir()) == ["ours", "out.jsonl", "run"]


def test_through_a_link_the_file_behind_it_is_written(cli: Cli) -> None:
    (cli.home / "link").symlink_to("real")
    cli("export", "--format", "jsonl", "--output", "link")
    assert (cli.home / "link").is_symlink()
    assert len((cli.home / "real").read_text().splitlines()) == 2


def test_nothing_that_matches_is_code_4_and_no_file(cli: Cli) -> None:
    (cli.home / "old").write_text("old")
    done = cli("export", "--format", "jsonl", "--project", "none", "--output", "old", "--json")
    assert (done.returncode, json.loads(done.stdout)["output"]) == (4, None)
    assert (cli.home / "old").read_text() == "old"
    done = cli("export", "--format", "jsonl", "--project", "none")
    assert (done.returncode, done.stdout) == (4, "")
    assert "no session matches" in done.stderr
    assert sorted(path.name for path in cli.home.iterdir()) == ["old", "ours", "run"]


def test_an_export_that_fails_half_way_leaves_what_was_there(cli: Cli) -> None:
    (cli.home / "old").write_text("old")
    cli.service.failing = BadRequest("export: no; do otherwise")
    done = cli("export", "--format", "jsonl", "--output", "old")
    assert (done.returncode, done.stderr) == (64, "reconstitute: export: no; do otherwise\n")
    assert (cli.home / "old").read_text() == "old"
    assert sorted(path.name for path in cli.home.iterdir()) == ["old", "ours", "run"]


def test_output_of_a_daemon_that_broke_off_is_dropped_or_reported(cli: Cli) -> None:
    """An engine of this process takes over; its archive is empty here."""
    cli.service.failing = DaemonUnreachable("gone")
    done = cli("export", "--format", "jsonl", "--output", "new", HOME=str(cli.home))
    assert done.returncode == 4
    assert not (cli.home / "new").exists()
    done = cli("export", "--format", "jsonl", HOME=str(cli.home))
    assert (done.returncode, done.stdout[:10]) == (73, "half of it")
    assert "the service stopped answering, and what was printed is not complete" in done.stderr


REFUSED = [
    (["--format", "xml"], 64, "'xml' is not one of"),
    ([], 64, "--format"),
    (["--format", "jsonl", "--json"], 64, "--output FILE"),
    (
        ["--format", "jsonl", "--session", "ses_none"],
        64,
        "'ses_none': not in the archive; `reconstitute recall-sessions` lists",
    ),
    (["--format", "jsonl", "--since", "soonish"], 64, "'soonish'"),
    (["--format", "jsonl", "--output", "."], 73, "no regular file"),
    (["--format", "jsonl", "--output", "/dev/null"], 73, "no regular file"),
    (["--format", "jsonl", "--output", "none/out"], 73, "cannot be made"),
    (["--format", "jsonl", "--output", ".local/share/opencode/storage/x"], 73, "where nothing may be written"),
]


@pytest.mark.parametrize(("words", "code", "message"), REFUSED, ids=[" ".join(words) for words, _, _ in REFUSED])
def test_what_makes_no_sense_is_refused_in_one_line(cli: Cli, words: list[str], code: int, message: str) -> None:
    done = cli("export", *words, HOME=str(cli.home))
    assert done.returncode == code
    assert not done.stdout or json.loads(done.stdout)["error"]["exitCode"] == code
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_reader_that_goes_away_is_no_error(cli: Cli) -> None:
    for number in range(40):
        cli.service.house.session(f"ses_{number:02}", "/w")
        cli.service.house.say(f"ses_{number:02}", "user", "words " * 20_000)
    command = f"{sys.executable} -m daemon.cli export --format jsonl | head -c 100"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, check=False, cwd=cli.home, env=cli.env(), timeout=60
    )
    assert len(done.stdout) == 100
    assert "Traceback" not in done.stderr
    assert "fault" not in done.stderr


@pytest.mark.parametrize("option", ["--session", "--project", "--path", "--since", "--until", "--output"])
@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_condition_is_not_everything_but_refused(cli: Cli, option: str, blank: str) -> None:
    done = cli("export", "--format", "jsonl", option, blank)
    assert (done.returncode, done.stdout, cli.service.calls) == (64, "", [])
    assert f"{option} is blank" in done.stderr
    assert done.stderr.count("\n") == 1


def test_who_has_no_terminal_is_told_nothing_but_what_went_wrong(cli: Cli) -> None:
    done = cli("export", "--format", "jsonl", "--since", str(START - DAY))
    assert done.stderr == ""
    assert all(line.startswith("{") for line in done.stdout.splitlines())
    assert os.linesep in done.stdout
    nothing = cli("export", "--format", "jsonl", "--project", "none")
    assert (nothing.returncode, nothing.stdout, nothing.stderr.count("\n")) == (4, "", 1)
