"""files, history, show, restore and alias as people and scripts meet them: real processes, a scripted service."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.errors import BadRequest, ReconstituteError
from tests.support.processes.command_line import Cli
from tests.support.servers.scripted_service import CONTENT, FILE, REVISION, ScriptedService, content_of, serving

HOSTILE = "a\x1b]0;owned\x07b\x1b[31mred\x9b1m\x08\nnew\tline\u202ec\ud800"


@pytest.fixture
def service() -> ScriptedService:
    return ScriptedService()


@pytest.fixture
def cli(service: ScriptedService, tmp_path: Path) -> Iterator[Cli]:
    (tmp_path / "run").mkdir(mode=0o700)
    with serving(service, tmp_path / "run" / "reconstitute" / "control.sock"):
        yield Cli(service, tmp_path)


def file(name: str, **more: Any) -> dict[str, Any]:
    return {**FILE, "path": f"/home/ada/shop/{name}", **more}


def encoded(data: bytes, **more: Any) -> dict[str, Any]:
    return {**CONTENT, "contentBase64": base64.b64encode(data).decode(), **more}


# -- files ---------------------------------------------------------------------------------------------------------------


def test_files_in_json_has_exactly_the_promised_names(cli: Cli) -> None:
    cli.service.answers["files"]["files"] = [FILE | {"new": "thing"}]
    done = cli("files", "/home/ada/shop", "--json", "--at", "2026-05-31", "--lost")
    assert (done.returncode, cli.service.calls) == (0, [("files", "/home/ada/shop", "2026-05-31", True)])
    assert json.loads(done.stdout) == {"path": "/", "known": True, "files": [FILE], "hints": [], "warnings": []}
    assert list(FILE) == [
        "path",
        "grade",
        "evidence",
        "sha256",
        "size",
        "deleted",
        "disk",
        "lastChange",
        "note",
        "folder",
    ]


def test_files_is_about_this_folder_when_none_is_named(cli: Cli) -> None:
    cli("files")
    cli("files", "gone/sub/..")
    assert [call[1] for call in cli.service.calls] == [str(cli.home), f"{cli.home}/gone"]


def test_files_shows_a_table_by_folder_and_a_total(cli: Cli) -> None:
    cli.service.answers["files"]["files"] = [
        file("cart.py"),
        file("old.py", deleted=True, disk="absent", grade="verified", size=None),
        file("src/a.py", disk="identical", grade="stale", size=12),
    ]
    cli.service.answers["files"] |= {"hints": ["perhaps it was moved"], "warnings": ["db: locked"]}
    done = cli("files", "/home/ada/shop")
    lines = done.stdout.splitlines()
    assert lines[0] == "/home/ada/shop"
    assert re.fullmatch(r"  proven      1\.2 kB  2026-05-28 \d\d:26  missing       cart\.py", lines[1])
    assert lines[2].endswith("  deleted       old.py")
    assert lines[3] == "/home/ada/shop/src"
    assert lines[-1] == "3 files: 1 verified, 1 proven, 1 stale; on the disk: 1 deleted, 1 identical, 1 missing"
    assert "\x1b" not in done.stdout
    assert "perhaps it was moved" in done.stderr
    assert "db: locked" in done.stderr


def test_a_folder_whose_files_are_unknown_is_not_counted_as_a_file(cli: Cli) -> None:
    data = file("data", grade="lost", folder=True, size=None, sha256=None, lastChange=None)
    cli.service.answers["files"]["files"] = [file("cart.py"), data]
    for words in (["files", "/home/ada/shop"], ["files", "/home/ada/shop", "--lost"]):
        shown = cli(*words).stdout
        assert "1 file: 1 proven; on the disk: 1 missing; 1 folder whose files are unknown" in shown
        assert "data/\n" in shown


def test_files_lost_keeps_the_services_order_and_names_the_way_back(cli: Cli) -> None:
    cli.service.answers["files"]["files"] = [file("z.py", grade="verified"), file("a.py"), file("b.py", grade="lost")]
    lines = cli("files", "/home/ada/shop", "--lost").stdout.splitlines()
    assert [line.split("/")[-1] for line in lines if line.startswith("  ")] == ["z.py", "a.py", "b.py"]
    assert [line.split(" ")[0] for line in lines[:-2] if not line.startswith(" ")] == ["verified", "proven", "lost"]
    assert lines[-1] == "To get them back: reconstitute restore /home/ada/shop --to NEW-FOLDER"


def test_files_lost_of_deleted_ones_says_that_restore_must_be_told(cli: Cli) -> None:
    cli.service.answers["files"]["files"] = [file("a.py", deleted=True, disk="absent")]
    assert cli("files", "/x", "--lost").stdout.splitlines()[-1].endswith("--to NEW-FOLDER --deleted")


UNKNOWN = "/x: no session touched it or anything beneath it"


@pytest.mark.parametrize("words", [[], ["--lost"]])
def test_of_an_unknown_path_the_services_word_is_given_and_it_ends_with_4(cli: Cli, words: list[str]) -> None:
    cli.service.answers["files"] |= {"files": [], "known": False, "warnings": [UNKNOWN]}
    for more in ([], ["--json"]):
        done = cli("files", "/x", *words, *more)
        assert done.returncode == 4
        assert json.loads(done.stdout)["files"] == [] if more else done.stdout == ""
        assert UNKNOWN in done.stderr


def test_nothing_lost_is_said_of_a_known_path_alone(cli: Cli) -> None:
    cli.service.answers["files"] |= {"files": [], "known": True}
    done = cli("files", "/x", "--lost")
    assert (done.returncode, done.stdout) == (
        0,
        "Nothing recorded at or beneath /x is missing on the disk or differs.\n",
    )


def test_grades_are_coloured_on_a_terminal_only(cli: Cli) -> None:
    assert "\x1b[32mproven" in cli.on_terminal("files", NO_COLOR="-")
    assert "\x1b" not in cli.on_terminal("files", NO_COLOR="1")
    assert "\x1b" not in cli("files", NO_COLOR="").stdout


# -- history -------------------------------------------------------------------------------------------------------------


def test_history_shows_each_revision_with_session_tool_grade_and_evidence(cli: Cli) -> None:
    later = REVISION | {
        "time": 1_780_000_060_000, "tool": "bash", "operation": "delete", "deleted": True, "size": None,
        "outsideChange": True, "movedFrom": "/home/ada/old.py", "note": "a note", "sessionTitle": "Clean\nup",
    }  # fmt: skip
    cli.service.answers["history"] |= {"revisions": [REVISION, later], "deleted": True}
    done = cli("history", "/home/ada/shop/cart.py")
    assert (done.returncode, cli.service.calls) == (0, [("history", "/home/ada/shop/cart.py", False, False)])
    lines = done.stdout.splitlines()
    assert lines[0] == "/home/ada/shop/cart.py: deleted, proven, 2 revisions"
    assert re.fullmatch(r"2026-05-28 \d\d:26  proven      1\.2 kB  write  Limit the rate of requests", lines[1])
    assert lines[2:4] == ["    completed write", "    message msg_1"]
    assert re.fullmatch(r"2026-05-28 \d\d:27  proven     deleted  delete by bash  Clean up", lines[4])
    for said in ("a note", "outside OpenCode", "moved from /home/ada/old.py"):
        assert said in done.stdout


def test_history_in_json_is_the_services_answer(cli: Cli) -> None:
    assert json.loads(cli("history", "/x", "--json", "--diff", "--lines").stdout) == cli.service.answers["history"]
    assert cli.service.calls == [("history", "/x", True, True)]


def test_a_diff_has_the_colours_of_diffs_on_a_terminal_only(cli: Cli) -> None:
    diff = "@@ -1 +1 @@\n-old\x1b[5m\n+new\r\n same\n"
    cli.service.answers["history"]["revisions"] = [REVISION | {"diff": diff, "diffNote": ""}]
    assert "@@ -1 +1 @@\n-old␛[5m\n+new^M\n same\n" in cli("history", "/x", "--diff").stdout
    coloured = cli.on_terminal("history", "/x", "--diff", NO_COLOR="-")
    assert "\x1b[36m@@ -1 +1 @@\x1b[0m\r\n\x1b[31m-old␛[5m\x1b[0m\r\n\x1b[32m+new^M\x1b[0m" in coloured


def test_history_by_lines_names_the_message_of_each(cli: Cli) -> None:
    line = {"text": "x\t= 1", "messageID": "msg_9", "sessionID": "ses_1", "time": 1_780_000_000_000, "tool": "edit"}
    cli.service.answers["history"]["lines"] = [line, line | {"text": "", "messageID": ""}]
    first, second = cli("history", "/x", "--lines").stdout.splitlines()
    assert re.fullmatch(r"2026-05-28 \d\d:26  msg_9      1  x\t= 1", first)
    assert second.rstrip().endswith("-      2")


def test_a_file_that_no_session_touched_ends_with_4(cli: Cli) -> None:
    cli.service.answers["history"] |= {"revisions": [], "warnings": [UNKNOWN]}
    done = cli("history", "/x")
    assert (done.returncode, done.stdout) == (4, "")
    assert UNKNOWN in done.stderr


# -- show ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"a\r\nb", b"\xef\xbb\xbfx\n", bytes(range(256)), b"", b"\x1b[31m\n"])
def test_show_prints_exactly_the_bytes_into_a_pipe(cli: Cli, data: bytes) -> None:
    cli.service.answers["content"] = encoded(data)
    for words in (["--raw"], []):
        done = cli.bytes_of("show", "/x", *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, data, b"")
    assert cli.service.calls == [("content", "/x", "", True), ("content", "/x", "", False)]


def test_show_on_a_terminal_lets_no_control_character_through(cli: Cli) -> None:
    cli.service.answers["content"] = encoded("a\x1b]0;owned\x07\x9b1m\n".encode())
    assert cli.on_terminal("show", "/x") == "a␛]0;owned␇⟨U+009B⟩1m\r\n"
    cli.service.answers["content"] = encoded(b"\x89PNG\0")
    assert "--raw > FILE" in cli.on_terminal("show", "/x")


def test_show_says_when_secrets_are_hidden(cli: Cli) -> None:
    cli.service.answers["content"] = encoded(b"x", redacted=True)
    done = cli("show", "/x")
    assert (done.returncode, done.stdout) == (0, "x")
    assert "use --raw for the exact bytes" in done.stderr


def test_show_of_what_is_not_proven_says_why_and_ends_with_3(cli: Cli) -> None:
    cli.service.answers["content"] = encoded(b"x", proven=False, grade="stale", note="sed -i may have changed it")
    done = cli("show", "/x", "--at", "2026-05-31")
    assert (done.returncode, done.stdout) == (3, "x")
    assert done.stderr == "reconstitute: not proven (stale): sed -i may have changed it\n"
    assert cli("show", "/x", "--json").returncode == 3


LAST = {"time": 1_780_000_000_000, "grade": "proven", "size": 3, "sha256": "ab" * 32}


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"known": False, "warnings": [UNKNOWN]}, UNKNOWN),
        (
            {"deleted": True, "last": LAST},
            "its last content is proven; add --at 2026-05-28T20:26:40",
        ),
        ({"deleted": True, "note": "gone"}, "was deleted 2026-05-28"),
        ({"grade": "lost", "note": "only a failed edit"}, "nothing is known of its content; only a failed edit"),
    ],
)
def test_show_of_what_there_is_not_says_so_and_ends_with_4(cli: Cli, more: dict[str, Any], says: str) -> None:
    cli.service.answers["content"] = {**CONTENT, "contentBase64": None, "proven": False, **more}
    done = cli("show", "/x")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (4, "", 1)
    assert says in done.stderr
    assert cli("show", "/x", "--json").returncode == 4


# -- restore -------------------------------------------------------------------------------------------------------------


def test_restore_writes_the_files_and_says_in_json_what_and_what_not(cli: Cli) -> None:
    skipped = [{"path": "/home/ada/shop/b.py", "reason": "stale: sed -i"}]
    cli.service.parts["restore"] = [content_of("a.py", b"a\r\n"), content_of("s/tool", b"", executable=True)]
    cli.service.answers["restore"]["skipped"] = skipped
    done = cli(
        "restore", "/home/ada/shop", "--to", "back", "--at", "2026-05-31", "--deleted", "--grade", "stale", "--json"
    )
    assert cli.service.calls == [("restore", "/home/ada/shop", "2026-05-31", True, "stale", [], [], "")]
    answer = json.loads(done.stdout)
    assert set(answer) == {"path", "written", "skipped", "warnings"}
    assert answer["skipped"] == skipped
    assert answer["written"][0] == {
        "path": "/home/ada/shop/a.py",
        "file": "a.py",
        "grade": "proven",
        "sha256": hashlib.sha256(b"a\r\n").hexdigest(),
        "size": 3,
    }
    assert (cli.home / "back" / "a.py").read_bytes() == b"a\r\n"
    assert os.access(cli.home / "back" / "s" / "tool", os.X_OK)
    assert done.returncode == 3


def test_a_dry_run_lists_what_would_be_written_and_writes_nothing(cli: Cli) -> None:
    cli.service.parts["restore"] = [content_of("a.py", b"a\r\n"), content_of("s/b.py", grade="verified")]
    words = ("restore", "/home/ada/shop", "--dry-run", "--include", "*.py", "--exclude", "x/", "--exclude", "y")
    done = cli(*words)
    assert cli.service.calls == [("restore", "/home/ada/shop", "", False, "proven", ["*.py"], ["x/", "y"], "")]
    assert done.returncode == 0
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines == ["proven 3 B a.py", "verified 6 B s/b.py", "Would write 2 files (1 verified, 1 proven), 9 B."]
    assert cli(*words, "--to", "back").returncode == 0
    answer = json.loads(cli(*words, "--json").stdout)
    assert set(answer) == {"path", "dryRun", "chosen", "skipped", "warnings"}
    assert [file["file"] for file in answer["chosen"]] == ["a.py", "s/b.py"]
    assert not (cli.home / "back").exists()
    cli.service.parts["restore"] = []
    done = cli(*words)
    assert (done.returncode, done.stdout) == (4, "Nothing would be written.\n")


def test_a_dry_run_checks_the_folder_if_one_is_named(cli: Cli) -> None:
    (cli.home / "full").mkdir()
    (cli.home / "full" / "x").write_text("")
    assert cli("restore", "/home/ada/shop", "--dry-run", "--to", "full").returncode != 0
    done = cli("restore", "/home/ada/shop")
    assert (done.returncode, "--to" in done.stderr) == (64, True)


def test_restore_for_people_counts_and_lists_what_is_left_out(cli: Cli) -> None:
    cli.service.parts["restore"] = [content_of("a.py"), content_of("b.py", grade="verified")]
    done = cli("restore", "/home/ada/shop", "--to", "back")
    assert done.returncode == 0
    assert done.stdout == f"Wrote 2 files (1 verified, 1 proven), 12 B, into {cli.home}/back.\n"
    cli.service.parts["restore"] = []
    cli.service.answers["restore"]["skipped"] = [{"path": f"/f{n}", "reason": f"lost: unknown {n}"} for n in range(30)]
    cli.service.answers["restore"]["skipped"] += [
        {"path": f"/d{n}", "reason": "deleted; use --deleted to restore its last content"} for n in range(9)
    ]
    done = cli("restore", "/home/ada/shop", "--to", "back2")
    assert (done.returncode, done.stdout) == (4, "Nothing was written.\n")
    assert "skipped /f0: lost: unknown 0" in done.stderr
    assert "skipped 9 files: deleted; use --deleted to restore its last content" in done.stderr
    assert "/d" not in done.stderr
    assert "skipped 10 more files" in done.stderr
    assert not (cli.home / "back2").exists()
    cli.service.answers["restore"]["skipped"] = []
    assert cli("restore", "/home/ada/shop", "--to", "back2").returncode == 4


@pytest.mark.parametrize(
    ("skipped", "grade", "code"),
    [
        ([], "verified", 0),
        ([{"path": "/d", "reason": "deleted; use --deleted to restore its last content"}], "proven", 0),
        ([{"path": "/d", "reason": "lost: x"}], "proven", 3),
        ([], "stale", 3),
    ],
)
def test_the_exit_code_of_restore_tells_if_all_is_complete_and_proven(
    cli: Cli, skipped: list[dict[str, str]], grade: str, code: int
) -> None:
    cli.service.parts["restore"] = [content_of("a", grade=grade)]
    only_deleted = sum(entry["reason"].startswith("deleted") for entry in skipped)
    cli.service.answers["restore"] |= {"skipped": skipped, "deleted": only_deleted}
    assert cli("restore", "/home/ada/shop", "--to", "back").returncode == code


def test_a_clash_and_a_name_that_climbs_are_left_out_with_the_reason(cli: Cli) -> None:
    cli.service.parts["restore"] = [
        content_of("a"),
        content_of("a/b"),
        content_of("../evil"),
        content_of(".git/config"),
    ]
    answer = json.loads(cli("restore", "/home/ada/shop", "--to", "back", "--json").stdout)
    assert [entry["path"].removeprefix("/home/ada/shop/") for entry in answer["skipped"]] == [
        "a/b",
        "../evil",
        ".git/config",
    ]
    assert [path.name for path in (cli.home / "back").rglob("*")] == ["a"]
    assert not (cli.home / "evil").exists()


@pytest.mark.parametrize("kind", ["file", "link", "full", "archive"])
def test_restore_into_anything_but_a_new_folder_is_refused_before_it_asks(cli: Cli, kind: str) -> None:
    to, environment = cli.home / "to", {}
    if kind == "file":
        to.write_text("work")
    elif kind == "link":
        to.symlink_to("/tmp")
    elif kind == "full":
        to.mkdir()
        (to / "work").touch()
    else:
        environment = {"RECONSTITUTE_ARCHIVE_DIR": str(cli.home)}
    done = cli("restore", "/x", "--to", "to", **environment)
    assert (done.returncode, done.stdout, cli.service.calls) == (73, "", [])
    assert f"{to}: " in done.stderr
    assert "; name " in done.stderr


def test_an_error_of_the_service_comes_through_and_nothing_is_made(cli: Cli) -> None:
    cli.service.failure = BadRequest("at 'x': not a date or time; write 2026-11-21")
    for words in (
        ["restore", "/x", "--to", "to"],
        ["files", "/x"],
        ["history", "/x"],
        ["show", "/x"],
        ["alias", "a", "b"],
    ):
        done = cli(*words)
        assert (done.returncode, done.stdout) == (64, "")
        assert done.stderr.splitlines()[-1] == "reconstitute: at 'x': not a date or time; write 2026-11-21"
    assert not (cli.home / "to").exists()


def test_ten_thousand_contents_and_a_large_one_arrive_over_the_socket(cli: Cli) -> None:
    big = os.urandom(1 << 20) * 8
    cli.service.parts["restore"] = [
        *(content_of(f"d{n % 50}/{n}", f"{n}\n".encode()) for n in range(10_000)),
        content_of("big", big),
    ]
    done = cli("restore", "/home/ada/shop", "--to", "back", "--json")
    assert (done.returncode, len(json.loads(done.stdout)["written"])) == (0, 10_001)
    assert (cli.home / "back" / "d49" / "9999").read_text() == "9999\n"
    assert (cli.home / "back" / "big").read_bytes() == big


# -- alias ---------------------------------------------------------------------------------------------------------------


def test_alias_adds_lists_and_removes(cli: Cli) -> None:
    cli.service.answers["alias"]["aliases"] = [{"old": "/home/ada/shop", "new": "/home/ada/web\nshop"}]
    assert cli("alias", "shop", "/home/ada/web").stdout == "/home/ada/shop is now /home/ada/web\\nshop\n"
    assert json.loads(cli("alias", "--list", "--json").stdout) == cli.service.answers["alias"]
    cli.service.answers["alias"]["aliases"] = []
    assert cli("alias", "shop", "--remove").stdout == "There are no aliases.\n"
    shop = f"{cli.home}/shop"
    assert cli.service.calls == [
        ("alias", shop, "/home/ada/web", False), ("alias", "", "", False), ("alias", shop, "", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ["alias"], ["alias", "a"], ["alias", "a", "b", "--remove"], ["alias", "--remove"], ["alias", "a", "--list"],
        ["restore", "/x"], ["restore", "--to", "y"], ["restore", "/x", "--to", "y", "--grade", "lost"], ["history"], ["show"],
        ["show", "/x", "--nonsense"],
    ],
)  # fmt: skip
def test_wrong_usage_is_one_line_with_the_way_out(cli: Cli, words: list[str]) -> None:
    done = cli(*words)
    assert (done.returncode, done.stdout, done.stderr.count("\n"), cli.service.calls) == (64, "", 1, [])
    assert f"see: reconstitute {words[0]} --help" in done.stderr


# -- all -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["files", "history", "show", "restore", "alias"])
def test_every_command_has_examples_in_its_help(cli: Cli, name: str) -> None:
    shown = cli(name, "--help").stdout
    assert re.search(rf"Examples?:\n\s+reconstitute {name}", shown)
    assert f"  {name} " in cli("--help").stdout


@pytest.mark.parametrize(
    "words", [["files"], ["files", "--lost"], ["history", "/x"], ["history", "/x", "--lines"], ["alias", "--list"]]
)
def test_control_characters_of_records_never_reach_the_terminal(cli: Cli, words: list[str]) -> None:
    """A file name stays within its line."""
    cli.service.answers["files"] |= {
        "files": [file(HOSTILE, grade=HOSTILE, disk=HOSTILE)], "hints": [HOSTILE], "warnings": [HOSTILE],
    }  # fmt: skip
    revision = {key: HOSTILE if isinstance(value, str) else value for key, value in REVISION.items()}
    cli.service.answers["history"] |= {
        "path": HOSTILE, "grade": HOSTILE, "warnings": [HOSTILE],
        "revisions": [revision | {"movedFrom": HOSTILE, "evidence": [HOSTILE], "diff": HOSTILE, "diffNote": HOSTILE}],
        "lines": [{"text": HOSTILE, "messageID": HOSTILE, "time": 1}],
    }  # fmt: skip
    cli.service.answers["alias"]["aliases"] = [{"old": HOSTILE, "new": HOSTILE}]
    control = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
    assert not control.search(cli.on_terminal(*words))
    coloured = cli.on_terminal(*words, NO_COLOR="-")
    assert not control.search(re.sub(r"\x1b\[\d+m", "", coloured))


def test_hostile_reasons_and_names_of_restore_do_not_reach_the_terminal(cli: Cli) -> None:
    cli.service.parts["restore"] = [content_of("x\x1b[31m\n")]
    cli.service.answers["restore"]["skipped"] = [{"path": HOSTILE, "reason": HOSTILE}]
    done = cli("restore", "/home/ada/shop", "--to", "b\x1back")
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("gone", [*FILE])
def test_an_answer_of_an_older_or_newer_daemon_is_shown_as_far_as_it_goes(cli: Cli, gone: str) -> None:
    cli.service.answers["files"] = {"files": [{key: value for key, value in FILE.items() if key != gone}]}
    assert cli("files").returncode == 0
    assert list(json.loads(cli("files", "--json").stdout)["files"][0]) == list(FILE)


def test_a_daemon_that_breaks_off_is_an_error_that_says_what_is_there(cli: Cli, service: ScriptedService) -> None:
    environment = {
        "RECONSTITUTE_ARCHIVE_DIR": str(cli.home / "archive"),
        "RECONSTITUTE_OPENCODE_DIR": str(cli.home / "none"),
    }
    service.parts["restore"] = [content_of("a")]
    code = f"""
import sys
from daemon.control.client import Client
from daemon.errors import DaemonUnreachable
whole = Client.call
def broken(self, *words, **more):
    whole(self, *words, **more)
    raise DaemonUnreachable("the daemon broke off")
Client.call = broken
from daemon.cli import main
sys.exit(main(["restore", "/home/ada/shop", "--to", {str(cli.home / "to")!r}]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=cli.env(**environment), capture_output=True, text=True, check=False
    )
    assert done.returncode == 73, done.stderr
    assert "stopped answering; 1 file there and complete, the rest is missing" in done.stderr


def test_the_error_of_a_failing_call_is_one_of_ours(cli: Cli) -> None:
    cli.service.failure = ReconstituteError("thing: cause; fix")
    assert cli("files").stderr == "reconstitute: thing: cause; fix\n"
