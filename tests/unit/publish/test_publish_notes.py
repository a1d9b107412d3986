"""What a person writes on a page is theirs: notes go where their page goes, and an edited page has the current beside it."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path

import pytest

from daemon.errors import OutputRefused
from daemon.model import Page
from daemon.publish import MANIFEST, Published, publish
from daemon.publish.edits import CLOSE, OPEN, composed

TREE = "home/u/app"
MINE = b"\nMy own words.\n"


class Tree:
    """A published tree in which a person writes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / TREE

    def run(self, *pages: Page) -> Published:
        return publish(self.root, TREE, pages, spare_bytes=0)

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def note(self, name: str, words: bytes = MINE) -> bytes:
        """Write in the Notes section; the page's bytes."""
        head, opening, rest = self.read(name).rpartition(OPEN)
        data = head + opening + words + CLOSE + rest.partition(CLOSE)[2]
        (self.folder / name).write_bytes(data)
        return data

    def edit(self, name: str, data: bytes = b"Mine.\n") -> None:
        (self.folder / name).write_bytes(data)

    def names(self) -> list[str]:
        return sorted(
            str(path.relative_to(self.folder))
            for path in self.folder.rglob("*")
            if path.is_file() and path.name != MANIFEST
        )


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def body(text: str, notes: bytes = b"\n\n") -> bytes:
    return composed(text.encode(), notes)


def test_every_markdown_page_ends_with_a_notes_place(tree: Tree) -> None:
    tree.run(Page("README.md", "# Title\n\n[^1]: a footnote\n"), Page("data.json.txt", "whole"))
    expected = (
        "# Title\n\n[^1]: a footnote\n\n## Notes\n\n"
        "<!-- notes: what you write between these marks is kept -->\n\n<!-- /notes -->\n"
    )
    assert tree.read("README.md").decode() == expected
    assert tree.read("data.json.txt") == b"whole"


def test_notes_stay_through_runs_and_changes(tree: Tree) -> None:
    tree.run(Page("README.md", "one"))
    data = tree.note("README.md")
    assert tree.run(Page("README.md", "one")).unchanged == ["README.md"]
    assert tree.read("README.md") == data
    for text in ("two", "three"):
        assert tree.run(Page("README.md", text)).written == ["README.md"]
        assert tree.read("README.md") == body(text, MINE)
    before = (tree.folder / MANIFEST).read_bytes()
    tree.note("README.md", b" more ")
    assert tree.run(Page("README.md", "three")).written == []
    assert (tree.folder / MANIFEST).read_bytes() == before


@pytest.mark.parametrize(
    "edit",
    [
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.rstrip(b"\n"),
        lambda data: data + b"\n\n",
        lambda data: b"\n".join(line.rstrip() for line in data.split(b"\n")),
        lambda data: data.replace(b"text", b"text  ").replace(b"Notes", b"Notes\t"),
    ],
    ids=["CRLF", "BOM", "no newline at the end", "newlines at the end", "stripped blanks", "blanks added"],
)
def test_what_an_editor_does_by_itself_is_no_edit(tree: Tree, edit) -> None:
    tree.run(Page("README.md", "text  \nmore text\n"))
    data = edit(tree.note("README.md"))
    tree.edit("README.md", data)
    result = tree.run(Page("README.md", "text  \nmore text\n"))
    assert (result.kept, result.unchanged, tree.read("README.md")) == ([], ["README.md"], data)
    tree.run(Page("README.md", "new\n"))
    notes = data.rpartition(OPEN)[2].partition(CLOSE)[0]
    assert notes.strip() == MINE.strip()
    assert tree.read("README.md") == body("new\n", notes)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.replace(OPEN, b""),
        lambda data: data.replace(CLOSE, b""),
        lambda data: data.replace(OPEN, b"x" + OPEN),
        lambda data: data + b"below the marks\n",
        lambda data: data.replace(b"## Notes", b"## My notes"),
        lambda data: CLOSE + data,
        lambda data: b"",
        lambda data: data.decode().encode("utf-16"),
    ],
)
def test_damaged_marks_count_as_an_edit_and_nothing_is_lost(tree: Tree, damage) -> None:
    tree.run(Page("README.md", "one"))
    data = damage(tree.note("README.md"))
    tree.edit("README.md", data)
    if data.startswith(CLOSE):
        data = tree.read("README.md")
    result = tree.run(Page("README.md", "two"))
    assert (result.kept, result.current) == (["README.md"], {"README.md": "README.current.md"})
    assert tree.read("README.md") == data
    assert tree.read("README.current.md") == body("two")


