"""Snapshot trees vote: what they confirm, what they tell that is new, and when they have nothing to say."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import pytest

from daemon.files.history import Grade, is_lost_folder
from daemon.files.replay import World
from daemon.files.replay.snapshots import Snapshots
from daemon.files.replay.tracks import Tracks
from daemon.files.trees import PathFilter, differing
from daemon.model import FileEdit
from daemon.records import blob_id
from tests.support.stores.replaying import (
    Objects,
    append,
    at,
    delete,
    edit,
    grade_and_content,
    history,
    last,
    move,
    read,
    snapshot,
    unclear,
    world,
    write,
)

A, B = "/w/a", "/w/b"
GONE = ("gone", None)
Tree = dict[str, bytes | tuple[int, bytes]] | None


class Story:
    """Trees of /w and events, in their order; `tree` at a second."""

    def __init__(self) -> None:
        self.objects = Objects()
        self.edits: list[FileEdit] = []

    def tree(self, second: float, files: dict[str, bytes | tuple[int, bytes]], **fields: object) -> Story:
        root = str(fields.pop("root", "/w"))
        self.edits.append(
            snapshot(second, self.objects.put(files, f"{root} {sorted(files.items())!r}"), root, **fields)
        )
        return self

    def then(self, *edits: FileEdit) -> Story:
        self.edits += edits
        return self

    def of(self, path: str = A) -> tuple[str, bytes | None]:
        return grade_and_content(last(path, self.edits, self.objects))

    def revisions(self, path: str = A) -> list[tuple[str, bytes | None]]:
        return [grade_and_content(revision) for revision in history(path, self.edits, self.objects).revisions]

    def outside(self, path: str = A) -> list[bool]:
        return [revision.outside_change for revision in history(path, self.edits, self.objects).revisions]


ONE, TWO = write(2, A, "one\n"), write(4, A, "two\n", existed=True)


def test_a_tree_proves_an_unrecorded_file_and_a_read_verifies_it() -> None:
    story = Story().tree(1, {"a": b"one\n", "s/b": b"b"})
    assert (story.of(), story.of("/w/s/b")) == (("proven", b"one\n"), ("proven", b"b"))
    assert story.then(read(2, A, "one\n")).of() == ("verified", b"one\n")


def test_a_tree_that_agrees_verifies_what_a_call_made() -> None:
    assert Story().then(ONE).tree(3, {"a": b"one\n"}).revisions() == [("verified", b"one\n")]


def test_an_unchanged_tree_does_not_take_back_later_changes() -> None:
    story = Story().tree(1, {"a": b"old\n", "b": b"b"}).then(ONE).tree(3, {"a": b"old\n", "b": b"b"})
    assert story.revisions() == [("proven", b"old\n"), ("proven", b"one\n")]
    assert not any(story.outside())


def test_a_tree_that_noticed_other_changes_and_not_this_one_casts_doubt() -> None:
    story = Story().tree(1, {"a": b"old\n", "b": b"b"}).then(ONE).tree(3, {"a": b"old\n", "b": b"c"})
    assert story.revisions() == [("proven", b"old\n"), ("proven", b"one\n"), ("stale", b"one\n")]


def test_a_file_missing_after_a_gitignore_change_may_only_be_ignored() -> None:
    story = Story().tree(1, {"a": b"old\n"}).then(ONE).tree(3, {".gitignore": b"a\n"})
    assert story.of() == ("stale", b"one\n")


def test_a_tree_that_shows_a_third_text_is_news_of_an_outside_change() -> None:
    story = Story().tree(1, {"a": b"old\n"}).then(ONE).tree(3, {"a": b"third\n"})
    assert story.of() == ("proven", b"third\n")
    assert story.outside() == [False, False, True]
    assert story.then(edit(4, A, "third", "fourth")).of() == ("proven", b"fourth\n")


def test_a_tree_settles_what_is_in_doubt() -> None:
    doubted = [ONE, unclear(3, A)]
    assert Story().then(*doubted).tree(4, {"a": b"one\n"}).of() == ("verified", b"one\n")
    assert Story().then(*doubted).tree(4, {"a": b"new\n"}).of() == ("proven", b"new\n")
    story = Story().tree(1, {"a": b"one\n"}).then(unclear(3, A)).tree(4, {"a": b"one\n"})
    assert story.of() == ("proven", b"one\n")


def test_a_tree_that_missed_the_last_sure_change_settles_no_doubt() -> None:
    story = Story().tree(1, {"a": b"old\n"}).then(ONE, unclear(3, A)).tree(4, {"a": b"old\n"})
    assert story.of() == ("stale", b"one\n")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"b": b"b"}, {"b": b"c"}, ("proven", b"one\n")),  # never seen: ignored, most likely
        ({"a": b"old\n"}, {"b": b"b"}, GONE),
        ({"a": b"one\n", "b": b"b"}, {"b": b"b"}, GONE),
        (None, {"b": b"b"}, ("stale", b"one\n")),  # the first tree of all lacks it: ignored, or gone
    ],
)
def test_absent_means_gone_only_after_it_was_seen(
    before: Tree, after: Tree, expected: tuple[str, bytes | None]
) -> None:
    story = Story()
    if before is not None:
        story.tree(1, before)
    assert story.then(ONE).tree(3, after or {}).of() == expected


def test_a_file_over_two_megabytes_is_left_out_and_not_gone() -> None:
    for size, expected in ((2 << 20, "gone"), ((2 << 20) + 1, "proven")):
        big = b"x" * size
        story = Story().tree(1, {"a": b"small"}).then(write(2, A, big.decode(), existed=True)).tree(3, {"b": b"b"})
        assert story.of()[0] == expected, size


def test_a_tree_that_no_longer_holds_a_file_in_doubt_tells_that_it_is_gone() -> None:
    assert Story().tree(1, {"a": b"one\n"}).then(unclear(2, A)).tree(3, {}).of() == GONE
    assert Story().tree(1, {}).then(ONE, unclear(3, A)).tree(4, {"b": b""}).of() == ("stale", b"one\n")


def test_a_tree_verifies_a_deletion_or_shows_an_outside_change() -> None:
    agreed = Story().tree(1, {"a": b"one\n"}).then(delete(2, A)).tree(3, {})
    assert last(A, agreed.edits, agreed.objects).grade is Grade.VERIFIED
    stale = Story().tree(1, {"a": b"one\n", "b": b"b"}).then(delete(2, A)).tree(3, {"a": b"one\n", "b": b"c"})
    assert stale.of() == ("stale", None), "it noticed b, so it is not an old tree"
    old = Story().tree(1, {"a": b"one\n"}).then(delete(2, A)).tree(3, {"a": b"one\n"})
    assert old.of() == GONE
    back = Story().tree(1, {"a": b"one\n"}).then(delete(2, A)).tree(3, {"a": b"back\n"})
    assert (back.of(), back.outside()[-1]) == (("proven", b"back\n"), True)


# -- scopes ----------------------------------------------------------------------------------------------------------


def test_a_session_in_a_subfolder_tells_nothing_of_what_lies_outside() -> None:
    story = Story().then(ONE, write(2.5, "/w/s/b", "b\n"))
    story.tree(3, {"a": b"old\n", "s/b": b"new\n"}, scope="/w/s")
    assert story.of() == ("proven", b"one\n")
    assert story.of("/w/s/b") == ("proven", b"new\n")


def test_a_folder_with_a_longer_name_is_not_in_scope() -> None:
    story = Story().then(write(2, "/w/ss/b", "b\n")).tree(3, {"s/x": b"x", "ss/b": b"old\n"}, scope="/w/s")
    assert story.of("/w/ss/b") == ("proven", b"b\n")


def test_each_scope_of_a_work_tree_is_compared_with_its_own_last_tree() -> None:
    """The subfolder's trees hold the rest as it was when that was last brought up to date: old, and no news."""
    story = Story().tree(1, {"a": b"one\n", "s/b": b"1"}).then(write(2, A, "two\n", existed=True))
    story.tree(3, {"a": b"one\n", "s/b": b"2"}, scope="/w/s")
    assert (story.of(), story.of("/w/s/b")) == (("proven", b"two\n"), ("proven", b"2"))
    story.tree(4, {"a": b"two\n", "s/b": b"2"})
    assert (story.of(), story.of("/w/s/b")) == (("verified", b"two\n"), ("proven", b"2"))
    story.tree(5, {"a": b"two\n", "s/b": b"3"}, scope="/w/s").tree(6, {"a": b"3\n", "s/b": b"3"})
    assert (story.of(), story.of("/w/s/b")) == (("proven", b"3\n"), ("proven", b"3"))


