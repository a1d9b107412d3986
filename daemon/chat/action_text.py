"""A model's text becomes an action, and an action text: the one JSON object a turn of models that have no tools.

Three actions (docs/answers.md): ``tool_call`` with tool_name and arguments, ``answer`` and ``chat`` with content.
Read generously, since what surrounds the object can hardly be mistaken: code fences, prose, an array around it, a chat
template's marks, thinking before it. Read strictly, since guessing would make the model do what it did not say: the
object itself. ``parse(render(action))`` is the action; whatever else comes is a BadReply that tells the model, in words
for it, what was wrong.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, cast

from daemon.chat import ToolCall
from daemon.display import shorten
from daemon.errors import BadReply
from daemon.model import Json

Kind = Literal["tool_call", "answer", "chat"]
CALL_FORM = '{"action": "tool_call", "tool_name": "NAME", "arguments": {}}'
ANSWER_FORM = '{"action": "answer", "content": "TEXT"}'
CHAT_FORM = '{"action": "chat", "content": "TEXT"}'

_KINDS = ("tool_call", "answer", "chat")
_CALL_KEYS = {"action", "tool_name", "name", "tool", "arguments", "content", "type", "id"}
_MOST_LEVELS = 100
_MOST_BROKEN = 100
"""With more objects that cannot be read, the rest of a reply is not looked at: each one takes time to be explained."""
_THOUGHT = re.compile(r"\s*<(think|thinking|thought|reasoning)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_END_OF_THOUGHT = re.compile(r"</(?:think|thinking|thought|reasoning)>")
_START = re.compile(r"\{\s*[\"'“‘}]")
"""A brace that opens an object, or what is meant for one; others occur in prose and in code."""
_MARK = re.compile(r'\\.|["{}]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Action:
    """What one turn says: `call` for a tool_call, `content` for the others; `thinking` stood before it."""

    kind: Kind
    content: str = ""
    call: ToolCall | None = None
    thinking: str = ""


def render(action: Action) -> str:
    """The action as a model would write it, on one line; thinking is left out."""
    if action.call is not None:
        value: Json = {"action": "tool_call", "tool_name": action.call.name, "arguments": action.call.arguments}
    else:
        value = {"action": action.kind, "content": action.content}
    return json.dumps(value, ensure_ascii=False)


def parse(text: str, tools: Collection[str] = (), *, only_calls: bool = False) -> Action:
    """The one action in a model's reply. `tools` are the names that exist; others are calls all the same.

    The first call counts, because the model wrote what follows without knowing its result. With `only_calls`, other
    actions are still understood, but error messages do not propose them.

    Raises:
        BadReply: there is no such object, or more than one, or it is not well formed.
    """
    thinking, reply = _without_thinking(text)
    values, malformed = _objects(reply)
    actions = [value for value in values if _is_action(value)]
    if not actions:
        forms = CALL_FORM if only_calls else f"{CALL_FORM} or {ANSWER_FORM}"
        raise BadReply(malformed or _why_none(reply, values, thinking, forms))
    action = _action(actions[0], tools, thinking)
    if action.call is None and any(value != actions[0] for value in actions[1:]):
        raise BadReply(
            f"the reply has {len(actions)} different actions; write exactly one JSON object and nothing else. "
            "To call a tool, write the tool_call alone and wait for its result"
        )
    return action


def objects_in(text: str) -> list[Json]:
    """The outermost JSON objects in a text that can be read."""
    return _objects(text)[0]


def without_thinking(text: str) -> str:
    """A reply in plain words without the thinking before them. A closing tag further on is something it speaks of."""
    return _led_by_thinking(text)[1].strip()


def prose_of(text: str) -> str:
    """The words of a reply that has no try at an object in it, without thinking; empty where there is one."""
    prose = _without_thinking(text)[1].strip()
    return "" if _START.search(prose) or '"action"' in prose else prose


def _without_thinking(text: str) -> tuple[str, str]:
    """(thinking, the rest) of a reply with an object. Tags inside an object's strings are content, and stay."""
    thoughts, text = _led_by_thinking(text)
    # Some templates swallow the opening tag: then everything before the last closing one was thought.
    spans = [(start, end) for start, end, value in _scan(text) if isinstance(value, dict)]
    starts = [start for start, _ in spans]

    def is_content(place: int) -> bool:
        before = bisect(starts, place)
        return bool(before) and place < spans[before - 1][1]

    tags = (tag for tag in reversed(list(_END_OF_THOUGHT.finditer(text))) if not is_content(tag.start()))
    end = next(tags, None)
    if end is not None:
        thoughts.append(text[: end.start()].strip())
        text = text[end.end() :]
    return "\n".join(t for t in thoughts if t), text


def _led_by_thinking(text: str) -> tuple[list[str], str]:
    thoughts = list[str]()
    while (thought := _THOUGHT.match(text)) is not None:
        thoughts.append(thought[2].strip())
        text = text[thought.end() :]
    return thoughts, text


def _objects(text: str) -> tuple[list[Json], str]:
    """Every outermost object, and what is wrong with the first that cannot be read."""
    values, malformed = list[Json](), ""
    for _, _, value in _scan(text):
        if isinstance(value, str):
            malformed = malformed or value
        else:
            values.append(value)
    return values, malformed


