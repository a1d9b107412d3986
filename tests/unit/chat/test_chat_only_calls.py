"""A model without tools whose caller takes nothing but calls: it is told of nothing else, and reminded at the end."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from daemon.chat import BadReply, Reply, ToolCall
from daemon.chat.action_text import ANSWER_FORM, CHAT_FORM, parse
from daemon.chat.actions import Actions, instructions
from daemon.model import Json, OllamaMessage

SEARCH: Json = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Find messages.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "limit": {"type": "integer"},
                "kinds": {"type": "array", "items": {"type": "string"}},
                "path": {"type": "string"},
            },
            "required": ["query", "limit", "kinds"],
        },
    },
}
BARE: Json = {"type": "function", "function": {"name": "list_files"}}
ASKED: list[OllamaMessage] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Find x."}]
SAID = '{"action": "tool_call", "tool_name": "search", "arguments": {"query": "x"}}'


class Scripted:
    """Says one thing, and keeps what it was asked."""

    name, fingerprint, context_tokens = "tiny (test)", "tiny@1", 512

    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.asked: list[list[OllamaMessage]] = []

    def chat(self, messages: Sequence[OllamaMessage], tools: Sequence[Json] = (), on_text: object = None) -> Reply:
        self.asked.append(list(messages))
        assert not tools
        return Reply(self.reply)

    def close(self) -> None:
        pass


def test_other_forms_are_neither_told_nor_proposed_when_it_went_wrong() -> None:
    inner = Scripted("Sure!")
    with pytest.raises(BadReply) as caught:
        Actions(inner, only_calls=True).chat(ASKED, [SEARCH])
    for form in (ANSWER_FORM, CHAT_FORM):
        assert form not in str(caught.value)
        assert form not in json.dumps(inner.asked)
        assert form in instructions([SEARCH])
    assert instructions([SEARCH], only_calls=True) in inner.asked[0][0]["content"]


@pytest.mark.parametrize(
    ("tool", "example"),
    [(SEARCH, {"query": "...", "limit": 1, "kinds": []}), (BARE, {})],
    ids=["with arguments", "without"],
)
def test_the_last_turn_ends_with_an_example_that_is_a_call(tool: Json, example: Json) -> None:
    inner = Scripted(SAID)
    assert Actions(inner, only_calls=True).chat(ASKED, [tool]).calls == (ToolCall("search", {"query": "x"}),)
    said = inner.asked[0][-1]["content"]
    assert said.startswith("Find x.\n\n")
    assert parse(said).call == ToolCall(tool["function"]["name"], example)


def test_a_result_keeps_its_marks_and_the_example_stands_after_them() -> None:
    inner = Scripted(SAID)
    call = {"function": {"name": "search", "arguments": {"query": "y"}}}
    result: list[OllamaMessage] = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_name": "search", "content": "nothing"},
    ]
    Actions(inner, only_calls=True).chat([*ASKED, *result], [SEARCH])
    assert inner.asked[0][1] == ASKED[1], "only the last turn has it"
    mark = inner.asked[0][-1]["content"].split("[", 1)[1][:12]
    assert inner.asked[0][-1]["content"].rsplit(f"[{mark}]", 1)[1].lstrip().startswith("Your turn is one JSON object")


def test_without_tools_or_after_an_assistants_turn_nothing_is_added() -> None:
    inner = Scripted(SAID)
    model = Actions(inner, only_calls=True)
    model.chat(ASKED)
    model.chat([*ASKED, {"role": "assistant", "content": "Well"}], [SEARCH])
    assert inner.asked[0] == ASKED
    assert inner.asked[1][1:] == [ASKED[1], {"role": "assistant", "content": '{"action": "answer", "content": "Well"}'}]


def test_its_replies_are_not_taken_for_those_to_other_words() -> None:
    inner = Scripted(SAID)
    assert Actions(inner, only_calls=True).fingerprint != Actions(inner).fingerprint
