"""What a path's recorded edits prove, one rule at a time."""

from __future__ import annotations

from typing import Any

import pytest

from daemon.files.content import Fragments, Run
from daemon.files.history import FileHistory, Grade, Revision
from daemon.files.replay.changes import CONCURRENT
from daemon.files.replay.reads import NOT_UTF8
from daemon.model import FileEdit, Operation, Session
from daemon.transcript.evidence.edits import edits
from tests.support.stores.records import (
    BASE,
    START,
    apply_patch,
    bash,
    edit,
    message,
    read,
    read_output,
    session,
    text,
    tool,
    write,
)
from tests.support.stores.replaying import history

PATH = f"{BASE}/a.lua"


def _edits(*parts: dict[str, Any], version: str = "1.18.33") -> list[FileEdit]:
    """Edits of one message each, a second apart, so that they are in the order given."""
    found: list[FileEdit] = []
    for number, record in enumerate(parts):
        times = record["state"]["time"]
        times["start"] = times["end"] = START + 1000 * number
        found += edits(message(record, role="assistant"), session(version=version))
    return found


def _history(*parts: dict[str, Any], version: str = "1.18.33", path: str = PATH) -> FileHistory:
    return history(path, _edits(*parts, version=version))


def _recorded(before: str, after: str) -> dict[str, Any]:
    return {"filediff": {"file": PATH, "before": before, "after": after, "additions": 1, "deletions": 1}}


def _proven(found: FileHistory) -> bytes | None:
    assert found.latest is not None
    assert found.latest.proven, found.latest
    assert found.latest.evidence
    return found.latest.content


def _doubted(found: FileHistory) -> Revision:
    assert found.latest is not None
    assert not found.latest.proven, found.latest
    assert found.latest.note
    assert found.stale
    return found.latest


def test_a_completed_write_proves_its_content() -> None:
    assert _proven(_history(write(PATH, "a = 1\n"))) == b"a = 1\n"


def test_an_edit_that_matches_a_proven_text_proves_the_next_one() -> None:
    assert _proven(_history(write(PATH, "a = 1\n"), edit(PATH, "1", "2"))) == b"a = 2\n"


@pytest.mark.parametrize(
    ("base", "change"),
    [
        ("a = 1\n", edit(PATH, "b", "c")),
        ("a = 1\na = 1\n", edit(PATH, "a = 1", "c")),
        ("    a = 1\n", edit(PATH, "  a = 1\n  b", "c")),
        ("", edit(PATH, "x", "y")),
    ],
)
def test_an_edit_that_does_not_match_literally_proves_nothing(base: str, change: dict[str, Any]) -> None:
    last = _doubted(_history(write(PATH, base), change))
    assert last.content == base.encode()


def test_an_edit_of_an_unknown_text_proves_nothing_and_invents_nothing() -> None:
    assert _doubted(_history(edit(PATH, "a", "b"))).content is None


def test_an_edit_with_its_text_before_and_after_needs_no_history() -> None:
    assert (
        _proven(_history(edit(PATH, "1", "2", metadata=_recorded("a = 1\n", "a = 2\n")), version="1.1.65"))
        == b"a = 2\n"
    )


def test_a_text_before_that_no_edit_made_is_an_outside_change() -> None:
    found = _history(
        write(PATH, "a = 1\n"),
        edit(PATH, "1", "2", metadata=_recorded("# new\na = 1\n", "# new\na = 2\n")),
        version="1.1.65",
    )
    assert _proven(found) == b"# new\na = 2\n"
    assert [revision.outside_change for revision in found.revisions] == [False, True]


def test_failed_and_pending_calls_change_nothing() -> None:
    found = _history(
        write(PATH, "a = 1\n"),
        edit(PATH, "1", "2", status="error"),
        tool("write", {"filePath": PATH, "content": "x"}, status="pending"),
        tool(
            "apply_patch",
            {"patchText": f"*** Begin Patch\n*** Delete File: {PATH}\n*** End Patch"},
            "failed",
            status="error",
        ),
    )
    assert _proven(found) == b"a = 1\n"
    assert len(found.revisions) == 1