@pytest.mark.parametrize(
    "notes",
    [
        b"\nmine\n" + OPEN + b"\nmore\n",
        b"\n" + CLOSE + b"\nmore\n",
        b"\n```\n" + CLOSE + b"\n" + OPEN + b"\n```\n",
    ],
)
def test_marks_that_a_person_wrote_between_the_marks_are_notes(tree: Tree, notes: bytes) -> None:
    tree.run(Page("README.md", "one"))
    tree.note("README.md", notes)
    result = tree.run(Page("README.md", "two"))
    assert (result.kept, tree.read("README.md")) == ([], body("two", notes))


def test_marks_in_the_text_of_a_page_are_no_notes_place(tree: Tree) -> None:
    quoted = f"```\n{body('inner', MINE).decode()}```\n"
    tree.run(Page("README.md", quoted))
    tree.note("README.md", b"\nmine\n")
    tree.run(Page("README.md", f"{quoted}\nmore\n"))
    assert tree.read("README.md") == body(f"{quoted}\nmore\n", b"\nmine\n")
    tree.run(Page("README.md", "short"))
    assert tree.read("README.md") == body("short", b"\nmine\n")


def test_the_current_page_stays_up_to_date_beside_an_edited_one(tree: Tree) -> None:
    pages = [Page("README.md", "one"), Page("a.txt", "text one")]
    tree.run(*pages)
    tree.edit("README.md")
    tree.edit("a.txt")
    for text in ("one", "two", "three"):
        result = tree.run(Page("README.md", text), Page("a.txt", f"text {text}"))
        assert result.current == {"README.md": "README.current.md", "a.txt": "a.current.txt"}
        assert tree.read("README.md") == tree.read("a.txt") == b"Mine.\n"
        assert (tree.read("README.current.md"), tree.read("a.current.txt")) == (body(text), f"text {text}".encode())
    assert tree.run(Page("README.md", "three"), Page("a.txt", "text three")).written == []


@pytest.mark.parametrize("folder", ["", "sessions/"])
@pytest.mark.parametrize("how", ["undone", "deleted", "current copied over it"])
def test_the_current_page_goes_when_the_edit_is_undone(tree: Tree, how: str, folder: str) -> None:
    page, current = f"{folder}README.md", f"{folder}README.current.md"
    tree.run(Page(page, "one"))
    before = tree.note(page)
    tree.edit(page)
    assert tree.run(Page(page, "two")).current == {page: current}
    tree.note(current, b"\nnew words\n")
    if how == "undone":
        tree.edit(page, before)
    elif how == "deleted":
        (tree.folder / page).unlink()
    else:
        tree.edit(page, body("two"))
    result = tree.run(Page(page, "three"))
    assert (result.kept, result.removed, tree.names()) == ([], [current], [page])
    notes = (MINE + b"\n" if how == "undone" else b"") + b"\nnew words\n"
    assert tree.read(page) == body("three", notes)


def test_an_edited_current_page_is_kept_too(tree: Tree) -> None:
    tree.run(Page("README.md", "one"))
    tree.edit("README.md", b"A\n")
    tree.run(Page("README.md", "one"))
    tree.edit("README.current.md", b"B\n")
    for text in ("two", "three"):
        result = tree.run(Page("README.md", text))
        assert (result.current, result.retired) == ({"README.md": "README.current-2.md"}, ["README.current.md"])
    assert [tree.read(name) for name in tree.names()] == [body("three"), b"B\n", b"A\n"]


@pytest.mark.parametrize("folder", ["", "sub/"])
def test_current_pages_take_no_name_of_a_page_or_a_file(tree: Tree, folder: str) -> None:
    page = partial(Page, f"{folder}README.md")
    tree.run(page("one"))
    tree.edit(f"{folder}README.md")
    tree.edit(f"{folder}README.current.md", b"a file of the person's\n")
    result = tree.run(page("two"), Page(f"{folder}README.CURRENT-2.md", "a project's page"))
    assert result.current == {f"{folder}README.md": f"{folder}README.current-3.md"}
    tree.note(f"{folder}README.current-3.md")
    result = tree.run(page("two"), Page(f"{folder}README.current-3.md", "another page"))
    assert result.current == {f"{folder}README.md": f"{folder}README.current-4.md"}
    assert tree.read(f"{folder}README.current-4.md") == body("two", MINE)
    assert tree.read(f"{folder}README.current-3.md") == body("another page")
    assert tree.read(f"{folder}README.current.md") == b"a file of the person's\n"


