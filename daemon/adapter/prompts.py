"""The prompts of a turn: how to decide, in what form and language to answer, at what time; a tool the user named."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime

from daemon.adapter.language import Language
from daemon.adapter.request import Form
from daemon.chat import ToolCall
from daemon.chat.action_text import objects_in
from daemon.chat.actions import instructions
from daemon.errors import BadReply
from daemon.model import Json

_DECIDING = """How to decide on a turn:
- If the last message is the result of a tool and it answers what the user wants, answer from it. If it does not, call \
another tool.
- If the user wants something done, call the tool that does it, even when it was done before: what a result said then \
need not be so any more, since others can change it too.
- If the user wants to know how something is now, call the tool that tells. Do not conclude it from older messages.
- Take arguments from the user's words and from what is said above, and nowhere else. If one is missing or it is not \
clear what is meant, ask the user with a chat.
- A greeting, thanks or small talk is a chat. In doubt between doing something and talking, talk.
- Never say that something was done unless a result says so.
For example, a greeting: {"action": "chat", "content": "Hello! What can I do for you?"}
And after the result "front door: open", when the user asked whether the door is open: \
{"action": "answer", "content": "Yes, the front door is open."}"""

_FROM_RESULT = "Answer the user's last question from the result of the tool that stands above."
_PLAIN = "Answer in plain words: no JSON, no tool call."
_NOTHING_DONE = "You cannot do anything in this turn, so do not say that you did."
_NOT = re.compile(
    r"\b(?:no|not|never|don['’]?t|without|instead of|nicht|kein\w*|nie|ohne|pas|jamais|sans|nunca|sin|não|nem|non|mai|"
    r"senza|niet|geen|inte|nie|bez|не|нет|без|değil)\b|不|別|别|沒|没|ない|않|말고",
    re.IGNORECASE,
)


def system(client: str, tools: Sequence[Json], form: Form, language: Language | None) -> str:
    """The system text: the client's own first, then ours. With tools, the reply is one JSON object."""
    parts = [client.strip()]
    if tools:
        parts += [instructions(tools), _DECIDING]
    guess = f" That seems to be {language.name}." if language else ""
    parts.append(f"Write what the user reads in the language of the user's last message.{guess}")
    if form:
        what = "The content of an answer or chat" if tools else "The whole reply"
        parts.append(f"{what} must be {_form(form)}, without code fences and without a word around it.")
    parts.append(f"The time is {datetime.now().astimezone():%A, %Y-%m-%d %H:%M (UTC%z)}.")
    return "\n\n".join(part for part in parts if part)


def _form(form: Form) -> str:
    if isinstance(form, str):
        return "one JSON object"
    return f"JSON that follows this JSON schema: {json.dumps(form, ensure_ascii=False)}"


def plainly(form: Form, *, after_result: bool) -> str:
    """What is said to a model that is to answer in words, since it failed to write an object."""
    parts = [_FROM_RESULT if after_result else "", "" if form else _PLAIN, _NOTHING_DONE]
    return " ".join(part for part in parts if part)


def correction(error: BadReply) -> str:
    """What is said to a model whose reply could not be used."""
    return f"That reply could not be used: {error}. Write the same turn again, in the form that is asked for."


def formed(text: str, form: Form) -> str:
    """The answer's text in the form that the client asked for, its fences taken off.

    Only the outermost is checked of a schema: its type, and that what it requires is there.

    Raises:
        BadReply: it has another form.
    """
    if not form:
        return text
    bare = text.strip()
    if bare.startswith("```"):
        bare = bare.partition("\n")[2].rpartition("```")[0].strip() or bare
    try:
        value = json.loads(bare)
    except (ValueError, RecursionError) as error:
        raise BadReply(f"the content must be JSON and nothing else, and is not: {error}") from None
    if isinstance(form, dict):
        _check(value, form)
    return bare


def _check(value: object, schema: Json) -> None:
    kinds: dict[str, type | tuple[type, ...]] = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "number": (int, float),
        "integer": int,
    }
    kind = schema.get("type")
    if isinstance(kind, str) and kind in kinds and not isinstance(value, kinds[kind]):
        raise BadReply(f"the content must be of the JSON type {kind}")
    required = schema.get("required")
    if isinstance(value, dict) and isinstance(required, list):
        missing = [str(name) for name in required if name not in value]
        if missing:
            raise BadReply(f"the content lacks {', '.join(missing)}, which the schema requires")


def named_tool(text: str, tools: Sequence[Json]) -> ToolCall | None:
    """The call that `text` asks for by the tool's very name; None where there is the least doubt.

    One name and no negation; the arguments are a JSON object in the text, else there must be none that is required.
    """
    named = [tool["function"] for tool in tools if _names(text, str(tool["function"]["name"]))]
    if len(named) != 1 or _NOT.search(text):
        return None
    given = objects_in(text)
    if len(given) > 1:
        return None
    arguments = given[0] if given else {}
    schema = named[0].get("parameters")
    schema = schema if isinstance(schema, dict) else {}
    required, properties = schema.get("required") or [], schema.get("properties") or {}
    if any(name not in arguments for name in required) or any(name not in properties for name in arguments):
        return None
    return ToolCall(named[0]["name"], arguments)


def _names(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
