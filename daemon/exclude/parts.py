"""What remains of a message's part that concerns an excluded or forgotten path, or an excluded agent: what it was, and
no content. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from daemon import records
from daemon.model import Json
from daemon.private import EXCLUDED, FLAG, FORGOTTEN
from daemon.transcript.tool_calls import PATH_KEYS

_KEPT = ("id", "sessionID", "messageID", "type", "tool", "callID", "time", "synthetic", "mime", "filename", "name")
_NAMELESS = ("id", "sessionID", "messageID", "type", "tool", "callID", "time", "synthetic", "mime")
_TYPES = frozenset({"tool", "file", "text"})
_AGENT_KEYS = ("subagent_type", "agent", "agentType")
_CUT_OFF = re.compile(r"abort|interrupt", re.IGNORECASE)


def of_paths(data: Json, *, is_concerned: bool) -> Json | None:
    """What remains of a part that concerns an excluded path; None where it stays as it is.

    The input of a call that has not begun is left out in any case: it arrives piece by piece, and the path may be last.
    """
    state = records.table(data.get("state"))
    if data.get("type") == "tool" and not is_concerned and state.get("status") == "pending":
        is_empty = not state.get("input") and not state.get("raw")
        return None if is_empty else {**data, "state": {"status": "pending", "input": {}}, FLAG: {"paths": True}}
    if not is_concerned or data.get("type") not in _TYPES:
        return None
    remains = {key: data[key] for key in _KEPT if key in data}
    match data["type"]:
        case "tool":
            remains["state"] = _state(state, PATH_KEYS)
        case "file":
            remains["url"] = ""
        case _:
            remains["text"] = EXCLUDED
    return remains | {FLAG: {"paths": True}}


def without_names(data: Json) -> Json:
    """What remains of a part of which not even the path may stay: that it was there, and how a call ended."""
    remains = {key: data[key] for key in _NAMELESS if key in data}
    state = records.table(data.get("state"))
    match data.get("type"):
        case "tool":
            remains["state"] = _state(state, (), FORGOTTEN)
        case "file":
            remains["url"] = ""
        case "text":
            remains["text"] = FORGOTTEN
    return remains | {FLAG: {"forgotten": True}}


def of_agents(data: Json, is_excluded: Callable[[object], bool]) -> Json | None:
    """What remains of a part that gives an excluded agent a task and holds its answer; None for any other."""
    if data.get("type") == "subtask" and is_excluded(data.get("agent")):
        remains = {key: data[key] for key in _KEPT if key in data} | {"agent": data["agent"], "prompt": EXCLUDED}
        return remains | {FLAG: {"agents": True}}
    state = records.table(data.get("state"))
    call_input = records.table(state.get("input"))
    if data.get("type") != "tool" or not any(is_excluded(call_input.get(key)) for key in _AGENT_KEYS):
        return None
    remains = {key: data[key] for key in _KEPT if key in data}
    return remains | {"state": _state(state, _AGENT_KEYS), FLAG: {"agents": True}}


def _state(state: Json, keys: tuple[str, ...], mark: str = EXCLUDED) -> Json:
    call_input = records.table(state.get("input"))
    kept: Json = {key: state[key] for key in ("status", "time") if key in state}
    kept["input"] = {key: call_input[key] for key in keys if isinstance(call_input.get(key), str)}
    if "output" in state:
        kept["output"] = mark
    if "error" in state:  # whether the call was cut off decides what it may have done
        kept["error"] = f"aborted {mark}" if _CUT_OFF.search(records.text(state["error"])) else mark
    return kept