def test_two_work_trees_one_in_the_other_speak_for_their_own_files() -> None:
    story = Story().tree(1, {"a": b"one\n"}).tree(2, {"x": b"x"}, root="/w/in")
    story.then(write(3, "/w/in/x", "y", existed=True)).tree(4, {"a": b"one\n", "b": b"b"})
    assert story.of("/w/in/x") == ("proven", b"y")


def test_a_scope_outside_of_its_work_tree_counts_as_all_of_it() -> None:
    assert Story().tree(1, {"a": b"one\n"}, scope="/elsewhere").of() == ("proven", b"one\n")


def test_a_scope_that_the_tree_has_not_got_holds_nothing() -> None:
    story = Story().tree(1, {"s/b": b"b"}, scope="/w/s").tree(2, {"a": b"a"}, scope="/w/s")
    assert story.of("/w/s/b") == GONE
    assert world(story.edits, story.objects).paths() == ["/w/s/b"]


# -- races and lateness ----------------------------------------------------------------------------------------------


def test_a_tree_with_the_result_of_a_running_call_is_no_outside_change() -> None:
    call = write(3, A, "two\n", existed=True, message_id="msg_m")
    story = Story().then(write(1, A, "one\n")).tree(2, {"a": b"two\n"}, message_id="msg_m").then(call)
    assert story.revisions() == [("proven", b"one\n"), ("proven", b"two\n")]
    assert not any(story.outside())
    edited = edit(3, A, "one", "two", message_id="msg_m")
    story = Story().then(write(1, A, "one\n")).tree(2, {"a": b"two\n"}, message_id="msg_m").then(edited)
    assert story.of() == ("proven", b"two\n")


