"""Findings become pages: inert, complete, deterministic, with links that lead somewhere."""

from __future__ import annotations

import posixpath
import re
import subprocess
import sys
from urllib.parse import unquote

import pytest

from daemon.files import Disk
from daemon.files.content import Fragments, Run
from daemon.model import Operation
from daemon.reconstitute.facts import Facts
from daemon.reconstitute.pages import Renderer
from daemon.reconstitute.pages.folder.files_table import MOST_ROWS
from daemon.reconstitute.pages.statements import NOT_FOUND
from daemon.reconstitute.passages import NOTHING_RECORDED
from daemon.reconstitute.recover import Recovered, State
from tests.support.pages.markup import PAYLOADS, kinds, links, parse, words
from tests.support.pages.page_material import AT, ROOT, SECRET, file, material, pages, passage, revision, session

OURS = re.compile(r"(?:</?details>|<summary>[^<]*</summary>|\s)+")
"""The HTML that pages may have."""


# -- hostile text (T1) ---------------------------------------------------------------------------------------------


def check_inert(made: dict[str, str], hidden: int) -> None:
    """No page has HTML or an image, fences are `hidden` in number, every link leads to a page of the set."""
    fences = 0
    for path, text in made.items():
        assert not kinds(text) & {"image", "code_block", "hr"}
        assert all(OURS.fullmatch(token.content) for token in parse(text) if token.type.startswith("html"))
        fences += sum(token.type == "fence" for token in parse(text))
        for href in links(text):
            assert "://" not in href
            assert posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(href.partition("#")[0]))) in made
    assert fences == hidden


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_text_is_inert_wherever_it_comes_from(payload: str):
    name = payload.replace("/", "_")
    made = pages(
        material(
            files=[
                file("plain.py", payload.encode("utf-8", "replace")),
                file(f"deep/{name}"),
                file("lost.py", None, State.LOST, reason=payload, note=payload),
            ],
            said=[passage(" ".join(payload.split()) or "x"), passage(payload)],
            facts=Facts((session(1, payload),)),
            own=(payload,),
            warnings=(payload,),
        )
    )
    binary = "\0" in payload or "\x1b" in payload
    check_inert(made, 1 + (0 if binary else 1))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_headings_are_ours_alone(payload: str):
    said = [passage(" ".join(payload.split()) or "x")]
    made = pages(material([file("a.py")], said=said, facts=Facts((session(1, payload),)), warnings=(payload,)))
    tokens = parse(made["README.md"])
    headings = [tokens[n + 1].content for n, token in enumerate(tokens) if token.type == "heading_open"]
    assert headings == ["shop", "What happened", "Files"]


# -- the set -------------------------------------------------------------------------------------------------------


def test_a_recovered_readme_and_the_folders_own_page_are_two_pages():
    made = pages(material([file("README.md", b"# theirs\n")]))
    assert set(made) == {"README.md", "README.md.md"}
    assert "README.md.md" in links(made["README.md"])


def test_a_folder_that_only_leads_to_another_has_no_page_of_its_own():
    """The folder above links to the nested page directly."""
    made = pages(material([file("src/main/java/App.java"), file("src/main/java/Two.java")]))
    assert set(made) == {
        "README.md", "src/main/java/README.md", "src/main/java/App.java.md", "src/main/java/Two.java.md",
    }  # fmt: skip
    assert "[src/main/java/](src/main/java/README.md)" in made["README.md"]
    check_inert(made, 2)


def test_every_page_is_reached_by_links_from_the_first():
    made = pages(
        material([file("a/b/c/d.py"), file("a/x.py"), file("e.py"), file("sp ace/q?#[1].md"), file("a/b/c/z/y")])
    )
    reached, left = set(), ["README.md"]
    while left:
        page = left.pop()
        if page not in reached:
            reached.add(page)
            left += [
                posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(href))) for href in links(made[page])
            ]
    assert reached == set(made)


def test_the_limit_of_pages_holds_and_is_said():
    files = [file(f"f{number:03}.py") for number in range(50)]
    renderer = Renderer(material(files), 10)
    made = {page.path: page.text for page in renderer.pages()}
    assert len(made) == 10
    assert renderer.left_out == 41
    assert "Without a page of their own: 41 files" in made["README.md"]
    assert "f049.py" in made["README.md"]
    check_inert(made, 9)


