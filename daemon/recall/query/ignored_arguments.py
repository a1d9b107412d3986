"""Arguments that say nothing where they stand: given, understood, and without effect on the answer.

Whoever gave them expects an effect, so it is said why there is none. One that has its default value changes nothing
anyway: many clients send every argument.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from typing import Any

import msgspec

from daemon.recall.query.request import Recall, RecallContext, RecallSessions

_Rule = tuple[tuple[str, ...], Callable[[Any], bool], str]
"""Names of arguments, whether they are idle, and why."""


def _no_directory(asked: Recall | RecallSessions) -> bool:
    return not asked.directory.strip()


_RULES: dict[type[Any], tuple[_Rule, ...]] = {
    Recall: (
        (("within", "fallback"), _no_directory, "it needs a directory"),
        (
            ("within",),
            lambda asked: asked.fallback and not _no_directory(asked),
            "fallback takes the directory and below, then its project, then everything",
        ),
        (("scope",), lambda asked: bool(asked.sessionID.strip()), "sessionID decides"),
        (
            ("expandResults", "expandBudgetMessages", "expandBudgetChars", "expandBudgetTokens", "window"),
            lambda asked: asked.expand == "none",
            "it needs expand",
        ),
        (("window",), lambda asked: asked.expand == "message", "it needs expand 'context' or 'messages'"),
        (
            ("expandBudgetTokens",),
            lambda asked: asked.expand in {"message", "context"},
            "it needs expand 'messages'",
        ),
    ),
    RecallContext: (
        (("budgetTokens",), lambda asked: asked.format == "parts", "it needs format 'messages'"),
        (("maxChars",), lambda asked: asked.format == "messages", "format 'messages' shows whole messages"),
        (
            ("window",),
            lambda asked: asked.before is not None and asked.after is not None,
            "before and after are given",
        ),
    ),
    RecallSessions: ((("within",), _no_directory, "it needs a directory"),),
}


@cache
def _fields(schema: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.encode_name: field for field in msgspec.structs.fields(schema)}


def idle(asked: msgspec.Struct, given: Collection[str]) -> list[str]:
    """A warning for each argument of `given`, by the names clients use, that is without effect on `asked`."""
    fields = _fields(type(asked))
    said: dict[str, str] = {}
    for names, is_idle, why in _RULES.get(type(asked), ()):
        for name in names:
            field = fields[name]
            is_meant = name in given and getattr(asked, field.name) != field.default
            if is_meant and name not in said and is_idle(asked):
                said[name] = f"{name} is ignored: {why}"
    return list(said.values())