@pytest.mark.parametrize(
    "cut_off",
    [
        tool("write", {"filePath": PATH, "content": "x"}, status="running"),
        tool("edit", {"filePath": PATH, "oldString": "1", "newString": "2"}, "Tool execution aborted", status="error"),
        bash("sed -i s/1/2/ a.lua", status="running"),
        bash("date >> a.lua"),
        bash("cd . && rm a.lua", "Tool execution aborted", status="error"),
        tool("acme_replace_text", {"path": "a.lua", "find": "1"}, "ok"),
        tool("acme_thing", {"file": PATH, "contents": "x"}, "ok"),
    ],
)
def test_an_unknown_change_makes_the_state_stale_and_keeps_the_text(cut_off: dict[str, Any]) -> None:
    found = _history(write(PATH, "a = 1\n"), cut_off)
    assert _doubted(found).content == b"a = 1\n"
    assert [revision.content for revision in found.revisions if revision.proven][-1:] == [b"a = 1\n"]


def test_nothing_built_on_a_stale_state_is_proven_until_a_write() -> None:
    first = write(PATH, "a = 1\n"), bash("date >> a.lua"), edit(PATH, "1", "2")
    assert _doubted(_history(*first)).content == b"a = 2\n"
    assert _proven(_history(*first, write(PATH, "b\n"))) == b"b\n"


@pytest.mark.parametrize(
    "command", ["cat a.lua", "python3 a.lua", "grep -n x a.lua | head", "git diff a.lua", "wc -l < a.lua"]
)
def test_a_command_that_only_reads_a_file_casts_no_doubt(command: str) -> None:
    assert _proven(_history(write(PATH, "a = 1\n"), bash(command))) == b"a = 1\n"


@pytest.mark.parametrize("version", ["1.0.61", "1.1.65"])
def test_a_complete_read_of_an_old_version_proves_the_text(version: str) -> None:
    assert _proven(_history(read(PATH, "a = 1\r\n\nb\n", version), version=version)) == b"a = 1\r\n\nb\n"


def test_a_read_of_a_kind_with_marks_proves_all_but_the_mark() -> None:
    path = f"{BASE}/Program.cs"
    last = _doubted(_history(read(path, "a\r\n", "1.1.65"), version="1.1.65", path=path))
    assert (last.content, last.grade, last.mark_unknown) == (b"a\r\n", Grade.PARTIAL, True)


def test_a_write_over_a_possible_mark_leaves_only_the_mark_open() -> None:
    path = f"{BASE}/bom.txt"
    over = write(path, "new\n")
    over["state"]["metadata"]["exists"] = True
    last = _doubted(_history(over, path=path))
    assert (last.content, last.grade, last.mark_unknown) == (b"new\n", Grade.PARTIAL, True)
    assert _proven(_history(over, path=path, version="1.1.65")) == b"new\n"
    assert _proven(_history(write(path, "x"), over, path=path)) == b"new\n"


def test_a_read_of_a_new_version_proves_no_final_newline() -> None:
    last = _doubted(_history(read(PATH, "a = 1\n")))
    assert (last.content, last.grade) == (None, Grade.PARTIAL)
    assert last.fragments == Fragments((Run(1, ("a = 1",)),), is_all=True)
    assert "final newline" in last.note


def test_a_read_confirms_what_is_known() -> None:
    for version in ("1.1.65", "1.18.33"):
        found = _history(write(PATH, "a = 1\r\n"), read(PATH, "a = 1\r\n", version), version=version)
        assert _proven(found) == b"a = 1\r\n"
        said = "confirmed by a read" if version == "1.1.65" else "a read shows the same lines"
        assert said in found.revisions[-1].evidence
        assert (found.grade is Grade.VERIFIED) == (version == "1.1.65")


def test_a_read_that_shows_another_text_is_an_outside_change() -> None:
    old = _history(write(PATH, "a = 1\n"), read(PATH, "a = 2\n", "1.1.65"), version="1.1.65")
    assert _proven(old) == b"a = 2\n"
    assert old.revisions[-1].outside_change
    new = _doubted(_history(write(PATH, "a = 1\n"), read(PATH, "a = 2\n")))
    assert (new.content, new.outside_change) == (None, True)
    assert new.fragments == Fragments((Run(1, ("a = 2",)),), is_all=True)


def _range(lines: str) -> dict[str, Any]:
    shown = f"<path>{PATH}</path>\n<type>file</type>\n<content>\n{lines}\n\n(Showing lines 2-3 of 9. Use offset=4 to continue.)\n</content>"
    return tool("read", {"filePath": PATH, "offset": 2}, shown)