def test_a_race_with_the_second_of_two_calls_is_one_too() -> None:
    calls = [edit(3, A, "1", "2", message_id="m"), edit(4, A, "2", "3", message_id="m")]
    for shown in (b"2\n", b"3\n"):
        story = Story().then(write(1, A, "1\n")).tree(2, {"a": shown}, message_id="m").then(*calls)
        assert story.of() == ("proven", b"3\n")
        assert not any(story.outside())


def test_a_tree_taken_while_another_session_works_is_a_race_too() -> None:
    call = write(5, A, "two\n", existed=True, started=at(2), session_id="ses_2", message_id="other")
    story = Story().then(write(1, A, "one\n")).tree(3, {"a": b"two\n"}).then(call)
    assert not any(story.outside())
    after = write(5, A, "two\n", existed=True, started=at(4), session_id="ses_2", message_id="other")
    story = Story().then(write(1, A, "one\n")).tree(3, {"a": b"two\n"}).then(after)
    assert any(story.outside())  # nothing was under way, so somebody else wrote the same before


OTHER = {"session_id": "ses_2", "message_id": "other"}


def test_a_tree_may_show_a_call_that_began_after_its_id_was_made() -> None:
    story = Story().then(write(2, A, "from 1\n")).tree(3, {"a": b"from 1\nfrom 0\n"}, until=at(6))
    assert story.then(append(7, A, "from 0\n", started=at(5), **OTHER)).of() == ("proven", b"from 1\nfrom 0\n")
    late = Story().then(write(2, A, "from 1\n")).tree(3, {"a": b"from 1\nfrom 0\n"}, until=at(4))
    late.then(append(7, A, "from 0\n", started=at(5), **OTHER))
    assert late.of() == ("proven", b"from 1\nfrom 0\nfrom 0\n")  # the tree was complete, so both were added


def test_after_a_tree_that_may_show_some_of_several_calls_no_result_is_certain() -> None:
    # The calls ended in the other order than they wrote, so no sequence of their results explains the tree.
    calls = [append(7, A, "from 0\n", started=at(2), **OTHER), append(8, A, "from 1\n", started=at(1), message_id="m")]
    story = Story().tree(3, {"a": b"from 1\nfrom 0\n"}, until=at(6)).then(*calls)
    assert [grade for grade, _ in story.revisions()] == ["proven", "stale", "stale"]


