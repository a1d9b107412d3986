"""Reads whole states of files from recorded diffs: user messages' `summary.diffs`, and the `session_diff` files.

Both compare two snapshot trees, so they cover the changes of any program, but only of non-ignored files beneath the
session's folder (opencode-formats.md, Records). They are texts, so a file that decoding may have changed is not
evidence. The counts of a diff (lines before, added, deleted, after) must add up; if they do not, git failed when the
diff was made (opencode-formats.md, Tools 2 and 3).
"""

from __future__ import annotations

from daemon import records
from daemon.errors import BadRecord
from daemon.model import FileEdit, Json, Message, Operation, Session
from daemon.transcript.evidence import left_out
from daemon.transcript.evidence.unified_diffs import full_diff
from daemon.transcript.paths import session_tree, unquoted, work_tree
from daemon.transcript.tool_calls import absolute, release, valid_text

BEFORE_TURN, AFTER_TURN, AFTER_SESSION = "before the turn", "after the turn", "after the session"
BEFORE_REVERT = "before a revert"
"""Begin the notes of the STATE edits made here."""
MAYBE_REVERTED = "reverted, as far as it was"
NO_MARK = "; a byte order mark would not show in it"
"""Ends the note of a state that was decoded in the way of 1.15 and later."""
MOST_DIFFS = 20_000
"""The most diffs that we read from one record; the files of any others are UNCLEAR."""

_FIRST_COMPLETE = (1, 15, 0)
_POINTER = "version https://git-lfs.github.com/spec/"
_LONGEST_LINK = 4095


def summary_edits(message: Message, session: Session | None, root: str = "") -> list[FileEdit]:
    """Two STATEs for each diff of a user message: BEFORE_TURN and AFTER_TURN, in this order.

    Both have the message's time, because the message does not say when its turn ended. The replay moves those whose
    note begins with AFTER_TURN (also the UNCLEAR of a record with too many diffs) to steps.last_finish of the turn's
    answers, not to their end, because an interrupted step is not in the summary. `root` is the work tree, if the caller
    knows it.
    """
    diffs = _tables(records.table(message.data.get("summary")).get("diffs"))
    if not diffs:
        return []
    names = [unquoted(records.text(diff.get("file"))) for diff in diffs]
    tree = work_tree(message, session, known_root=root, names=[name for name in names if name])
    if tree is None:
        return []
    maker = _Maker(message.created, message.session_id, message.id, f"{message.id}.diff", _version(session))
    edits: list[FileEdit] = []
    for diff, name in zip(diffs[:MOST_DIFFS], names, strict=False):
        path = absolute(name, tree)
        if path is not None:
            edits += maker.states(path, diff, {"before": BEFORE_TURN, "after": AFTER_TURN})
    if len(diffs) > MOST_DIFFS:
        edits.append(maker.edit(tree, Operation.UNCLEAR, AFTER_TURN + "; the record holds too many diffs"))
    return edits


def session_diff_edits(session: Session, diffs: list[Json], time: int, root: str = "") -> list[FileEdit]:
    """The edits that a session's `session_diff` file proves; `time` is when the file was written, epoch ms.

    With before and after (up to 1.2.1) it has the files' state at the session's end: AFTER_SESSION, not later than the
    session's last update, because a copied file has a new time. The state before is left out, because after an undone
    revert it is that of the reverted turns, not of the session's beginning. With patches (1.14 and later) a revert may
    have written it, and since 1.17 always did: BEFORE_REVERT, the reverted state, then UNCLEAR. A replay leaves both
    out if files.events.session_summaries knows better. Empty while a revert is pending, because the messages are still
    there and have more.
    """
    if not diffs or _has_pending_revert(session):
        return []
    names = [unquoted(records.text(diff.get("file"))) for diff in diffs]
    tree = absolute(root, "") if root else session_tree(session, [name for name in names if name])
    if tree is None or tree == "/":
        return []
    end = min(time, session.updated) if session.updated else time
    edits: list[FileEdit] = []
    for diff, name in zip(diffs[:MOST_DIFFS], names, strict=False):
        path = absolute(name, tree)
        if path is None:
            continue
        reverted = "patch" in diff
        maker = _Maker(end - reverted, session.id, "", f"{session.id}.diff", _version(session))
        edits += maker.states(path, diff, {"after": BEFORE_REVERT if reverted else AFTER_SESSION})
        if reverted:
            later = _Maker(end, session.id, "", f"{session.id}.diff", _version(session))
            edits.append(later.edit(path, Operation.UNCLEAR, MAYBE_REVERTED))
    if len(diffs) > MOST_DIFFS:
        maker = _Maker(end, session.id, "", f"{session.id}.diff", _version(session))
        edits.append(maker.edit(tree, Operation.UNCLEAR, AFTER_SESSION + "; the record holds too many diffs"))
    return edits


