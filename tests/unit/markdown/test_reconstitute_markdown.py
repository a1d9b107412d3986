"""Recorded text becomes inert Markdown (docs/reliability.md, T1)."""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Iterator

import pytest
import tzlocal
from hypothesis import given
from hypothesis import strategies as st

from daemon import markdown
from daemon.display import visible
from tests.support.pages.markup import PAYLOADS, kinds, links, parse, words

PLAIN = {"paragraph_open", "inline", "text", "paragraph_close", "text_special", "code_inline"}
"""Addresses become code, so that no renderer makes links of them."""
markup_text = (
    st.text(st.sampled_from(list("`*_[]()<>#+-!|~&$=:@^\"'\\{}0123. \n\r\tahtpw/\u2028\x1b")), max_size=60) | st.text()
)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_hostile_text_on_a_line_of_its_own_is_plain_text(payload: str):
    assert kinds(markdown.inline(payload)) <= PLAIN


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_hostile_text_in_a_table_stays_in_its_cell(payload: str):
    table = f"| a | b |\n| --- | --- |\n| {markdown.inline(payload)} | after |\n"
    tokens = parse(table)
    assert sum(token.type == "td_open" for token in tokens) == 2
    assert {token.type for token in tokens} <= PLAIN | {
        f"{name}_{end}" for name in ("table", "thead", "tbody", "tr", "th", "td") for end in ("open", "close")
    }


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_hostile_text_in_a_fence_cannot_close_it(payload: str):
    tokens = parse(f"before\n\n{markdown.fence(payload)}\n\nafter\n")
    assert [token.type for token in tokens if token.block and token.nesting >= 0 and token.type != "inline"] == [
        "paragraph_open", "fence", "paragraph_open",
    ]  # fmt: skip


@given(markup_text)
def test_no_text_makes_anything_but_text(text: str):
    assert kinds(markdown.inline(text)) <= PLAIN
    assert kinds(f"- {markdown.inline(text) or 'x'}") <= PLAIN | {
        "bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close",
    }  # fmt: skip
    assert kinds(f"> {markdown.inline(text)}") <= PLAIN | {"blockquote_open", "blockquote_close"}
    assert kinds(f"x ({markdown.inside(text)})[^1]") <= PLAIN
    assert kinds(markdown.quoted(text)) <= PLAIN
    assert not kinds(f"# {markdown.inline(text)}") & {"link_open", "image", "html_inline", "html_block"}


@given(markup_text)
def test_a_reader_sees_the_words_that_were_said(text: str):
    seen = " ".join(visible(text).split())
    assert words(markdown.inline(text)) == seen


@given(markup_text)
def test_a_code_span_is_one_span_whatever_it_holds(text: str):
    tokens = [token for token in parse(f"x {markdown.code(text)} y") if token.type != "inline"]
    assert [token.type for token in tokens] == ["paragraph_open", "text", "code_inline", "text", "paragraph_close"]


@given(markup_text)
def test_a_fence_holds_all_of_its_text_and_nothing_after_it(text: str):
    fences = [token for token in parse(f"{markdown.fence(text)}\n\nafter") if token.type == "fence"]
    assert len(fences) == 1
    body = visible(text.replace("\r\n", "\n"))
    assert fences[0].content in {body, body + "\n"}


@given(st.text())
def test_no_control_character_reaches_a_page(text: str):
    for made in (markdown.inline(text), markdown.code(text), markdown.fence(text)):
        assert not any(unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t" for c in made)
        made.encode("utf-8")


@pytest.mark.parametrize(
    "character", ["\u061c", "\u200b", "\u202e", "\u2066", "\u3164", "\ufeff", "\U000e0041", "\U000e007f"]
)
def test_no_character_that_is_not_seen_reaches_a_page(character: str):
    for made in (
        markdown.inline(f"a{character}b"),
        markdown.prose(f"`a{character}b`"),
        markdown.fence(f"a{character}b"),
    ):
        assert f"a⟨U+{ord(character):04X}⟩b" in made


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("snake_case_name", "snake_case_name"),
        ("__init__", "\\_\\_init\\_\\_"),
        ("_em_ x_", "\\_em\\_ x\\_"),
        ("(@general)", "(@general)"),
        ("me@evil.example", "`me@evil.example`"),
        (
            "see https://evil.example/a_b, or www.evil.example.",
            "see `https://evil.example/a_b`, or `www.evil.example`.",
        ),
        ("a`https://x.example`b", "a&#96;`https://x.example`&#96;b"),
        ("std::string a::b x:/y", "std::string a::b x:/y"),
        ("issue #5, C#", "issue #5, C#"),
        ("a #tag", "a \\#tag"),
        ("10.8.0.0/24, 3.", "10.8.0.0/24, 3."),
        ("10. Then", "10\\. Then"),
        ("3)", "3\\)"),
        ("a && b &amp; &#33; c&", "a && b \\&amp; \\&#33; c\\&"),
        ("\\n \\* \\", "\\n \\\\\\* \\\\"),
        (
            "error[E0277]: [dependencies] [a](b) [c][d] [x]",
            "error[E0277]: [dependencies] \\[a\\]\\(b) \\[c\\]\\[d\\] \\[x\\]",
        ),
        ("[ ] x [[a]] ![b] [^1] c", "\\[ \\] x \\[\\[a\\]\\] \\!\\[b\\] \\[^1\\] c"),
        ("50% of %%all%%", "50% of \\%\\%all\\%\\%"),
    ],
)
def test_only_what_means_something_is_escaped(text: str, raw: str):
    assert markdown.inline(text) == raw


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_link_leads_only_where_we_say(label: str, href: str):
    assert len(links(markdown.link(label, f"a/{href}.md"))) == 1
    assert links(markdown.link(label, f"a/{href}.md"))[0].startswith("a/")


def test_a_link_to_a_name_with_a_colon_is_no_scheme():
    assert links(markdown.link("x", "javascript:alert(1).md")) == ["javascript%3Aalert%281%29.md"]


def test_cutting_marks_what_was_cut():
    assert markdown.inline("word " * 50, 20) == "word word word word…"


def test_only_our_own_markdown_passes_a_template_as_it_is():
    assert markdown.finalize("*a*") == "\\*a\\*"
    assert markdown.finalize(markdown.Markdown("*a*")) == "*a*"
    assert markdown.finalize(None) == ""
    assert markdown.finalize(7) == "7"


@pytest.mark.parametrize(("ms", "shown"), [(1_795_262_400_999, "2026-11-21T12:00:00Z"), (0, "unknown time"), (-1, "unknown time"), (10**18, "unknown time")])  # fmt: skip
def test_times_are_utc_and_impossible_ones_are_said_to_be_unknown(ms: int, shown: str):
    assert markdown.iso(ms) == shown


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    tzlocal.reload_localzone()
    yield
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    tzlocal.reload_localzone()


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (1_795_302_000_000, "2026-11-22 00:00"),  # 23:00 of the day before in UTC
        (1_782_856_800_000, "2026-07-01 00:00"),  # summer time
        (0, "unknown time"),
        (253_402_300_799_000, "unknown time"),  # the year 10000 there
    ],
)
def test_moments_on_pages_are_local_and_short(ms: int, shown: str):
    assert markdown.moment(ms) == shown
    assert markdown.day(ms) == shown.removesuffix(" 00:00")
    assert markdown.zone() == "Europe/Berlin"


def test_the_tests_run_in_utc_wherever_they_are():
    assert markdown.zone() == "UTC"
    assert markdown.moment(1_795_262_400_999) == "2026-11-21 12:00"