def test_a_tree_recorded_late_does_not_take_back_later_changes() -> None:
    story = Story().then(write(1, A, "one\n"), write(3, A, "two\n", existed=True))
    story.tree(4, {"a": b"one\n"}, started=at(2))
    assert story.revisions() == [("proven", b"one\n"), ("proven", b"two\n")]
    news = Story().then(write(1, A, "one\n"), write(3, A, "two\n", existed=True))
    assert news.tree(4, {"a": b"one\n"}, started=at(3.5)).of() == ("proven", b"one\n")


def test_a_late_tree_with_unknown_content_is_news_all_the_same() -> None:
    story = Story().then(write(1, A, "one\n"), write(3, A, "two\n", existed=True)).tree(4, {"a": b"x\n"}, started=at(2))
    assert (story.of(), story.outside()[-1]) == (("proven", b"x\n"), True)


# -- what is not kept ------------------------------------------------------------------------------------------------


def test_a_tree_that_is_not_archived_tells_nothing() -> None:
    edits = [write(1, A, "one\n"), snapshot(2, "nowhere", "/w")]
    assert grade_and_content(last(A, edits)) == ("proven", b"one\n")


def test_beneath_a_subtree_that_is_not_archived_nothing_is_told() -> None:
    objects = Objects()
    objects.put({"a": b"new\n"}, "whole")
    names = dict(objects.tree("whole") or {}) | {"s": (0o040000, "missing")}
    objects._trees["whole"] = names
    edits = [write(1, A, "one\n"), write(1, "/w/s/b", "b\n"), snapshot(2, "whole", "/w")]
    assert grade_and_content(last(A, edits, objects)) == ("proven", b"new\n")
    assert grade_and_content(last("/w/s/b", edits, objects)) == ("proven", b"b\n")
    scoped = [write(1, "/w/s/b", "b\n"), snapshot(2, "whole", "/w", scope="/w/s")]
    assert grade_and_content(last("/w/s/b", scoped, objects)) == ("proven", b"b\n")


def test_a_subtree_that_was_not_archived_before_is_compared_with_nothing() -> None:
    objects = Objects()
    objects.put({"a": b"a\n"}, "first")
    objects._trees["first"] = {"s": (0o040000, "missing")}
    tree = objects.put({"s/b": b"b\n"}, "second")
    assert grade_and_content(last("/w/s/b", [snapshot(1, "first", "/w"), snapshot(2, tree, "/w")], objects)) == (
        "proven",
        b"b\n",
    )


def test_a_file_of_a_tree_that_was_not_captured_is_lost() -> None:
    objects = Objects()
    tree = objects.put({"a": b"new\n"}, "one")
    del objects._blobs[blob_id(b"new\n")]
    found = last(A, [write(1, A, "one\n"), snapshot(2, tree, "/w")], objects)
    assert (grade_and_content(found), found.outside_change) == (("lost", None), True)
    assert "not captured" in found.note


def test_content_that_was_not_captured_is_proven_by_the_id_of_known_text() -> None:
    objects = Objects()
    tree = objects.put({"a": b"one\n"}, "one")
    del objects._blobs[blob_id(b"one\n")]
    assert grade_and_content(last(A, [write(1, A, "one\n"), snapshot(2, tree, "/w")], objects)) == (
        "verified",
        b"one\n",
    )


def _pointer(content: bytes) -> bytes:
    """What git stores in place of a file that Git LFS keeps."""
    digest = hashlib.sha256(content).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(content)}\n".encode()


def test_a_pointer_to_large_file_storage_is_not_the_file() -> None:
    story = Story().tree(1, {"a": _pointer(b"large")})
    assert story.of() == ("lost", None)
    assert last(A, story.edits, story.objects).blob == ""  # no hash of the file itself is known
    assert Story().tree(1, {"a": b"text that says: version https://git-lfs.github.com/spec/"}).of()[0] == "proven"


@pytest.mark.parametrize(("size", "expected"), [(1023, "lost"), (1024, "proven")])
def test_a_pointer_has_less_than_1024_bytes(size: int, expected: str) -> None:
    content = _pointer(b"large").ljust(size, b"x")
    assert Story().tree(1, {"a": content}).of()[0] == expected


