"""Findings become pages: inert, complete, deterministic, with links that lead somewhere."""

from __future__ import annotations

import posixpath
import subprocess
import sys
from dataclasses import replace
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markup import PAYLOADS, kinds, links, parse, words

from daemon.files.history import Revision
from daemon.model import Kind, Operation, Session, Target
from daemon.reconstitute import questions
from daemon.reconstitute.disk import Disk
from daemon.reconstitute.extract import COMMAND, NOTHING, Extractor, Findings, Passage
from daemon.reconstitute.recover import Recovered, State
from daemon.reconstitute.render import MOST_SHOWN, Material, Renderer, shown
from daemon.reconstitute.scope import Involved, Scope

AT = 1_795_262_400_000
ROOT = "/home/dev/shop"
SECRET = "ghp_" + "a1B2" * 9


def revision(content: bytes | None, proven: bool = True, **more) -> Revision:
    fields = {
        "time": AT,
        "evidence": ("write",),
        "session_id": "ses_1",
        "message_id": "msg_1",
        "part_id": "prt_1",
        "tool": "write",
        "operation": Operation.WRITE,
    }
    return Revision(content=content, proven=proven, **(fields | more))


def file(relative: str, content: bytes | None = b"x = 1\n", state: State = State.PROVEN, **more) -> Recovered:
    one = revision(content, proven=state is State.PROVEN)
    seen = one if one.proven else None
    return Recovered(
        f"{ROOT}/{relative}", relative, state, Disk.MISSING, (one,), seen, None if seen else one, more.get("reason", "")
    )


def material(
    files=(), said=(), title: str = "A session", first: str = "Begin.", own: tuple[str, ...] = (), warnings=()
) -> Material:
    passages = tuple(said)
    session = Session("ses_1", "prj", ROOT, title, AT, AT, b"{}")
    scope = Scope(ROOT, (Involved(session, title, ("msg_1",), first, False),), {}, passages, "print")
    extractor = Extractor(passages)
    findings = tuple(Findings(q, passages, "" if passages else NOTHING) for q in questions.of(Target(ROOT, own)))
    return Material(scope, tuple(files), findings, extractor, None, tuple(warnings))


def pages(made: Material, most: int = 5000) -> dict[str, str]:
    return {page.path: page.content for page in Renderer(made, most).pages()}


def passage(text: str, kind: str = Kind.ANSWER, code: bool = False) -> Passage:
    return Passage(text, kind, "msg_1", "ses_1", "A session", AT, code=code)


# -- hostile text (T1) ---------------------------------------------------------------------------------------------


def check_inert(made: dict[str, str], hidden: int) -> None:
    """No page has HTML or an image, fences are `hidden` in number, every link leads to a page of the set."""
    fences = 0
    for path, text in made.items():
        assert not kinds(text) & {"html_block", "html_inline", "image", "code_block", "hr"}
        fences += sum(token.type == "fence" for token in parse(text))
        for href in links(text):
            assert "://" not in href
            assert posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(href))) in made
    assert fences == hidden


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_text_is_inert_wherever_it_comes_from(payload: str):
    name = payload.replace("/", "_")
    made = pages(
        material(
            files=[
                file("plain.py", payload.encode("utf-8", "replace")),
                file(f"deep/{name}"),
                file("lost.py", None, State.UNPROVEN, reason=payload),
            ],
            said=[passage(" ".join(payload.split()) or "x"), passage(payload, COMMAND, code=True)],
            title=payload,
            first=payload,
            own=(payload,),
            warnings=(payload,),
        )
    )
    asked = len(questions.of(Target(ROOT, (payload,))))
    binary = "\0" in payload or "\x1b" in payload
    check_inert(made, asked + 1 + (0 if binary else 1))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_headings_are_ours_alone(payload: str):
    said = [passage(" ".join(payload.split()) or "x")]
    tokens = parse(
        pages(material([file("a.py")], said, title=payload, first=payload, warnings=(payload,)))["README.md"]
    )
    headings = [tokens[n + 1].content for n, token in enumerate(tokens) if token.type == "heading_open"]
    assert headings == [
        ROOT.replace("_", "\\_"), "Purpose", "Map", "Structure", "Decisions", "Open problems", "How to run it", "Sessions", "Files",
        "What could not be proven",
    ]  # fmt: skip


@given(st.binary(max_size=300))
def test_content_of_any_bytes_makes_a_page_with_at_most_one_fence(content: bytes):
    made = pages(material([file("any.bin", content)]))
    tokens = parse(made["any.bin.md"])
    assert sum(token.type == "fence" for token in tokens) <= 1
    assert not {token.type for token in tokens} & {"html_block", "html_inline", "image"}


# -- content -------------------------------------------------------------------------------------------------------