def test_a_partial_read_proves_no_file_and_may_contradict_one() -> None:
    base = write(PATH, "a\nb\nc\nd\n")
    assert _proven(_history(base, _range("2: b\n3: c"))) == b"a\nb\nc\nd\n"
    assert _doubted(_history(base, _range("2: b\n3: x"))).outside_change
    seen = _doubted(_history(_range("2: b\n3: c")))
    assert (seen.content, seen.grade) == (None, Grade.PARTIAL)
    assert seen.fragments == Fragments((Run(2, ("b", "c")),))


def test_deletion_and_a_new_life() -> None:
    gone = f"*** Begin Patch\n*** Delete File: {PATH}\n*** End Patch"
    found = _history(write(PATH, "a\n"), apply_patch(gone))
    assert found.latest is not None
    assert (found.latest.deleted, found.latest.proven, found.latest.content) == (True, True, None)
    assert _proven(_history(write(PATH, "a\n"), apply_patch(gone), write(PATH, "b\n"))) == b"b\n"


_MOVE = f"*** Begin Patch\n*** Update File: {BASE}/old.lua\n*** Move to: a.lua\n@@\n-a = 1\n+a = 2\n*** End Patch"


def test_a_move_brings_the_other_paths_text_along() -> None:
    calls = write(f"{BASE}/old.lua", "# top\na = 1\n"), apply_patch(_MOVE)
    assert _proven(_history(*calls)) == b"# top\na = 2\n"
    source = _history(*calls, path=f"{BASE}/old.lua")
    assert source.latest is not None
    assert source.latest.deleted
    assert f"moved to {PATH}" in source.latest.evidence


def test_a_move_from_an_unknown_text_proves_nothing() -> None:
    assert _doubted(_history(apply_patch(_MOVE))).content is None


def test_a_patch_that_names_a_file_twice_is_not_followed() -> None:
    twice = "*** Begin Patch\n*** Update File: a.lua\n@@\n-a\n+b\n*** Update File: a.lua\n@@\n-b\n+c\n*** End Patch"
    assert _doubted(_history(write(PATH, "a\n"), apply_patch(twice))).content == b"a\n"


def test_what_a_read_shows_of_a_file_that_is_not_utf8_is_never_proven() -> None:
    assert _doubted(_history(read(PATH, "caf\ufffd\n", "1.1.65"), version="1.1.65")).note == NOT_UTF8


def test_a_write_replaces_characters_that_cannot_be_encoded() -> None:
    assert _proven(_history(write(PATH, "x\ud800\n"))) == "x\ufffd\n".encode()


@pytest.mark.parametrize(
    ("version", "steps", "expected"),
    [
        ("1.1.65", [write(PATH, "\ufeffa\n"), edit(PATH, "a", "b")], b"b\n"),
        ("1.18.33", [write(PATH, "\ufeffa\n"), edit(PATH, "a", "b")], b"\xef\xbb\xbfb\n"),
        ("1.1.65", [write(PATH, "\ufeffa\n"), write(PATH, "b\n")], b"b\n"),
        ("1.18.33", [write(PATH, "\ufeffa\n"), write(PATH, "b\n")], b"\xef\xbb\xbfb\n"),
        ("1.1.65", [write(PATH, "a\r\nb\r\n"), edit(PATH, "b", "c\nd")], b"a\r\nc\nd\r\n"),
        ("1.18.33", [write(PATH, "a\r\nb\r\n"), edit(PATH, "a\nb", "c\nd")], b"c\r\nd\r\n"),
        ("1.18.33", [write(PATH, "a\nb\n"), edit(PATH, "a\r\nb", "c")], b"c\n"),
        ("1.18.33", [edit(PATH, "", "new\n")], b"new\n"),
        ("1.1.65", [write(PATH, "a\n"), edit(PATH, "", "new\n", metadata=_recorded("", "new\n"))], b"new\n"),
        ("1.18.33", [write(PATH, "ab"), edit(PATH, "b", "$&$$", replace_all=True)], b"ab$"),
        ("1.18.33", [write(PATH, "ab"), edit(PATH, "b", "$&$$")], b"a$&$$"),
    ],
)  # fmt: skip
def test_each_version_has_its_rules(version: str, steps: list[dict[str, Any]], expected: bytes) -> None:
    found = _history(*steps, version=version)
    assert _proven(found) == expected
    assert not any(revision.outside_change for revision in found.revisions)