@pytest.mark.parametrize(
    ("pointed_to", "expected", "outside"),
    [(b"one\n", ("verified", b"one\n"), [False]), (b"two\n", ("lost", None), [False, True])],
)
def test_a_pointer_confirms_the_content_whose_hash_it_names(
    pointed_to: bytes, expected: tuple[str, bytes | None], outside: list[bool]
) -> None:
    """Git stores the pointer, the file itself has its bytes: that the tree differs is how it always is."""
    story = Story().then(read(1, A, "one\n")).tree(3, {"a": _pointer(pointed_to)})
    assert story.of() == expected
    assert story.outside() == outside


def test_a_pointer_says_nothing_of_a_file_that_is_not_certain() -> None:
    story = Story().then(ONE, unclear(2.5, A)).tree(3, {"a": _pointer(b"one\n")})
    assert story.of() == ("lost", None)


def test_line_ends_that_git_was_told_to_normalise_are_no_change() -> None:
    story = Story().then(write(2, A, "a\r\nb\r\n")).tree(3, {"a": b"a\nb\n"})
    assert story.of() == ("proven", b"a\r\nb\r\n")
    held = Story().tree(1, {"a": b"a\r\nb\r\n"}).tree(3, {"a": b"a\nb\n"})
    assert held.of() == ("proven", b"a\nb\n"), "git keeps CRs here: the file has changed"
    story = Story().then(write(2, A, "a\nb\n")).tree(3, {"a": b"a\r\nb\r\n"})
    assert story.of() == ("proven", b"a\r\nb\r\n")
    story = Story().then(write(2, A, "a\r\nb\r\n")).tree(3, {"a": b"a\nc\n"})
    assert story.of() == ("proven", b"a\nc\n")


def test_modes_and_modules() -> None:
    story = Story().tree(1, {"a": (0o100755, b"#!\n"), "m": (0o160000, b"commit")})
    assert last(A, story.edits, story.objects).mode == 0o100755
    assert world(story.edits, story.objects).paths() == [A]


def test_a_file_that_became_a_folder_is_gone_and_the_other_way_round() -> None:
    story = Story().tree(1, {"a": b"one\n"}).tree(2, {"a/x": b"x"})
    assert (story.of(), story.of("/w/a/x")) == (GONE, ("proven", b"x"))
    story.tree(3, {"a": b"two\n"})
    assert (story.of(), story.of("/w/a/x")) == (("proven", b"two\n"), GONE)


def test_a_move_between_trees_is_confirmed_at_both_ends() -> None:
    story = Story().tree(1, {"a": b"one\n"}).then(move(2, A, B)).tree(3, {"b": b"one\n"})
    assert (story.of(), story.of(B)) == (GONE, ("verified", b"one\n"))


# -- only what is asked for ------------------------------------------------------------------------------------------


def test_only_wanted_paths_are_compared() -> None:
    story = Story().tree(1, {"a": b"1", "s/b": b"1", "t/c": b"1"}).tree(2, {"a": b"2", "s/b": b"2", "t/c": b"2"})
    made = World(story.objects, PathFilter(("/w/s",)))
    made.replay(story.edits)
    assert made.paths() == ["/w/s/b"]
    assert [grade_and_content(revision) for revision in made.history("/w/s/b").revisions] == [
        ("proven", b"1"),
        ("proven", b"2"),
    ]


class _Counting(Objects):
    looked = 0

    def tree(self, object_id: str):
        self.looked += 1
        return super().tree(object_id)


def test_a_tree_costs_as_much_as_has_changed() -> None:
    objects = _Counting()
    files = {f"f{n}/x": b"1" for n in range(300)}
    edits = [snapshot(1, objects.put(files, "first"), "/w")]
    second = objects.put(files | {"f7/x": b"2"}, "second")
    world(edits, objects)
    first = objects.looked
    objects.looked = 0
    world([*edits, snapshot(2, second, "/w")], objects)
    assert objects.looked - first < 40


def _differing(old: str, new: str, objects: Objects, *wanted: str) -> Sequence[str]:
    return sorted(path for path, _, _ in differing(objects, old, new, "/w", PathFilter(wanted or ("/",))))


