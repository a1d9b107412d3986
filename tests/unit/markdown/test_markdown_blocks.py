"""Whole texts of others look like what they were, and nothing in them is active."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.markdown.blocks import blocks, language
from tests.support.examples import examples
from tests.support.pages.markup import PAYLOADS, kinds, parse

SHAPES = {
    "one\ntwo": "one\\\ntwo",
    "one\n\n\ntwo": "one\n\ntwo",
    "# A **title** #": "**A title**",
    "so **this word:** is\n**bold**": "so **this word:** is\\\n**bold**",
    "2 ** 3 ** 4, a**b**c, ** x **": r"2 \*\* 3 \*\* 4, a\*\*b\*\*c, \*\* x \*\*",
    "- a\n* b\n  more\n- c": "- a\n- b\\\n  more\n- c",
    "- a\n  - b\n    1. c\n- d": "- a\n  - b\n    1. c\n- d",
    "- a\n\n  ```py\n  x = 1\n  ```\n- b": "- a\n\n  ```py\n  x = 1\n  ```\n- b",
    "3. c\n4) d": "3. c\n4. d",
    "- a\n5. b": "- a\n\n5. b",
    "text\n- [ ] open": "text\n\n- \\[ \\] open",
    "```python\n\tx\n```": "```python\n    x\n```",
    "~~~~ sh -x\n```\n~~~\n~~~~": "````sh\n```\n~~~\n````",
    "```mermaid\ngraph TD\n```": "```\ngraph TD\n```",
    "```\nnever closed\n\n# x": "```\nnever closed\n\n# x\n```",
    "> said\n> - by\n\n> again": "> said\n>\n> - by\n\n> again",
    "| a | b |\n|---|---|\n| 1 | 2 |": "```\n| a | b |\n|---|---|\n| 1 | 2 |\n```",
    "so:\n\n    code\n      more\n\nend": "so:\n\n```\ncode\n  more\n```\n\nend",
    "修复 **登录**\n- 一": "修复 **登录**\n\n- 一",
    "a\r\nb\u202ec": "a\\\nb⟨U+202E⟩c",
    " \n\t\n": "",
}
OURS = {
    "paragraph_open", "paragraph_close", "inline", "text", "text_special", "code_inline", "hardbreak", "softbreak", "fence",
    "bullet_list_open", "bullet_list_close", "ordered_list_open", "ordered_list_close", "list_item_open",
    "list_item_close", "blockquote_open", "blockquote_close", "strong_open", "strong_close",
}  # fmt: skip
AROUND = (
    "{}",
    "- {}",
    "  - a\n  {}",
    "1. {}\n2. {}",
    "> {}",
    "a\n{}\nb",
    "    {}",
    "```\n{}",
    "**{}**",
    "`{}",
    "# {}",
    "|{}",
)


@pytest.mark.parametrize(("text", "made"), SHAPES.items(), ids=range(len(SHAPES)))
def test_a_text_keeps_its_shape(text: str, made: str) -> None:
    assert blocks(text) == made


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_text_is_inert_in_every_shape(payload: str) -> None:
    for around in AROUND:
        assert kinds(blocks(around.replace("{}", payload))) <= OURS, around


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.sampled_from([
    "a", " ", "\n", "\n\n", "    ", "\t", "- ", "1. ", "10) ", "> ", "# ", "**", "*", "_", "`", "```", "~~~", "|", "---", "===",
    "[x](y)", "![", "](", "[^1]: ", "<b>", "</details>", "&lt;", "http://x.y", "www.x.y", "@", "\\", "$", "\ue000", "\ue001", "\u00a0",
    "é", "\r", ":", "!", "mermaid",
]), max_size=40))  # fmt: skip
def test_no_text_makes_anything_but_our_blocks(pieces: list[str]) -> None:
    assert kinds(blocks("".join(pieces))) <= OURS


@pytest.mark.parametrize(
    "text", ["```" + " x" * 50_000 + "`", "# " + " #" * 50_000, "**a" * 30_000, "> " * 30_000 + "x", "- " * 30_000]
)
def test_long_lines_are_read_once(text: str) -> None:
    """Each of these takes minutes where a pattern tries every place again."""
    assert blocks(text)


def test_only_fences_that_are_coloured_name_a_language() -> None:
    assert [language(info) for info in ("Python", "mermaid", "math", "dataviewjs", "geojson", "{r}")] == ["python"] + [
        ""
    ] * 5


def test_a_secret_split_by_invisible_characters_is_hidden() -> None:
    secret = "ghp_" + "a1B2" * 9
    assert secret not in blocks(f"see {secret[:9]}\u200b{secret[9:]}").replace("⟨U+200B⟩", "")


def test_lists_are_lists_to_a_parser() -> None:
    tokens = [token.type for token in parse(blocks("1. a\n   - b\n   - c\n2. d"))]
    assert tokens.count("ordered_list_open") == 1
    assert tokens.count("list_item_open") == 4
