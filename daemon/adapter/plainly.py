"""A tool chosen without a model: only where the user plainly names one, and nothing has to be guessed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from daemon.chat import ToolCall
from daemon.chat.action_text import objects_in
from daemon.model import Json

_NOT = re.compile(
    r"\b(?:no|not|never|don['’]?t|without|instead of|nicht|kein\w*|nie|ohne|pas|jamais|sans|nunca|sin|não|nem|non|mai|"
    r"senza|niet|geen|inte|nie|bez|не|нет|без|değil)\b|不|別|别|沒|没|ない|않|말고",
    re.IGNORECASE,
)


def asked_for(text: str, tools: Sequence[Json]) -> ToolCall | None:
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
