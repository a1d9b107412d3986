"""A published tree holds the pages asked for, and never costs a person anything of theirs."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.errors import OutputFailed, OutputRefused
from daemon.model import Page
from daemon.publish import MANIFEST, names, publish, recover
from daemon.publish.edits import composed, signature

pytestmark = pytest.mark.on_disk

HOSTILE = Path(__file__).parents[2] / "hostile"
TREE = "home/u/app"
OLD = [Page("README.md", "old readme"), Page("src/a.py.md", "a", ("msg_2", "msg_1", "msg_2")), Page("gone/x.md", "x")]
NEW = [Page("README.md", "new readme"), Page("src/a.py.md", "a", ("msg_1",)), Page("src/deep/b.md", "b")]


def _expand(path: str) -> str:
    for unit in ("long", "é", "\U0001f600"):
        head, star, tail = path.partition(f"{unit}*")
        if star:
            count = "".join(c for c in tail.partition("/")[0].partition(".")[0] if c.isdigit())
            return head + unit[0] * int(count) + tail[len(count) :]
    return path


PATHS = [
    (_expand(row["path"]), row.get("becomes"))
    for row in tomllib.loads((HOSTILE / "paths.toml").read_text(encoding="utf-8"))["path"]
]


PLACE = composed(b"").decode()


def files(folder: Path) -> dict[str, str]:
    """Every file beneath `folder` but manifests, with its text; of a page without its empty Notes section."""
    return {
        str(p.relative_to(folder)): p.read_text(encoding="utf-8").removesuffix(PLACE).removesuffix("\n")
        for p in folder.rglob("*")
        if p.is_file() and not p.is_symlink() and p.name != MANIFEST
    }


def manifest(folder: Path) -> dict:
    return json.loads((folder / MANIFEST).read_bytes())


@pytest.mark.parametrize("tree", ["X", "X/home/X", "home/X/"])
def test_a_tree_stands_under_its_own_name(tmp_path, tree):
    assert publish(tmp_path, tree, OLD).folder == tree.strip("/")
    assert len(files(tmp_path / tree)) == len(OLD)


def test_pages_and_a_manifest_of_them_are_written_beneath_the_targets_path(tmp_path):
    result = publish(tmp_path, TREE, OLD)
    folder = tmp_path / TREE
    assert result.folder == TREE
    assert sorted(result.written) == sorted(files(folder)) == ["README.md", "gone/x.md", "src/a.py.md"]
    found = manifest(folder)
    assert found["pages"]["src/a.py.md"] == {
        "sha256": hashlib.sha256(b"a").hexdigest(),
        "body": signature(b"a"),
        "sources": ["msg_1", "msg_2"],
    }
    assert [p.name for p in tmp_path.iterdir()] == ["home"]
    assert not [p for p in folder.rglob("*") if p.is_file() and p.stat().st_mode & 0o111]


def test_publishing_the_same_again_writes_nothing(tmp_path):
    publish(tmp_path, TREE, OLD)
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    points: list[str] = []
    result = publish(tmp_path, TREE, list(reversed(OLD)), step=points.append)
    assert sorted(result.unchanged) == sorted(page.path for page in OLD)
    assert (result.written, result.removed, points) == ([], [], [])
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")} == before


def test_the_manifest_is_the_same_bytes_whatever_the_order(tmp_path):
    publish(tmp_path / "1", TREE, OLD)
    publish(tmp_path / "2", TREE, OLD[::-1])
    assert (tmp_path / "1" / TREE / MANIFEST).read_bytes() == (tmp_path / "2" / TREE / MANIFEST).read_bytes()


def test_only_changes_are_written_and_removed_pages_take_their_folder(tmp_path):
    publish(tmp_path, TREE, OLD)
    folder = tmp_path / TREE
    same = (folder / "src/a.py.md").stat().st_mtime_ns
    result = publish(tmp_path, TREE, NEW)
    assert (sorted(result.written), result.unchanged) == (["README.md", "src/deep/b.md"], ["src/a.py.md"])
    assert (result.removed, result.kept, result.taken) == (["gone/x.md"], [], [])
    assert files(folder) == {page.path: page.content for page in NEW}
    assert not (folder / "gone").exists()
    assert (folder / "src/a.py.md").stat().st_mtime_ns == same


def test_a_page_a_person_edited_is_kept_and_reported_every_time(tmp_path):
    publish(tmp_path, TREE, OLD)
    (tmp_path / TREE / "README.md").write_text("mine")
    (tmp_path / TREE / "gone/x.md").write_text("mine, too")
    for _ in range(2):
        result = publish(tmp_path, TREE, NEW)
        assert (result.kept, result.retired) == (["README.md"], ["gone/x.md"])
        assert result.current == {"README.md": "README.current.md"}
    assert files(tmp_path / TREE)["README.md"] == "mine"
    assert files(tmp_path / TREE)["gone/x.md"] == "mine, too"


def test_an_edit_taken_back_or_a_deleted_page_is_published_again(tmp_path):
    publish(tmp_path, TREE, OLD)
    before = (tmp_path / TREE / "README.md").read_bytes()
    (tmp_path / TREE / "README.md").write_text("mine")
    publish(tmp_path, TREE, NEW)
    (tmp_path / TREE / "README.md").write_bytes(before)
    (tmp_path / TREE / "src/deep/b.md").unlink()
    assert sorted(publish(tmp_path, TREE, NEW).written) == ["README.md", "src/deep/b.md"]
    assert files(tmp_path / TREE) == {page.path: page.content for page in NEW}


def test_a_file_that_is_not_ours_keeps_its_name(tmp_path):
    publish(tmp_path, TREE, OLD)
    folder = tmp_path / TREE
    (folder / "src/deep").mkdir()
    (folder / "src/deep/b.md").write_text("mine")
    (folder / "notes.md").write_text("mine")
    for _ in range(2):
        assert publish(tmp_path, TREE, NEW).taken == ["src/deep/b.md"]
    assert publish(tmp_path, TREE, []).removed == ["README.md", "src/a.py.md"]
    assert files(folder) == {"notes.md": "mine", "src/deep/b.md": "mine"}


@pytest.mark.parametrize("tree", ["home/u/app", "home/u", "home", ""])
def test_a_folder_with_files_and_no_manifest_of_ours_is_refused(tmp_path, tree):
    (tmp_path / "home/u/app").mkdir(parents=True)
    (tmp_path / "home/u/app/code.py").write_text("mine")
    with pytest.raises(OutputRefused, match="holds files that are not ours"):
        publish(tmp_path, tree, OLD)
    assert files(tmp_path) == {"home/u/app/code.py": "mine"}


@pytest.mark.parametrize("bad", [b"{", b"[]", b"{}", b'{"format": 99}', b'{"format":1,"tree":"x","pages":{"a":1}}'])
def test_a_damaged_manifest_is_refused_and_nothing_is_touched(tmp_path, bad):
    publish(tmp_path, TREE, OLD)
    (tmp_path / TREE / MANIFEST).write_bytes(bad)
    with pytest.raises(OutputRefused, match="damaged"):
        publish(tmp_path, TREE, NEW)
    assert files(tmp_path / TREE) == {page.path: page.content for page in OLD}


def test_two_targets_that_would_share_a_folder_are_told_apart(tmp_path):
    publish(tmp_path, "a/.git", OLD)
    with pytest.raises(OutputRefused, match=r"already holds the tree of 'a/\.git'"):
        publish(tmp_path, "a/_git", NEW)


@pytest.mark.parametrize("outer", ["a", ""])
def test_a_tree_around_a_published_one_leaves_it_alone(tmp_path, outer):
    publish(tmp_path, "a/b", [Page("README.md", "inner"), Page("x.md", "inner x")])
    inside = "b" if outer else "a/b"
    pages = [Page("README.md", "outer"), Page(f"{inside}/README.md", "outer's view"), Page(f"{inside}/c/y.md", "y")]
    result = publish(tmp_path, outer, pages)
    assert result.nested == [f"{inside}/README.md", f"{inside}/c/y.md"]
    assert files(tmp_path / "a/b") == {"README.md": "inner", "x.md": "inner x"}
    assert publish(tmp_path, outer, []).removed == ["README.md"]
    assert files(tmp_path) == {"a/b/README.md": "inner", "a/b/x.md": "inner x"}


def test_a_tree_beneath_a_published_one_takes_its_part_over(tmp_path):
    outer = [Page("README.md", "outer"), Page("b/README.md", "outer b"), Page("b/x.md", "x"), Page("b/old.md", "old")]
    publish(tmp_path, "a", outer)
    (tmp_path / "a/b/old.md").write_text("mine")
    (tmp_path / "a/b/foreign.md").write_text("mine")
    result = publish(tmp_path, "a/b", [Page("README.md", "inner b"), Page("x.md", "x")])
    assert (result.written, result.unchanged, result.retired) == (["README.md"], ["x.md"], ["old.md"])
    again = publish(tmp_path, "a", outer)
    assert again.nested == ["b/README.md", "b/x.md", "b/old.md"]
    assert (again.removed, again.unchanged) == ([], ["README.md"])
    assert sorted(manifest(tmp_path / "a")["pages"]) == ["README.md"]
    expected = {
        "README.md": "outer",
        "b/README.md": "inner b",
        "b/x.md": "x",
        "b/old.md": "mine",
        "b/foreign.md": "mine",
    }
    assert files(tmp_path / "a") == expected


def test_planted_links_are_never_followed_and_reported_as_taken(tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "f").write_text("precious")
    out = tmp_path / "out"
    publish(out, TREE, OLD)
    folder = out / TREE
    (folder / "link").symlink_to(victim)
    (folder / "leaf.md").symlink_to(victim / "f")
    (folder / "README.md").unlink()
    (folder / "README.md").symlink_to(victim / "f")
    (folder / "file").write_text("in the way")
    pages = [*NEW, Page("link/f", "x"), Page("link/new", "x"), Page("leaf.md", "x"), Page("file/x.md", "x")]
    result = publish(out, TREE, pages)
    assert result.taken == ["link/f", "link/new", "leaf.md", "file/x.md"]
    assert result.kept == ["README.md"]
    assert files(victim) == {"f": "precious"}
    assert (folder / "leaf.md").is_symlink()


def test_a_link_in_the_way_of_the_whole_tree_is_refused(tmp_path):
    (tmp_path / "victim").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/home").symlink_to(tmp_path / "victim")
    with pytest.raises(OutputRefused, match="a link where a folder must be"):
        publish(tmp_path / "out", TREE, OLD)
    assert list((tmp_path / "victim").iterdir()) == []


@pytest.mark.parametrize(("path", "becomes"), PATHS)
def test_a_hostile_path_becomes_a_harmless_name_beneath_the_tree(tmp_path, path, becomes):
    out = tmp_path / "out"
    result = publish(out, TREE, [Page(path, "text")])
    written = result.written[0]
    assert becomes is None or written == becomes
    assert files(out / TREE) == {written: "text"}
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    assert (written == path) == (result.renamed == [])
    assert publish(out, TREE, [Page(path, "text")]).unchanged == [written]
    publish(out, path.replace("\0", ""), [Page("x.md", "text")])
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_names_that_meet_are_numbered_and_listed_in_the_manifest(tmp_path):
    paths = [
        "a.md",
        "A.md",
        "é.md",
        "e\u0301.md",
        "a.md",
        "d",
        "d/x.md",
        "D/X.md",
        "ß",
        "SS",
        "p/README.md",
        "p/README.md",
    ]
    result = publish(tmp_path, TREE, [Page(path, f"text {n}") for n, path in enumerate(paths)])
    expected = [
        "a.md",
        "A-2.md",
        "é.md",
        "e\u0301-2.md",
        "a-3.md",
        "d",
        "d-2/x.md",
        "D-2/X-2.md",
        "ß",
        "SS-2",
        "p/README.md",
        "p/README-2.md",
    ]
    assert names(paths) == expected
    assert files(tmp_path / TREE) == {name: f"text {n}" for n, name in enumerate(expected)}
    assert ["A.md", "A-2.md"] in manifest(tmp_path / TREE)["renamed"]
    assert len(result.renamed) == 7


@settings(deadline=None)
@given(st.lists(st.text(max_size=30).map(lambda s: s.replace("x", "/")), max_size=12))
def test_names_are_apart_on_a_system_that_folds_case_and_stable(paths):
    result = names(paths)
    folded = [name.casefold() for name in result]
    assert len(set(folded)) == len(paths)
    assert not [a for a in folded for b in folded if b.startswith(a + "/")]
    assert all(len(os.fsencode(part)) <= 255 for name in result for part in name.split("/"))
    assert names(result) == result


def test_secrets_and_lone_surrogates_reach_no_page_name_or_manifest(tmp_path):
    secret = "gh" + "p_" + "a1B2" * 9
    publish(tmp_path, TREE, [Page(f"{secret}.md", f"it is {secret}"), Page("s\ud800.md", "\ud800")])
    everything = "".join(p.name + (p.read_text() if p.is_file() else "") for p in tmp_path.rglob("*"))
    assert secret not in everything
    assert "[REDACTED:github:" in everything
    assert files(tmp_path / TREE)["s_.md"] == "\\ud800"


def test_too_little_free_space_is_told_before_anything_is_written(tmp_path):
    publish(tmp_path, TREE, OLD)
    with pytest.raises(OutputRefused, match=r"MB free, .* MB needed"):
        publish(tmp_path, TREE, NEW, spare_bytes=10**18)
    assert files(tmp_path / TREE) == {page.path: page.content for page in OLD}
    assert publish(tmp_path, TREE, OLD, spare_bytes=10**18).written == []


def _steps(tmp_path: Path) -> list[str]:
    points: list[str] = []
    publish(tmp_path / "count", TREE, OLD)
    publish(tmp_path / "count", TREE, NEW, step=points.append)
    return points


def test_a_failure_of_any_write_leaves_the_old_tree_or_is_completed(tmp_path):
    points = _steps(tmp_path)
    committed = points.index("publish.committed")
    assert len(points) > 30
    for nth in range(len(points)):
        if points[nth] == "publish.committed":
            continue
        out = tmp_path / str(nth)
        publish(out, TREE, OLD)
        left = [nth]

        def fail(point: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == -1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        text = f"^{re.escape(str(out))}: cannot be written: No space left on device; free some space"
        with pytest.raises(OutputRefused, match=text):
            publish(out, TREE, NEW, step=fail)
        if nth < committed:
            assert files(out) == {f"{TREE}/{page.path}": page.content for page in OLD}, points[nth]
        recover(out)
        assert files(out) in (
            {f"{TREE}/{page.path}": page.content for page in OLD},
            {f"{TREE}/{page.path}": page.content for page in NEW},
        )
        publish(out, TREE, NEW)
        assert files(out) == {f"{TREE}/{page.path}": page.content for page in NEW}
        assert publish(out, TREE, NEW).written == []


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE])
def test_an_error_that_may_pass_is_to_be_tried_again(tmp_path, monkeypatch, number):
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    publish(tmp_path / "pages", TREE, OLD)
    with pytest.raises(OutputFailed, match="cannot be written"):
        publish(tmp_path / "pages", TREE, NEW, step=fail)
    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(OutputFailed, match="cannot be used as a directory"):
        publish(tmp_path / "pages", TREE, OLD)


def test_a_completion_that_fails_names_the_folder_and_goes_on_later(tmp_path):
    publish(tmp_path, TREE, OLD)

    def fail(point: str) -> None:
        if point == "publish.committed":
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    text = f"^{re.escape(str(tmp_path))}: cannot be written: Permission denied; check the disk and the permissions"
    with pytest.raises(OutputRefused, match=text):
        publish(tmp_path, TREE, NEW, step=fail)

    def fail_at_once(point: str) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    with pytest.raises(OutputRefused, match=text):
        recover(tmp_path, step=fail_at_once)
    assert recover(tmp_path) == 1
    assert files(tmp_path) == {f"{TREE}/{page.path}": page.content for page in NEW}


def test_an_edit_made_between_a_crash_and_the_completion_is_kept(tmp_path):
    publish(tmp_path, TREE, OLD)

    def crash(point: str) -> None:
        if point == "publish.committed":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(tmp_path, TREE, NEW, step=crash)
    assert files(tmp_path / TREE) == {page.path: page.content for page in OLD}
    (tmp_path / TREE / "README.md").write_text("mine")
    assert recover(tmp_path) == 1
    assert files(tmp_path / TREE) == {page.path: page.content for page in NEW} | {"README.md": "mine"}
    assert publish(tmp_path, TREE, NEW).kept == ["README.md"]
    assert recover(tmp_path) == 0
    assert recover(tmp_path / "nowhere") == 0


@pytest.mark.parametrize("next_tree", [TREE, "home/u/other"])
@pytest.mark.parametrize(("steps", "completed"), [(-5, False), (-2, False), (-1, True), (2, True)])
def test_the_next_publishing_completes_or_discards_what_a_crash_left(tmp_path, next_tree, steps, completed):
    """Whichever tree comes next: what was committed becomes the new tree, what was only staged never was."""
    left = [_steps(tmp_path).index("publish.committed") + steps]

    def crash(point: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt

    out = tmp_path / "out"
    publish(out, TREE, OLD)
    with pytest.raises(KeyboardInterrupt):
        publish(out, TREE, NEW, step=crash)
    assert (out / ".reconstitute.next").exists()
    result = publish(out, next_tree, NEW if next_tree == TREE else [Page("README.md", "other")])
    expected = NEW if completed or next_tree == TREE else OLD
    assert files(out / TREE) == {page.path: page.content for page in expected}
    if next_tree == TREE:
        assert sorted(result.written) == ([] if completed else ["README.md", "src/deep/b.md"])
    assert not (out / ".reconstitute.next").exists()


def test_a_damaged_intent_is_named(tmp_path):
    publish(tmp_path, TREE, OLD)
    staging = tmp_path / ".reconstitute.next" / "0123456789abcdef"
    staging.mkdir(parents=True)
    (staging / "intent.json").write_bytes(b"{")
    with pytest.raises(OutputRefused, match="damaged; remove that folder"):
        recover(tmp_path)


def test_a_tree_of_the_whole_filesystem_is_the_output_directory_itself(tmp_path):
    publish(tmp_path, "", OLD)
    assert files(tmp_path) == {page.path: page.content for page in OLD}
    assert publish(tmp_path, "/", OLD[:1]).removed == ["gone/x.md", "src/a.py.md"]


def test_a_tree_around_that_has_no_page_in_a_folder_gives_no_right_to_it(tmp_path):
    publish(tmp_path, "", [Page("README.md", "the index\n")])
    mine = tmp_path / "home/shop/mine.md"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine\n")
    with pytest.raises(OutputRefused, match="holds files that are not ours"):
        publish(tmp_path, "home/shop", [Page("README.md", "a\n")])
    assert list(mine.parent.iterdir()) == [mine]