def _scan(text: str) -> Iterator[tuple[int, int, Json | str]]:
    """(start, end, object) of every outermost object; in place of one that cannot be read, what is wrong with it.

    What cannot be read is passed over whole: an object inside it is part of what it says, and no action.
    """
    # A line break inside a string is what small models write for \n, and means nothing else: hence not strict.
    decoder = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)
    place, broken = 0, 0
    while broken < _MOST_BROKEN and (start := _START.search(text, place)) is not None:
        try:
            value, place = decoder.raw_decode(text, start.start())
            yield start.start(), place, cast(Json, cleaned(value))
        except (ValueError, RecursionError) as error:
            closing, broken = _closing(text, start.start()), broken + 1
            place = closing or len(text)
            yield start.start(), place, _what_is_wrong(error, text, start.start(), is_cut=not closing)


def _closing(text: str, start: int) -> int:
    """The place after the brace that closes the one at `start`, strings respected; 0 where there is none."""
    depth, is_quoted = 0, False
    for mark in _MARK.finditer(text, start):
        if mark[0] == '"':
            is_quoted = not is_quoted
        elif not is_quoted and mark[0] in "{}":
            depth += 1 if mark[0] == "{" else -1
            if depth == 0:
                return mark.end()
    return 0


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def cleaned(value: object, levels: int = _MOST_LEVELS) -> Any:
    """The value with lone surrogates replaced, which no JSON, file or socket of ours could take further.

    Raises:
        ValueError: it is nested too deeply, or has a number that JSON cannot say.
    """
    if not levels:
        raise ValueError(f"it is nested more than {_MOST_LEVELS} levels deep")
    if isinstance(value, str):
        return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("one of its numbers is too large")
    if isinstance(value, dict):
        return {cleaned(key, levels): cleaned(item, levels - 1) for key, item in value.items()}
    return [cleaned(item, levels - 1) for item in value] if isinstance(value, list) else value


def _what_is_wrong(error: Exception, text: str, start: int, *, is_cut: bool) -> str:
    if is_cut:
        return "the JSON object has no end; write the whole object, shorter if need be, and nothing after it"
    if not isinstance(error, json.JSONDecodeError):
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        return f"the JSON object cannot be read: {reason}"
    place, before = error.pos, text[start : error.pos].rstrip()
    context = " ".join(text[max(start, place - 30) : place + 15].split())
    if text[start + 1 :].lstrip()[:1] in "'“‘":
        reason = 'names and texts stand in straight double quotes (")'
    elif before.endswith(",") and text[place : place + 1] in "}]":
        reason = "there is a comma before a closing bracket; leave it out"
    else:
        reason = error.msg[:1].lower() + error.msg[1:]
    return f"the JSON object cannot be read near `{context}`: {reason}"


def _why_none(prose: str, values: list[Json], thinking: str, forms: str) -> str:
    forms = f"write one JSON object and nothing else: {forms}"
    if values:
        keys = ", ".join(f'"{key}"' for key in list(values[0])[:8]) or "none"
        return f'the JSON object has no "action" (its keys: {keys}); {forms}'
    if prose.strip():
        return f"the reply has no JSON object in it; {forms}"
    return f"the reply {'ends in thinking' if thinking else 'is empty'}; {forms}"


def _is_action(value: Json) -> bool:
    """Accepts also the two shapes of calls in other protocols, which are unambiguous."""
    return "action" in value or "tool_name" in value or ("arguments" in value and "name" in value)


def _action(value: Json, tools: Collection[str], thinking: str) -> Action:
    action = value.get("action", "tool_call")
    kind = action.strip().lower() if isinstance(action, str) else action
    if kind not in _KINDS:
        if isinstance(action, str) and action in tools and not _tool_name(value):
            return Action("tool_call", call=ToolCall(action, _arguments(value)), thinking=thinking)
        raise BadReply(f'"action" is {_short(action)}; it must be "tool_call", "answer" or "chat"')
    if kind != "tool_call":
        return Action(cast(Kind, kind), content=_content(value), thinking=thinking)
    name = _tool_name(value)
    if not name:
        raise BadReply(f'the tool_call names no tool; write its name as text in "tool_name": {CALL_FORM}')
    return Action("tool_call", call=ToolCall(name, _arguments(value)), thinking=thinking)


def _tool_name(value: Json) -> str:
    name = next((value[key] for key in ("tool_name", "name", "tool") if value.get(key)), "")
    return name if isinstance(name, str) and name.strip() else ""


def _arguments(value: Json) -> Json:
    arguments = value.get("arguments")
    if isinstance(arguments, str):
        # Some models write the object as a JSON string, as one well-known protocol does.
        arguments = arguments.strip()
        inner = [value for start, end, value in _scan(arguments) if (start, end) == (0, len(arguments))]
        arguments = inner[0] if inner and isinstance(inner[0], dict) else arguments or None
    if arguments is None:
        beside = [key for key in value if key not in _CALL_KEYS]
        if beside:
            raise BadReply(f'{_short(beside[0])} stands beside "arguments"; put it inside: "arguments": {{...}}')
        return {}
    if not isinstance(arguments, dict):
        raise BadReply(f'"arguments" is {_short(arguments)}; it must be a JSON object: "arguments": {{"name": value}}')
    return arguments


def _content(value: Json) -> str:
    content = value.get("content")
    if content is not None and not isinstance(content, str):
        # An answer that is itself JSON, or a number.
        content = json.dumps(content, ensure_ascii=False)
    if not content or not content.strip():
        raise BadReply(f'the {value["action"]} has no content; write the text for the user in "content"')
    return content


def _short(value: object) -> str:
    return shorten(json.dumps(value, ensure_ascii=False), 60)
