"""An answer in the form that costs an agent least: nothing twice, and nothing that is the usual case.

What is false, empty or null is left out. Of results each session stands once, in a list of its own, and a result names
its place in it, from 0. No text is cut: the argument `full` gives the answer as every other door has it. Pure
functions.
"""

from __future__ import annotations

from typing import Any

from daemon.model import Json

_LISTS = frozenset({"results", "messages", "sessions", "entries", "revisions", "content", "parts"})
"""What an answer is about: it stands there even if it is empty."""
_RECORDED = frozenset({"input", "arguments", "metadata", "contentBase64"})
"""What stands beneath is as it was recorded."""
_SAID_ELSEWHERE = frozenset({"ok", "query", "group", "degraded", "coverage"})
"""Of an answer to a search: what was asked, what the warnings say too, and figures of the archive."""
_UNREAD = ("loadErrorCount", "loadErrors")
_OF_A_RESULT = ("messageID", "time", "kind", "toolName")
_IF_THERE = ("near", "copies", "matchReasons", "deleted", "pruned")
_SAYS_NOTHING = frozenset({"step-start", "step-finish", "snapshot"})
"""Parts of a message that nobody wrote."""
_UNNEEDED = frozenset({("parts", "id"), ("context", "projectID")})
"""Ids that no other call asks for."""


def compact(name: str, answer: Json) -> Json:
    """The answer of the tool `name`, shortened."""
    if name == "recall" and isinstance(answer.get("results"), list):
        answer = _search(answer)
    made: Json = {}
    for key, value in answer.items():
        short = value if key in _RECORDED else _short(key, value)
        if not _is_usual(short) or (key in _LISTS and short is not None):
            made[key] = short
    made.pop("ok", None)
    return made


def _search(answer: Json) -> Json:
    sessions: dict[str, Json] = {}
    results = [_result(result, answer, sessions) for result in answer["results"]]
    made = {key: value for key, value in answer.items() if key not in _SAID_ELSEWHERE}
    if made.get("degradeKind") == "none":
        del made["degradeKind"]
    if made.get("matchMode") == "hybrid":
        del made["matchMode"]
    if made.get("sort") == "relevance":
        del made["sort"]
    if not made.get("truncated"):
        made.pop("total", None)
    unread = {key: value for key, value in (answer.get("coverage") or {}).items() if key in _UNREAD}
    return (
        {"results": results, "sessions": list(sessions.values())}
        | unread
        | {key: value for key, value in made.items() if key != "results"}
    )


def _result(result: Json, answer: Json, sessions: dict[str, Json]) -> Json:
    session = {
        "sessionID": result.get("sessionID"),
        "title": result.get("sessionTitle"),
        "directory": result.get("directory"),
        "archived": result.get("archived"),
    }
    sessions.setdefault(str(session["sessionID"]), session)
    made = {key: result[key] for key in _OF_A_RESULT if key in result}
    made["session"] = list(sessions).index(str(session["sessionID"]))
    if result.get("role") != ("user" if result.get("kind") == "prompt" else "assistant"):
        made["role"] = result.get("role")
    if result.get("matchMode") != answer.get("matchMode"):
        made["matchMode"] = result.get("matchMode")
    if result.get("hitCount", 1) != 1:
        made["hitCount"] = result["hitCount"]
    made |= {key: result[key] for key in _IF_THERE if key in result}
    if "matchReasons" in result:
        made["score"] = result.get("score")
    return made | {"snippet": result.get("snippet")}


def _short(key: str, value: object) -> Any:
    if isinstance(value, list):
        if key == "messages" and any(isinstance(entry, dict) and "role" in entry for entry in value):
            return value  # chat messages for a model
        if key == "parts":
            value = [part for part in value if not (isinstance(part, dict) and part.get("type") in _SAYS_NOTHING)]
        return [_short(key, entry) for entry in value]
    if not isinstance(value, dict):
        return value
    made = {}
    for name, inner in value.items():
        short = inner if name in _RECORDED else _short(name, inner)
        if (
            not _is_usual(short)
            and not (name == "id" and key == "parts")
            and not (name == "projectID" and key == "context")
        ):
            made[name] = short
    return made


def _is_usual(value: object) -> bool:
    return value is None or value is False or value in ("", [], {})
