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
_REDUNDANT = frozenset({"ok", "query", "group", "degraded", "coverage"})
"""Of an answer to a search: what was asked, what the warnings say too, and figures of the archive."""
_UNREAD = ("loadErrorCount", "loadErrors")
_RESULT_FIELDS = ("messageID", "time", "kind", "toolName")
_OPTIONAL = ("near", "copies", "matchReasons", "deleted", "pruned")
_EMPTY_PARTS = frozenset({"step-start", "step-finish", "snapshot"})
"""Parts of a message that nobody wrote."""
_UNNEEDED = frozenset({("parts", "id"), ("context", "projectID")})
"""Ids that no other call asks for: the name of what holds it, and its own."""


def compact(name: str, answer: Json) -> Json:
    """The answer of the tool `name`, shortened."""
    if name == "recall" and isinstance(answer.get("results"), list):
        answer = _search(answer)
    compacted: Json = {}
    for key, value in answer.items():
        short = value if key in _RECORDED else _short(key, value)
        if not _is_usual(short) or (key in _LISTS and short is not None):
            compacted[key] = short
    compacted.pop("ok", None)
    return compacted


def _search(answer: Json) -> Json:
    sessions: dict[str, Json] = {}
    results = [_result(result, answer, sessions) for result in answer["results"]]
    compacted = {key: value for key, value in answer.items() if key not in _REDUNDANT}
    if compacted.get("degradeKind") == "none":
        del compacted["degradeKind"]
    if compacted.get("matchMode") == "hybrid":
        del compacted["matchMode"]
    if compacted.get("sort") == "relevance":
        del compacted["sort"]
    if not compacted.get("truncated"):
        compacted.pop("total", None)
    unread = {key: value for key, value in (answer.get("coverage") or {}).items() if key in _UNREAD}
    return (
        {"results": results, "sessions": list(sessions.values())}
        | unread
        | {key: value for key, value in compacted.items() if key != "results"}
    )


def _result(result: Json, answer: Json, sessions: dict[str, Json]) -> Json:
    session = {
        "sessionID": result.get("sessionID"),
        "title": result.get("sessionTitle"),
        "directory": result.get("directory"),
        "archived": result.get("archived"),
    }
    sessions.setdefault(str(session["sessionID"]), session)
    compacted = {key: result[key] for key in _RESULT_FIELDS if key in result}
    compacted["session"] = list(sessions).index(str(session["sessionID"]))
    if result.get("role") != ("user" if result.get("kind") == "prompt" else "assistant"):
        compacted["role"] = result.get("role")
    if result.get("matchMode") != answer.get("matchMode"):
        compacted["matchMode"] = result.get("matchMode")
    if result.get("hitCount", 1) != 1:
        compacted["hitCount"] = result["hitCount"]
    compacted |= {key: result[key] for key in _OPTIONAL if key in result}
    if "matchReasons" in result:
        compacted["score"] = result.get("score")
    return compacted | {"snippet": result.get("snippet")}


def _short(key: str, value: object) -> Any:
    if isinstance(value, list):
        if key == "messages" and any(isinstance(entry, dict) and "role" in entry for entry in value):
            return value  # chat messages for a model
        if key == "parts":
            value = [part for part in value if not (isinstance(part, dict) and part.get("type") in _EMPTY_PARTS)]
        return [_short(key, entry) for entry in value]
    if not isinstance(value, dict):
        return value
    shortened = {}
    for name, inner in value.items():
        short = inner if name in _RECORDED else _short(name, inner)
        if not _is_usual(short) and (key, name) not in _UNNEEDED:
            shortened[name] = short
    return shortened


def _is_usual(value: object) -> bool:
    return value is None or value is False or value in ("", [], {})