def test_notes_on_a_current_page_stay_when_its_page_is_gone_and_its_name_taken(tree: Tree) -> None:
    tree.run(Page("README.md", "one"))
    tree.edit("README.md")
    tree.run(Page("README.md", "two"))
    data = tree.note("README.current.md")
    result = tree.run(Page("README.current.md", "another page"))
    assert result.retired == ["README.md", "README.current.former.md"]
    result = tree.run(Page("README.md", "three"), Page("README.current.md", "another page"))
    assert result.current == {"README.md": "README.current-2.md"}
    assert tree.read("README.current.former.md") == data


def test_nothing_is_written_beside_a_page_whose_folder_became_a_file(tree: Tree) -> None:
    tree.run(Page("src/a.md", "A"))
    (tree.folder / "src" / "a.md").unlink()
    (tree.folder / "src").rmdir()
    tree.edit("src", b"a file of the person's\n")
    result = tree.run(Page("src/a.md", "A2"))
    assert (result.kept, result.current, tree.names()) == (["src/a.md"], {}, ["src"])
    assert result.notices == ["src/a.md was edited by hand and is kept as it is; nothing can be written beside it"]


def test_notes_go_to_the_first_of_two_pages_with_one_key(tree: Tree) -> None:
    tree.run(Page("a.md", "A", key="ses_1"))
    tree.note("a.md")
    tree.run(Page("b.md", "B", key="ses_1"), Page("c.md", "C", key="ses_1"))
    assert (tree.read("b.md"), tree.read("c.md")) == (body("B", MINE), body("C"))


def test_notes_move_with_the_key_of_their_page(tree: Tree) -> None:
    tree.run(Page("sessions/a.md", "A", key="ses_1"), Page("sessions/b.md", "B", key="ses_2"))
    tree.note("sessions/a.md", b"of 1")
    tree.note("sessions/b.md", b"of 2")
    result = tree.run(Page("sessions/b.md", "A2", key="ses_1"), Page("sessions/a.md", "B2", key="ses_2"))
    assert (result.retired, tree.names()) == ([], ["sessions/a.md", "sessions/b.md"])
    assert tree.read("sessions/a.md") == body("B2", b"of 2")
    assert tree.read("sessions/b.md") == body("A2", b"of 1")
    tree.run(Page("sessions/c.md", "A3", key="ses_1"), Page("sessions/a.md", "B2", key="ses_2"))
    assert tree.names() == ["sessions/a.md", "sessions/c.md"]
    assert tree.read("sessions/c.md") == body("A3", b"of 1")


def test_a_page_with_notes_that_disappears_is_kept_and_said(tree: Tree) -> None:
    both = [Page("a.md", "A", key="ses_1"), Page("b.md", "B")]
    tree.run(*both)
    data = tree.note("a.md")
    for _ in range(2):
        result = tree.run(both[1])
        assert (result.retired, result.removed, tree.read("a.md")) == (["a.md"], [], data)
    tree.run(Page("new name.md", "A again", key="ses_1"), both[1])
    assert tree.names() == ["b.md", "new name.md"]
    assert tree.read("new name.md") == body("A again", MINE)
    tree.run(both[1])
    tree.note("new name.md", b"\n")
    assert tree.run(both[1]).removed == ["new name.md"]


def test_a_page_with_notes_makes_room_for_another_of_its_name(tree: Tree) -> None:
    tree.run(Page("a.md", "A", key="ses_1"))
    data = tree.note("a.md")
    result = tree.run(Page("a.md", "B", key="ses_2"))
    assert (result.retired, tree.read("a.former.md"), tree.read("a.md")) == (["a.former.md"], data, body("B"))
    tree.run(Page("a.md", "B", key="ses_2"), Page("a-2.md", "A", key="ses_1"))
    assert (tree.names(), tree.read("a-2.md")) == (["a-2.md", "a.md"], body("A", MINE))


def test_notes_stay_with_a_page_that_had_no_key_before(tree: Tree) -> None:
    tree.run(Page("a.md", "A"))
    tree.note("a.md")
    result = tree.run(Page("a.md", "A2", key="ses_1"))
    assert (result.written, result.retired, tree.read("a.md")) == (["a.md"], [], body("A2", MINE))


