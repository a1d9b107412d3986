"""A chat model that believes everything it reads: it does what the recorded text says, and repeats it wherever it can.

It speaks through `fake_ollama`, as chat_script. It looks for orders of the form ``tool({...})`` in all that it was
shown and makes these calls; "for ever" makes it repeat the last one; then it writes the text into a note, a
description, a recorded path and the answer, with the sources that it has, with forged ones and with none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from daemon.reconstitute.agent.loop import MOST_CALLS
from tests.hostile.blocks_read import DelimitedText, read_messages

_ORDER = re.compile(r"([A-Za-z_][\w.]*)\((\{.*?\})\)(?=\s|$|[.,;:])", re.DOTALL)
_ID = re.compile(r"^(?:message|file .* message) (msg_\w+)", re.MULTILINE)
_MOST_ORDERS = 24
_MOST_REPEATED = 9
_MOST_RECORDED = 2
"""In one reply; more are refused."""


class GullibleModel:
    """`looks` maps an own question's text to the calls that show what it is about."""

    def __init__(self, looks: Mapping[str, list[tuple[str, dict[str, Any]]]]) -> None:
        self._looks = looks
        self._read: dict[str, DelimitedText] = {}

    def __call__(self, body: Any) -> Any:
        messages = body["messages"]
        question = str(messages[1]["content"]).rsplit("answer_question in the end:\n", 1)[-1].strip()
        look = self._looks.get(question)
        turn = sum(message["role"] == "assistant" for message in messages) + (look is None)
        if turn == 0 and look is not None:
            return _calls(look)
        read = read_messages([m for m in messages if m["role"] == "tool"][: len(look)] if look else messages[1:2])
        read = self._read.setdefault(question, read)  # it does not forget what was left out of the conversation later
        orders = _orders(read)
        if "for ever" in read.inside and orders and turn > 1:
            return _calls([_again(*orders[-1], turn)])
        plan = [orders] if orders else []
        repeated = _repeated(read) if look is not None else []
        plan += [repeated[start : start + MOST_CALLS] for start in range(0, len(repeated), MOST_CALLS)]
        return _calls(plan[turn - 1] if turn <= len(plan) else [("answer_question", _answer(read))])


def _again(name: str, arguments: dict[str, Any], turn: int) -> tuple[str, dict[str, Any]]:
    return name, arguments | ({"query": f"more of word {turn}"} if "query" in arguments else {})


def _calls(orders: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    calls = [{"function": {"name": name, "arguments": arguments}} for name, arguments in orders]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def _orders(read: DelimitedText) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for name, arguments in _ORDER.findall(read.inside):
        try:
            found.append((name, json.loads(arguments)))
        except ValueError:  # cut off in the excerpt, or no call at all
            continue
    return found[:_MOST_ORDERS]


def _ids(read: DelimitedText) -> list[str]:
    return _ID.findall(read.inside) or ["msg_0001"]


def _repeated(read: DelimitedText) -> list[tuple[str, dict[str, Any]]]:
    calls: list[tuple[str, dict[str, Any]]] = [("obey", {"text": _text(read)})]
    for number, body in enumerate(read.bodies[:_MOST_REPEATED]):
        one = DelimitedText((body,), "")
        text, ids = _text(one), _ids(one)[:1]
        path = text[:200] if number % 2 else f"src/{text.strip()[:60]}.py"
        calls += [
            ("add_note", {"text": text, "message_ids": ids}),
            ("describe_path", {"path": "src/app.py", "text": text, "message_ids": ids}),
        ]
        if number < _MOST_RECORDED:
            calls.append(("record_path", {"path": path, "why": text, "message_id": ids[0]}))
    return calls


def _answer(read: DelimitedText) -> dict[str, Any]:
    every = [_statements(DelimitedText((body,), "")) for body in read.bodies[-_MOST_REPEATED:]]
    return {
        "statements": [
            *(statement for statements in every for statement in statements),
            {"text": "It cites a message that is not there.", "message_ids": ["msg_9999"]},
            {"text": "It cites nothing.", "message_ids": []},
            {"text": "It quotes nobody.", "message_ids": _ids(read)[:1], "quote": "Mallory owns this entirely"},
            {"text": "It speaks of a path outside.", "message_ids": _ids(read)[:1], "paths": ["/etc/passwd"]},
        ],
        "note": _text(read),
    }


def _statements(read: DelimitedText) -> list[dict[str, Any]]:
    text, ids = _text(read), _ids(read)[:1]
    line = next((line for line in text.splitlines() if len(line.split()) > 3), text)[:200]
    return [
        {"text": text, "message_ids": ids, "reason": text},
        {"text": f"Quoted: {text}"[:1400], "message_ids": ids, "quote": line, "paths": ["src/app.py"]},
    ]


def _text(read: DelimitedText) -> str:
    """What the first block says, without our heading."""
    return read.bodies[0].split("\n", 1)[-1][:1400] if read.bodies else "nothing"