def recorded_sides(diff: Json) -> tuple[str | None, str | None] | None:
    """Before and after in a diff, each None for no file; None if the diff has no text.

    Use it only to compare with content that has a hash, because unlike a STATE the result is not proven.
    """
    texts = None if left_out.is_in_diff(diff) else _texts(diff, complete=True)
    if texts is None or not _adds_up(diff, *texts):
        return None
    status = records.text(diff.get("status"))
    return None if status == "added" else texts[0], None if status == "deleted" else texts[1]


class _Maker:
    """Makes the edits of one record."""

    def __init__(self, time: int, session_id: str, message_id: str, part_id: str, version: str) -> None:
        self._time = time
        self._session_id, self._message_id, self._part_id = session_id, message_id, part_id
        self._version = version

    def edit(self, path: str, operation: Operation, note: str, content: str | None = None) -> FileEdit:
        return FileEdit(
            path=path,
            time=self._time,
            session_id=self._session_id,
            message_id=self._message_id,
            part_id=self._part_id,
            tool="summary",
            operation=operation,
            note=note,
            content=content,
            version=self._version,
        )

    def states(self, path: str, diff: Json, notes: dict[str, str]) -> list[FileEdit]:
        """A STATE for each side in `notes` that the diff proves; UNCLEAR if something was left out of it."""
        if left_out.is_in_diff(diff):
            return [self.edit(path, Operation.UNCLEAR, f"{next(reversed(notes.values()))}; {left_out.NOTE}")]
        sides = _proven_sides(diff, self._version)
        mark = NO_MARK if "patch" in diff else ""
        return [
            self.edit(path, Operation.STATE, note + (mark if sides[side] else ""), sides[side])
            for side, note in notes.items()
            if side in sides
        ]


def _proven_sides(diff: Json, version: str) -> dict[str, str | None]:
    """The sides that a diff proves: "before" and "after", None if there was no file."""
    status = records.text(diff.get("status"))
    number = release(version)
    texts = _texts(diff, complete=number is not None and number >= _FIRST_COMPLETE)
    sides: dict[str, str | None] = {}
    if texts is not None and _adds_up(diff, *texts):
        sides = {side: text for side, text in zip(("before", "after"), texts, strict=True) if _is_exact(text)}
    if status == "added":
        sides["before"] = None
    elif status == "deleted":
        sides["after"] = None
    elif status != "modified":  # an empty text may then be an empty file, or none
        sides = {side: text for side, text in sides.items() if text}
    return sides


def _texts(diff: Json, *, complete: bool) -> tuple[str, str] | None:
    """Before and after as recorded; None if missing, or indistinguishable from a failed read."""
    if diff.get("binary") is True or "120000" in str(diff.get("mode", "")):
        return None
    before, after, patch = diff.get("before"), diff.get("after"), diff.get("patch")
    if isinstance(before, str) and isinstance(after, str):
        return (valid_text(before), valid_text(after)) if before or after else None
    if not isinstance(patch, str) or not patch.strip():
        return None
    if diff.get("status") in ("added", "deleted") and diff.get("additions") == diff.get("deletions") == 0:
        return None if "\n@@" in patch else ("", "")  # a binary has no patch at all
    sides = full_diff(valid_text(patch), complete=complete)
    return None if sides is None else (sides.before or "", sides.after or "")


def _adds_up(diff: Json, before: str, after: str) -> bool:
    """Whether git's counts fit the texts; an unreadable text is recorded as empty."""
    added, deleted = diff.get("additions"), diff.get("deletions")
    if not isinstance(added, int) or not isinstance(deleted, int):
        return bool(before and after)
    lines_before, lines_after = _lines(before), _lines(after)
    return lines_before - deleted == lines_after - added and deleted <= lines_before and added <= lines_after


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and text != "")


def _is_exact(text: str) -> bool:
    """Whether a text is surely a file's content: decoded without loss, not a link's target, not an LFS pointer.

    A link's target looks like a file of one line without a newline, so neither is evidence.
    """
    could_be_link = text != "" and "\n" not in text and len(text) <= _LONGEST_LINK
    return "\ufffd" not in text and not could_be_link and not text.startswith(_POINTER)


def _tables(value: object) -> list[Json]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _version(session: Session | None) -> str:
    return session.version if session else ""


def _has_pending_revert(session: Session) -> bool:
    try:
        return bool(records.load_object(session.raw).get("revert"))
    except BadRecord:
        return False
