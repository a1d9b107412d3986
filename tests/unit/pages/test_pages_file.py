"""A file's page: its content first, its history as people tell it, and which prompt wrote which lines."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.files import Disk, Files, Grade, Revision
from daemon.files.content import Content, Fragments, Run
from daemon.files.states import file_history
from daemon.model import Operation, Page
from daemon.reconstitute.facts.session_values import Call, CallStatus, Citation, SessionFacts
from daemon.reconstitute.facts.values import Facts, Purpose  # fmt: skip
from daemon.reconstitute.pages.file import MAX_SHOWN_BYTES, MOST_UNFOLDED, FilePages
from daemon.reconstitute.pages.file.history import MOST_ENTRIES, MOST_LINES, MOST_READ, Diffs
from daemon.reconstitute.pages.index import environment
from daemon.reconstitute.pages.material import MaterialIndex
from daemon.reconstitute.pages.plan import Plan
from daemon.reconstitute.recover import MEANING, Recovered, State, recover
from tests.support.pages.file_pages import PATH, doubt, gone, hostile_pages, made, recovered, revision, seen, session
from tests.support.pages.markup import PAYLOADS, foreign_html, kinds, links, parse, words
from tests.support.pages.page_material import AT, ROOT, SECRET, answer, material, numbered, record, statement
from tests.support.stores.recorded_sessions import Recorded, call, recorded


def page_of(*revisions: Revision, sessions: Sequence[SessionFacts] = (), **more) -> str:
    purposes = more.pop("purposes", {})
    given = material([recovered(*revisions)], facts=Facts(sessions=tuple(sessions), file_purposes=purposes), **more)
    return numbered(made(given)[0].text)


def history_of(page: str) -> list[str]:
    """The headings of the history."""
    return [line[4:] for line in page.split("## History")[1].splitlines() if line.startswith("### ")]


# -- content first -----------------------------------------------------------------------------------------------------


def test_the_page_begins_with_purpose_state_and_content() -> None:
    purpose = Purpose("Routes of the shop.", "docstring", Citation("ses_1", "msg_1", AT))
    page = page_of(revision(1, b"x = 1\n"), purposes={PATH: purpose})
    top, rest = page.split("## Content")
    assert top.startswith(
        "# a.py\n\n[Folder](README.md): `/home/dev/shop/a.py`\n\n> Routes of the shop. (docstring)[^1]\n\n"
    )
    assert (
        "Known exactly, as of 2026-11-21 12:01 (UTC). It is not on this disk. To get it back, into a new folder: "
        "`reconstitute restore /home/dev/shop/a.py --to DIR`" in top
    )
    assert "```python\nx = 1\n```" in rest
    assert [line for line in page.splitlines() if line.startswith("## ")] == ["## Content", "## History"]


def test_a_models_statement_goes_before_what_the_file_says() -> None:
    found = record(answer("purpose:a.py", statement("It holds the routes.")))
    purpose = {PATH: Purpose("Other.", "docstring")}
    page = page_of(revision(1, b"x\n"), found=found, purposes=purpose)
    assert "> It holds the routes. (by the model)[^1]" in page.split("## Content")[0]
    assert "[^1]: 2026-11-21 12:00, A session: “That is so, as it stands.”" in page
    assert "Other." not in page


@pytest.mark.parametrize(("lines", "folded"), [(MOST_UNFOLDED, False), (MOST_UNFOLDED + 1, True)])
def test_a_long_content_is_folded(lines: int, folded: bool) -> None:
    page = page_of(revision(1, b"x\n" * lines))
    assert (f"<summary>{lines} lines</summary>" in page) is folded


STATES = {
    "verified": ([revision(1, b"x\n", grade=Grade.VERIFIED)], "Known exactly, as of 2026-11-21 12:01 (UTC)."),
    "stale": (
        [revision(1, b"x\n"), doubt(2, b"x\n")],
        "Known exactly as of 2026-11-21 12:01 (UTC); it may have changed since: a shell command may have changed it",
    ),
    "stale alone": ([revision(1, b"x\n", grade=Grade.STALE, note="no base")], "A whole text is known, but it is not certain"),
    "partial": ([revision(1, None, grade=Grade.PARTIAL, fragments=Fragments((Run(3, ("three",)),)))], "Known in part, as of"),
    "lost": ([revision(1, None, grade=Grade.LOST, note="nothing tells")], "What it held is not known, as of 2026-11-21 12:01 (UTC): nothing tells."),
    "deleted": ([revision(1, b"x\n"), gone(2)], "It was deleted on 2026-11-21 12:02 (UTC)."),
    "taken back": (
        [revision(1, b"x\n"), seen(2, None, deleted=True, operation=Operation.STATE, tool="revert")],
        "It was taken back, and so removed, on 2026-11-21 12:02 (UTC).",
    ),
    "perhaps deleted": ([revision(1, b"x\n"), doubt(2, None, deleted=True)], "It may be deleted."),
}  # fmt: skip


@pytest.mark.parametrize("case", STATES)
def test_certainty_is_stated_in_plain_words_with_grades_in_the_fold(case: str) -> None:
    revisions, expected = STATES[case]
    expected = expected.replace("a shell command may have changed it", "shell command: make dist")
    file = recovered(*revisions)
    top = words(page_of(*revisions).split("## Content")[0])
    assert expected in top
    assert f"{file.state.capitalize()}: {MEANING[file.state]}" in top


@pytest.mark.parametrize(
    ("disk", "said"),
    [
        (Disk.IDENTICAL, "The file on this disk is the same."),
        (Disk.DIFFERS, "The file on this disk is another one."),
        (Disk.MISSING, "It is not on this disk."),
        (Disk.PRESENT, "Something stands at its path on this disk, and nothing certain is known to compare it with."),
        (Disk.UNREADABLE, "What stands at its path on this disk cannot be read."),
    ],
)
def test_the_disk_is_told_of_and_a_command_named_where_it_helps(disk: Disk, said: str) -> None:
    file = replace(recovered(revision(1, b"x\n")), disk=disk)
    page = made(material([file]))[0].text
    assert said in page
    assert ("reconstitute restore" in page) is (disk is not Disk.IDENTICAL)


def test_what_is_not_proven_stands_under_a_heading_that_says_so() -> None:
    page = page_of(
        revision(1, b"sure\n"), doubt(2, b"sure\n"), revision(3, b"guess\n", Operation.EDIT, grade=Grade.STALE)
    )
    proven, guessed = page.split("## Best known text, not proven")
    assert "guess\n" not in proven
    assert "guess" in guessed.split("## ")[0]
    assert "--grade stale" in guessed


def test_the_known_lines_of_a_partial_file_stand_with_their_gaps_marked() -> None:
    known = revision(1, None, Operation.EDIT, grade=Grade.PARTIAL, fragments=Fragments((Run(3, ("three", "four")),)))
    before, after = page_of(known).split("## Known lines, not proven to be the whole file")
    assert "Nothing of its content is proven." in before
    assert "<<< lines 1 to 2 are not known >>>\nthree\nfour\n<<< whether anything follows" in after


def test_a_moved_file_is_not_said_to_be_deleted_and_both_pages_link() -> None:
    away = gone(2, operation=Operation.MOVE, moved_to=f"{ROOT}/b.py")
    here = revision(2, b"x\n", Operation.MOVE, moved_from=PATH)
    files = [recovered(revision(1, b"x\n"), away), recovered(here, path=f"{ROOT}/b.py")]
    old, new = (page.text for page in made(material(files)))
    assert "It was moved to [b.py](b.py.md) on 2026-11-21 12:02 (UTC)." in old
    assert "deleted on" not in old
    assert "## Content before it was moved away" in old
    assert "- It came from [a.py](a.py.md)." in new
    assert history_of(old)[0] == "2026-11-21 12:02: moved away, +0 −1"
    assert history_of(new) == ["2026-11-21 12:02: moved here, +1 −0"]


def test_the_content_stands_in_the_fence_byte_for_byte() -> None:
    text = 'def f():\n\treturn "```"\n\n\n# ünï ✓\n'
    fences = [token for token in parse(page_of(revision(1, text.encode()))) if token.type == "fence"]
    assert [(fence.content, fence.info) for fence in fences] == [(text, "python")]


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (b"GIF\0\0", "binary"),
        ("caf\u00e9".encode("latin-1"), "not UTF-8"),
        (b"a\r\nb\r\n", "CRLF"),
        (b"no end", "no newline at its end"),
        (b"", "empty"),
        (b"colour \x1b[31m" + b"x" * 200 + b"\n", "cannot be seen are named"),
        (f"key = '{SECRET}'\n".encode(), "replaced by markers"),
        (b"line\n" * MAX_SHOWN_BYTES, "are shown"),
    ],
)
def test_whatever_is_not_shown_as_it_was_is_said(content: bytes, note: str) -> None:
    page = page_of(revision(1, content))
    assert note in page
    assert SECRET not in page
    assert "\x1b" not in page
    assert len(page) < MAX_SHOWN_BYTES + 5000


# -- history -------------------------------------------------------------------------------------------------------------


def test_a_file_of_three_contents_has_three_entries_despite_many_doubts() -> None:
    doubts = [one for n in range(2, 40, 2) for one in (doubt(n, b"1\n", f"python -c {n}"), seen(n + 1, b"1\n"))]
    page = page_of(
        revision(1, b"1\n"),
        *doubts,
        revision(50, b"1\n2\n", Operation.EDIT),
        revision(51, b"1\n2\n3\n", Operation.EDIT),
    )
    assert history_of(page) == [
        "2026-11-21 12:51: edited, +1 −0", "2026-11-21 12:50: edited, +1 −0", "2026-11-21 12:01: written, +1 −0",
    ]  # fmt: skip
    assert "python -c 2" in page.split("12:01: written")[1].split("<details>")[1]
    assert "33 more records" in page


def test_a_state_names_the_prompt_that_asked_for_it_with_a_link() -> None:
    asked = session([("Write the routes.", [1]), ("Now | *tests*.", [2])], "The shop")
    page = page_of(revision(1, b"1\n"), revision(2, b"2\n", Operation.EDIT), sessions=[asked])
    newest, oldest = page.split("## History")[1].split("### ")[1:]
    assert "[“Write the routes.”](sessions/2026-11-21-the-shop.md#msg-01), in [The shop](" in oldest
    assert "“Now | *tests*.”" in words(newest)
    assert "sessions/2026-11-21-the-shop.md#msg-03" in links(newest)


def test_nothing_is_said_to_have_asked_for_what_was_only_seen() -> None:
    asked = session([("Write it.", [1]), ("Look around.", [2, 3])])
    page = page_of(revision(1, b"1\n"), seen(3, b"2\n", outside_change=True), sessions=[asked])
    newest = page.split("## History")[1].split("### ")[1]
    assert newest.startswith("2026-11-21 12:03: changed outside OpenCode, +1 −1\n\nSeen in [A session](")
    assert "Look around" not in page


def test_a_doubt_that_was_never_settled_is_the_newest_entry() -> None:
    ended = Call("bash", "make dist", CallStatus.STOPPED, "msg_2", "prt_2", AT, AT + 3000)
    page = page_of(revision(1, b"1\n"), doubt(2, b"1\n"), sessions=[session([("Ship it.", [1, 2])], calls=[ended])])
    newest = page.split("## History")[1].split("### ")[1]
    assert newest.startswith("2026-11-21 12:02: may have changed since\n\nPerhaps: [“Ship it.”](")
    assert "- `make dist` (stopped after 3 s)." in newest


def test_what_may_have_made_a_state_is_named_as_perhaps() -> None:
    page = page_of(revision(1, b"1\n"), doubt(2, b"1\n"), seen(3, b"2\n"))
    assert history_of(page)[0] == "2026-11-21 12:03: found changed, +1 −1"
    assert "- Perhaps by `make dist`." in page


def test_a_revert_names_what_it_took_back_and_where_it_led() -> None:
    asked = session([("DEBUG on.", [1]), ("DEBUG off.", [2])])
    back = seen(
        3, b"on\n", operation=Operation.STATE, tool="revert", message_id="msg_2", evidence=("set back by a revert",)
    )
    page = page_of(revision(1, b"on\n"), revision(2, b"off\n", Operation.EDIT), back, sessions=[asked])
    newest = words(page.split("## History")[1].split("### ")[1])
    assert newest.startswith("2026-11-21 12:03: taken back, +1 −1Undone: “DEBUG off.”, in A session")
    assert "Back to how it was left at 2026-11-21 12:01 by “DEBUG on.”" in newest


def test_an_entry_that_is_not_certain_says_so_in_the_open() -> None:
    page = page_of(
        revision(1, b"1\n"), doubt(2, b"1\n"), revision(3, b"2\n", Operation.EDIT, grade=Grade.STALE, note="no base")
    )
    newest = page.split("## History")[1].split("### ")[1]
    assert "- Not certain: no base." in newest.split("<details>")[0]


def test_a_change_from_outside_before_an_edit_is_said() -> None:
    page = page_of(revision(1, b"1\n"), revision(2, b"2\n", Operation.EDIT, outside_change=True))
    assert "- It had been changed outside OpenCode before this." in page


def test_a_long_history_is_bounded_and_says_so() -> None:
    page = page_of(*(revision(n, b"%d\n" % n) for n in range(1, MOST_ENTRIES + 8)))
    assert len(history_of(page)) == MOST_ENTRIES
    assert "Not listed: 7 older states." in page
    assert "All revisions, with whole diffs: `reconstitute history /home/dev/shop/a.py --diff`" in page


# -- diffs -----------------------------------------------------------------------------------------------------------------


def diff_of(before: bytes, after: bytes):
    return Diffs().of(file_history([revision(1, before), revision(2, after)])[0])


@pytest.mark.parametrize(
    ("before", "after", "counts", "note"),
    [
        (b"a\nb\n", b"a\nc\nd\n", "+2 −1", ""),
        (b"a\n", b"\xff\n", "", "It is no text, so its change is not shown"),
        (b"a\0\n", b"b\n", "", "It is no text, so its change is not shown"),
        (b"a\r\nb\r\n", b"a\nb\n", "", "Its lines ended in CRLF before"),
        (b"a\n", b"b\r\n", "+1 −1", "Its lines ended in LF before and in CRLF after"),
        (f"k = '{SECRET}'\n".encode(), b"k = 'x'\n", "+1 −1", ""),
        (b"x\n" * 200_000, b"y\n", "", "The change is too long to be shown here"),
        (b"", b"x\n" * (MOST_LINES + 9), "+109 −0", "Of the diff 10 more lines are left out"),
    ],
)
def test_what_a_diff_does_not_show_is_said(before: bytes, after: bytes, counts: str, note: str) -> None:
    diff = diff_of(before, after)
    assert (diff.counts, diff.note) == (counts, note)
    assert SECRET not in diff.text


def test_a_secret_of_several_lines_is_hidden_though_a_diff_cuts_it() -> None:
    key = ["-----BEGIN RSA PRIVATE KEY-----", *(f"MIIE{n}ow" * 8 for n in range(20)), "-----END RSA PRIVATE KEY-----"]
    before = "\n".join(["top", *key, "end", ""])
    diff = diff_of(before.encode(), before.replace("MIIE9ow", "AAAA9ow").replace("end", "END").encode())
    assert "+END" in diff.text
    assert "MIIE" not in diff.text
    assert "AAAA" not in diff.text


def test_the_work_for_one_page_is_bounded() -> None:
    text = b"line\n" * 40_000
    diffs = Diffs()
    entries = file_history([revision(n, text + b"%d\n" % n) for n in range(1, 30)])
    notes = [diffs.of(entry).note for entry in entries]
    assert notes.count("") == MOST_READ // len(text) - 1  # two contents to the first comparison
    assert notes[0] == ""


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_two_contents_make_a_page_without_markup_of_theirs(before: bytes, after: bytes) -> None:
    page = page_of(revision(1, before), revision(2, after, Operation.EDIT))
    check_inert(page)


# -- which prompt wrote which lines ----------------------------------------------------------------------------------------


def rows(page: str) -> list[list[str]]:
    table = [line for line in page.splitlines() if line.startswith("| ")]
    return [line.strip("| ").split(" | ") for line in table[2:]]


def test_the_lines_of_one_prompt_are_one_row() -> None:
    asked = session([("Write it.", [1]), ("Mend it.", [2, 3])])
    page = page_of(
        revision(1, b"a\nb\nc\nd\n"),
        revision(2, b"a\nB\nc\nd\n", Operation.EDIT),
        revision(3, b"a\nB\nc\nD\n", Operation.EDIT),
        sessions=[asked],
    )
    assert [(lines, re.sub(r"\]\(.*", "", prompt), when) for lines, prompt, when in rows(page)] == [
        ("1, 3", "[“Write it.”", "2026-11-21 12:01"), ("2, 4", "[“Mend it.”", "2026-11-21 12:03"),
    ]  # fmt: skip


def test_a_file_that_one_prompt_wrote_has_no_such_table() -> None:
    asked = session([("Write it.", [1, 2])])
    page = page_of(revision(1, b"a\nb\n"), revision(2, b"a\nB\n", Operation.EDIT), sessions=[asked])
    assert "Which prompt wrote which lines" not in page


def test_lines_that_no_call_wrote_are_said_to_be_seen() -> None:
    asked = session([("Mend it.", [1, 2])])
    page = page_of(seen(1, b"a\nb\n"), revision(2, b"a\nB\n", Operation.EDIT), sessions=[asked])
    assert rows(page)[0][:2] == ["1", "first seen in a snapshot, [A session](sessions/2026-11-21-a-session.md#msg-02)"]


def test_ranges_and_rows_are_bounded_and_what_is_left_out_is_said() -> None:
    before = [b"%d\n" % n for n in range(100)]
    page = page_of(
        revision(1, b"".join(before)), revision(2, b"".join(b"x%d\n" % n if n % 2 else b for n, b in enumerate(before)))
    )
    assert [row[0] for row in rows(page)] == [
        "1, 3, 5, 7, 9, 11, 13, 15 and 42 more",
        "2, 4, 6, 8, 10, 12, 14, 16 and 42 more",
    ]
    many = [revision(n, b"".join(b"%d\n" % m for m in range(n))) for n in range(1, 41)]
    assert "Not listed: 10 more prompts." in page_of(*many)


def test_a_history_too_long_to_be_worked_out_is_not() -> None:
    page = page_of(*(revision(n, b"x" * 100_000 + b"%d\n" % n) for n in range(1, 3000)))
    assert "`reconstitute history FILE --lines` tells it" in page


def test_numbers_that_a_hidden_secret_shifts_are_explained() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEow" * 10 + "\n-----END RSA PRIVATE KEY-----\n"
    page = page_of(revision(1, f"{key}a\n".encode()), revision(2, f"{key}b\n".encode(), Operation.EDIT))
    assert "The numbers are those of the file itself" in page
    assert "MIIE" not in page


# -- hostile text ----------------------------------------------------------------------------------------------------------


def check_inert(page: str) -> None:
    """No HTML but our own folds, no image, no emphasis, no link but to pages of a tree."""
    assert not kinds(page) & {"html_inline", "image", "code_block", "hr", "em_open", "strong_open"}
    assert not foreign_html(page)
    assert not [href for href in links(page) if "://" in href]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_text_is_inert_wherever_it_comes_from(payload: str) -> None:
    for page in hostile_pages(payload):
        check_inert(page.text)
        headings = [token.tag for token in parse(page.text) if token.type == "heading_open"]
        assert headings.count("h1") == 1
        assert headings.count("h3") == len(history_of(page.text)) == 5


def test_no_secret_of_a_command_a_prompt_or_a_name_reaches_the_page() -> None:
    revisions = [revision(1, b"1\n"), doubt(2, b"1\n", f"curl -H 'x: {SECRET}'"), seen(3, f"{SECRET}\n".encode())]
    file = recovered(*revisions, path=f"{ROOT}/{SECRET}.py")
    pages = made(material([file], facts=Facts(sessions=(session([(f"use {SECRET}", [1, 2])], SECRET),))))
    assert all(SECRET not in page.text for page in pages)


# -- made only where something changed -------------------------------------------------------------------------------------


def basis(*revisions: Revision, prompt: str = "Do it.", **more) -> str:
    file = replace(recovered(*revisions), **more)
    return made(material([file], facts=Facts(sessions=(session([(prompt, range(9))]),))))[0].basis


def test_the_basis_changes_exactly_when_the_page_changes() -> None:
    one = basis(revision(1, b"x\n"))
    assert basis(revision(1, b"x\n")) == one
    others = [
        basis(revision(1, b"y\n")),
        basis(revision(1, b"x\n", grade=Grade.VERIFIED)),
        basis(revision(1, b"x\n", evidence=("another",))),
        basis(revision(1, b"x\n"), doubt(2, b"x\n")),
        basis(revision(1, b"x\n"), disk=Disk.IDENTICAL),
        basis(revision(1, b"x\n"), prompt="Do that."),
    ]
    assert len({one, *others}) == 1 + len(others)


def test_a_page_is_not_made_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_: Content) -> bytes:
        raise AssertionError

    file = recovered(revision(1, b"x\n"))
    file.revisions[0].whole.id  # noqa: B018 - a hash that is known is not worked out again
    with monkeypatch.context() as patch:
        patch.setattr(Content, "data", property(read))
        page = made_without_text(file)
    assert page.basis
    assert "x\n" in page.text


def made_without_text(file: Recovered) -> Page:
    known = MaterialIndex(material([file]))
    plan = Plan({file.relative: 0}, lambda _: True, 10)
    return FilePages(known, plan, environment()).pages(file)[0]


def test_a_page_names_the_messages_it_draws_on() -> None:
    page = made(material([recovered(revision(1, b"1\n"), revision(2, b"2\n", Operation.EDIT))]))[0]
    assert page.sources == ("msg_1", "msg_2")


# -- real records ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Recorded]:
    with recorded(tmp_path / "state") as house:
        house.session("ses_1", ROOT)
        yield house


def test_records_of_a_session_become_a_page(house: Recorded) -> None:
    house.snapshot("ses_1", ROOT, {"a.py": b"one\ntwo\n"})
    house.say(
        "ses_1",
        "assistant",
        call("edit", output="Edit applied successfully.", filePath=PATH, oldString="two", newString="2"),
    )
    house.say("ses_1", "assistant", call("bash", command=f"mv {PATH} {ROOT}/b.py", metadata={"exit": 0}))
    files = list(recover(Files(house.archive).histories(ROOT), ROOT))
    pages = {page.path: page.text for page in made(material(files))}
    assert set(pages) == {"a.py.md", "b.py.md"}
    assert [posixpath.basename(link) for link in links(pages["a.py.md"])].count("b.py.md") == 2
    assert [line.split(": ")[1] for line in history_of(pages["a.py.md"])] == [
        "moved away, +0 −2",
        "edited, +1 −1",
        "first seen",
    ]
    assert files[0].state is State.DELETED
