"""What each kind of evidence makes of a file: the newest revision after some events, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from daemon.files.content import Fragments, Run
from daemon.files.history import Revision
from daemon.files.replay.track import MARK_UNKNOWN
from daemon.model import FileEdit
from daemon.records import blob_id
from daemon.transcript.evidence.call_results import INEXACT_READ as INEXACT
from daemon.transcript.evidence.recorded_diffs import NO_MARK
from tests.support.stores.replaying import (
    Objects,
    append,
    at,
    delete,
    edit,
    last,
    lines,
    read,
    snapshot,
    state,
    unclear,
    write,
)

A, B, C = "/w/a", "/w/a.txt", "/w/a.cs"
"""Files of such names have no byte order mark, may have one, usually have one."""
G, D = "/w/a.go", "/w/a.c"
"""For such names OpenCode has formatters; the second may have a byte order mark, too."""

ONE = write(2, A, "one\n")
FORMATTED = write(2, G, "one\n", version="1.1.65")
MARKED = write(2, G, "\ufeffone\n", version="1.1.65")
IN_C = write(2, D, "one\n", version="", existed=True)
AFTER = "after the turn"
TREE_0, TREE_1 = ("snapshot tree t0 at the finish of a step", "snapshot tree t1 at the finish of a step")
HASH = "its text, as records show it, has the hash that the snapshot names"
ANY = b"of any length"


def trees(*contents: dict[str, bytes | tuple[int, bytes]], lost: tuple[bytes, ...] = ()) -> Objects:
    """Trees t0, t1 and so on; the contents that are `lost` were not captured."""
    objects = Objects()
    for number, files in enumerate(contents):
        objects.put(files, f"t{number}")
    for content in lost:
        del objects._blobs[blob_id(content)]
    return objects


def tree(second: float, number: int, **fields: Any) -> FileEdit:
    return snapshot(second, f"t{number}", "/w", **fields)


def shown(revision: Revision) -> dict[str, Any]:
    """The fields that are not as usual."""
    found: dict[str, Any] = {"grade": revision.grade.value, "content": revision.content}
    found |= {"kinds": " ".join(sorted(revision.kinds))}
    names = "evidence note deleted outside_change mark_unknown appeared unconfirmed mode blob fragments"
    found |= {name: getattr(revision, name) for name in names.split()}
    if found["content"] and len(found["content"]) > 1000:
        found["content"] = ANY
    return {name: value for name, value in found.items() if value or (name == "fragments" and value is not None)}


# fmt: off
CASES: list[tuple[str, str, list[FileEdit], Objects, dict[str, Any]]] = [
    ("a read of a file of which a tree names the hash alone", A, [tree(1, 0), read(2, A, "one\n")], trees({"a": (0o100755, b"one\n")}, lost=(b"one\n",)), {"grade": "verified", "content": b"one\n", "kinds": "read snapshot", "evidence": ("complete read", HASH), "mode": 0o100755}),
    ("a read that shows another content than the tree names", A, [tree(1, 0), read(2, A, "two\n")], trees({"a": b"one\n"}, lost=(b"one\n",)), {"grade": "proven", "content": b"two\n", "kinds": "read", "evidence": ("complete read, in which a byte order mark would not show",)}),
    ("a diff of a file of which a tree names the hash alone", A, [tree(1, 0), state(2, A, "one\n", note=AFTER)], trees({"a": b"one\n"}, lost=(b"one\n",)), {"grade": "proven", "content": b"one\n", "kinds": "diff snapshot", "evidence": ("recorded diff, after the turn", HASH), "mode": 0o100644}),
    ("a diff that shows another content than the tree names", A, [tree(1, 0), state(2, A, "two\n", note=AFTER)], trees({"a": b"one\n"}, lost=(b"one\n",)), {"grade": "stale", "content": b"two\n", "note": "only the diff of its turn shows it, no tree: what made it was removed, maybe by a revert"}),
    ("a tree names the hash of what was read, with other line ends", A, [read(1, A, "a\nb", note=INEXACT), tree(2, 0)], trees({"a": b"a\r\nb\r\n"}, lost=(b"a\r\nb\r\n",)), {"grade": "verified", "content": b"a\r\nb\r\n", "kinds": "read snapshot", "evidence": (TREE_0, HASH)}),
    ("a tree that is not captured after a read of some lines", A, [lines(1, A, 1, "a"), tree(2, 0)], trees({"a": b"a\n"}, lost=(b"a\n",)), {"grade": "lost", "note": f"{TREE_0}: its content was not captured", "mode": 0o100644, "blob": blob_id(b"a\n")}),
    ("a tree that is not captured after reads of two places", A, [lines(1, A, 1, "a"), lines(1.5, A, 5, "b"), tree(2, 0)], trees({"a": b"a\n"}, lost=(b"a\n",)), {"grade": "lost", "note": f"{TREE_0}: its content was not captured", "mode": 0o100644, "blob": blob_id(b"a\n")}),
    ("a tree that is not captured", A, [tree(2, 0)], trees({"a": b"a\n"}, lost=(b"a\n",)), {"grade": "lost", "note": f"{TREE_0}: its content was not captured", "mode": 0o100644, "blob": blob_id(b"a\n")}),
    ("a tree that is not captured names the hash of the text that may be stale", A, [ONE, unclear(2.5, A), tree(3, 0)], trees({"a": b"one\n"}, lost=(b"one\n",)), {"grade": "verified", "content": b"one\n", "kinds": "call snapshot", "evidence": (TREE_0, "the same content as was proven before"), "mode": 0o100644}),
    ("a file that was deleted is back, not captured", A, [ONE, delete(2.5, A), tree(3, 0)], trees({"a": b"one\n"}, lost=(b"one\n",)), {"grade": "lost", "note": f"{TREE_0}: its content was not captured", "outside_change": True, "mode": 0o100644, "blob": blob_id(b"one\n")}),
    ("a tree tells the mode of a known content", A, [ONE, tree(3, 0)], trees({"a": (0o100755, b"one\n")}), {"grade": "verified", "content": b"one\n", "kinds": "call snapshot", "evidence": ("write", TREE_0), "mode": 0o100755}),
    ("a mode that is known stays until the content changes", A, [tree(1, 0), tree(3, 1)], trees({"a": (0o100755, b"one\n")}, {"a": (0o100644, b"one\n"), "b": b""}), {"grade": "proven", "content": b"one\n", "kinds": "snapshot", "evidence": (TREE_0,), "mode": 0o100755}),
    ("a tree shows that nothing has changed", A, [ONE, unclear(2.5, A), tree(3, 0)], trees({"a": (0o100755, b"one\n")}), {"grade": "verified", "content": b"one\n", "kinds": "call snapshot", "evidence": (TREE_0, "the same content as was proven before"), "mode": 0o100755}),
    ("a read shows that nothing has changed", A, [ONE, unclear(2.5, A), read(3, A, "one\n")], trees(), {"grade": "proven", "content": b"one\n", "kinds": "read", "evidence": ("complete read, in which a byte order mark would not show",)}),
    ("a tree shows that a deleted file has stayed deleted", A, [tree(1, 0), delete(2, A), unclear(2.5, A), tree(3, 1)], trees({"a": b"one\n"}, {"b": b""}), {"grade": "proven", "kinds": "snapshot", "evidence": (TREE_1,), "deleted": True}),
    ("a tree shows what was never certain", A, [append(1, A, "x"), tree(3, 0)], trees({"a": b"x"}), {"grade": "proven", "content": b"x", "kinds": "snapshot", "evidence": (TREE_0,), "mode": 0o100644}),
    ("an attachment confirms", A, [ONE, state(3, A, "one\n", tool="attachment", note="attached by you")], trees(), {"grade": "verified", "content": b"one\n", "kinds": "attachment call", "evidence": ("write", "attached by you")}),
    ("a tree that never held a file does not prove that it is gone", A, [tree(1, 0), write(2, A, "x\n"), unclear(2.2, A), delete(2.3, A), unclear(2.5, A), tree(3, 1)], trees({"b": b""}, {"b": b"1"}), {"grade": "stale", "note": "it may have changed", "deleted": True}),
    ("a diff hides a mark, and the file may have one", B, [state(1, B, "one\n", note=AFTER + NO_MARK)], trees(), {"grade": "partial", "content": b"one\n", "kinds": "diff", "evidence": ("recorded diff, after the turn",), "note": MARK_UNKNOWN, "mark_unknown": True}),
    ("a diff hides a mark, and such files have none", A, [state(1, A, "one\n", note=AFTER + NO_MARK)], trees(), {"grade": "proven", "content": b"one\n", "kinds": "diff", "evidence": ("recorded diff, after the turn",)}),
    ("a second diff tells no more of the mark", B, [state(1, B, "one\n", note=AFTER + NO_MARK), state(2, B, "one\n", note=AFTER + NO_MARK)], trees(), {"grade": "partial", "content": b"one\n", "kinds": "diff", "evidence": ("recorded diff, after the turn",), "note": MARK_UNKNOWN, "mark_unknown": True}),
    ("a read tells no more of the mark", B, [state(1, B, "one\n", note=AFTER + NO_MARK), read(2, B, "one\n")], trees(), {"grade": "partial", "content": b"one\n", "kinds": "diff read", "evidence": ("recorded diff, after the turn", "a read shows the same lines"), "note": MARK_UNKNOWN, "mark_unknown": True}),
    ("a tree shows the mark", B, [state(1, B, "one\n", note=AFTER + NO_MARK), tree(2, 0)], trees({"a.txt": b"\xef\xbb\xbfone\n"}), {"grade": "proven", "content": b"\xef\xbb\xbfone\n", "kinds": "snapshot", "evidence": (TREE_0,), "mode": 0o100644}),
    ("a diff confirms a write of a new file", B, [write(1, B, "one\n"), state(2, B, "one\n", note=AFTER + NO_MARK)], trees(), {"grade": "verified", "content": b"one\n", "kinds": "call diff", "evidence": ("write", "recorded diff, after the turn")}),
    ("a diff of a write that may have kept a mark", B, [write(1, B, "one\n", existed=True), state(2, B, "one\n", note=AFTER + NO_MARK)], trees(), {"grade": "partial", "content": b"one\n", "kinds": "call diff", "evidence": ("write", "recorded diff, after the turn"), "note": MARK_UNKNOWN, "mark_unknown": True}),
    ("a file that had no mark has none later", B, [tree(1, 0), write(2, B, "two\n", existed=True), state(3, B, "two\n", note=AFTER + NO_MARK)], trees({"a.txt": b"one\n"}), {"grade": "verified", "content": b"two\n", "kinds": "call diff", "evidence": ("write", "recorded diff, after the turn")}),
    ("a file that had a mark keeps it", B, [tree(1, 0), write(2, B, "two\n", existed=True), state(3, B, "two\n", note=AFTER + NO_MARK)], trees({"a.txt": b"\xef\xbb\xbfone\n"}), {"grade": "verified", "content": b"\xef\xbb\xbftwo\n", "kinds": "call diff", "evidence": ("write", "recorded diff, after the turn")}),
    ("a read hides a mark, and such files usually have one", C, [read(1, C, "one\n")], trees(), {"grade": "partial", "content": b"one\n", "kinds": "read", "evidence": ("complete read",), "note": MARK_UNKNOWN, "mark_unknown": True}),
    ("a read of a file with a mark confirms it", C, [tree(1, 0), read(2, C, "one\n")], trees({"a.cs": b"\xef\xbb\xbfone\n"}), {"grade": "verified", "content": b"\xef\xbb\xbfone\n", "kinds": "read snapshot", "evidence": (TREE_0, "confirmed by a read"), "mode": 0o100644}),
    ("a read of a file that had no mark", C, [tree(1, 0), read(2, C, "two\n")], trees({"a.cs": b"one\n"}), {"grade": "proven", "content": b"two\n", "kinds": "read", "evidence": ("complete read, in which a byte order mark would not show",), "outside_change": True}),
    ("a read of another text of a file that had a mark", C, [tree(1, 0), read(2, C, "two\n")], trees({"a.cs": b"\xef\xbb\xbfone\n"}), {"grade": "partial", "content": b"two\n", "kinds": "read", "evidence": ("complete read",), "note": MARK_UNKNOWN, "outside_change": True, "mark_unknown": True}),
    ("a second read tells no more of the mark", C, [read(1, C, "one\n"), read(2, C, "one\n")], trees(), {"grade": "partial", "content": b"one\n", "kinds": "read", "evidence": ("complete read", "a read shows the same lines"), "note": MARK_UNKNOWN, "mark_unknown": True}),
    ("a second read shows another text", C, [read(1, C, "one\n"), read(2, C, "two\n")], trees(), {"grade": "partial", "content": b"two\n", "kinds": "read", "evidence": ("complete read",), "note": MARK_UNKNOWN, "outside_change": True, "mark_unknown": True}),
    ("a second read that shows no line ends", C, [read(1, C, "one\n"), read(2, C, "one", note=INEXACT)], trees(), {"grade": "partial", "content": b"one\n", "kinds": "read", "evidence": ("complete read", "a read shows the same lines"), "note": MARK_UNKNOWN, "mark_unknown": True}),
    ("some lines are others", C, [read(1, C, "one\n"), lines(2, C, 1, "two")], trees(), {"grade": "stale", "content": b"one\n", "note": "a read of lines 1 to 1 shows other text", "outside_change": True}),
    ("the first tree does not hold the file that was read", C, [read(1, C, "one\n"), tree(2, 0)], trees({"b": b""}), {"grade": "partial", "content": b"one\n", "kinds": "read", "evidence": ("complete read",), "note": MARK_UNKNOWN, "mark_unknown": True}),
    ("a read of a write that may have kept a mark", C, [write(1, C, "one\n", existed=True), read(2, C, "one\n")], trees(), {"grade": "partial", "content": b"one\n", "kinds": "call read", "evidence": ("write", "a read shows the same lines"), "note": MARK_UNKNOWN, "mark_unknown": True}),
    ("a diff drops the mark that was written", B, [write(1, B, "\ufeffone\n"), state(2, B, "one\n", note=AFTER)], trees(), {"grade": "verified", "content": b"\xef\xbb\xbfone\n", "kinds": "call diff", "evidence": ("write", "recorded diff, after the turn")}),
    ("a diff shows another text than was written with a mark", B, [write(1, B, "\ufeffone\n"), state(2, B, "two\n", note=AFTER)], trees(), {"grade": "proven", "content": b"two\n", "kinds": "diff", "evidence": ("recorded diff, after the turn",), "outside_change": True}),
    ("a read of some lines contradicts an edit", A, [ONE, edit(3, A, "one", "two"), lines(4, A, 1, "zzz")], trees(), {"grade": "stale", "content": b"two\n", "note": "a read of lines 1 to 1 shows other text", "outside_change": True}),
    ("lines were seen at two places", A, [lines(1, A, 1, "a"), lines(2, A, 5, "b")], trees(), {"grade": "partial", "evidence": ("read of a part",), "note": "only some of its lines were seen", "fragments": Fragments((Run(1, ("a",)), Run(5, ("b",))))}),
    ("some lines were seen", A, [lines(1, A, 3, "a", "b")], trees(), {"grade": "partial", "evidence": ("read of a part",), "note": "only lines 3 to 4 were seen", "fragments": Fragments((Run(3, ("a", "b")),))}),
    ("some lines of a file that was gone", A, [ONE, delete(2.5, A), lines(3, A, 1, "x")], trees(), {"grade": "partial", "evidence": ("read of a part",), "note": "only lines 1 to 1 were seen", "outside_change": True, "fragments": Fragments((Run(1, ("x",)),))}),
    ("some lines are others than what is known", A, [ONE, lines(3, A, 1, "x")], trees(), {"grade": "stale", "content": b"one\n", "note": "a read of lines 1 to 1 shows other text", "outside_change": True}),
    ("lines without a place stand in the known text", A, [ONE, lines(3, A, 1, "one", note="some lines")], trees(), {"grade": "proven", "content": b"one\n", "kinds": "call", "evidence": ("write",)}),
    ("a note of a read without numbers", A, [lines(3, A, 1, "one", note="lines")], trees(), {"grade": "partial", "evidence": ("read of a part",), "note": "only lines were seen", "fragments": Fragments((Run(None, ("one",)),))}),
    ("a note of a read with words for numbers", A, [lines(3, A, 1, "one", note="lines x to y")], trees(), {"grade": "partial", "evidence": ("read of a part",), "note": "only lines x to y were seen", "fragments": Fragments((Run(None, ("one",)),))}),
    ("a note of a read that says something else", A, [lines(3, A, 1, "one", note="about 7 lines")], trees(), {"grade": "partial", "evidence": ("read of a part",), "note": "only about 7 lines were seen", "fragments": Fragments((Run(None, ("one",)),))}),
    ("several lines are as they are known", A, [write(1, A, "a\nb\nc\n"), lines(2, A, 2, "b", "c")], trees(), {"grade": "proven", "content": b"a\nb\nc\n", "kinds": "call", "evidence": ("write",)}),
    ("spaces in lines are compared as they are", A, [write(1, A, "a b\nc  d\n"), lines(3, A, 2, "c  d")], trees(), {"grade": "proven", "content": b"a b\nc  d\n", "kinds": "call", "evidence": ("write",)}),
    ("so they are without a place", A, [write(1, A, "a b\nc  d\n"), lines(3, A, 2, "c  d", note="some")], trees(), {"grade": "proven", "content": b"a b\nc  d\n", "kinds": "call", "evidence": ("write",)}),
    ("a whole read that shows no line ends", A, [read(1, A, "a\nb", note=INEXACT)], trees(), {"grade": "partial", "evidence": ("complete read",), "note": INEXACT, "fragments": Fragments((Run(1, ("a", "b")),), is_all=True)}),
    ("the same again", A, [read(1, A, "a\nb", note=INEXACT), read(2, A, "a\nb", note=INEXACT)], trees(), {"grade": "partial", "evidence": ("complete read",), "note": INEXACT, "fragments": Fragments((Run(1, ("a", "b")),), is_all=True)}),
    ("the same after an edit", A, [read(1, A, "a\nb", note=INEXACT), edit(2, A, "a", "A"), read(3, A, "A\nb", note=INEXACT)], trees(), {"grade": "partial", "evidence": ("complete read",), "note": INEXACT, "fragments": Fragments((Run(1, ("A", "b")),), is_all=True)}),
    ("a read without line ends beside a certain content", A, [ONE, read(3, A, "one", note=INEXACT)], trees(), {"grade": "proven", "content": b"one\n", "kinds": "call", "evidence": ("write", "a read shows the same lines")}),
    ("a read without line ends beside a stale content", A, [ONE, unclear(2.5, A), read(3, A, "one", note=INEXACT)], trees(), {"grade": "stale", "content": b"one\n", "kinds": "read", "evidence": ("a read shows the same lines",), "note": "it may have changed"}),
    ("the note of a read is kept", A, [read(1, A, "one\n", note="hm")], trees(), {"grade": "proven", "content": b"one\n", "kinds": "read", "evidence": ("complete read, in which a byte order mark would not show",), "note": "hm"}),
    ("a read that holds U+FFFD", A, [read(1, A, "caf\ufffd\n")], trees(), {"grade": "stale", "content": b"caf\xef\xbf\xbd\n", "note": "it holds U+FFFD: the file may have other bytes there"}),
    ("a diff", A, [state(1, A, "one\n")], trees(), {"grade": "proven", "content": b"one\n", "kinds": "diff", "evidence": ("recorded diff",)}),
    ("a diff says when it was taken", A, [state(1, A, "one\n", note=AFTER)], trees(), {"grade": "proven", "content": b"one\n", "kinds": "diff", "evidence": ("recorded diff, after the turn",)}),
    ("a diff that begins without the file", A, [ONE, state(3, A, None, note=AFTER)], trees(), {"grade": "proven", "content": b"one\n", "kinds": "call", "evidence": ("write",)}),
    ("a diff that ends without the file", A, [state(1, A, "one\n", note="before the turn"), state(3, A, None, note=AFTER)], trees(), {"grade": "proven", "kinds": "diff", "evidence": ("recorded diff, after the turn",), "deleted": True, "outside_change": True}),
    ("a revert sets a file back", A, [ONE, state(5, A, "set back\n", tool="revert", note="set back")], trees(), {"grade": "proven", "content": b"set back\n", "kinds": "snapshot", "evidence": ("set back",)}),
    ("a revert takes a file away", A, [ONE, state(5, A, None, tool="revert", note="set back")], trees(), {"grade": "proven", "kinds": "snapshot", "evidence": ("set back",), "deleted": True}),
    ("a revert leaves a file as it was", A, [ONE, state(5, A, "one\n", tool="revert", note="set back")], trees(), {"grade": "verified", "content": b"one\n", "kinds": "call snapshot", "evidence": ("write", "set back")}),
    ("a revert takes away what was not known", A, [state(5, A, None, tool="revert", note="set back")], trees(), {"grade": "proven", "kinds": "snapshot", "evidence": ("set back",), "deleted": True}),
    ("a tree after a revert shows what was before it", A, [tree(1, 0), write(2, A, "two\n", existed=True), state(3, A, "set\n", tool="revert", note="set back"), tree(4, 0)], trees({"a": b"one\n"}), {"grade": "proven", "content": b"set\n", "kinds": "snapshot", "evidence": ("set back",)}),
    ("a read found no file", A, [ONE, state(3, A, None, tool="read", note="a read found no file")], trees(), {"grade": "proven", "kinds": "read", "evidence": ("a read found no file",), "deleted": True, "outside_change": True}),
    ("the first tree does not hold a file", A, [ONE, tree(3, 0)], trees({"b": b""}), {"grade": "stale", "content": b"one\n", "note": "the first snapshot of its folder does not hold it: ignored by git, or gone"}),
    ("a tree does not hold a file any more", A, [tree(1, 0), tree(3, 1)], trees({"a": b"one\n"}, {"b": b""}), {"grade": "proven", "kinds": "snapshot", "evidence": (TREE_1,), "deleted": True, "outside_change": True}),
    ("a file is in the second tree", A, [tree(1, 0), tree(3, 1)], trees({"b": b""}, {"a": b"one\n", "b": b""}), {"grade": "proven", "content": b"one\n", "kinds": "snapshot", "evidence": (TREE_1,), "appeared": True, "mode": 0o100644}),
    ("another content is in the second tree", A, [tree(1, 0), tree(3, 1)], trees({"a": b"one\n"}, {"a": b"two\n"}), {"grade": "proven", "content": b"two\n", "kinds": "snapshot", "evidence": (TREE_1,), "outside_change": True, "mode": 0o100644}),
    ("a file over 2 MiB is in no tree", A, [tree(1, 0), write(2, A, "x"*(2<<20)+"x", existed=True), tree(3, 1)], trees({"a": b"one\n"}, {"b": b""}), {"grade": "proven", "content": ANY, "kinds": "call", "evidence": ("write",)}),
    ("a file of 2 MiB is in a tree, or gone", A, [tree(1, 0), write(2, A, "x"*(2<<20), existed=True), tree(3, 1)], trees({"a": b"one\n"}, {"b": b""}), {"grade": "proven", "kinds": "snapshot", "evidence": (TREE_1,), "deleted": True, "outside_change": True}),
    ("a tree shows that a doubtful file is gone", A, [tree(1, 0), unclear(2, A), tree(3, 1)], trees({"a": b"one\n"}, {"b": b""}), {"grade": "proven", "kinds": "snapshot", "evidence": (TREE_1,), "deleted": True}),
    ("a tree that never held a doubtful file says nothing", A, [ONE, unclear(2.5, A), tree(3, 1)], trees({"a": b"one\n"}, {"b": b""}), {"grade": "stale", "content": b"one\n", "note": "it may have changed"}),
    ("a tree that has not noticed a change says nothing of a doubt", A, [tree(1, 0), write(2, A, "two\n", existed=True), unclear(2.5, A), tree(3, 0)], trees({"a": b"one\n"}), {"grade": "stale", "content": b"two\n", "note": "it may have changed"}),
    ("a tree that has noticed other changes shows the old content", A, [tree(1, 0), write(2, A, "two\n", existed=True), tree(3, 1)], trees({"a": b"one\n", "b": b"1"}, {"a": b"one\n", "b": b"2"}), {"grade": "stale", "content": b"two\n", "note": "snapshot tree t1 at the finish of a step, taken after it, shows what there was before", "outside_change": True}),
    ("the tree of a step shows what a formatter made of its write", A, [ONE, tree(3, 0, message_id=ONE.message_id)], trees({"a": b"ONE\n"}), {"grade": "proven", "content": b"ONE\n", "kinds": "snapshot", "evidence": (TREE_0,), "mode": 0o100644}),
    ("the tree of another step shows a change from outside", A, [ONE, tree(3, 0)], trees({"a": b"ONE\n"}), {"grade": "proven", "content": b"ONE\n", "kinds": "snapshot", "evidence": (TREE_0,), "outside_change": True, "mode": 0o100644}),
    ("the diff of a turn shows what a formatter made of its write", A, [ONE, state(5, A, "ONE\n", note=AFTER, started=at(1))], trees(), {"grade": "proven", "content": b"ONE\n", "kinds": "diff", "evidence": ("recorded diff, after the turn",)}),
    ("the diff of a later turn shows a change from outside", A, [ONE, state(5, A, "ONE\n", note=AFTER, started=at(3))], trees(), {"grade": "proven", "content": b"ONE\n", "kinds": "diff", "evidence": ("recorded diff, after the turn",), "outside_change": True}),
    ("the diff of another session shows a change from outside", A, [ONE, state(5, A, "ONE\n", note=AFTER, started=at(1), session_id="ses_2")], trees(), {"grade": "proven", "content": b"ONE\n", "kinds": "diff", "evidence": ("recorded diff, after the turn",), "outside_change": True}),
    ("a write at the very start of the turn is of it", A, [ONE, state(5, A, "ONE\n", note=AFTER, started=at(2))], trees(), {"grade": "proven", "content": b"ONE\n", "kinds": "diff", "evidence": ("recorded diff, after the turn",)}),
    ("a write at the very end of the turn is of it", A, [ONE, state(2, A, "ONE\n", note=AFTER, started=at(1), part_id="z")], trees(), {"grade": "proven", "content": b"ONE\n", "kinds": "diff", "evidence": ("recorded diff, after the turn",)}),
    ("a diff whose turn has no beginning", A, [ONE, state(5, A, "ONE\n", note=AFTER)], trees(), {"grade": "proven", "content": b"ONE\n", "kinds": "diff", "evidence": ("recorded diff, after the turn",), "outside_change": True}),
    ("an attachment", A, [state(1, A, "one\n", tool="attachment")], trees(), {"grade": "proven", "content": b"one\n", "kinds": "attachment", "evidence": ("attached whole",)}),
    ("a read hides a mark, and such files seldom have one", B, [read(1, B, "one\n")], trees(), {"grade": "proven", "content": b"one\n", "kinds": "read", "evidence": ("complete read, in which a byte order mark would not show",)}),
    # the configuration of formatters is not known, or they are on
    ("a write that a formatter may have changed", G, [FORMATTED], trees(), {"grade": "stale", "content": b"one\n", "kinds": "call", "evidence": ("write",), "note": "as written; a formatter may have run", "unconfirmed": True}),
    ("a read shows that no formatter changed it", G, [FORMATTED, read(3, G, "one\n")], trees(), {"grade": "verified", "content": b"one\n", "kinds": "call read", "evidence": ("write", "confirmed by a read")}),
    ("a read shows what the formatter made", G, [FORMATTED, read(3, G, "ONE\n")], trees(), {"grade": "proven", "content": b"ONE\n", "kinds": "read", "evidence": ("complete read, in which a byte order mark would not show",)}),
    ("some lines are as written", G, [FORMATTED, lines(3, G, 1, "one")], trees(), {"grade": "stale", "content": b"one\n", "kinds": "call", "evidence": ("write",), "note": "as written; a formatter may have run", "unconfirmed": True}),
    ("some lines are the formatter's", G, [FORMATTED, lines(3, G, 1, "ONE")], trees(), {"grade": "stale", "content": b"one\n", "note": "a read of lines 1 to 1 shows other text: a formatter ran"}),
    ("a tree shows that no formatter changed it", G, [FORMATTED, tree(3, 0)], trees({"a.go": (0o100755, b"one\n")}), {"grade": "verified", "content": b"one\n", "kinds": "call snapshot", "evidence": ("write", TREE_0), "mode": 0o100755}),
    ("a tree shows what the formatter made", G, [FORMATTED, tree(3, 0)], trees({"a.go": b"ONE\n"}), {"grade": "proven", "content": b"ONE\n", "kinds": "snapshot", "evidence": (TREE_0,), "mode": 0o100644}),
    ("a tree shows that it is gone", G, [tree(1, 0), FORMATTED, tree(3, 1)], trees({"a.go": b"zero\n"}, {"b": b""}), {"grade": "proven", "kinds": "snapshot", "evidence": (TREE_1,), "deleted": True, "outside_change": True}),
    ("a diff shows that no formatter changed it", G, [FORMATTED, state(3, G, "one\n", note=AFTER + NO_MARK)], trees(), {"grade": "verified", "content": b"one\n", "kinds": "call diff", "evidence": ("write", "recorded diff, after the turn")}),
    ("git normalised the line ends of what was written", G, [write(2, G, "a\r\nb\r\n", version="1.1.65"), tree(3, 0)], trees({"a.go": b"a\nb\n"}), {"grade": "stale", "content": b"a\r\nb\r\n", "kinds": "call", "evidence": ("write",), "note": "as written; a formatter may have run", "unconfirmed": True}),
    ("a diff that shows all, as written", D, [IN_C, state(3, D, "one\n", note=AFTER)], trees(), {"grade": "verified", "content": b"one\n", "kinds": "call diff", "evidence": ("write", "recorded diff, after the turn")}),
    ("a diff of a file that had no mark, as written", D, [tree(1, 0), IN_C, state(3, D, "one\n", note=AFTER + NO_MARK)], trees({"a.c": b"zero\n"}), {"grade": "verified", "content": b"one\n", "kinds": "call diff", "evidence": ("write", "recorded diff, after the turn")}),
    ("a tree shows all, as written", D, [IN_C, tree(3, 0)], trees({"a.c": b"one\n"}), {"grade": "verified", "content": b"one\n", "kinds": "call snapshot", "evidence": ("write", TREE_0), "mode": 0o100644}),
    ("a read of a file whose mark the write may have kept", D, [IN_C, read(3, D, "one\n")], trees(), {"grade": "partial", "content": b"one\n", "kinds": "call read", "evidence": ("write", "a read shows the same lines"), "note": MARK_UNKNOWN, "mark_unknown": True}),
    ("a decoded diff of a file whose mark the write may have kept", D, [IN_C, state(3, D, "one\n", note=AFTER + NO_MARK)], trees(), {"grade": "partial", "content": b"one\n", "kinds": "call diff", "evidence": ("write", "recorded diff, after the turn"), "note": MARK_UNKNOWN, "mark_unknown": True}),
    ("a tree shows the mark that the write kept", D, [IN_C, state(3, D, "one\n", note=AFTER + NO_MARK), tree(4, 0)], trees({"a.c": b"\xef\xbb\xbfone\n"}), {"grade": "proven", "content": b"\xef\xbb\xbfone\n", "kinds": "snapshot", "evidence": (TREE_0,), "mode": 0o100644}),
    ("a tree shows that the write kept no mark", D, [IN_C, tree(4, 0)], trees({"a.c": b"one\n"}), {"grade": "verified", "content": b"one\n", "kinds": "call snapshot", "evidence": ("write", TREE_0), "mode": 0o100644}),
    ("a read hides the mark that was written before a formatter", G, [MARKED, read(3, G, "one\n")], trees(), {"grade": "partial", "content": b"\xef\xbb\xbfone\n", "kinds": "call read", "evidence": ("write", "a read shows the same lines"), "note": MARK_UNKNOWN, "mark_unknown": True}),
    ("a read of another text than was written with a mark", B, [write(1, B, "\ufeffone\n"), read(3, B, "two\n")], trees(), {"grade": "partial", "content": b"two\n", "kinds": "read", "evidence": ("complete read",), "note": MARK_UNKNOWN, "outside_change": True, "mark_unknown": True}),
    ("a write over a mark that something may have dropped", A, [write(1, A, "\ufeffone\n"), unclear(2, A), write(3, A, "two\n", existed=True)], trees(), {"grade": "partial", "content": b"\xef\xbb\xbftwo\n", "kinds": "call", "evidence": ("write",), "note": MARK_UNKNOWN, "mark_unknown": True}),
    ("an edit whose place depends on how each line ends", A, [read(1, A, "c\nd\nc\nd", note=INEXACT), edit(2, A, "c", "x")], trees(), {"grade": "partial", "note": "the text before it is not proven", "fragments": Fragments((Run(None, ("x",)),))}),
    ("an edit whose old text stands nowhere", A, [read(1, A, "c\nd\nc", note=INEXACT), edit(2, A, "z", "x")], trees(), {"grade": "partial", "note": "its old text does not stand in the text before it, so something else changed the file before", "outside_change": True, "fragments": Fragments((Run(None, ("x",)),))}),
    ("lines without a place, then lines with one", A, [lines(1, A, 1, "x", note="some lines"), lines(2, A, 4, "y  z")], trees(), {"grade": "partial", "evidence": ("read of a part",), "note": "only some of its lines were seen", "fragments": Fragments((Run(4, ("y  z",)), Run(None, ("x",))))}),
    ("lines with a place, then lines without one", A, [lines(1, A, 4, "y"), lines(2, A, 1, "x", note="some lines")], trees(), {"grade": "partial", "evidence": ("read of a part",), "note": "only some of its lines were seen", "fragments": Fragments((Run(4, ("y",)), Run(None, ("x",))))}),
    ("a note of a read of one line", A, [lines(1, A, 1, "x", note="lines 7")], trees(), {"grade": "partial", "evidence": ("read of a part",), "note": "only lines 7 were seen", "fragments": Fragments((Run(7, ("x",)),))}),
    ("a diff does not show whether a doubtful file kept its mark", B, [write(1, B, "\ufeffone\n"), unclear(2, B), state(3, B, "one\n", note=AFTER)], trees(), {"grade": "partial", "content": b"\xef\xbb\xbfone\n", "kinds": "diff", "evidence": ("recorded diff, after the turn",), "note": MARK_UNKNOWN, "mark_unknown": True}),
    ("a tree shows that there is no mark", B, [state(1, B, "one\n", note=AFTER + NO_MARK), tree(2, 0)], trees({"a.txt": b"one\n"}), {"grade": "proven", "content": b"one\n", "kinds": "snapshot", "evidence": (TREE_0,), "mode": 0o100644}),
    ("a file that appears in a diff may have a mark", B, [state(1, B, None, note="before the turn"), state(3, B, "one\n", note=AFTER + NO_MARK)], trees(), {"grade": "partial", "content": b"one\n", "kinds": "diff", "evidence": ("recorded diff, after the turn",), "note": MARK_UNKNOWN, "mark_unknown": True, "appeared": True}),
    ("a diff shows a change from outside and hides the mark", B, [write(1, B, "\ufeffone\n"), state(2, B, "two\n", note=AFTER + NO_MARK)], trees(), {"grade": "partial", "content": b"two\n", "kinds": "diff", "evidence": ("recorded diff, after the turn",), "note": MARK_UNKNOWN, "outside_change": True, "mark_unknown": True}),
    ("a tree shows the text of a read that held U+FFFD", A, [read(1, A, "caf\ufffd\n"), tree(2, 0)], trees({"a": "caf\ufffd\n".encode()}), {"grade": "proven", "content": b"caf\xef\xbf\xbd\n", "kinds": "snapshot", "evidence": (TREE_0,), "mode": 0o100644}),
    ("a tree shows another text than was proven before", A, [ONE, read(3, A, "caf\ufffd\n"), tree(4, 0)], trees({"a": "caf\ufffd\n".encode()}), {"grade": "proven", "content": b"caf\xef\xbf\xbd\n", "kinds": "snapshot", "evidence": (TREE_0,), "mode": 0o100644}),
    ("a tree names the hash of a doubtful text with other line ends", A, [ONE, unclear(2.5, A), tree(3, 0)], trees({"a": b"one\r\n"}, lost=(b"one\r\n",)), {"grade": "verified", "content": b"one\r\n", "kinds": "read snapshot", "evidence": (TREE_0, HASH)}),
    ("a tree after a change of .gitignore", A, [tree(1, 0), tree(3, 1)], trees({"a": b"one\n"}, {".gitignore": b"a\n"}), {"grade": "stale", "content": b"one\n", "note": f"{TREE_1} does not hold it any more: ignored by git from then on, or gone"}),
    ("the tree of a step shows what a formatter made of its edit", A, [ONE, edit(3, A, "one", "two", before="one\n", after="two\n"), tree(4, 0, message_id="msg_000003000")], trees({"a": b"TWO\n"}), {"grade": "proven", "content": b"TWO\n", "kinds": "snapshot", "evidence": (TREE_0,), "mode": 0o100644}),
    ("a tree that has not noticed a revert says nothing of a doubt after it", A, [tree(1, 0), state(2, A, "set\n", tool="revert", note="set back"), unclear(3, A), tree(4, 0)], trees({"a": b"one\n"}), {"grade": "stale", "content": b"set\n", "note": "it may have changed"}),
    ("a diff shows again what the diff before it showed, and a doubt is since", A, [ONE, state(3, A, "old\n", note=AFTER), tree(4, 0), unclear(5, A), state(6, A, "old\n")], trees({"a": b"new\n"}), {"grade": "proven", "content": b"old\n", "kinds": "diff", "evidence": ("recorded diff",)}),
    ("a diff that has not noticed a write says nothing of a doubt", A, [state(1, A, "old\n", note=AFTER), ONE, unclear(2.5, A), state(3, A, "old\n", note=AFTER)], trees(), {"grade": "stale", "content": b"one\n", "note": "it may have changed"}),
    ("a second diff after one that told the content of a tree", A, [tree(1, 0), state(2, A, "one\n", note=AFTER), state(3, A, "two\n")], trees({"a": b"one\n"}, lost=(b"one\n",)), {"grade": "proven", "content": b"two\n", "kinds": "diff", "evidence": ("recorded diff",), "outside_change": True}),
    ("a read without line ends after a diff that told the last one", A, [read(1, A, "a b\nc", note=INEXACT), edit(2, A, "a", "A", hunks=(("@@ -1,2 +1,2 @@", ("a b", "c"), ("A b", "c"), False),)), read(3, A, "A b\nc", note=INEXACT)], trees(), {"grade": "partial", "evidence": ("complete read",), "note": INEXACT, "fragments": Fragments((Run(1, ("A b", "c")),), is_all=True, newline=True)}),
    ("a read of other lines after a diff that told the last line end", A, [read(1, A, "a b\nc", note=INEXACT), edit(2, A, "a", "A", hunks=(("@@ -1,2 +1,2 @@", ("a b", "c"), ("A b", "c"), False),)), read(3, A, "a b\nd", note=INEXACT)], trees(), {"grade": "partial", "evidence": ("complete read",), "note": INEXACT, "fragments": Fragments((Run(1, ("a b", "d")),), is_all=True)}),
]
# fmt: on


@pytest.mark.parametrize(("case", "path", "edits", "objects", "expected"), CASES)
def test_the_newest_revision_says_what_is_known_and_how(
    case: str, path: str, edits: list[FileEdit], objects: Objects, expected: dict[str, Any]
) -> None:
    assert shown(last(path, edits, objects)) == expected, case


def test_a_read_does_not_confirm_a_mark_that_it_hides() -> None:
    found = last(G, [write(2, G, "\ufeffone\n", version="1.1.65"), read(3, G, "one\n")])
    assert not (found.content or b"").startswith("\ufeff".encode()) or not found.proven
