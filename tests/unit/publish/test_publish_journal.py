"""The commit of a tree, operation by operation: what is staged, what is carried out, and what is left to the person."""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.errors import OutputRefused
from daemon.filesystem.durable import Root
from daemon.publish import journal
from daemon.publish.journal import STAGING, Staging

pytestmark = pytest.mark.on_disk

OLD, NEW, MINE = b"old", b"new", b"mine"
STAGED = f"{STAGING}/0123456789abcdef"


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    with Root(tmp_path / "out") as opened:
        yield opened


def files(root: Root) -> dict[str, bytes]:
    return {str(p.relative_to(root.path)): p.read_bytes() for p in root.path.rglob("*") if p.is_file()}


def intend(root: Root, *operations: dict[str, Any], folder: str = "t") -> None:
    """An intent as a crash leaves it."""
    root.write(f"{STAGED}/intent.json", json.dumps({"folder": folder, "operations": operations}).encode())


# -- staging ---------------------------------------------------------------------------------------------------------


def test_operations_are_staged_with_content_and_committed_by_an_intent(root: Root) -> None:
    with journal.staged(root, "t", 0) as staging:
        staging.put("t/a/new.md", NEW, None)
        staging.put("t/old.md", b"newer", sha(OLD), carries=True)
        staging.remove("t/b/gone.md", sha(OLD))
        staging.put("t/last.md", b"last", None)
        assert f"{staging.path}/intent.json" not in files(root)
    assert staging.path == f".reconstitute.next/{sha(b't')[:16]}"  # a later version finds it there, too
    written = files(root)
    assert json.loads(written.pop(f"{staging.path}/intent.json")) == {
        "folder": "t",
        "operations": [
            {"path": "t/a/new.md", "before": None, "after": sha(NEW), "staged": 0},
            {"path": "t/old.md", "before": sha(OLD), "after": sha(b"newer"), "staged": 1, "carries": True},
            {"path": "t/b/gone.md", "before": sha(OLD)},
            {"path": "t/last.md", "before": None, "after": sha(b"last"), "staged": 2},
        ],
    }
    assert written == {f"{staging.path}/0": NEW, f"{staging.path}/1": b"newer", f"{staging.path}/2": b"last"}
    assert (root.path / "t/a").is_dir()
    assert not (root.path / "t/b").exists()


def test_nothing_staged_leaves_nothing(root: Root) -> None:
    with journal.staged(root, "t", 0) as staging:
        pass
    assert staging.operations == []
    assert list(root.path.iterdir()) == []


def test_what_was_staged_is_discarded_when_it_fails(root: Root) -> None:
    def plan() -> None:
        with journal.staged(root, "t", 0) as staging:
            staging.put("t/new.md", NEW, None)
            raise OutputRefused("no")

    with pytest.raises(OutputRefused):
        plan()
    assert files(root) == {}
    assert not (root.path / STAGING).exists()


@pytest.mark.parametrize(
    ("free", "staged", "refused"),
    [(120, b"", False), (119, b"", True), (125, b"12345", False), (124, b"12345", True)],
)
def test_publishing_needs_space_for_staging_twice_the_page_and_a_reserve(
    root: Root, monkeypatch: pytest.MonkeyPatch, free: int, staged: bytes, refused: bool
) -> None:
    """100 bytes are to stay free and the page has 10; what is staged already is no longer free."""
    mega = 1_000_000
    staging = Staging(root, "t", 100 * mega)
    staging.put("t/first.md", staged, None)
    staging._bytes *= mega
    monkeypatch.setattr(root, "free_bytes", lambda: free * mega)
    page = b"x" * (10 * mega)
    if not refused:
        staging.put("t/page.md", page, None)
        return
    needed = 120 + len(staged)
    text = f"{root.path}: {free} MB free, {needed} MB needed to publish; free some space"
    with pytest.raises(OutputRefused) as caught:
        staging.put("t/page.md", page, None)
    assert str(caught.value) == text
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.ENOSPC
    assert caught.value.__cause__.strerror == "No space left on device"
    assert [operation["path"] for operation in staging.operations] == ["t/first.md"]