def test_pages_name_the_messages_they_draw_on():
    made = Renderer(material([file("a.py")]), 100).pages()
    assert all(page.sources == ("msg_1",) for page in made)


def test_no_secret_from_a_title_a_name_or_a_passage_reaches_a_page():
    made = material([file(f"{SECRET}.py")], warnings=(f"see {SECRET}",), own=(f"where is {SECRET}?",))
    assert all(SECRET not in text for text in pages(made).values())


def test_an_own_question_that_found_nothing_says_so():
    top = pages(material([file("a.py")], own=("Who pays?",)))["README.md"]
    assert NOTHING_RECORDED not in words(top)
    assert top.split("### Who pays?")[1].strip().startswith(NOT_FOUND)


def test_the_same_material_gives_the_same_bytes_in_another_process():
    code = (
        "import sys; sys.path.insert(0, 'tests/unit/pages'); sys.path.insert(0, '.')\n"
        "from test_reconstitute_render import *\n"
        "import hashlib\n"
        "made = pages(material([file('b/a.py'), file('z.py'), file('b/c.py')], said=[passage('We decided on a.py.')]))\n"
        "print(hashlib.sha256(repr(sorted(made.items())).encode()).hexdigest())\n"
    )
    runs = {
        subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PATH": ""}, capture_output=True, check=True).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(runs) == 1


# -- grades ----------------------------------------------------------------------------------------------------------


def every_state() -> list[Recovered]:
    gone = revision(None, deleted=True, evidence=("deletion",), tool="bash", time=AT + 1)
    before = revision(b"old\n")
    known = Fragments((Run(3, ("three", "four")),))
    return [
        file("verified.py", state=State.VERIFIED),
        file("proven.py"),
        file("stale.py", b"s\n", State.STALE, reason="a command ran"),
        file("partial.py", None, State.PARTIAL, reason="only 2 lines", fragments=known),
        file("lost.py", None, State.LOST, reason="nothing tells"),
        Recovered(f"{ROOT}/gone.py", "gone.py", State.DELETED, Disk.MISSING, (before, gone), before),
    ]


def test_the_first_page_counts_what_is_known_exactly():
    top = words(pages(material(every_state()))["README.md"])
    assert "2 of 5 files are known exactly, 1 was deleted" in top
    assert "Both of its files are known exactly." in words(pages(material([file("a.py"), file("b.py")]))["README.md"])


# -- many files ------------------------------------------------------------------------------------------------------


def quiet(relative: str, state: State = State.PROVEN) -> Recovered:
    return file(relative, b"q\n", state, tool="snapshot", operation=Operation.SNAPSHOT, kinds=frozenset({"snapshot"}))


def test_files_known_only_from_snapshots_come_last():
    made = material([*(quiet(f"a{number:04}.py") for number in range(MOST_ROWS + 20)), file("z.py")])
    table = pages(made)["README.md"].split("## Files")[1]
    rows = [line for line in table.splitlines() if line.startswith("| [")]
    assert rows[0].startswith("| [z.py](z.py.md)")
    assert len(rows) == MOST_ROWS
    assert "Not listed: 21 more files." in table


def test_a_folder_of_many_files_has_a_row_for_each_inner_folder():
    inner = [file(f"src/f{number:03}.py") for number in range(100)]
    gone = Recovered(f"{ROOT}/src/x", "src/x", State.DELETED, Disk.MISSING, (revision(None, deleted=True),), None)
    made = pages(material([*inner, gone, file("src/g.py", None, State.LOST, reason="r"), file("a.py")]))
    rows = [line for line in made["README.md"].splitlines() if line.startswith("| [")]
    assert [row.split("|")[1:4] for row in rows] == [
        [" [src/](src/README.md) ", " 101 files ", " 100 of 101 exactly "], [" [a.py](a.py.md) ", "  ", " exactly "]
    ]  # fmt: skip
    assert made["src/README.md"].count("\n| [f") == 100


def test_a_snapshot_may_hold_a_name_that_is_not_utf_8():
    made = pages(material([quiet("caf\udce9.txt"), quiet("d\udce9/x.txt")]))
    assert all(text.encode() and path.encode() for path, text in made.items())
