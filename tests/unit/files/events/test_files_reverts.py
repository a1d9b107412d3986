"""What reverts did to files: set back at a time that may not be known, undone, or never recorded at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon import records
from daemon.archive import Archive
from daemon.files import FileHistory, Files
from daemon.files.events import reverts as module
from daemon.files.events.revert_records import Revert
from daemon.files.events.reverts import PENDING, Reverts
from daemon.files.history import BROUGHT_BACK, REVERTED, SET_BACK
from daemon.model import FileEdit, Json, Operation, Session
from tests.support.stores.git_texts import git_diff
from tests.support.stores.replaying import (
    archived_session,
    at,
    event,
    grade_and_content,
    keep,
    keep_tree,
    remove,
    snapshot,
    write,
)

A = "/w/a"
GONE = ("gone", None)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive") as opened:
        yield opened


def msg(second: float) -> str:
    """An id whose clock is this second, as OpenCode makes them."""
    return f"msg_{(at(second) << 12) & ((1 << 48) - 1):012x}ABCDEFGHIJKLMN"


def step(second: float, tree: str, path: str = A, **fields: object) -> FileEdit:
    named = {"message_id": msg(second), "part_id": f"prt_{second}"} | fields
    return event(second, Operation.STEP, path, "", blob=tree, **named)


class Story:
    """Two writes of /w/a, at 2 and 4, each in a step of its own with its trees."""

    def __init__(self, archive: Archive, *, steps: bool = True, other: bool = False) -> None:
        self.archive = archive
        self.states: list[dict[str, bytes]] = [{"b": b"b"}, {"b": b"b", "a": b"1\n"}, {"b": b"b", "a": b"2\n"}]
        self.trees = [keep_tree(archive, state) for state in self.states]
        self.edits = [
            snapshot(1, self.trees[0], "/w", message_id=msg(2)),
            write(2, A, "1\n", message_id=msg(2)),
            snapshot(3, self.trees[1], "/w", message_id=msg(2)),
            write(4, A, "2\n", message_id=msg(4), existed=True),
            snapshot(5, self.trees[2], "/w", message_id=msg(4)),
        ]
        if steps:
            self.edits += [step(3, self.trees[0], message_id=msg(2)), step(5, self.trees[1], message_id=msg(4))]
        if other:
            self.edits.append(write(8, A, "other\n", session_id="ses_2", message_id=msg(8), existed=True))
        keep(archive, self.edits)

    def diff(self, first: str) -> str:
        """What a revert to this message records of the files."""
        return git_diff(self.states[2], self.states[0 if first == msg(2) else 1])

    def pending(self, first: str, *, updated: float = 10, part: str = "", as_text: bool = False) -> Story:
        revert: Json = {"messageID": first, "snapshot": self.trees[2], "diff": self.diff(first)}
        revert |= {"partID": part} if part else {}
        told_as = records.dumps(revert).decode() if as_text else revert
        self.session(archived_session(updated=at(updated), record={"revert": told_as}))
        return self

    def session(self, session: Session) -> None:
        batch = self.archive.batch()
        batch.session(session, "s", 1)
        self.archive.commit(batch)

    def marks(
        self, *marks: tuple[float, str, bool], source: str = "journal", is_exact: bool = True, ended: int = 0
    ) -> Story:
        batch = self.archive.batch()
        told_ = [
            {
                "time": at(second), "message_id": first, "part_id": "", "snapshot": self.trees[2],
                "diff": self.diff(first), "is_undone": undone, "is_exact": is_exact,
            }
            | ({"ended": ended, "is_final": False} if ended else {})
            for second, first, undone in marks
        ]  # fmt: skip
        batch.session_extra("ses_1", {"reverts": {source: told_}, "diffs": [], "diff_time": 0}, [])
        self.archive.commit(batch)
        return self

    @property
    def history(self) -> FileHistory:
        return Files(self.archive).history(A)

    def at(self, second: float) -> tuple[str, bytes | None]:
        return grade_and_content(self.history.at(at(second)))


@pytest.mark.parametrize("as_text", [False, True])
def test_a_pending_revert_sets_back_to_the_tree_before_its_first_step(archive: Archive, as_text: bool) -> None:
    story = Story(archive).pending(msg(4), as_text=as_text)
    assert story.at(5) == ("verified", b"2\n")
    assert grade_and_content(story.history.latest)[1] == b"1\n"
    assert story.history.latest is not None
    assert story.history.latest.proven
    assert Files(archive).history(A).last_content is not None


def test_a_pending_revert_of_everything_takes_the_file_away(archive: Archive) -> None:
    story = Story(archive).pending(msg(2))
    assert grade_and_content(story.history.latest) == GONE
    assert story.history.last_content is not None
    assert story.history.last_content.content == b"2\n"


def test_nothing_is_certain_between_a_reverted_change_and_its_revert(archive: Archive) -> None:
    story = Story(archive).pending(msg(4), updated=10)
    assert story.at(7)[0] == "stale"
    assert story.at(10)[0] in ("proven", "verified")


def test_missing_messages_were_reverted_before_the_next_prompt(archive: Archive) -> None:
    story = Story(archive)
    keep(archive, [write(20, "/w/b", "b\n", message_id=msg(20))])
    remove(archive, msg(4), now=at(30))
    assert story.at(5) == ("verified", b"2\n")
    assert story.at(10)[0] == "stale"
    # A person may also have deleted them, and no file with them: what stands there then, the next tree tells.
    assert grade_and_content(story.history.latest) == ("stale", b"2\n")
    assert story.history.latest is not None
    assert story.history.latest.time < at(20)


def test_missing_messages_without_a_prompt_were_reverted_by_the_scan(archive: Archive) -> None:
    story = Story(archive)
    remove(archive, msg(2), msg(4), now=at(30))
    assert grade_and_content(story.history.latest) == ("stale", b"2\n")
    assert story.history.latest is not None
    assert story.history.latest.time == at(30)


def test_a_whole_session_that_was_deleted_is_no_revert(archive: Archive) -> None:
    story = Story(archive)
    remove(archive, msg(2), msg(4), now=at(30))
    batch = archive.batch()
    batch.forget_session_source("ses_1", "s", at(30))
    archive.commit(batch)
    assert grade_and_content(story.history.latest) == ("verified", b"2\n")


def test_the_journal_tells_when_and_that_it_was_undone(archive: Archive) -> None:
    story = Story(archive).marks((8, msg(4), False))
    assert [story.at(second)[1] for second in (5, 7, 8, 9)] == [b"2\n", b"2\n", b"1\n", b"1\n"]
    assert story.at(7)[0] == "verified"
    story.marks((8, msg(4), False), (9, msg(4), True))
    assert [story.at(second)[1] for second in (7, 8, 9, 10)] == [b"2\n", b"1\n", b"2\n", b"2\n"]


def test_a_complete_journal_outweighs_the_records_pending_revert(archive: Archive) -> None:
    story = Story(archive).pending(msg(4)).marks((8, msg(4), False))
    assert [r.time for r in story.history.revisions if r.tool == "revert"] == [at(8)]


def test_what_another_session_wrote_meanwhile_leaves_the_order_open(archive: Archive) -> None:
    story = Story(archive, other=True).pending(msg(4), updated=10)
    assert grade_and_content(story.history.latest)[0] == "stale"
    assert story.at(5) == ("verified", b"2\n")


def test_what_another_session_wrote_after_the_revert_stands(archive: Archive) -> None:
    story = Story(archive, other=True).marks((6, msg(4), False))
    assert story.at(7)[1] == b"1\n"
    assert grade_and_content(story.history.latest) == ("proven", b"other\n")


def test_the_diff_tells_of_a_file_in_no_patch_part(archive: Archive) -> None:
    story = Story(archive, steps=False).pending(msg(4))
    assert grade_and_content(story.history.latest) == ("proven", b"1\n")


def test_a_file_that_the_diff_does_not_name_stays_as_it_was(archive: Archive) -> None:
    story = Story(archive)
    story.states[1]["a"] = b"2\n"
    story.states[1]["b"] = b"other"  # so that there is a diff
    story.pending(msg(4))
    assert grade_and_content(story.history.latest) == ("verified", b"2\n")


@pytest.mark.parametrize("diff", ["", "no diff at all", "diff --git x/a y/a\nindex 0000000..1111111\n--- x/a\n+++ y/a"])
@pytest.mark.parametrize("steps", [True, False])
def test_without_a_readable_diff_how_far_a_turn_went_back_is_open(archive: Archive, steps: bool, diff: str) -> None:
    story = Story(archive, steps=steps)
    revert: Json = {"messageID": msg(4), "snapshot": story.trees[2], "diff": diff}
    story.session(archived_session(updated=at(10), record={"revert": revert}))
    assert grade_and_content(story.history.latest) == ("stale", b"2\n")
    assert story.history.last_content is not None


def test_a_diff_is_applied_where_no_tree_has_its_result(archive: Archive) -> None:
    story = Story(archive)
    story.states[1]["a"] = b"made by the revert\n"
    story.pending(msg(4))
    assert grade_and_content(story.history.latest) == ("proven", b"made by the revert\n")


def test_a_diff_whose_result_has_another_hash_than_it_says_proves_nothing(archive: Archive) -> None:
    story = Story(archive)
    story.states[1]["a"] = b"made by the revert\n"
    diff = story.diff(msg(4)).replace("+made", "+not made")
    revert: Json = {"messageID": msg(4), "snapshot": story.trees[2], "diff": diff}
    story.session(archived_session(updated=at(10), record={"revert": revert}))
    assert grade_and_content(story.history.latest) == ("stale", b"2\n")


def test_a_revert_that_was_seen_pending_is_known_when_it_has_become_final(archive: Archive) -> None:
    story = Story(archive).marks((6, msg(4), False), is_exact=False)
    remove(archive, msg(4), now=at(30))
    assert grade_and_content(story.history.latest) == ("proven", b"1\n")


def test_a_revert_that_was_seen_pending_and_is_gone_may_have_been_undone(archive: Archive) -> None:
    story = Story(archive).marks((6, msg(4), False), is_exact=False)
    story.session(archived_session(updated=at(10)))
    assert grade_and_content(story.history.latest) == ("stale", b"1\n")


def test_a_pending_revert_that_was_undone_brought_its_tree_back(archive: Archive) -> None:
    story = Story(archive).marks((6, msg(4), False), is_exact=False, ended=at(8))
    assert [story.at(second)[:2] for second in (6, 7, 8)] == [("proven", b"1\n"), ("stale", b"1\n"), ("proven", b"2\n")]


def test_what_another_session_wrote_while_a_revert_was_undone_may_still_be_there(archive: Archive) -> None:
    story = Story(archive, other=True).marks((6, msg(4), False), is_exact=False, ended=at(9))
    assert [story.at(second)[:2] for second in (6, 8, 9)] == [
        ("proven", b"1\n"),
        ("proven", b"other\n"),
        ("stale", b"other\n"),
    ]
    assert story.history.latest is not None
    assert story.history.latest.note == REVERTED


def test_a_message_that_lost_its_last_parts_may_have_been_reverted(archive: Archive) -> None:
    """1.15 keeps what came before the chosen part of a message, and no record of the revert."""
    story = Story(archive)
    cut = [edit for edit in story.edits if edit.message_id == msg(4)]
    keep(archive, cut, gone=[edit.part_id for edit in cut])
    assert story.at(4)[1] == b"2\n"
    assert grade_and_content(story.history.latest) == ("stale", b"2\n")


def test_an_earlier_final_revert_is_not_hidden_by_a_pending_one(archive: Archive) -> None:
    story = Story(archive)
    keep(archive, [write(20, "/w/b", "b\n", message_id=msg(20))])
    remove(archive, msg(4), now=at(30))
    story.session(archived_session(updated=at(40), record={"revert": {"messageID": msg(20), "diff": ""}}))
    assert grade_and_content(story.history.latest)[0] == "stale"


def test_without_git_a_revert_changes_nothing(archive: Archive) -> None:
    keep(archive, [write(2, A, "1\n", message_id=msg(2)), write(4, A, "2\n", message_id=msg(4), existed=True)])
    remove(archive, msg(4), now=at(30))
    assert grade_and_content(Files(archive).history(A).latest) == ("proven", b"2\n")


def test_a_tree_that_is_not_archived_leaves_the_file_in_doubt(archive: Archive) -> None:
    story = Story(archive, steps=False)
    keep(archive, [*story.edits, step(5, "f" * 40, message_id=msg(4))])
    story.trees[2] = "e" * 40
    story.pending(msg(4))
    assert grade_and_content(story.history.latest)[0] == "stale"
    assert story.history.latest is not None
    assert story.history.latest.note == PENDING


def test_a_revert_from_a_part_on_leaves_what_the_message_did_before_it(archive: Archive) -> None:
    trees = [keep_tree(archive, {"a": content, "c": other}) for content, other in ((b"1\n", b"1\n"), (b"2\n", b"2\n"))]
    keep(archive, [
        snapshot(1, trees[0], "/w", message_id=msg(2)),
        write(2, A, "2\n", message_id=msg(2), part_id="prt_1", existed=True),
        step(3, trees[0], message_id=msg(2), part_id="prt_2"),
        write(4, "/w/c", "2\n", message_id=msg(2), part_id="prt_3", existed=True),
        step(5, trees[0], path="/w/c", message_id=msg(2), part_id="prt_4"),
        snapshot(6, trees[1], "/w", message_id=msg(2), part_id="prt_5"),
    ])  # fmt: skip
    # Without a diff: the patch parts behind the chosen one tell.
    record = {"revert": {"messageID": msg(2), "partID": "prt_3", "snapshot": trees[1]}}
    batch = archive.batch()
    batch.session(archived_session(updated=at(10), record=record), "s", 1)
    archive.commit(batch)
    assert grade_and_content(Files(archive).history(A).latest)[1] == b"2\n"
    assert grade_and_content(Files(archive).history("/w/c").latest)[1] == b"1\n"


def test_a_session_without_reverts_adds_no_events(archive: Archive) -> None:
    story = Story(archive)
    assert Reverts(archive).applied(story.edits) == story.edits


def test_ids_are_compared_by_a_clock_that_wraps(archive: Archive) -> None:
    """The message after the wrap has a smaller id; reverting from the one before takes both."""
    before, after = "msg_ffffffffffffAAAAAAAAAAAAAA", "msg_000000000001AAAAAAAAAAAAAA"
    trees = [keep_tree(archive, {"a": content}) for content in (b"0\n", b"1\n", b"2\n")]
    keep(archive, [
        snapshot(1, trees[0], "/w", message_id=before),
        write(2, A, "1\n", message_id=before, existed=True), step(2.5, trees[0], message_id=before),
        write(4, A, "2\n", message_id=after, existed=True), step(4.5, trees[1], message_id=after),
    ])  # fmt: skip

    def revert(first: str, left: bytes) -> Json:
        return {"messageID": first, "diff": git_diff({"a": b"2\n"}, {"a": left})}

    batch = archive.batch()
    batch.session(archived_session(updated=at(10), record={"revert": revert(after, b"1\n")}), "s", 1)
    archive.commit(batch)
    assert grade_and_content(Files(archive).history(A).latest)[1] == b"1\n"
    batch = archive.batch()
    batch.session(archived_session(updated=at(10), record={"revert": revert(before, b"0\n")}), "s", 1)
    archive.commit(batch)
    assert grade_and_content(Files(archive).history(A).latest)[1] == b"0\n"


def added(story: Story, revert: Revert, others: list[FileEdit], monkeypatch: pytest.MonkeyPatch) -> list[FileEdit]:
    """The events that a revert of the first session adds to those of /w/a."""
    monkeypatch.setattr(module, "reverts", lambda _archive, id_, _own: [revert] if id_ == "ses_1" else [])
    edits = [*story.edits, *others]
    events = Reverts(story.archive).applied(edits)
    assert events[: len(edits)] == edits
    return events[len(edits) :]


def by_another(*seconds: float) -> list[FileEdit]:
    return [write(second, A, "x", session_id="ses_2", message_id=msg(second)) for second in seconds]


def test_a_revert_is_told_by_events_of_the_last_call_that_it_took_back(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story(archive)
    revert = Revert(msg(4), "", at(6), at(9), story.trees[2], story.diff(msg(4)), until=at(20))
    before, then, after = added(story, revert, [], monkeypatch)
    assert (before.time, before.operation, before.note, before.until) == (
        at(6) + 1, Operation.UNCLEAR, REVERTED, at(9),
    )  # fmt: skip
    assert (then.time, then.operation, then.note, then.tool) == (at(9), Operation.STATE, SET_BACK, "revert")
    assert (after.time, after.operation, after.note, after.until) == (
        at(9) + 1, Operation.UNCLEAR, REVERTED, at(20),
    )  # fmt: skip
    for one in (before, then, after):
        assert (one.path, one.session_id, one.message_id, one.version) == (A, "ses_1", msg(4), "1.18.33")
        assert one.part_id.startswith("~prt_")
    assert (before.tool, after.tool) == ("", "")


def test_a_revert_whose_time_is_known_leaves_no_doubt_before_it(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story(archive)
    revert = Revert(msg(4), "", at(9), at(9), story.trees[2], story.diff(msg(4)))
    assert [one.operation for one in added(story, revert, [], monkeypatch)] == [Operation.STATE]


@pytest.mark.parametrize(("second", "is_open"), [(6, False), (7, True), (9, True), (10, False)])
def test_what_another_session_did_meanwhile_leaves_the_order_open(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, second: float, is_open: bool
) -> None:
    story = Story(archive)
    revert = Revert(msg(4), "", at(6), at(9), story.trees[2], story.diff(msg(4)))
    then = added(story, revert, by_another(second), monkeypatch)[1]
    assert (then.time, then.operation, then.note) == (
        (at(9), Operation.UNCLEAR, REVERTED) if is_open else (at(9), Operation.STATE, SET_BACK)
    )


@pytest.mark.parametrize(("second", "is_rewritten"), [(9, False), (10, True), (15, True), (16, False)])
def test_undoing_a_revert_writes_what_others_changed_since(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, second: float, is_rewritten: bool
) -> None:
    """The revert itself did not touch the file: its diff names another one."""
    story = Story(archive)
    diff = git_diff({"b": b"b"}, {"b": b"c"})
    revert = Revert(msg(4), "", at(9), at(9), story.trees[2], diff, undone=at(15))
    notes = [(one.time, one.note) for one in added(story, revert, by_another(second), monkeypatch)]
    assert notes == ([(at(15), BROUGHT_BACK)] if is_rewritten else [])
    untouched = Revert(msg(4), "", at(9), at(9), story.trees[2], diff)
    assert added(story, untouched, by_another(second), monkeypatch) == []


# -- which events a revert takes back --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "part", "expected"),
    [
        (write(4, A, "x", message_id=msg(4)), "", True),
        (write(9, A, "x", message_id=msg(9)), "", True),  # at the very moment of the revert
        (write(9.001, A, "x", message_id=msg(9)), "", False),
        (write(4, A, "x", message_id=""), "", False),
        (write(3, A, "x", message_id=msg(3)), "", False),
        (write(4, A, "x", message_id=msg(4), part_id="prt_2"), "prt_2", True),
        (write(4, A, "x", message_id=msg(4), part_id="prt_3"), "prt_2", True),
        (write(4, A, "x", message_id=msg(4), part_id="prt_1"), "prt_2", False),
        (step(4, "", message_id=msg(4), part_id="prt_2"), "prt_2", False),
        (step(4, "", message_id=msg(4), part_id="prt_3"), "prt_2", True),
        (write(5, A, "x", message_id=msg(5), part_id="prt_1"), "prt_2", True),  # of a later message every part
    ],
)
def test_a_revert_takes_back_what_came_after_its_part(edit: FileEdit, part: str, expected: bool) -> None:
    assert module._is_covered(edit, Revert(msg(4), part, at(6), at(9))) is expected


@pytest.mark.parametrize(
    ("path", "roots", "name"),
    [
        ("/w/in/x", {("/w", "/w"), ("/w/in", "/w/in")}, "x"),
        ("/w/a", {("/w", "/w"), ("/w/in", "/w/in"), ("/zebra/of/a/long/name", "/zebra/of/a/long/name")}, "a"),
        ("/w/a", {("/", "/")}, "w/a"),
        ("/w", {("/w", "/w")}, None),
        ("/w/a", {("/v", "/v")}, None),
        ("/w/d/a", {("/w/d", "/w")}, "d/a"),
        ("/w/a", {("/w/d", "/w")}, None),  # a session in a folder takes back nothing outside of it
        ("/w/a", set(), None),
    ],
)
def test_a_file_has_its_name_in_the_innermost_work_tree(
    path: str, roots: set[tuple[str, str]], name: str | None
) -> None:
    edits = [write(4, path, "x", message_id=msg(4))]
    names = [covered.name for covered in module._covered(edits, Revert(msg(4), "", at(6), at(9)), roots)]
    assert names == ([] if name is None else [name])


def test_a_file_that_was_only_seen_is_not_taken_back() -> None:
    edits = [event(4, Operation.READ, A, message_id=msg(4))]
    assert list(module._covered(edits, Revert(msg(4), "", at(6), at(9)), {("/w", "/w")})) == []


def test_only_trees_tell_where_a_work_tree_begins(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """That the folder /w/d was moved there makes it no work tree: its files are named d/... in the diff."""
    story = Story(archive)
    moved = event(3.5, Operation.MOVE, "/w/c", other="/w/d", message_id=msg(2))
    inside = write(4, "/w/d/f", "x", message_id=msg(4))
    revert = Revert(msg(4), "", at(9), at(9), story.trees[2], git_diff({"d/f": b"x"}, {}))
    gone = added(story, revert, [moved, inside], monkeypatch)
    assert [(edit.path, edit.operation, edit.note) for edit in gone] == [("/w/d/f", Operation.STATE, SET_BACK)]


# -- what becomes of a file ------------------------------------------------------------------------------------------

EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


def test_a_tree_entry_tells_the_file_if_its_content_is_captured(archive: Archive) -> None:
    story = Story(archive)
    held, missing = records.blob_id(b"1\n"), "f" * 40
    of = Reverts(archive)._of
    assert of((0o100644, held)) == module._FileAfter(held)
    assert of((0o100644, EMPTY)) == module._FileAfter(text="")
    assert of((0o100644, missing)) == of((0o120000, held)) == of((0o160000, held)) == module._UNKNOWN
    assert of(None) == module._GONE
    assert story.trees


RENAMED = """diff --git a/b b/a
similarity index 100%
rename from b
rename to a"""
CHMOD = """diff --git a/a b/a
old mode 100644
new mode 100755"""


@pytest.mark.parametrize(
    ("diff", "expected"),
    [
        (RENAMED, module._FileAfter(records.blob_id(b"b"))),
        (CHMOD, None),
        (git_diff({"a": b"2\n"}, {}), module._GONE),
        (git_diff({"c": b"c"}, {}), None),
        (git_diff({}, {"a": b"new\n"}), module._UNKNOWN),  # the tree has another file there
        ("no diff at all", module._UNKNOWN),
    ],
)
def test_the_diff_of_a_revert_tells_what_became_of_a_file(
    archive: Archive, diff: str, expected: module._FileAfter | None
) -> None:
    story = Story(archive)
    revert = Revert(msg(4), "", at(9), at(9), story.trees[2], diff)
    assert Reverts(archive)._by_diff("a", revert, []) == expected


def test_a_file_that_a_revert_makes_anew_is_all_in_the_diff(archive: Archive) -> None:
    story = Story(archive)
    revert = Revert(msg(4), "", at(9), at(9), story.trees[0], git_diff({}, {"a": b"new\n"}))
    assert Reverts(archive)._by_diff("a", revert, []) == module._FileAfter(text="new\n")


def test_a_diff_is_applied_where_the_tree_names_content_that_is_not_captured(archive: Archive) -> None:
    story = Story(archive)
    diff = git_diff({"a": b"2\n"}, {"a": b"set back\n"})
    revert = Revert(msg(4), "", at(9), at(9), story.trees[2], diff)
    entries = [None, (0o100644, records.blob_id(b"set back\n"))]
    assert Reverts(archive)._by_diff("a", revert, entries) == module._FileAfter(text="set back\n")


@pytest.mark.parametrize(
    ("steps", "tree", "part", "is_recorded", "expected"),
    [
        ([], 0, "", True, None),  # neither a patch part nor the tree has it
        ([], 2, "", True, module._UNKNOWN),
        ([2], 2, "", True, None),  # the tree before the step is the one before the revert
        ([2], 2, "", False, module._UNKNOWN),
        ([1], 2, "", True, module._UNKNOWN),
        ([1], 2, "prt_0", True, module._FileAfter(records.blob_id(b"1\n"))),
        ([0], 2, "prt_0", True, module._GONE),
    ],
)
def test_without_a_diff_the_patch_parts_tell_what_is_certain(
    archive: Archive, steps: list[int], tree: int, part: str, is_recorded: bool, expected: module._FileAfter | None
) -> None:
    story = Story(archive)
    taken_back = [step(4 + number, story.trees[before]) for number, before in enumerate(steps)]
    covered = module._RevertedFile(A, "a", [write(4, A, "2\n"), *taken_back])
    revert = Revert(msg(4), part, at(9), at(9), story.trees[tree], is_recorded=is_recorded)
    assert Reverts(archive)._after(covered, revert) == expected