def test_trees_differ_at_any_depth_and_where_files_became_folders() -> None:
    objects = Objects()
    old = objects.put({"a": b"1", "s/b": b"1", "s/t/c": b"1", "k/l": b"1", "m": b"1"}, "old")
    new = objects.put({"a": b"1", "s/b": b"1", "s/t/c": b"2", "k": b"1", "m/n": b"1"}, "new")
    assert _differing(old, new, objects) == ["/w/k", "/w/k/l", "/w/m", "/w/m/n", "/w/s/t/c"]
    assert _differing(old, new, objects, "/w/s/t") == ["/w/s/t/c"]
    assert _differing(old, new, objects, "/w/m") == ["/w/m", "/w/m/n"]
    assert _differing(old, "", objects) == ["/w/a", "/w/k/l", "/w/m", "/w/s/b", "/w/s/t/c"]
    assert _differing(old, old, objects) == []


def test_what_the_last_tree_lacks_is_told_from_what_no_tree_covers() -> None:
    objects = Objects()
    tracks = Tracks()
    snapshots = Snapshots(tracks, objects, PathFilter(), {})
    tracks.number = 1
    snapshots.observe_tree(snapshot(1, objects.put({"a": b"1"}, "one"), "/w"))
    assert [snapshots.lacks(path, 0) for path in (A, B, "/o/b")] == [False, True, False]


# -- what a tree names and nobody has --------------------------------------------------------------------------------


def _without(objects: Objects, *trees: str) -> Objects:
    for tree in trees:
        del objects._trees[tree]
    return objects


def _folder_id(objects: Objects, tree: str, path: str) -> str:
    found = objects.find(tree, path)
    assert found is not None
    return found[1]


def test_a_folder_whose_tree_is_gone_is_listed_as_lost() -> None:
    story = Story().tree(1, {"a": b"a", "docs/guide": b"g", "docs/deep/x": b"x", "src/deep/y": b"y"})
    tree = story.edits[0].blob
    gone = [_folder_id(story.objects, tree, name) for name in ("docs", "src/deep")]
    replayed = world(story.edits, _without(story.objects, *gone))
    assert replayed.paths() == [A, "/w/docs", "/w/src/deep"]
    for path, id_ in zip(("/w/docs", "/w/src/deep"), gone, strict=True):
        latest = replayed.history(path).latest
        assert latest is not None
        assert (latest.grade, latest.content, latest.deleted) == (Grade.LOST, None, False)
        assert tree[:12] in latest.note
        assert id_[:12] in latest.note
        assert is_lost_folder(latest.grade, latest.note)
    assert replayed.history(A).latest is not None


def test_a_lost_folder_stays_lost_until_a_later_tree_settles_it() -> None:
    first, same = {"docs/guide": b"g", "a": b"a"}, {"docs/guide": b"g", "a": b"A"}
    for later, paths in (({"docs/guide": b"G"}, [A, "/w/docs/guide"]), ({"a": b"A"}, [A])):
        story = Story().tree(1, first).tree(2, same)
        objects = _without(story.objects, _folder_id(story.objects, story.edits[0].blob, "docs"))
        assert world(story.edits, objects).paths() == [A, "/w/docs"]
        story.tree(3, later)
        assert world(story.edits, objects).paths() == paths


def test_a_session_folder_whose_tree_is_gone_is_lost_as_a_whole() -> None:
    story = Story().tree(1, {"docs/guide": b"g"})
    story.edits[0] = replace(story.edits[0], path="/w/docs")
    objects = _without(story.objects, _folder_id(story.objects, story.edits[0].blob, "docs"))
    assert world(story.edits, objects).paths() == ["/w/docs"]


def test_what_calls_did_in_a_lost_folder_is_told_beside_it() -> None:
    story = Story().then(write(1, "/w/docs/new", "n")).tree(2, {"docs/new": b"n", "docs/old": b"o"})
    objects = _without(story.objects, _folder_id(story.objects, story.edits[-1].blob, "docs"))
    replayed = world(story.edits, objects)
    assert replayed.paths() == ["/w/docs", "/w/docs/new"]
    assert grade_and_content(replayed.history("/w/docs/new").latest) == ("proven", b"n")
