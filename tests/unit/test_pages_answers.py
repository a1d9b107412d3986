"""What a model answered stands on the pages: with its sources, how sure it is, and as inert as anything recorded."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from functools import cache
from urllib.parse import unquote

import pytest
from found_out import (
    AT,
    DAY,
    ROOT,
    SECRET,
    answer,
    file,
    hostile,
    material,
    pages,
    passage,
    record,
    session,
    source,
    statement,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from markup import PAYLOADS, kinds, links, parse, words

from daemon import markdown
from daemon.reconstitute.answer import unchecked
from daemon.reconstitute.extract import NOTHING
from daemon.reconstitute.pages.render import Renderer
from daemon.reconstitute.pages.said import NOT_FOUND, WAITS

NO_MODEL = "No chat model answered"
WAITING = "Not answered by a model yet"


def section(page: str, heading: str) -> str:
    return page.split(f"\n## {heading}\n")[1].split("\n## ", maxsplit=1)[0]


# -- what is shown ---------------------------------------------------------------------------------------------------


def test_a_statement_stands_with_its_reason_its_day_and_its_source():
    said = statement("The cart is kept in SQLite.", "two processes write", source("We take SQLite.", "The shop"))
    top = pages(material([file("a.py")], record(answer("decisions", said))))["README.md"]
    assert section(top, "Decisions").strip().splitlines() == [
        "- 2026-11-21: The cart is kept in SQLite.",
        "  - Why: two processes write",
        "  - Source: 2026-11-21T12:00:00Z, session The shop (`ses_1`), message `msg_1`: “We take SQLite.”",
        "",
        "Stands on 1 quote from 1 session. Answered by wise:4b.",
    ]


def test_an_answer_stands_in_place_of_quotations_and_says_what_supports_it():
    made = answer("run", statement("Run `make`."), dropped=1, note="Newer evidence exists.")
    top = pages(material([file("a.py")], record(made), [passage("Start it with python3 app.py.")]))["README.md"]
    text = section(top, "How to run it")
    assert "python3 app.py" not in text
    assert "Run `make`. (2026-11-21)" in text
    expected = "Stands on 1 quote from 1 session. Answered by wise:4b; 1 statement was dropped because its source did not hold."
    assert f"{expected} Newer evidence exists." in text
    assert "python3 app.py" in section(top, "Structure")


def test_several_dropped_statements_are_counted():
    made = answer("run", statement("Run it."), dropped=3)
    assert (
        "3 statements were dropped because their sources did not hold."
        in pages(material([], record(made)))["README.md"]
    )


def test_an_answer_without_statements_says_why_and_the_quotations_follow():
    made = answer("dead-ends", note="No message tells of one.", dropped=2)
    top = pages(material([file("a.py")], record(made), [passage("We tried it in vain.")]))["README.md"]
    text = section(top, "Dead ends")
    note = (
        "No answer by wise:4b: No message tells of one. 2 statements were dropped because their sources did not hold."
    )
    assert text.index(note) < text.index("> We tried it in vain.")


@pytest.mark.parametrize(
    ("answered", "said"),
    [
        ((), [f"{NO_MODEL}; the best recorded passages are quoted instead."]),
        (
            ("purpose", "structure", "configuration", "dead-ends", "open"),
            [f"{WAITING}: How to run it, Decisions."],
        ),
        (("purpose", "run", "structure", "configuration", "decisions", "dead-ends", "open"), []),
    ],
)
def test_that_no_model_answered_is_said_once(answered: tuple[str, ...], said: list[str]):
    found = record(*(answer(name, statement("It is so.")) for name in answered))
    top = pages(material([file("a.py")], found))["README.md"]
    assert [line for line in top.splitlines() if NO_MODEL in line or WAITING in line] == said


def test_that_quotations_stand_in_for_the_questions_that_wait_is_said():
    found = record(*(answer(q, statement("So.")) for q in ("purpose", "run", "structure", "configuration", "open")))
    top = pages(material([file("a.py")], found, [passage("It is so.")]))["README.md"]
    line = f"{WAITING}: Decisions, Dead ends. The best recorded passages are quoted there instead."
    assert line in top.splitlines()


def test_a_long_own_question_that_waits_is_named_shortly_and_redacted():
    own = f"Where is {SECRET}? " + "word " * 100
    found = record(answer("run", statement("So.")), unasked={})
    top = pages(material([file("a.py")], found, own=(own,)))["README.md"]
    line = next(line for line in top.splitlines() if WAITING in line)
    assert "REDACTED" in line
    assert len(line) < 400


@pytest.mark.parametrize(("unasked", "said"), [({}, NOT_FOUND), ({"decisions", "own", "purpose"}, WAITS)])
def test_what_no_model_was_asked_is_never_said_to_be_recorded_nowhere(unasked: set[str], said: str):
    own = material([], own=("Who pays?",)).findings[-1].question.id
    waiting = dict.fromkeys({own if name == "own" else name for name in unasked}, "http://127.0.0.1:1: nothing answers")
    top = pages(material([file("a.py")], record(unasked=waiting), own=("Who pays?",)))["README.md"]
    assert NOTHING not in top
    assert "127.0.0.1" not in top
    assert section(top, "Purpose").strip() == said
    assert section(top, "Other questions").strip() == f"### Who pays?\n\n{said}"
    reasons = dict(reversed(line[2:].split(": ", 1)) for line in section(top, "Not answered").strip().splitlines())
    assert "Decisions" in reasons[said[0].lower() + said[1:]]
    assert "Open problems" in reasons[NOT_FOUND[0].lower() + NOT_FOUND[1:]]


def test_a_question_that_waits_has_its_quotations_meanwhile():
    top = pages(material([file("a.py")], record(unasked={"open": "x"}), [passage("It is so.")]))["README.md"]
    assert "> It is so." in section(top, "Open problems")
    assert WAITS not in top


def test_an_inner_folder_whose_purpose_waits_says_so():
    made = pages(material([file("src/a.py"), file("src/b.py")], record(unasked={"purpose:src": "x"})))
    assert section(made["src/README.md"], "What was said of it").strip() == WAITS


def test_a_model_that_answered_without_a_word_found_nothing():
    top = pages(material([file("a.py")], record(answer("open"))))["README.md"]
    assert section(top, "Open problems").strip() == f"No answer by wise:4b: {NOTHING}"


@pytest.mark.parametrize(
    ("dropped", "note", "said"),
    [
        (1, unchecked(1), "1 statement was dropped because its source did not hold."),
        (2, f"{unchecked(2)} Newer.", "Newer. 2 statements were dropped because their sources did not hold."),
    ],
)
def test_that_statements_were_dropped_is_said_once(dropped: int, note: str, said: str):
    top = pages(material([file("a.py")], record(answer("open", note=note, dropped=dropped))))["README.md"]
    assert section(top, "Open problems").strip() == f"No answer by wise:4b: {said}"


LONG = "Long \x1b[31mtitle\u200b " + "word " * 1000


@pytest.mark.parametrize("title", [LONG, f"{SECRET[:5]}\u200b{SECRET[5:]}"])
def test_a_title_is_short_and_looks_the_same_wherever_it_stands(title: str):
    said = statement("So.", "", source("It \x1bis so.", title))
    talk = replace(passage("a.py \x1bis so."), title=title)
    made = pages(
        material([file("a.py")], record(answer("run", said)), [talk], [session(1, title), session(2, "B", AT + DAY)])
    )
    shown = "Long [31mtitle" if title == LONG else "[REDACTED:"
    for text in made.values():
        assert all(len(line) < 500 for line in text.splitlines())
        assert "\u241b" not in text
        assert SECRET not in text
        assert words(text).count(shown) >= 1
    assert words(made["README.md"]).count(shown) == 2 + 6  # the list, the source, and six quotations


def test_why_a_description_is_not_certain_stands_after_it_in_parentheses():
    stale = statement("Draws the cart.", "There is newer evidence than this.")
    found = record(descriptions={f"{ROOT}/a.py": stale, f"{ROOT}/src": replace(stale, text="Program. " + "word " * 99)})
    made = pages(material([file("a.py"), file("src/b.py"), file("src/c.py")], found))
    said = "Draws the cart. (There is newer evidence than this.)"
    assert f"- {said}" in section(made["a.py.md"], "What it is for")
    assert "Why:" not in made["a.py.md"]
    mapped = section(made["README.md"], "Map").splitlines()
    assert any(line.endswith(said) for line in mapped)
    assert any("Program." in line and line.endswith("… (There is newer evidence than this.)") for line in mapped)
    assert "(There is newer evidence than this.)" in section(made["src/README.md"], "Purpose")


def test_a_folder_of_which_nothing_is_told_is_named_with_its_first_files():
    names = ["scripts/dev.sh", f"many/{SECRET}.py", "many/b*.py", "many/c.py", "many/in/d.py", "many/in/e.py"]
    mapped = section(pages(material([file(name) for name in names]))["README.md"], "Map")
    assert "[scripts/](scripts/README.md): 1 file: 1 proven (dev.sh)" in mapped
    line = next(line for line in words(mapped.replace("- ", "\n\n")).split("scripts/") if "5 files" in line)
    assert SECRET not in mapped
    assert "REDACTED" in line
    assert "(b*.py, c.py, [REDACTED:" in line
    assert "].py and 2 more)" in line


def test_a_statement_without_a_source_is_not_shown():
    made = material(
        [], record(answer("purpose", statement("Founded."), statement("Unfounded.").__class__("Unfounded.")))
    )
    text = section(pages(made)["README.md"], "Purpose")
    assert "Founded." in text
    assert "Unfounded." not in text


def test_paths_of_a_statement_are_links_where_there_is_a_page_of_them():
    said = statement("It is so.", paths=(f"{ROOT}/src/a.py", f"{ROOT}/src", f"{ROOT}/gone.py", "/etc/hosts", ROOT))
    top = pages(material([file("src/a.py"), file("src/b.py")], record(answer("structure", said))))["README.md"]
    about = next(line for line in section(top, "Structure").splitlines() if "About" in line)
    assert about == (
        "  - About [src/a.py](src/a.py.md), [src](src/README.md), `gone.py`, `/etc/hosts`, `/home/dev/shop`"
    )


def test_what_a_model_says_of_a_file_comes_before_what_was_said_of_it():
    found = record(descriptions={f"{ROOT}/a.py": statement("Draws the cart.", paths=(f"{ROOT}/a.py",))})
    made = pages(material([file("a.py"), file("b.py")], found, [passage("a.py is the first file. b.py is the other.")]))
    text = section(made["a.py.md"], "What it is for")
    assert text.index("Draws the cart.") < text.index("Said of it:") < text.index("> a.py is the first")
    assert "About" not in text
    mapped = section(made["README.md"], "Map")
    assert "[a.py](a.py.md): proven; on disk: missing. Draws the cart." in mapped
    assert "[b.py](b.py.md): proven; on disk: missing. “a.py is the first file. b.py is the other.”" in mapped


def test_of_a_target_that_is_a_file_the_page_tells_what_a_model_says_of_it():
    said = statement("Draws the cart.", paths=(f"{ROOT}/a.py",))
    one = material([file("a.py")], record(answer("purpose", said), descriptions={f"{ROOT}/a.py": said}))
    made = pages(replace(one, scope=replace(one.scope, target=f"{ROOT}/a.py")))
    assert "Draws the cart." in section(made["a.py.md"], "What it is for")
    assert "About [a.py](a.py.md)" in section(made["README.md"], "Purpose")


def test_an_inner_folders_purpose_stands_on_its_page_and_in_the_map_above():
    found = record(answer("purpose:src", statement("Holds the program.")))
    made = pages(material([file("src/a.py"), file("src/b.py"), file("c.py")], found))
    assert "Holds the program." in section(made["src/README.md"], "Purpose")
    assert "Answered by wise:4b" in section(made["src/README.md"], "Purpose")
    assert "[src/](src/README.md): 2 files: 2 proven. Holds the program." in section(made["README.md"], "Map")


def test_a_path_that_was_only_named_is_listed_with_what_is_said_of_it():
    found = record(
        answer("path:logs/x.log", statement("Errors went there.")),
        recorded=((f"{ROOT}/a.py", None), (f"{ROOT}/logs/x.log", source("see logs/x.log"))),
    )
    top = pages(material([file("a.py")], found))["README.md"]
    text = section(top, "Named, but nothing of it is recorded")
    assert text.strip().splitlines()[:2] == [
        "- `logs/x.log`: “see logs/x.log” (2026-11-21T12:00:00Z, session A session, message `msg_1`)",
        "  - Errors went there. (2026-11-21)",
    ]
    assert "a.py" not in text


def test_notes_stand_at_the_end_and_nothing_stands_there_without_any():
    found = record(notes=(statement("Two people worked on it."),))
    assert "Two people worked on it." in section(pages(material([file("a.py")], found))["README.md"], "Notes")
    assert "## Notes" not in pages(material([file("a.py")]))["README.md"]


def test_an_answer_to_a_persons_own_question_stands_under_that():
    made = material([file("a.py")], own=("Who pays?",))
    own = made.findings[-1].question.id
    found = pages(material([file("a.py")], record(answer(own, statement("The owner pays."))), own=("Who pays?",)))
    assert "The owner pays." in section(found["README.md"], "Other questions").split("### Who pays?")[1]


def test_an_answer_to_a_question_that_was_not_looked_up_otherwise_is_shown_too():
    made = material([file("a.py")], record(answer("readers", statement("For the owner."))))
    assert "For the owner." in section(pages(made)["README.md"], "For whom")


def test_pages_name_the_messages_that_a_model_cites():
    cited = statement("So.", "", source(message_id="msg_7"))
    found = record(answer("purpose", cited), notes=(statement("Also.", "", source(message_id="msg_8")),),
                   descriptions={f"{ROOT}/a.py": statement("It.", "", source(message_id="msg_9"))})  # fmt: skip
    made = {page.path: page.sources for page in Renderer(material([file("a.py")], found), 100).pages()}
    assert {"msg_7", "msg_8"} <= set(made["README.md"])
    assert "msg_9" in made["a.py.md"]


def test_no_secret_in_a_models_words_reaches_a_page():
    said = statement(
        f"The key is {SECRET}.",
        f"for {SECRET}",
        source(f"key = '{SECRET}'", f"t {SECRET}"),
        paths=(f"{ROOT}/{SECRET}",),
    )
    found = record(
        answer("purpose", said, note=f"see {SECRET}", model=f"m {SECRET}"),
        answer("purpose:src", said),
        answer("run", note=f"see {SECRET}"),
        notes=(said,),
        recorded=((f"{ROOT}/x-{SECRET}", source(f"because {SECRET}")),),
        descriptions={f"{ROOT}/src/a.py": said},
    )
    made = pages(material([file("src/a.py"), file("b.py")], found))
    assert all(SECRET not in text for text in made.values())
    assert sum(text.count("REDACTED") for text in made.values()) > 15


def test_the_same_answers_in_another_order_give_the_same_bytes():
    one = record(
        answer("run", statement("a")),
        answer("open", statement("b")),
        recorded=(("/x", source("1")), ("/y", source("2"))),
    )
    two = record(
        answer("open", statement("b")),
        answer("run", statement("a")),
        recorded=(("/y", source("2")), ("/x", source("1"))),
    )
    assert pages(material([file("a.py")], one)) == pages(material([file("a.py")], two))


# -- hostile words of a model (T1) -----------------------------------------------------------------------------------


def check(made: dict[str, str], fences: int) -> None:
    """No HTML, no image, no rule; every link leads to a page of the set; the fences are ours."""
    seen = 0
    for path, text in made.items():
        tokens = parse(text)
        assert not {token.type for token in tokens} & {"html_block", "html_inline", "image", "code_block", "hr", "em_open", "strong_open", "s_open"}  # fmt: skip
        seen += sum(token.type == "fence" for token in tokens)
        for href in links(text):
            assert posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(href))) in made
    assert seen == fences


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_words_of_a_model_are_inert_wherever_they_stand(payload: str):
    made = pages(hostile(payload))
    check(made, 3 + 1)  # three contents and the diagram


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_model_makes_no_heading_no_table_and_no_list_of_its_own(payload: str):
    assert shapes(payload) == shapes("plain words")


@cache
def shapes(payload: str) -> dict[str, list[str]]:
    """Everything that gives each page its form."""
    kept = ("heading", "bullet", "ordered", "list_item", "table", "tr", "td", "blockquote", "fence")
    made = pages(hostile(payload)).items()
    return {path: [token.type for token in parse(text) if token.type.startswith(kept)] for path, text in made}


@given(
    st.text(st.sampled_from(list("`*_[]()<>#+-!|~&$=:@^\"'\\{}0123%. \n\r\tahtpw/\u2028\x1b")), max_size=60) | st.text()
)
def test_prose_is_text_and_code_whatever_a_model_writes(text: str):
    for made in (markdown.prose(text), markdown.Markdown(f"- {markdown.quoted(text)}")):
        allowed = {"paragraph_open", "inline", "text", "paragraph_close", "text_special", "code_inline"}
        allowed |= {"bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close"}
        assert kinds(made) <= allowed
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", made)


@given(st.text(st.sampled_from("ab`._ *"), max_size=30))
def test_a_reader_sees_the_words_of_prose_but_for_the_backticks_of_code(text: str):
    assert re.sub(r"[`\s]", "", words(markdown.prose(text))) == re.sub(r"[`\s]", "", text)


def test_commands_in_prose_are_code():
    assert markdown.prose("Run `make test_all` in `/srv`, not __here__.") == (
        "Run `make test_all` in `/srv`, not \\_\\_here\\_\\_."
    )


def test_what_nothing_answers_is_one_line():
    top = pages(material([file("a.py")], record(answer("open", note="There is none."))))["README.md"]
    expected = "- How to run it, Structure, Configuration, Decisions, Dead ends: "
    assert section(top, "Not answered").strip() == expected + "no quotation was found; no model was asked."
    assert section(top, "Purpose").strip() == NOT_FOUND
    assert "There is none." in section(top, "Open problems")
    assert "## Not answered" not in pages(material([], said=[passage("It is so.")]))["README.md"]


@settings(max_examples=40)
@given(
    st.text(st.sampled_from(list("`*_[]()<>#+-!|~&$=:@^\"'\\{}0123%. \n\r\tahtpw\u2028\x1b")), min_size=1, max_size=40)
)
def test_no_text_whatsoever_breaks_out_of_its_place(text: str):
    assert shapes(f"a{text}") == shapes("plain words")
    check(pages(hostile(text)), 3 + 1)