def test_notes_of_all_pages_that_become_one_are_joined(tree: Tree) -> None:
    """The current page stood beside an edited one, and both had notes."""
    tree.run(Page("a.md", "A", key="ses_1"), Page("b.md", "B", key="ses_1"), Page("c.md", "C", key="ses_1"))
    for name in ("a.md", "b.md", "c.md"):
        tree.note(name, f"of {name}".encode())
    tree.run(Page("b.md", "One", key="ses_1"))
    assert tree.names() == ["b.md"]
    notes = tree.read("b.md")
    assert [notes.count(f"of {name}".encode()) for name in ("a.md", "b.md", "c.md")] == [1, 1, 1]


def test_an_identical_page_that_a_person_put_there_becomes_ours(tree: Tree) -> None:
    tree.run(Page("a.md", "A"))
    tree.edit("b.md", body("B", MINE))
    result = tree.run(Page("a.md", "A"), Page("b.md", "B"))
    assert (result.taken, result.kept, tree.read("b.md")) == ([], [], body("B", MINE))
    tree.edit("c.md", body("C2", MINE))
    assert tree.run(Page("a.md", "A"), Page("c.md", "C")).taken == ["c.md"]


def test_a_page_that_is_gone_already_does_not_keep_the_others(tree: Tree) -> None:
    tree.run(*(Page(f"{name}.md", name) for name in "abc"))
    (tree.folder / "a.md").unlink()
    assert (tree.run(Page("c.md", "c")).removed, tree.names()) == (["b.md"], ["c.md"])


def test_pages_in_a_folder_that_became_another_tree_do_not_keep_the_others(tree: Tree) -> None:
    tree.run(Page("a/x.md", "x"), Page("b.md", "b"), Page("c.md", "c"))
    (tree.folder / "a" / MANIFEST).write_text("{}")
    assert (tree.run(Page("c.md", "c")).removed, tree.names()) == (["b.md"], ["a/x.md", "c.md"])


def test_an_edited_page_stays_when_its_session_is_renamed(tree: Tree) -> None:
    """The page under the new name is the current one."""
    tree.run(Page("a.md", "A", key="ses_1"))
    before = tree.note("a.md")
    tree.edit("a.md", before + b"more\n")
    result = tree.run(Page("b.md", "A", key="ses_1"))
    assert (result.retired, result.written, tree.read("b.md")) == (["a.md"], ["b.md"], body("A"))
    tree.edit("a.md", before)
    tree.run(Page("b.md", "A", key="ses_1"))
    assert (tree.names(), tree.read("b.md")) == (["b.md"], body("A", MINE))


def as_version_0_1(tree: Tree, pages: dict[str, str]) -> None:
    """A tree as that version wrote it: no marks, hashes of whole files."""
    tree.folder.mkdir(parents=True)
    for name, text in pages.items():
        (tree.folder / name).write_text(text)
    entries = {n: {"sha256": hashlib.sha256(t.encode()).hexdigest(), "sources": []} for n, t in pages.items()}
    found = {"format": 1, "tree": TREE, "pages": entries, "renamed": []}
    (tree.folder / MANIFEST).write_text(json.dumps(found))


def test_a_tree_of_version_0_1_goes_on(tree: Tree) -> None:
    as_version_0_1(tree, {"README.md": "one", "a.md": "a", "gone.md": "x", "b.txt": "b"})
    tree.edit("a.md", b"a, and mine")
    result = tree.run(Page("README.md", "one"), Page("a.md", "a"), Page("b.txt", "b"))
    assert (result.written, result.unchanged) == (["README.md", "a.current.md"], ["b.txt"])
    assert (result.kept, result.removed) == (["a.md"], ["gone.md"])
    assert tree.read("README.md") == body("one")
    assert tree.read("a.md") == b"a, and mine"
    assert tree.run(Page("README.md", "one"), Page("a.md", "a"), Page("b.txt", "b")).written == []


def never() -> str:
    raise AssertionError("this content need not be made")


def test_a_page_is_not_made_where_its_basis_and_file_are_as_before(tree: Tree) -> None:
    tree.run(Page("a.md", lambda: "A", basis="1"), Page("b.txt", lambda: "B", basis="1"))
    data = tree.note("a.md")
    result = tree.run(Page("a.md", never, basis="1"), Page("b.txt", never, basis="1"))
    assert (result.unchanged, tree.read("a.md")) == (["a.md", "b.txt"], data)
    tree.edit("b.txt")
    (tree.folder / "a.md").unlink()
    pages = [Page("a.md", lambda: "A", basis="1"), Page("b.txt", lambda: "B", basis="1")]
    assert tree.run(*pages).written == ["a.md", "b.current.txt"]
    assert tree.run(Page("a.md", never, basis="1"), Page("b.txt", never, basis="1")).kept == ["b.txt"]
    tree.run(Page("a.md", lambda: "A2", basis="2"), Page("b.txt", lambda: "B2", basis="2"))
    assert (tree.read("a.md"), tree.read("b.current.txt")) == (body("A2"), b"B2")


