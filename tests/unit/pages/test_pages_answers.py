"""What a model answered stands on the pages: with its sources, how sure it is, and as inert as anything recorded."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from functools import cache
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon import markdown
from daemon.reconstitute.answer import OUTDATED, unchecked
from daemon.reconstitute.facts import Facts
from daemon.reconstitute.pages import Renderer
from daemon.reconstitute.pages.statements import NOT_FOUND, WAITS
from daemon.reconstitute.passages import NOTHING_RECORDED
from tests.support.examples import examples
from tests.support.pages.markup import PAYLOADS, kinds, links, parse, words
from tests.support.pages.page_material import (
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
from tests.support.pages.rich_facts import rich

OURS = re.compile(r"(?:</?details>|<summary>[^<]*</summary>|\s)+")
"""The HTML that pages may have."""
NO_ANSWER = "Asked, without an answer that holds"


def section(page: str, heading: str) -> str:
    return page.split(f"\n## {heading}\n")[1].split("\n## ", maxsplit=1)[0]


# -- what is shown ---------------------------------------------------------------------------------------------------


def test_a_statement_stands_with_its_reason_its_day_and_its_source():
    said = statement("The cart is kept in SQLite.", "two processes write", source("We take SQLite.", "The shop"))
    top = pages(material([file("a.py")], record(answer("decisions", said))))["README.md"]
    assert section(top, "Rules and decisions").strip().splitlines() == [
        "- 2026-11-21: The cart is kept in SQLite.[^1] Why: two processes write",
        "",
        "Answered by wise:4b, on 1 quote from 1 session.",
    ]
    assert "\n[^1]: 2026-11-21 12:00, A session: “We take SQLite.”\n" in top


def test_several_dropped_statements_are_counted():
    made = answer("run", statement("Run it."), dropped=3)
    assert (
        "on 1 quote from 1 session; 3 statements were dropped because their sources did not hold."
        in pages(material([], record(made)))["README.md"]
    )


def test_a_model_that_answered_without_a_word_found_nothing():
    top = pages(material([file("a.py")], record(answer("open"))))["README.md"]
    assert (
        section(top, NO_ANSWER).strip().splitlines()[0] == f"- Open problems: no answer by wise:4b: {NOTHING_RECORDED}"
    )
    assert "## Left open" not in top


@pytest.mark.parametrize(
    ("dropped", "note", "said"),
    [
        (1, unchecked(1), "1 statement was dropped because its source did not hold."),
        (2, f"{unchecked(2)} Newer.", "Newer. 2 statements were dropped because their sources did not hold."),
    ],
)
def test_that_statements_were_dropped_is_said_once(dropped: int, note: str, said: str):
    top = pages(material([file("a.py")], record(answer("open", note=note, dropped=dropped))))["README.md"]
    assert section(top, NO_ANSWER).strip().splitlines()[0] == f"- Open problems: no answer by wise:4b: {said}"


LONG = "Long \x1b[31mtitle\u200b " + "word " * 1000


@pytest.mark.parametrize("title", [LONG, f"{SECRET[:5]}\u200b{SECRET[5:]}"])
def test_a_title_is_short_and_looks_the_same_wherever_it_stands(title: str):
    said = statement("So.", "", source("It \x1bis so.", title))
    talk = replace(passage("a.py \x1bis so."), title=title)
    made = pages(
        material(
            [file("a.py")],
            record(answer("run", said)),
            [talk],
            facts=Facts((session(1, title), session(2, "B", AT + DAY))),
        )
    )
    shown = "Long [31mtitle" if title == LONG else "[REDACTED:"
    for text in made.values():
        assert all(len(line) < 500 for line in text.splitlines())
        assert "\u241b" not in text
        assert SECRET not in text
        assert words(text).count(shown) >= 1
    assert words(made["README.md"]).count(shown) == 3  # the list, the last change of the file, the footnote


def test_a_statement_without_a_source_is_not_shown():
    made = material(
        [], record(answer("purpose", statement("Founded."), statement("Unfounded.").__class__("Unfounded.")))
    )
    text = pages(made)["README.md"]
    assert "> Founded. (by wise:4b)[^1]" in text
    assert "Unfounded." not in text


def test_paths_of_a_statement_are_links_where_there_is_a_page_of_them():
    said = statement("It is so.", paths=(f"{ROOT}/src/a.py", f"{ROOT}/src", f"{ROOT}/gone.py", "/etc/hosts", ROOT))
    top = pages(material([file("src/a.py"), file("src/b.py")], record(answer("structure", said))))["README.md"]
    line = section(top, "Structure").strip().splitlines()[0]
    about = "[src/a.py](src/a.py.md), [src](src/README.md), `gone.py`, `/etc/hosts`, `/home/dev/shop`"
    assert line == f"- It is so.[^1] (about {about})"


def test_of_a_target_that_is_a_file_the_page_tells_what_a_model_says_of_it():
    said = statement("Draws the cart.", paths=(f"{ROOT}/a.py",))
    one = material([file("a.py")], record(answer("purpose", said), descriptions={f"{ROOT}/a.py": said}))
    made = pages(replace(one, scope=replace(one.scope, target=f"{ROOT}/a.py")))
    assert "Draws the cart." in made["a.py.md"]
    assert "> Draws the cart. (by wise:4b)[^1]" in made["README.md"]
    assert "[a.py](a.py.md) | Draws the cart." in made["README.md"]


def test_an_inner_folders_purpose_stands_on_its_page_and_on_the_one_above():
    found = record(answer("purpose:src", statement("Holds the program.")))
    made = pages(material([file("src/a.py"), file("src/b.py"), file("c.py")], found))
    assert "- Holds the program.[^1]" in made["src/README.md"]
    assert "Folders: [src/](src/README.md) (Holds the program.[^1])." in section(made["README.md"], "Files")


def test_what_a_model_says_of_a_session_is_on_the_front_page_and_its_own():
    said = statement("A cart was built.", "", source("Built.", message_id="msg_1_2"))
    older = replace(statement("Ports changed.", "", source("Set.", message_id="msg_3_2")), reason=OUTDATED)
    made = pages(rich(found=record(summaries={"ses_1": said, "ses_3": older})))
    happened = section(made["README.md"], "What happened")
    assert re.search(r"\n  - By the model: A cart was built\.\[\^[\w-]+\]\n  - Asked: ", happened)
    assert re.search(r"By the model: Ports changed\. \(There is newer evidence than this\)\[\^[\w-]+\]\n", happened)
    assert re.search(r"\n\[\^[\w-]+\]: [^\n]*: “Built\.”\n", made["README.md"])


def test_the_table_of_files_names_the_source_of_what_a_model_says():
    said = statement("Draws the cart.", "", source("def draw", path=f"{ROOT}/a.py"))
    made = pages(material([file("a.py")], record(descriptions={f"{ROOT}/a.py": said})))
    assert "[a.py](a.py.md) | Draws the cart.[^1] | exactly |" in made["README.md"]
    assert "\n[^1]: 2026-11-21 12:00, [a.py](a.py.md) after A session: “def draw”\n" in made["README.md"]
    assert "> Draws the cart. (by the model)[^1]\n" in made["a.py.md"]


def test_newer_evidence_is_not_told_as_a_reason():
    said = [statement("So.", OUTDATED), statement("Thus.", f"two write. {OUTDATED}")]
    text = section(pages(material([], record(answer("decisions", *said))))["README.md"], "Rules and decisions")
    assert "So. (There is newer evidence than this)[^1]\n" in text
    assert "Thus. (There is newer evidence than this)[^1] Why: two write.\n" in text


def test_a_path_that_was_only_named_is_listed_with_what_is_said_of_it():
    found = record(
        answer("path:logs/x.log", statement("Errors went there.")),
        recorded=((f"{ROOT}/a.py", None), (f"{ROOT}/logs/x.log", source("see logs/x.log"))),
    )
    top = pages(material([file("a.py")], found))["README.md"]
    text = section(top, "Named, but nothing of it is recorded")
    assert text.strip().splitlines()[:2] == [
        "- `logs/x.log`: “see logs/x.log”[^1]",
        "  - Errors went there.[^2]",
    ]
    assert "a.py" not in text


def test_remarks_of_a_model_have_a_section_where_there_are_any():
    found = record(notes=(statement("Two people worked on it."),))
    top = pages(material([file("a.py")], found))["README.md"]
    assert "- Two people worked on it.[^1]" in section(top, "Remarks of the model")
    assert "Remarks" not in pages(material([file("a.py")]))["README.md"]


def test_an_answer_to_a_persons_own_question_stands_under_that():
    made = material([file("a.py")], own=("Who pays?",))
    own = made.findings[-1].question.id
    found = pages(material([file("a.py")], record(answer(own, statement("The owner pays."))), own=("Who pays?",)))
    assert "The owner pays." in section(found["README.md"], "Your questions").split("### Who pays?")[1]


@pytest.mark.parametrize(("unasked", "said"), [(False, NOT_FOUND), (True, WAITS)])
def test_an_own_question_without_an_answer_says_whether_a_model_was_asked(unasked: bool, said: str):
    own = material([], own=("Who pays?",)).findings[-1].question.id
    found = record(unasked={own: "http://127.0.0.1:1: nothing answers"} if unasked else {})
    top = pages(material([file("a.py")], found, own=("Who pays?",)))["README.md"]
    assert section(top, "Your questions").strip() == f"### Who pays?\n\n{said}"


def test_an_own_question_without_an_answer_has_quotations():
    made = material([file("a.py")], record(), [passage("The owner pays.")], own=("Who pays?",))
    assert "- “The owner pays.”[^1]" in section(pages(made)["README.md"], "Your questions")


def test_a_model_answer_without_a_recall_answer_is_shown_too():
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
        assert not {token.type for token in tokens} & {"image", "code_block", "hr", "em_open", "s_open"}  # fmt: skip
        assert all(OURS.fullmatch(token.content) for token in tokens if token.type.startswith("html"))
        seen += sum(token.type == "fence" for token in tokens)
        for href in links(text):
            assert posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(href.partition("#")[0]))) in made
    assert seen == fences


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_words_of_a_model_are_inert_wherever_they_stand(payload: str):
    made = pages(hostile(payload))
    check(made, 3)  # the contents


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_model_makes_no_heading_no_table_and_no_list_of_its_own(payload: str):
    assert shapes(payload) == shapes("plain words")


@cache
def shapes(payload: str) -> dict[str, list[str]]:
    """Everything that gives each page its form."""
    kept = ("heading", "bullet", "ordered", "list_item", "table", "tr", "td", "blockquote", "fence", "strong")
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


@settings(max_examples=examples(40))
@given(
    st.text(st.sampled_from(list("`*_[]()<>#+-!|~&$=:@^\"'\\{}0123%. \n\r\tahtpw\u2028\x1b")), min_size=1, max_size=40)
)
def test_no_text_whatsoever_breaks_out_of_its_place(text: str):
    assert shapes(f"a{text}") == shapes("plain words")
    check(pages(hostile(text)), 3)
