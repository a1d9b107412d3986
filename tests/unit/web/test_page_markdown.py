"""Pages of ours as HTML: what they use of Markdown is shown, what others wrote stays text, links lead where we say."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon import markdown
from daemon.web.page_markdown import html

LINKS = {"beds.lua.md": "/file?path=%2Fbeds.lua", "sessions/a.md#msg-01": "/session/ses_a?message=msg_1"}
_ALLOWED = re.compile(
    r"</?(?:h[1-6]|p|ul|ol|li|blockquote|strong|em|s|code|pre|table|thead|tbody|tr|th|td|details|summary|sup|div|a|span|"
    r"section|br|hr)(?: [^<>]*)?/?>"
)


def elements(text: str) -> list[str]:
    return re.findall(r"<[^>]*>", text)


def test_what_our_pages_use_is_shown() -> None:
    text = (
        "# garden\n\n> Beds. (first prompt)[^1-1]\n\n**Known**: `a < b`, ~~gone~~.\n\n- one\n  - two\n\n"
        "| File | Known |\n| --- | --- |\n| [beds.lua](beds.lua.md) | exactly |\n\n```text\n2026-11 ███ 3\n```\n\n"
        "[^1-1]: 2026-11-21, [Garden](sessions/a.md#msg-01): “Number the rows.”\n"
    )
    shown = html(text, LINKS)
    for piece in (
        "<h1>garden</h1>", "<blockquote>", "<strong>Known</strong>", "<code>a &lt; b</code>", "<s>gone</s>",
        '<a href="/file?path=%2Fbeds.lua">beds.lua</a>', "<th>Known</th>", "2026-11 ███ 3",
        '<sup><a href="#note-1-1"', '<li id="note-1-1">', '<a href="/session/ses_a?message=msg_1">Garden</a>',
    ):  # fmt: skip
        assert piece in shown, piece


def test_folds_of_ours_fold_and_those_of_others_do_not() -> None:
    own = html("<details><summary>2026-10: 3 sessions</summary>\n\n- one\n\n</details>\n", {})
    assert "<details><summary>2026-10: 3 sessions</summary>" in own
    assert own.count("</details>") == 1
    others = html(markdown.inline("<details><summary>x</summary>"), {})
    assert "<details>" not in others
    fenced = html(markdown.fence("<details><summary>x</summary>\n</details>\n[^1-1]: no note"), {})
    assert "<details>" not in fenced
    assert "no note" in fenced


@pytest.mark.parametrize("href", ["https://example.org/x.png", "javascript:alert(1)", "//example.org", "other.md"])
def test_a_link_that_leads_to_no_page_is_its_words(href: str) -> None:
    shown = html(f"[words]({href})", LINKS)
    assert "words" in shown
    assert "href" not in shown


def test_a_mark_without_a_note_is_text() -> None:
    assert "[^9-9]" in html("as said[^9-9]", {})


@given(st.text(max_size=200))
def test_text_of_others_makes_no_element_of_its_own(text: str) -> None:
    for inert in (markdown.inline(text), markdown.prose(text), markdown.code(text), markdown.fence(text)):
        shown = html(f"- before {inert}\n\n{inert}\n" if "\n" not in inert else f"{inert}\n", LINKS)
        assert all(_ALLOWED.fullmatch(element) for element in elements(shown)), shown
        assert "<a " not in shown
        assert "<img" not in shown


@given(st.text(alphabet="<>[]()!`*_~|\\&#^:.-+ \nab1'\"/", max_size=120))
def test_any_markdown_makes_only_elements_of_ours(text: str) -> None:
    shown = html(text, {"a": "/file?path=a"})
    assert all(_ALLOWED.fullmatch(element) for element in elements(shown)), shown
    assert all(href.startswith(("/file?path=a", "#note-")) for href in re.findall(r'href="([^"]*)"', shown))
