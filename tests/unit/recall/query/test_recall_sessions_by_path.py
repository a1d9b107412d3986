"""Which sessions touched a path, or anything beneath it."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.archive.paths import CHANGES, MAYBE, READS
from daemon.errors import BadRequest
from daemon.index import Filters
from daemon.recall.catalog import Catalog
from daemon.recall.query import Match, Recall, RecallFiles
from daemon.recall.sessions_by_path import MOST_FILES, sessions_by_path
from daemon.redact import redact
from daemon.transcript.document import document
from daemon.transcript.evidence.edits import edits
from daemon.transcript.paths import MOST
from tests.conftest import Sample
from tests.support.stores.recorded_sessions import Recorded, call, read, recorded
from tests.support.stores.sample_records import load

SHOP = "/home/dev/shop"
REFUSAL = "The user rejected permission to use this specific tool call."
SECRET = "ghp_" + "a1B2" * 9


def _write(path: str, content: str = "x\n") -> dict[str, Any]:
    return call("write", metadata={"filepath": path, "exists": False}, filePath=path, content=content)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Recorded]:
    with recorded(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """ses_write wrote and moved, ses_read read, ses_talk only talks about it, ses_else works next door."""
    with recorded(tmp_path_factory.mktemp("shop")) as made:
        made.session("ses_write", SHOP, "Writing")
        made.say("ses_write", "user", "make it")
        made.say("ses_write", "assistant", _write(f"{SHOP}/src/a.py"), _write(f"{SHOP}/src/b.py"))
        made.say("ses_write", "assistant", call("bash", command="mv src/b.py src/c.py", metadata={"exit": 0}))
        made.session("ses_read", SHOP, "Reading")
        made.say("ses_read", "assistant", read(f"{SHOP}/src/a.py", "x"))
        made.session("ses_talk", SHOP, f"Talking {SECRET}")
        made.say("ses_talk", "user", f"what is {SHOP}/src/a.py for?")
        made.say("ses_talk", "user", f"and {SHOP}/src/a.py again?")
        made.session("ses_else", f"{SHOP}ping", "Next door")
        made.say("ses_else", "assistant", _write(f"{SHOP}ping/src/a.py"))
        made.index()
        yield made


def _ask(house: Recorded, path: str, **more: Any) -> dict[str, Any]:
    return sessions_by_path(house.archive, house.lexical, Catalog(house.archive), RecallFiles(path=path, **more))


def _sessions(answer: dict[str, Any]) -> list[str]:
    return [one["sessionID"] for one in answer["sessions"]]


@pytest.mark.parametrize(
    ("path", "mentions", "sessions"),
    [
        (f"{SHOP}/src/a.py", False, ["ses_read", "ses_write"]),
        (f"{SHOP}/src/a.py", True, ["ses_talk", "ses_read", "ses_write"]),
        (f"{SHOP}/src", False, ["ses_read", "ses_write"]),
        (f"{SHOP}/", False, ["ses_read", "ses_write"]),
        (f"{SHOP}/src/../src/b.py", False, ["ses_write"]),
        (f"{SHOP}/src/c.py", False, ["ses_write"]),
        ("/", False, ["ses_else", "ses_read", "ses_write"]),
        (f"{SHOP}ping", True, ["ses_else"]),
        (f"{SHOP}/src/a", True, []),
        ("/srv", False, []),
    ],
)
def test_the_sessions_that_touched_it_come_the_latest_first(
    shop: Recorded, path: str, mentions: bool, sessions: list[str]
):
    answer = _ask(shop, path, mentions=mentions)
    assert _sessions(answer) == sessions
    assert answer["total"] == len(sessions)
    assert answer["warnings"] == []


def test_what_a_session_did_is_counted_and_each_move_once(shop: Recorded):
    (wrote,) = [one for one in _ask(shop, SHOP)["sessions"] if one["sessionID"] == "ses_write"]
    assert (wrote["changes"], wrote["reads"], wrote["unclear"]) == (3, 0, 0)
    assert wrote["files"] == [f"{SHOP}/src/b.py", f"{SHOP}/src/c.py", f"{SHOP}/src/a.py"]
    assert wrote["first"] < wrote["last"]
    assert (wrote["title"], wrote["directory"], wrote["projectID"]) == ("Writing", SHOP, "prj")
    (seen,) = [one for one in _ask(shop, SHOP)["sessions"] if one["sessionID"] == "ses_read"]
    assert (seen["changes"], seen["reads"], seen["first"] == seen["last"]) == (0, 1, True)


def test_a_session_that_only_mentions_it_is_marked_and_touched_nothing(shop: Recorded):
    talk, *others = _ask(shop, f"{SHOP}/src/a.py", mentions=True)["sessions"]
    assert (talk["mentionOnly"], talk["changes"], talk["reads"], talk["files"]) == (True, 0, 0, [])
    assert talk["first"] < talk["last"]
    assert not any(one["mentionOnly"] for one in others)


def test_no_secret_leaves(shop: Recorded, house: Recorded):
    assert SECRET not in json.dumps(_ask(shop, SHOP, mentions=True))
    house.say(house.session("ses_a", f"/w/{SECRET}"), "assistant", _write(f"/w/{SECRET}/a.py"))
    assert SECRET not in json.dumps(_ask(house, "/w"))
    assert SECRET not in json.dumps(_ask(house, f"/w/{SECRET}"))


def test_what_a_file_was_moved_from_belongs_to_its_story_until_then(house: Recorded):
    house.say(house.session("ses_1", "/w"), "assistant", _write("/w/old/a.py"))
    house.say(house.session("ses_2", "/w"), "assistant", call("bash", command="mv old new", metadata={"exit": 0}))
    house.say(house.session("ses_3", "/w"), "assistant", _write("/w/old/a.py", "another file\n"))
    house.say(house.session("ses_4", "/w"), "assistant", _write("/w/new/a.py", "changed\n"))
    answer = _ask(house, "/w/new/a.py")
    assert _sessions(answer) == ["ses_4", "ses_1"]
    assert [one["files"] for one in answer["sessions"]] == [["/w/new/a.py"]] * 2
    assert _sessions(_ask(house, "/w/new")) == ["ses_4", "ses_2", "ses_1"]


def test_a_folder_that_has_become_another_is_known_by_both_names(house: Recorded):
    house.say(house.session("ses_1", "/w/old"), "assistant", _write("/w/old/a.py"))
    batch = house.archive.batch()
    house.archive.files.set_alias(batch, "/w/old", "/w/new")
    house.archive.commit(batch)
    assert _ask(house, "/w/new/a.py")["sessions"][0]["files"] == ["/w/new/a.py"]
    assert _sessions(_ask(house, "/w/new")) == ["ses_1"]


def test_reads_that_failed_and_calls_that_failed_touched_nothing(house: Recorded):
    house.session("ses_1", "/w")
    house.say("ses_1", "assistant", call("write", "error", filePath="/w/a.py", content="x"))
    assert _ask(house, "/w/a.py")["sessions"] == []


def test_an_interrupted_edit_may_have_changed_the_file_and_is_labelled(house: Recorded):
    house.session("ses_1", "/w")
    house.say("ses_1", "assistant", call("write", "running", filePath="/w/a.py", content="x"))
    (one,) = _ask(house, "/w/a.py")["sessions"]
    assert (one["changes"], one["unclear"]) == (0, 1)


def test_only_some_of_many_paths_are_named_and_the_rest_counted(house: Recorded):
    house.session("ses_1", "/w")
    house.say("ses_1", "assistant", *(_write(f"/w/{number:02d}.py") for number in range(MOST_FILES + 3)))
    (one,) = _ask(house, "/w")["sessions"]
    assert (len(one["files"]), one["moreFiles"], one["changes"]) == (MOST_FILES, 3, MOST_FILES + 3)


def test_the_limit_keeps_the_latest_and_the_total_tells_the_rest(house: Recorded):
    for number in range(5):
        house.say(house.session(f"ses_{number}", "/w"), "assistant", _write("/w/a.py"))
    answer = _ask(house, "/w", limit=2)
    assert (_sessions(answer), answer["total"]) == (["ses_4", "ses_3"], 5)


def test_mentions_stop_at_the_limit_and_say_so(house: Recorded):
    for number in range(6):
        house.session(f"ses_{number}", "/w")
        for _ in range(60):
            house.say(f"ses_{number}", "user", "see /home/dev/a.py")
    house.index()
    answer = _ask(house, "/home/dev/a.py", mentions=True, limit=3)
    assert _sessions(answer) == ["ses_5", "ses_4", "ses_3"]
    assert "raise `limit`" in answer["warnings"][0]
    every = _ask(house, "/home/dev/a.py", mentions=True)
    assert (len(every["sessions"]), every["warnings"]) == (6, [])


def test_what_opencode_has_deleted_is_listed_and_marked(house: Recorded):
    house.say(house.session("ses_1", "/w"), "assistant", _write("/w/a.py"))
    batch = house.archive.batch()
    batch.forget_session_source("ses_1", "test", house.clock)
    house.archive.commit(batch)
    assert _ask(house, "/w/a.py")["sessions"][0]["deleted"] is True


@pytest.mark.parametrize("path", ["src/a.py", "~/a.py", " ", "."])
def test_a_path_that_is_not_absolute_is_refused(shop: Recorded, path: str):
    with pytest.raises(BadRequest, match="absolute"):
        _ask(shop, path)


@pytest.mark.parametrize("path", ["/w/a\0b", "/\0"])
def test_a_path_with_nul_is_none_and_refused(shop: Recorded, path: str):
    with pytest.raises(BadRequest, match="NUL"):
        _ask(shop, path)


def test_names_of_names_are_followed_and_a_circle_of_them_ends(house: Recorded):
    house.say(house.session("ses_1", "/a"), "assistant", _write("/a/x.py"))
    batch = house.archive.batch()
    for old, new in (("/a", "/b"), ("/b", "/c"), ("/c", "/a/c")):
        house.archive.files.set_alias(batch, old, new)
    house.archive.commit(batch)
    assert _ask(house, "/c/x.py")["sessions"][0]["files"] == ["/c/x.py"]


@pytest.mark.parametrize(
    ("record", "reads", "unclear"),
    [
        (call("read", output="Image read successfully", filePath="logo.png"), 1, 0),
        (call("read", output="PDF read successfully", filePath=f"{SHOP}/logo.png"), 1, 0),
        (read(f"{SHOP}/logo.png", "x"), 1, 0),
        (call("read", "error", filePath="logo.png"), 0, 0),
        (
            call("write", "error", filePath="logo.png", content="x")
            | {"state": {"status": "error", "input": {"filePath": "logo.png", "content": "x"}, "error": REFUSAL}},
            0,
            1,
        ),
    ],
)
def test_images_that_were_read_and_refused_writes_are_counted(
    house: Recorded, record: dict[str, Any], reads: int, unclear: int
) -> None:
    house.session("ses_look", SHOP)
    house.say("ses_look", "assistant", record)
    found = _ask(house, f"{SHOP}/logo.png")["sessions"]
    assert [(one["reads"], one["unclear"], one["changes"]) for one in found] == [(reads, unclear, 0)] * (
        reads + unclear
    )


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("rm -f c.txt && echo hi > d.txt", ["c.txt", "d.txt"]),
        ("touch sub/inner.txt", ["sub/inner.txt"]),
        ("sed -i s/a/b/ ../other.cfg", ["../other.cfg"]),
        ("git mv old_name.py new_name.py", ["old_name.py", "new_name.py"]),
        ("cd sub && mv one two", ["sub/one", "sub/two"]),
        ("cp a.txt kept/", ["a.txt", "kept/a.txt"]),
        ("cat > made <<'EOF'\nx\nEOF", ["made"]),
        ("rm -r sub", ["sub"]),
    ],
)
def test_files_changed_by_shell_commands_are_found_by_path(house: Recorded, command: str, changed: list[str]) -> None:
    house.session("ses_shell", f"{SHOP}/src")
    message = house.say("ses_shell", "assistant", call("bash", command=command, metadata={"exit": 0}))
    house.index()
    for name in changed:
        path = posixpath.normpath(f"{SHOP}/src/{name}")
        [match] = {one.message_id for one in house.lexical.by_time(0, Filters(path=path), 9, before=False)}
        assert match == message
        if name != "kept/a.txt":  # whether kept was a folder is for the file history to say
            assert _sessions(_ask(house, path)) == ["ses_shell"]


def test_a_path_is_asked_for_by_its_former_names_too_in_recall_as_here(house: Recorded) -> None:
    house.session("ses_old", SHOP)
    made = house.say("ses_old", "assistant", "wrote the cart", _write(f"{SHOP}/old_name.py"))
    house.session("ses_move", SHOP)
    moved = house.say(
        "ses_move",
        "assistant",
        "moved the cart",
        call("bash", command="git mv old_name.py new_name.py", metadata={"exit": 0}),
    )
    house.session("ses_new", SHOP)
    seen = house.say("ses_new", "assistant", "read the cart", read(f"{SHOP}/new_name.py", "x"))
    house.session("ses_else", SHOP)
    house.say("ses_else", "assistant", "another cart", _write(f"{SHOP}/else.py"))
    house.index()
    assert _sessions(_ask(house, f"{SHOP}/new_name.py")) == ["ses_new", "ses_move", "ses_old"]
    modes: tuple[Match, ...] = ("hybrid", "smart", "literal", "semantic")
    for match in modes:
        asked = Recall(query="cart", match=match, path=f"{SHOP}/new_name.py")
        answer = house.recall(budget_s=60.0).answer(asked, "", house.clock)
        assert {one["messageID"] for one in answer["results"]} == {made, moved, seen}


def test_every_path_of_a_recorded_edit_is_one_of_its_messages_document(any_sample: Sample, tmp_path: Path) -> None:
    found = load(any_sample, tmp_path)
    count = 0
    for message in found.messages:
        session = found.sessions.get(message.session_id)
        named = document(message, session, 64).paths
        for edit in edits(message, session):
            if edit.operation in CHANGES | READS | MAYBE and len(named) < MOST:
                assert redact(edit.path) in named
                count += 1
    assert count > 0
