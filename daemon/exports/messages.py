"""Chat messages: a session a line, its conversation as Ollama's ``messages[]``, to be sent as it is.

Each call keeps its result right behind it, whatever is left out (transcript.replay.validate finds nothing to say).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from daemon.exports import Results
from daemon.exports.form import line
from daemon.exports.sessions import Opened
from daemon.model import Json, OllamaMessage

_MOST = 200


def pieces(opened: Opened) -> Iterator[str]:
    """One line, in pieces."""
    session = opened.session
    yield line({"session_id": session.id, "title": session.title, "directory": session.directory})[:-1]
    yield ',"messages":['
    comma = ""
    for entries in opened.replayed():
        for entry in shown(entries, opened.asked.shows):
            yield comma + line(entry)
            comma = ","
    yield "]}\n"


def shown(entries: Iterable[OllamaMessage], results: Results) -> Iterator[OllamaMessage]:
    """What `results` leaves of a message's entries: full: all; summary: long arguments and results cut; none: no calls.

    An entry of which nothing is left is left out.
    """
    for entry in entries:
        if results == "full":
            yield entry
        elif results == "summary":
            yield _summary(entry)
        elif entry.get("role") != "tool":
            rest = {key: value for key, value in entry.items() if key != "tool_calls"}
            if any(value for key, value in rest.items() if key != "role"):
                yield rest


def _summary(entry: OllamaMessage) -> OllamaMessage:
    if entry.get("role") == "tool":
        return {"role": "tool", "tool_name": entry["tool_name"], "content": _short(entry["content"])}
    if "tool_calls" not in entry:
        return entry
    return entry | {"tool_calls": [_short_call(call) for call in entry["tool_calls"]]}


def _short_call(call: Json) -> Json:
    function = call["function"]
    return call | {"function": function | {"arguments": {key: _short(v) for key, v in function["arguments"].items()}}}


def _short(value: Any) -> Any:
    """Long text cut, and said so; a large value as the beginning of its JSON."""
    text = value if isinstance(value, str) else line(value)
    if len(text) <= _MOST:
        return value
    return f"{text[:_MOST].rstrip()}… [{len(text)} characters]"
