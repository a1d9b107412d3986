"""Whether Ollama would take an array of chat messages, and read it as it is meant."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from daemon.model import OllamaMessage
from daemon.records import table
from daemon.transcript.replay import ROLES
from daemon.transcript.tool_calls import compact, valid


def ollama_problems(messages: Sequence[OllamaMessage]) -> list[str]:
    """What Ollama would not take, or would misread, in words; empty when all is well.

    Checks the form of each entry and that the results behind an assistant message are its calls', one each, in order.
    """
    problems: list[str] = []
    awaited: list[str] = []
    for number, message in enumerate(messages):
        role = message.get("role")
        problems += [f"message {number}: {problem}" for problem in _form(message)]
        if role == "tool":
            if not awaited:
                problems.append(f"message {number}: a tool result without a call")
            elif awaited.pop(0) != message.get("tool_name"):
                problems.append(f"message {number}: the result of another tool than the one called")
            continue
        if awaited:
            problems.append(f"message {number}: {len(awaited)} tool results are missing before it")
        calls = message.get("tool_calls") or []
        awaited = [str(table(table(call).get("function")).get("name")) for call in calls]
    if awaited:
        problems.append(f"{len(awaited)} tool results are missing at the end")
    return problems


def _form(message: OllamaMessage) -> list[str]:
    role = message.get("role")
    problems = [] if role in ROLES | {"tool"} else [f"role {role!r}"]
    if not isinstance(message.get("content"), str):
        problems.append("content is not text")
    if "thinking" in message and (role != "assistant" or not isinstance(message["thinking"], str)):
        problems.append("thinking belongs to an assistant, as text")
    if "tool_calls" in message and role != "assistant":
        problems.append("only an assistant calls tools")
    if role == "tool" and not message.get("tool_name"):
        problems.append("a tool result without tool_name")
    problems += ["an image that is not base64" for image in message.get("images", []) if not _is_base64(image)]
    for number, called in enumerate(message.get("tool_calls", [])):
        function = table(table(called).get("function"))
        if not function.get("name") or not isinstance(function.get("arguments"), dict):
            problems.append(f"call {number} lacks a name, or arguments that are an object")
    try:
        compact_form = compact(message)
    except (TypeError, ValueError) as error:
        return [*problems, f"not JSON: {error}"]
    if valid(message) != message or not compact_form:
        problems.append("text that is not valid UTF-8")
    return problems


def _is_base64(image: str) -> bool:
    try:
        return bool(base64.b64decode(image, validate=True))
    except ValueError:
        return False