def test_the_content_stands_in_the_fence_byte_for_byte():
    text = 'def f():\n\treturn "```"\n\n\n# ünï ✓\n'
    fences = [
        token for token in parse(pages(material([file("f.py", text.encode())]))["f.py.md"]) if token.type == "fence"
    ]
    assert [(fence.content, fence.info) for fence in fences] == [(text, "python")]


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (b"GIF\0\0", "binary"),
        ("caf\u00e9".encode("latin-1"), "not UTF-8"),
        (b"a\r\nb\r\n", "CRLF"),
        (b"no end", "no newline at its end"),
        (b"", "empty"),
        (b"colour \x1b[31m" + b"x" * 200 + b"\n", "shown as symbols"),
        (f"key = '{SECRET}'\n".encode(), "replaced by markers"),
        (b"line\n" * MOST_SHOWN, "are shown"),
    ],
)
def test_whatever_is_not_shown_as_it_was_is_said(content: bytes, note: str):
    page = pages(material([file("f.txt", content)]))["f.txt.md"]
    assert note in page
    assert SECRET not in page
    assert "\x1b" not in page
    assert len(page) < MOST_SHOWN + 5000


def test_how_a_text_ends_is_only_said_where_it_is_proven():
    assert shown(b"no end", proven=False).notes == ()
    page = pages(material([file("f.py", b"no end", State.UNPROVEN, reason="an inexact read")]))["f.py.md"]
    assert "newline at its end" not in page


def test_a_short_name_that_several_files_have_means_this_one_only_in_sessions_near_it():
    near = passage("app.py holds the routes of the shop.")
    far = replace(passage("Please rewrite app.py of the blog."), session_id="ses_2", message_id="msg_2")
    made = material([file("app.py")], (near, far))
    there = Session("ses_2", "prj", "/home/dev/blog", "Blog", AT, AT, b"{}")
    scope = replace(made.scope, sessions=(*made.scope.sessions, Involved(there, "Blog", ("msg_2",), "", False)))
    shared = replace(made, scope=scope, shared_names=frozenset({"app.py"}))
    page = pages(shared)["app.py.md"]
    assert "routes of the shop" in page
    assert "of the blog" not in page
    assert "of the blog" in pages(replace(shared, shared_names=frozenset()))["app.py.md"]
    touched = replace(scope, touched={f"{ROOT}/app.py": frozenset({"msg_2"})})
    assert "of the blog" in pages(replace(shared, scope=touched))["app.py.md"]


def test_no_page_names_a_command_that_does_not_exist():
    page = pages(material([file("f.txt", f"key = '{SECRET}'\n".encode())]))["f.txt.md"]
    assert "restore" not in page


def test_an_unchanged_text_has_no_note():
    assert shown(b"plain\n").notes == ()


def test_what_is_not_proven_stands_under_a_heading_that_says_so():
    page = pages(material([file("f.py", b"guess\n", State.UNPROVEN, reason="no base")]))["f.py.md"]
    proven, guessed = page.split("## Best known text, not proven")
    assert "guess" not in proven
    assert "Nothing of its content is proven." in proven
    assert "guess" in guessed


# -- the set -------------------------------------------------------------------------------------------------------


def test_a_recovered_readme_and_the_folders_own_page_are_two_pages():
    made = pages(material([file("README.md", b"# theirs\n")]))
    assert set(made) == {"README.md", "README.md.md"}
    assert "README.md.md" in links(made["README.md"])


def test_a_folder_that_only_leads_to_another_has_no_page_and_is_named_with_it():
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
    made = {page.path: page.content for page in renderer.pages()}
    assert len(made) == 10
    assert renderer.left_out == 41
    assert "Without a page of their own: 41 files" in made["README.md"]
    assert "f049.py" in made["README.md"]
    check_inert(made, 9)


def test_pages_name_the_messages_they_draw_on():
    made = Renderer(material([file("a.py")], [passage("We decided on it.")]), 100).pages()
    assert all(page.sources == ("msg_1",) for page in made)


def test_no_secret_from_a_title_a_name_or_a_passage_reaches_a_page():
    made = material([file(f"{SECRET}.py")], title="t", warnings=(f"see {SECRET}",), own=(f"where is {SECRET}?",))
    assert all(SECRET not in text for text in pages(made).values())


def test_an_answer_that_found_nothing_says_so():
    assert words(pages(material([file("a.py")]))["README.md"]).count(NOTHING) == len(questions.DEFAULT)


def test_the_same_material_gives_the_same_bytes_in_another_process():
    code = (
        "import sys; sys.path.insert(0, 'tests/unit'); sys.path.insert(0, '.')\n"
        "from test_reconstitute_render import *\n"
        "import hashlib\n"
        "made = pages(material([file('b/a.py'), file('z.py'), file('b/c.py')], [passage('We decided on a.py.')]))\n"
        "print(hashlib.sha256(repr(sorted(made.items())).encode()).hexdigest())\n"
    )
    runs = {
        subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PATH": ""}, capture_output=True, check=True).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(runs) == 1