@pytest.mark.parametrize(
    ("between", "steps"),
    [
        ("1.2.24", [write(PATH, "a\r\nb\r\n"), edit(PATH, "b", "c\nd")]),
        ("1.2.10", [write(PATH, "\ufeffa\n"), edit(PATH, "a", "b")]),
    ],
)
def test_where_versions_differ_an_unknown_one_proves_nothing(between: str, steps: list[dict[str, Any]]) -> None:
    for version in (between, ""):
        _doubted(_history(*steps, version=version))


def test_a_session_that_a_newer_opencode_went_on_with_follows_its_rules() -> None:
    patched = {"filediff": {"file": PATH, "patch": "…", "additions": 1, "deletions": 1}}
    steps = write(PATH, "a\r\nb\r\n"), edit(PATH, "b", "c\nd", metadata=patched)
    _doubted(_history(*steps, version="1.1.65"))


def test_calls_that_ran_beside_each_other_are_not_put_in_an_order() -> None:
    one = edits(message(write(PATH, "one\n", start=START, end=START + 50), role="assistant"), session())
    two = edits(
        message(write(PATH, "two\n", start=START + 10, end=START + 60), role="assistant", session_id="ses_2"), session()
    )
    assert _doubted(history(PATH, [*one, *two])).note == CONCURRENT
    late = edits(message(write(PATH, "two\n", start=START + 51, end=START + 60), role="assistant"), session())
    assert _proven(history(PATH, [*one, *late])) == b"two\n"


def test_parallel_edits_of_one_message_take_effect_in_their_order() -> None:
    """The edit tool holds a lock; the first one's end may come last, since it waits for diagnostics."""
    calls = message(
        edit(PATH, "1", "2", start=START + 10, end=START + 90),
        edit(PATH, "2", "3", start=START + 11, end=START + 40),
        role="assistant",
    )
    first = edits(message(write(PATH, "a = 1\n"), role="assistant"), session())
    assert _proven(history(PATH, [*first, *edits(calls, session())])) == b"a = 3\n"


def test_a_read_beside_a_change_is_no_evidence() -> None:
    both = message(
        edit(PATH, "1", "2", start=START + 10, end=START + 20),
        read(PATH, "a = 1\n", "1.1.65", start=START + 10, end=START + 30),
        role="assistant",
    )
    first = edits(message(write(PATH, "a = 1\n"), role="assistant"), session(version="1.1.65"))
    assert _proven(history(PATH, [*first, *edits(both, session(version="1.1.65"))])) == b"a = 2\n"


def test_two_sessions_interleave_by_time() -> None:
    calls = [("ses_1", 0, write(PATH, "a\n")), ("ses_2", 10, edit(PATH, "a", "b")), ("ses_1", 20, edit(PATH, "b", "c"))]
    found: list[FileEdit] = []
    for owner, time, record in reversed(calls):
        record["state"]["time"] = {"start": START + time, "end": START + time + 5}
        found += edits(message(record, role="assistant", session_id=owner), session(id=owner))
    assert _proven(history(PATH, found)) == b"c\n"


def test_history_answers_for_any_time() -> None:
    found = _history(write(PATH, "a\n"), edit(PATH, "a", "b"))
    assert found.at(START - 1) is None
    contents = [revision.content for time in (0, 999, 1000) if (revision := found.at(START + time))]
    assert contents == [b"a\n", b"a\n", b"b\n"]


def test_an_attachments_read_counts_as_a_read() -> None:
    parts = [
        text(f'Called the Read tool with the following input: {{"filePath":"{PATH}"}}', synthetic=True),
        text(read_output(PATH, "a = 1\n", "1.1.65"), synthetic=True),
    ]
    found = edits(message(text("look"), *parts), Session("s", "", BASE, "", 0, 0, b"{}", version="1.1.65"))
    assert [one.operation for one in found] == [Operation.READ]
    assert _proven(history(PATH, found)) == b"a = 1\n"


def test_a_call_that_found_the_file_modified_since_it_was_read_casts_doubt() -> None:
    refused = tool("edit", {"filePath": PATH, "oldString": "1", "newString": "2"}, status="error")
    refused["state"]["error"] = f"Error: File {PATH} has been modified since it was last read.\nPlease read it again."
    found = _history(write(PATH, "a = 1\n"), refused)
    assert _doubted(found).content == b"a = 1\n"
    between = found.at(START + 500)
    assert found.revisions[-1].outside_change
    assert between is not None
    assert not between.proven, "the change came some time before the call that noticed it"