def test_staged_bytes_add_up(root: Root) -> None:
    staging = Staging(root, "t", 0)
    for content in (b"one", b"three"):
        staging.put("t/x.md", content, None)
    assert staging._bytes == 8


# -- carrying out ----------------------------------------------------------------------------------------------------

PUT = {"path": "t/x.md", "before": sha(OLD), "after": sha(NEW), "staged": 0}
FIRST = PUT | {"before": None}


@pytest.mark.parametrize(
    ("case", "operation", "before", "after"),
    [
        ("a page is new", FIRST, {STAGED + "/0": NEW}, {"t/x.md": NEW}),
        ("a page is replaced", PUT, {STAGED + "/0": NEW, "t/x.md": OLD}, {"t/x.md": NEW}),
        ("it was put before the crash", FIRST, {"t/x.md": NEW}, {"t/x.md": NEW}),
        ("it was exchanged before the crash", PUT, {STAGED + "/0": OLD, "t/x.md": NEW}, {"t/x.md": NEW}),
        ("an edit was saved while it was exchanged", PUT, {STAGED + "/0": MINE, "t/x.md": NEW}, {"t/x.md": MINE}),
        ("the page was edited since", PUT, {STAGED + "/0": NEW, "t/x.md": MINE}, {"t/x.md": MINE}),
        ("the page was deleted since", PUT, {STAGED + "/0": NEW}, {}),
        ("somebody's file took the name", FIRST, {STAGED + "/0": NEW, "t/x.md": MINE}, {"t/x.md": MINE}),
        (
            "the page was edited, and notes came with it",
            PUT | {"carries": True},
            {STAGED + "/0": NEW, "t/x.md": MINE},
            {"t/x.md": MINE, "t/x.current.md": NEW},
        ),
        (
            "the name beside it is taken, too",
            PUT | {"carries": True},
            {STAGED + "/0": NEW, "t/x.md": MINE, "t/x.current.md": MINE},
            {"t/x.md": MINE, "t/x.current.md": MINE, "t/x.current-2.md": NEW},
        ),
        (
            "an edit was saved while notes were exchanged",
            PUT | {"carries": True},
            {STAGED + "/0": MINE, "t/x.md": NEW},
            {"t/x.md": MINE, "t/x.current.md": NEW},
        ),
        ("a page is removed", {"path": "t/x.md", "before": sha(OLD)}, {"t/x.md": OLD}, {}),
        ("it was removed before the crash", {"path": "t/x.md", "before": sha(OLD)}, {}, {}),
        ("a page to remove was edited", {"path": "t/x.md", "before": sha(OLD)}, {"t/x.md": MINE}, {"t/x.md": MINE}),
    ],
)
def test_an_intent_is_carried_out_from_wherever_it_stands(
    root: Root, case: str, operation: dict[str, Any], before: dict[str, bytes], after: dict[str, bytes]
) -> None:
    for path, data in before.items():
        root.write(path, data)
    intend(root, operation)
    assert journal.recover(root) == 1
    assert files(root) == after, case
    assert not (root.path / STAGING).exists()
    assert journal.recover(root) == 0


