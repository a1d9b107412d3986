"""The sessions of a target in time: a list, and a diagram where it helps."""

from __future__ import annotations

import re

import pytest
from found_out import AT, DAY, ROOT, file, material, pages, session
from hypothesis import given
from hypothesis import strategies as st
from markup import PAYLOADS, parse

from daemon.reconstitute.pages.timeline import MOST, diagram, label

HOUR = 3_600_000
PERIOD = r"    \d{4}-\d\d-\d\d( \d\d\.\d\d)?( : [^\W_][^:;#%{}<>\[\]`\"\\|&=\n]*)+"


def test_sessions_are_drawn_by_day_in_the_order_of_their_times():
    drawn = diagram([session(2, "Later", AT + DAY), session(1, "First"), session(3, "Last of the day", AT + HOUR)])
    assert drawn == "```mermaid\ntimeline\n    2026-11-21 : First : Last of the day\n    2026-11-22 : Later\n```"


def test_sessions_of_a_single_day_are_drawn_by_minute():
    drawn = diagram([session(1, "First"), session(2, "Second", AT + HOUR)])
    assert drawn is not None
    assert drawn.splitlines()[2:4] == ["    2026-11-21 12.00 : First", "    2026-11-21 13.00 : Second"]


@pytest.mark.parametrize(("number", "is_drawn"), [(0, False), (1, False), (2, True), (MOST, True), (MOST + 1, False)])
def test_a_diagram_is_drawn_where_it_helps(number: int, is_drawn: bool):
    assert (diagram([session(n, created=AT + n * DAY) for n in range(number)]) is not None) == is_drawn


def test_sessions_of_unknown_time_are_not_drawn():
    assert diagram([session(1), session(2, created=0)]) is None


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_title_means_nothing_to_mermaid(payload: str):
    drawn = diagram([session(1, payload), session(2, payload, AT + DAY)])
    assert drawn is not None
    lines = drawn.splitlines()
    assert (lines[0], lines[1], lines[-1], len(lines)) == ("```mermaid", "timeline", "```", 5)
    assert all(re.fullmatch(PERIOD, line) for line in lines[2:4])


@given(st.text())
def test_a_label_is_one_line_of_harmless_marks_and_never_empty(title: str):
    made = label(title)
    assert made
    assert made == " ".join(made.split())
    assert len(made) <= 60
    assert all(c.isalnum() or c in " -.,_()'…" for c in made)


def test_the_list_names_the_files_that_a_session_touched_and_counts_the_rest():
    files = [file(f"f{number}.py") for number in range(7)] + [file("src/x.py"), file("src/y.py")]
    touched = {f"{ROOT}/f{number}.py": frozenset({"msg_1"}) for number in range(7)}
    touched |= {f"{ROOT}/src/x.py": frozenset({"msg_2"})}
    made = pages(material(files, sessions=[session(1), session(2, created=AT + DAY)], touched=touched))
    linked = ", ".join(f"[f{number}.py](f{number}.py.md)" for number in range(5))
    assert f"  - Files: {linked} and 2 more\n" in made["README.md"]
    assert "  - Files: [src/x.py](src/x.py.md)\n" in made["README.md"]
    assert "  - Files: [x.py](x.py.md)\n" in made["src/README.md"]
    assert "ses_1" not in made["src/README.md"].split("## Sessions")[1].split("## Files")[0]


def test_the_list_says_all_that_the_diagram_says():
    sessions = [session(1, "Build the shop"), session(2, "Mend the cart", AT + DAY)]
    top = pages(material([file("a.py")], sessions=sessions))["README.md"]
    fence = next(token for token in parse(top) if token.type == "fence")
    assert fence.info == "mermaid"
    for title in ("Build the shop", "Mend the cart"):
        assert title in fence.content
        assert f": {title} (`" in top.replace(fence.content, "")
