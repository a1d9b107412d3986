"""A client's messages become a session's prompt: all of them in a new session, only the new ones in one that goes on.

A conversation is known again by its digests: one for every beginning of it, each made from the one before, so that a
session which holds a beginning is found by it, and anything that a client changed in what was said is another one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from daemon.chat.actions import calls_of, in_words, is_of_tools, result_turn
from daemon.model import OllamaMessage

RECENT = 10
"""How many messages decide which tool is chosen; those before them are given as what led there."""


def system_of(messages: Sequence[OllamaMessage]) -> str:
    """What the client says to the model itself."""
    return "\n\n".join(m["content"] for m in messages if m["role"] == "system" and m["content"].strip())


def turns_of(messages: Sequence[OllamaMessage]) -> list[OllamaMessage]:
    """The conversation without system messages; each result with the name of the tool that gave it."""
    turns, waiting = list[OllamaMessage](), list[str]()
    for message in messages:
        if message["role"] == "assistant":
            waiting = [call.name for call in calls_of(message)]
        if message["role"] == "tool":
            # Clients that name no tool answer calls in their order.
            expected = waiting.pop(0) if waiting else ""
            name = message.get("tool_name") or message.get("name") or expected
            turns.append({"role": "tool", "tool_name": name, "content": message["content"]})
        elif message["role"] != "system":
            turns.append(message)
    return turns


def user_texts(turns: Sequence[OllamaMessage]) -> list[str]:
    """What the user said, latest first."""
    return [m["content"] for m in reversed(turns) if m["role"] == "user"]


def awaits_answer(turns: Sequence[OllamaMessage]) -> bool:
    """Whether the latest message is a tool's result. An older one says how things were, not how they are."""
    return bool(turns) and turns[-1]["role"] == "tool"


def opening(turns: Sequence[OllamaMessage], *, in_actions: bool) -> str:
    """All of the conversation, for a session that knows nothing; a single message as it is."""
    if len(turns) == 1 and turns[0]["role"] == "user":
        return str(turns[0]["content"])
    said = [_turn_text(message, in_actions=in_actions) for message in turns]
    earlier, recent = said[:-RECENT], said[-RECENT:]
    blocks = ["This conversation was held so far, oldest message first."]
    if earlier:
        blocks += ["What led here:", *earlier, "The latest messages, from which the next turn follows:"]
    return "\n\n".join([*blocks, *recent, "Write the next turn of the assistant, without its label."])


def continuing(turns: Sequence[OllamaMessage]) -> str:
    """Messages of the user and of tools, for the session that knows what was before them."""
    return "\n\n".join(_result(m) if m["role"] == "tool" else str(m["content"]) for m in turns)


def digests(setup: Any, turns: Sequence[OllamaMessage]) -> list[str]:
    """One for every beginning: [0] for none of the turns, [n] for the first n. `setup`: what else must be the same."""
    chain = [_digest(setup)]
    for turn in turns:
        chain.append(_digest([chain[-1], _essence(turn)]))
    return chain


def _essence(turn: OllamaMessage) -> list[Any]:
    """What a client sends back unchanged; ids, thinking and surrounding blanks need not survive with it."""
    calls = [[call.name, call.arguments] for call in calls_of(turn)]
    return [turn["role"], turn["content"].strip(), calls, turn.get("tool_name", "")]


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _turn_text(message: OllamaMessage, *, in_actions: bool) -> str:
    if message["role"] == "tool":
        return _result(message)
    if message["role"] == "assistant" and (in_actions or is_of_tools(message)):
        message = in_words([message], ())[1]
    return f"{message['role'].capitalize()}:\n{message['content']}"


def _result(message: OllamaMessage) -> str:
    return result_turn(message["tool_name"], message["content"])
