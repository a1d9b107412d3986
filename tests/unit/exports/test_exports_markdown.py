"""The document: readable, whole, and inert whatever a transcript says (docs/reliability.md, T1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.exports import Export
from daemon.exports.formats import export
from daemon.markdown import code, fence, inline
from tests.support.pages.markup import PAYLOADS, kinds, links, parse
from tests.support.stores.recorded_sessions import Recorded, call, recorded

OURS = {"<details><summary>Reasoning</summary>", "<details><summary>System prompt</summary>", "</details>"}


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Recorded]:
    with recorded(tmp_path) as made:
        yield made


def document(house: Recorded, **asked: Any) -> str:
    taken: list[str] = []
    export(house.archive, Export(format="markdown", **asked), taken.append, lambda _: None)
    return "".join(taken)


def test_a_session_reads_as_a_chapter_with_its_turns_and_calls(house: Recorded) -> None:
    sid = house.session("ses_a", "/w/shop", "The *cart*")
    house.say(sid, "user", "Why is it\na list?")
    house.say(
        sid, "assistant", {"type": "reasoning", "text": "Order matters."},
        call("read", filePath="/w/shop/cart.py", output="1: x\n"), call("bash", command="ls `pwd`"), "Because of order.",
    )  # fmt: skip
    assert document(house) == (
        "# The \\*cart\\*\n\n"
        "- Session: `ses_a`\n- Directory: `/w/shop`\n- Project: `prj`\n"
        "- Started: 2026-11-18T11:07:40.000Z\n- Last updated: 2026-11-18T11:07:40.000Z\n\n"
        "## Prompt · 2026-11-18T11:08:40.000Z\n\n"
        "```text\nWhy is it\na list?\n```\n\n"
        "## Answer · 2026-11-18T11:09:40.000Z\n\n"
        "<details><summary>Reasoning</summary>\n\n```text\nOrder matters.\n```\n\n</details>\n\n"
        "- **Tool** `read read (completed, 1 line)`\n"
        "- **Tool** ``bash ls `pwd` (completed)``\n\n"
        "```text\nBecause of order.\n```\n\n"
    )


def test_whole_results_stand_in_fences_behind_their_arguments(house: Recorded) -> None:
    house.say(house.session("ses_a", "/w"), "assistant", call("bash", command="cat a", output="```\n# no\n```\n"))
    found = document(house, results="full")
    assert (
        'Arguments:\n\n```json\n{\n  "command": "cat a"\n}\n```\n\nResult:\n\n````text\n```\n# no\n```\n````\n' in found
    )
    assert "Tool" not in document(house, results="none")


def test_what_is_deleted_or_failed_is_said(house: Recorded) -> None:
    sid = house.session("ses_a", "/w")
    mid = house.put(sid, "msg_1", "assistant", (), error={"name": "APIError", "data": {"message": "503"}})
    house.delete(mid)
    found = document(house)
    assert "## Answer · 2026-11-18T11:07:40.000Z · deleted in OpenCode" in found
    assert "**Error** `APIError`\n\n```json\n" in found


@pytest.mark.parametrize("results", ["summary", "full"])
@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_in_a_transcript_becomes_markup(house: Recorded, payload: str, results: str) -> None:
    sid = house.session("ses_a", f"/w/{payload}", payload)
    house.say(
        sid, "assistant", payload, {"type": "reasoning", "text": payload, "metadata": {"subject": payload}},
        call("bash", output=payload, command=payload), call(payload, "error", error=payload, x=payload),
        {"type": "sticker", "text": payload}, {"type": "file", "filename": payload, "url": payload},
    )  # fmt: skip
    house.put(sid, "msg_x", payload, (), error={"name": payload}, system=payload, modelID=payload)
    found = document(house, results=results)
    tokens = parse(found)
    assert [token.tag for token in tokens if token.type == "heading_open"] == ["h1", "h2", "h2"]
    assert {token.content.strip() for token in tokens if token.type in {"html_block", "html_inline"}} <= OURS
    assert links(found) == []
    assert (
        kinds(found) & {"image", "table_open", "hr", "blockquote_open", "em_open", "s_open", "ordered_list_open"}
        == set()
    )
    assert sum(token.type == "fence" for token in tokens) >= 6


@pytest.mark.parametrize("payload", [*PAYLOADS, "", " ", "`", "a`", "``", "\r", "a\rb", "\u2028", "\ud800", "\x1b[31m"])
def test_each_form_of_a_text_is_one_token_of_its_kind(payload: str) -> None:
    (block,) = [token for token in parse(fence(payload) + "\n") if token.block and token.nesting >= 0]
    assert block.type == "fence"
    assert [token.type for token in parse(f"x {code(payload)} y")] == [
        "paragraph_open", "inline", "text", "code_inline", "text", "paragraph_close",
    ]  # fmt: skip
    assert kinds(f"# {inline(payload)}") <= {
        "heading_open", "inline", "text", "text_special", "code_inline", "heading_close",
    }  # fmt: skip


def test_control_and_direction_characters_are_shown_as_symbols(house: Recorded) -> None:
    house.say(house.session("ses_a", "/w", "a\x1b]0;owned\x07"), "user", "b\x1b[31m\x9b1m\u202ec\x00\r\nd\n")
    found = document(house)
    assert "# a␛\\]0;owned␇\n" in found
    assert "```text\nb␛[31m⟨U+009B⟩1m⟨U+202E⟩c␀\nd\n```\n" in found