def test_late_content_is_made_one_page_at_a_time_and_needs_room_for_all(tree: Tree) -> None:
    tree.run(Page("a.md", "old"))
    made: list[int] = []

    def content(number: int) -> str:
        made.append(number)
        return "x" * 1000

    pages = [Page(f"{number}.md", partial(content, number), basis="1") for number in range(50)]
    staged = tree.root / ".reconstitute.next"
    waiting: list[int] = []

    def look(point: str) -> None:
        if "publish.committed" not in points:
            waiting.append(len(made) - sum(path.is_file() for path in staged.rglob("[0-9]*")))
        points.append(point)

    points: list[str] = []
    publish(tree.root, TREE, pages[:25], spare_bytes=0, step=look)
    assert (len(made), max(waiting)) == (25, 1)  # what was made is on the disk before the next is
    with pytest.raises(OutputRefused, match="needed to publish"):
        publish(tree.root, TREE, pages, spare_bytes=10**18)
    assert len(tree.names()) == 25
    assert not staged.exists()


def test_a_failure_to_make_a_page_leaves_the_old_tree(tree: Tree) -> None:
    tree.run(Page("a.md", "old"))
    with pytest.raises(AssertionError):
        tree.run(Page("a.md", "new"), Page("b.md", never, basis="1"))
    assert (tree.names(), tree.read("a.md")) == (["a.md"], body("old"))
    assert not (tree.root / ".reconstitute.next").exists()


class Crash(BaseException):
    pass


def crash(point: str) -> None:
    if point == "publish.committed":
        raise Crash


def test_notes_written_before_a_crash_is_completed_count_as_no_edit(tree: Tree) -> None:
    tree.run(Page("README.md", "one"))
    with pytest.raises(Crash):
        publish(tree.root, TREE, [Page("README.md", "two")], spare_bytes=0, step=crash)
    tree.note("README.md")
    result = tree.run(Page("README.md", "two"))
    assert (result.kept, tree.read("README.md")) == ([], body("two", MINE))


def test_notes_on_their_way_are_put_beside_a_page_that_was_made_meanwhile(tree: Tree) -> None:
    tree.run(Page("a.md", "A", key="ses_1"))
    tree.note("a.md")
    with pytest.raises(Crash):
        publish(tree.root, TREE, [Page("b.md", "A", key="ses_1")], spare_bytes=0, step=crash)
    tree.edit("b.md")
    result = tree.run(Page("b.md", "A", key="ses_1"))
    assert tree.read("b.md") == b"Mine.\n"
    assert tree.read("b.current.md") == body("A", MINE)
    assert result.kept == ["b.md"]


def test_a_page_that_makes_room_is_put_beside_a_file_that_was_made_meanwhile(tree: Tree) -> None:
    tree.run(Page("a.md", "A", key="ses_1"))
    data = tree.note("a.md")
    pages = [Page("a.md", "B", key="ses_2")]
    with pytest.raises(Crash):
        publish(tree.root, TREE, pages, spare_bytes=0, step=crash)
    tree.edit("a.former.md")
    tree.run(*pages)
    assert tree.read("a.former.md") == b"Mine.\n"
    assert tree.read("a.former.current.md") == data
    assert tree.read("a.md") == body("B")


@pytest.mark.parametrize("pages", [[Page("README.md", "two")], []], ids=["replaced", "removed"])
def test_a_note_saved_in_the_instant_of_the_write_is_kept(tree: Tree, pages: list[Page]) -> None:
    tree.run(Page("README.md", "one"))
    points: list[str] = []

    def save(point: str) -> None:
        """Write a note behind the back of the first rename that carries the plan out."""
        if point == "fsio.rename" and "publish.committed" in points and points[-1] != "saved":
            tree.note("README.md")
            points.append("saved")
        elif points[-1:] != ["saved"]:
            points.append(point)

    publish(tree.root, TREE, pages, spare_bytes=0, step=save)
    assert points[-1] == "saved"
    assert tree.read("README.md") == body("one", MINE)
    tree.run(*pages)
    assert tree.read("README.md") == body("two", MINE) if pages else MINE.strip() in tree.read("README.md")