def test_where_files_cannot_change_places_a_page_is_put_over_the_old_one(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(root, "exchange", lambda old, new: False)
    root.write(f"{STAGED}/0", NEW)
    root.write("t/x.md", OLD)
    intend(root, PUT)
    journal.recover(root)
    assert files(root) == {"t/x.md": NEW}


@pytest.mark.parametrize(("comes_back", "expected"), [(False, {"t/x.md": MINE}), (True, {"t/x.md": b"another"})])
def test_an_edit_saved_between_the_look_and_the_removal_goes_back(
    root: Root, monkeypatch: pytest.MonkeyPatch, comes_back: bool, expected: dict[str, bytes]
) -> None:
    root.write("t/x.md", OLD)
    intend(root, {"path": "t/x.md", "before": sha(OLD)})
    rename = root.rename

    def saved_before(old: str, new: str) -> None:
        if old == "t/x.md":
            root.write(old, MINE)
        rename(old, new)
        if old == "t/x.md" and comes_back:
            root.write(old, b"another")

    monkeypatch.setattr(root, "rename", saved_before)
    journal.recover(root)
    assert files(root) == expected


def test_an_edit_saved_between_the_look_and_the_exchange_goes_back(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    root.write(f"{STAGED}/0", NEW)
    root.write("t/x.md", OLD)
    intend(root, PUT)
    exchange, saves = root.exchange, [MINE]

    def saved_before(old: str, new: str) -> bool:
        if saves:
            root.write(new, saves.pop())
        return exchange(old, new)

    monkeypatch.setattr(root, "exchange", saved_before)
    journal.recover(root)
    assert files(root) == {"t/x.md": MINE}


@pytest.mark.parametrize(
    ("folder", "kept", "folders"),
    [
        ("t", [], {"t", "u"}),
        ("t", ["t/a/mine.md"], {"t", "t/a", "u"}),
        ("t", ["t/a/b/mine.md"], {"t", "t/a", "t/a/b", "u"}),
        ("", [], {"u"}),
    ],
)
def test_folders_that_removed_pages_leave_empty_go_inside_the_tree(
    root: Root, folder: str, kept: list[str], folders: set[str]
) -> None:
    for path in ("t/a/b/x.md", "t/a/b/y.md", "t/c/z.md", *kept):
        root.write(path, OLD)
    root.mkdir("u")
    removed = ({"path": path, "before": sha(OLD)} for path in ("t/a/b/x.md", "t/a/b/y.md", "t/c/z.md"))
    intend(root, *removed, folder=folder)
    journal.recover(root)
    assert files(root) == dict.fromkeys(kept, OLD)
    assert {str(p.relative_to(root.path)) for p in root.path.rglob("*") if p.is_dir()} == folders


def test_every_staging_folder_is_completed_or_discarded(root: Root) -> None:
    root.write(f"{STAGING}/1/0", NEW)
    for name in ("2", "3"):
        root.write(f"{STAGING}/{name}/0", NEW)
        operation = {"path": f"{name}/x.md", "before": None, "after": sha(NEW), "staged": 0}
        root.write(f"{STAGING}/{name}/intent.json", json.dumps({"folder": name, "operations": [operation]}).encode())
    root.mkdir(f"{STAGING}/4")
    assert journal.recover(root) == 2
    assert files(root) == {"2/x.md": NEW, "3/x.md": NEW}
    assert not (root.path / STAGING).exists()


@pytest.mark.parametrize("intent", [b"{", b"", b"[]", b'{"folder": "t"}', b'{"operations": []}'])
def test_a_damaged_intent_is_refused_by_its_name_and_stays(root: Root, intent: bytes) -> None:
    root.write(f"{STAGED}/0", NEW)
    root.write(f"{STAGED}/intent.json", intent)
    with pytest.raises(OutputRefused) as caught:
        journal.recover(root)
    path = root.path / STAGED / "intent.json"
    assert str(caught.value) == f"{path}: damaged; remove that folder, then the tree is compared anew"
    assert files(root) == {f"{STAGED}/0": NEW, f"{STAGED}/intent.json": intent}


def test_links_and_folders_in_the_way_are_no_files_of_ours(root: Root, tmp_path: Path) -> None:
    (root.path / "folder").mkdir()
    (root.path / "link").symlink_to(tmp_path)
    root.write("file", OLD)
    assert [journal.current(root, path) for path in ("file", "nothing", "folder", "link", "file/x", "link/x")] == [
        sha(OLD), None, "", "", "", "",
    ]  # fmt: skip
    assert [journal.exists(root, path) for path in ("file", "nothing", "folder", "link", "file/x", "link/x")] == [
        True, False, True, True, False, False,
    ]  # fmt: skip


def test_equal_manifests_are_written_as_equal_bytes() -> None:
    assert journal.as_json({"b": [1], "a": "é"}) == '{\n  "a": "é",\n  "b": [\n    1\n  ]\n}\n'.encode()
