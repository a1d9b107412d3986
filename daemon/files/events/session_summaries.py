"""Whether a session_diff file leaves open that a revert came unseen.

Up to 1.15 OpenCode writes the file at the end of every turn, as a summary of the session: the diff from its first tree
to its last. In every version a revert writes it, with the diff from the first tree of what it takes back to the last.
If trees of messages that are still there show both sides, no revert has removed those messages, and one that removed
others would have written another file. What removes messages is the next prompt: after one that no tree follows, the
doubt stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from daemon.archive import Archive
from daemon.files.trees import UNKNOWN, Objects
from daemon.model import FileEdit, Operation
from daemon.records import blob_id, text
from daemon.transcript.evidence.recorded_diffs import recorded_sides
from daemon.transcript.evidence.steps import FINISH, START
from daemon.transcript.paths import unquoted

_MARK = b"\xef\xbb\xbf"
_LOSSY = "\ufffd"


@dataclass(frozen=True, slots=True)
class Account:
    """What is left of a session against its session_diff file.

    `is_shown`: its trees hold both sides of every diff. `is_prompted`: something but an answer follows the last of
    them, or none is left. `is_kept`: the last one is in the archive.
    """

    is_shown: bool = False
    is_prompted: bool = False
    is_kept: bool = False


def account(archive: Archive, session_id: str, edits: Iterable[FileEdit]) -> Account:
    """The account of a session; its trees are among `edits`.

    Nothing holds for a session that is deleted: what came after our last look, nobody knows.
    """
    state = archive.session_state(session_id)
    if state is None or state["deleted"] is not None:
        return Account()
    order = archive.message_ids(session_id)
    trees = _trees_left(archive, order, edits)
    if not trees:
        return Account(is_prompted=True)
    is_prompted = _is_prompted_after(archive, order, trees[-1])
    if archive.objects.tree(trees[-1].blob) is None:
        return Account(is_prompted=is_prompted)
    diffs = archive.files.session_extra(session_id).get("diffs", [])
    shown = {unquoted(text(diff.get("file"))): sides for diff in diffs if (sides := recorded_sides(diff)) is not None}
    before, after = ({name: sides[which] for name, sides in shown.items()} for which in (0, 1))
    is_shown = _is_shown(archive.objects, trees, START, before) and _is_shown(archive.objects, trees, FINISH, after)
    return Account(is_shown and shown != {}, is_prompted, is_kept=True)


def _trees_left(archive: Archive, order: list[str], edits: Iterable[FileEdit]) -> list[FileEdit]:
    """The trees of messages and parts that are still there, in the order of the conversation."""
    number = {message_id: n for n, message_id in enumerate(order) if not archive.is_deleted(message_id)}
    trees = [e for e in edits if e.operation is Operation.SNAPSHOT and e.message_id in number]
    left = [tree for tree in trees if tree.part_id not in archive.gone(tree.message_id)]
    return sorted(left, key=lambda tree: (number[tree.message_id], tree.part_id))


def _is_prompted_after(archive: Archive, order: list[str], tree: FileEdit) -> bool:
    """Whether anything but answers follows the message of a tree, be it still there or not."""
    following = map(archive.message, order[order.index(tree.message_id) + 1 :])
    return any(message is None or message.role != "assistant" for message in following)


def _is_shown(objects: Objects, trees: list[FileEdit], side: str, files: dict[str, str | None]) -> bool:
    """Whether one of the trees at this side of a step holds all the files as they are given, None for no file."""
    ids = dict.fromkeys(tree.blob for tree in reversed(trees) if tree.note == side)
    return any(all(_holds(objects, id_, name, content) for name, content in files.items()) for id_ in ids)


def _holds(objects: Objects, tree: str, name: str, content: str | None) -> bool:
    entry = objects.find(tree, name)
    if entry is None or content is None:
        return entry is None and content is None
    data = content.encode()
    return entry[1] in (blob_id(data), blob_id(_MARK + data)) or (_LOSSY in content and entry[0] != UNKNOWN)
