"""Reads clients' arguments: lenient if that is harmless, strict if the answer would be to another question.

Agents and scripts send numbers as text, blanks for what they leave out, `session_id` for `sessionID`, and limits that
are too large. All of these are accepted, the last with a warning. An unknown argument is a warning too, or an error if
the structure forbids it. A value that cannot be understood (an unknown mode, a list in place of a number) is a
BadRequest that names the argument, its value and the allowed values. An argument without effect gets a warning that
says why.
"""

from __future__ import annotations

import difflib
import math
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Any, TypeGuard, TypeVar, overload

import msgspec
from msgspec import Struct, inspect

from daemon import records
from daemon.errors import BadRecord, BadRequest
from daemon.model import Json, Kind
from daemon.recall.query import CALLS, Recall, RecallContext, RecallSessions

T = TypeVar("T")

_GREATEST = 2**53 - 1
"""The largest integer that every JSON reader keeps exact."""
WORDS = {"kinds": tuple(str(kind) for kind in Kind)}
"""Allowed words of lists that `Recall` declares as lists of texts."""
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_KIN = {
    "mode": "match", "limit": "results", "count": "results", "tool": "toolName", "text": "query", "q": "query",
    "search": "query", "id": "messageID", "message": "messageID", "file": "path", "filename": "path", "folder": "path",
}  # fmt: skip
"""Names that other tools use for an argument, for the hint."""


class _Unfit(Exception):  # never leaves this module
    """The value cannot be understood; the message says what is allowed."""


@overload
def read(call: str, arguments: Json) -> tuple[Struct, list[str]]: ...
@overload
def read(call: str, arguments: Json, calls: Mapping[str, type[T]]) -> tuple[T, list[str]]: ...
def read(call: str, arguments: Json, calls: Mapping[str, type[Any]] = CALLS) -> tuple[Any, list[str]]:
    """The structure of `calls` for `call`, and warnings about what was ignored or changed.

    Raises:
        BadRequest: an unknown call, a required argument that is missing or blank, a value that cannot be understood; an
            argument that does not exist, where the structure forbids unknown fields.
    """
    name = call.replace("-", "_") if isinstance(call, str) else ""
    if name not in calls:
        raise BadRequest(f"{_repr(call)}: there is no such call; {_did_you_mean(name, calls) or 'use ' + _or(calls)}")
    if not isinstance(arguments, dict):
        raise BadRequest(f"{name}: its arguments are {_repr(arguments)}; send an object of names and values")
    schema: type[Struct] = calls[name]
    fields, warnings = _fields(schema), list[str]()
    values: dict[str, Any] = {}
    unknown: list[str] = []
    named = _named(arguments, fields, unknown)
    for odd in unknown:
        did_you_mean = _did_you_mean(odd, fields)
        if schema.__struct_config__.forbid_unknown_fields:
            raise BadRequest(f"{name}: {_repr(odd)}: there is no such argument; {did_you_mean or 'use ' + _or(fields)}")
        warnings.append(
            f"{_repr(odd)}: there is no such argument, it was ignored{'; ' + did_you_mean if did_you_mean else ''}"
        )
    if schema.__struct_config__.forbid_unknown_fields:
        _refuse_blanks(name, arguments)
    for key, value in named.items():
        try:
            values[key] = _fit(value, fields[key].type, key, warnings)
        except _Unfit as reason:
            odd = value[0] if key in WORDS and isinstance(value, list) and len(value) == 1 else value
            raise BadRequest(f"{name}: `{key}`: {_repr(odd)} is not understood; use {reason}") from None
    for key, field in fields.items():
        if field.required and key not in values:
            misspelt = [odd for odd in unknown if _did_you_mean(odd, fields) == _did_you_mean(key, [key])]
            hint = f"; {_repr(misspelt[0])}: did you mean `{key}`?" if misspelt else ""
            raise BadRequest(f"{name}: `{key}` is missing or blank; give it a value{hint}")
    request = _converted(name, schema, values)
    return request, warnings + ignored(request, values)


def _converted(name: str, schema: type[Any], values: dict[str, Any]) -> Any:
    try:
        request = msgspec.convert(values, records.built(schema), strict=False)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadRequest(f"{name}: {error}; see its description for what it takes") from None
    return request


@cache
def _fields(schema: type[Struct]) -> dict[str, inspect.Field]:
    described = inspect.type_info(records.built(schema))
    return {field.encode_name: field for field in described.fields}  # type: ignore[attr-defined]  # all are structs


def _refuse_blanks(name: str, arguments: Json) -> None:
    """Refuse blank values, which an empty shell variable gives: without its filter a call would be about everything."""
    for key, value in arguments.items():
        if _is_blank(value):
            raise BadRequest(f"{name}: {_repr(key)} is blank; give it a value, or leave it out")


def _named(arguments: dict[Any, Any], fields: Iterable[str], unknown: list[str]) -> dict[str, Any]:
    """The arguments that are not blank, by our names; the names of unknown ones go into `unknown`."""
    folded = {_folded(name): name for name in fields}
    values: dict[str, Any] = {}
    for key, value in arguments.items():
        if value is None or _is_blank(value):
            continue
        name = key if key in folded.values() else folded.get(_folded(str(key)))
        if name is None:
            unknown.append(str(key))
        elif name not in values or key == name:
            values[name] = value
    return values


def _fit(value: object, kind: inspect.Type, name: str, warnings: list[str]) -> Any:
    """`value` as `kind` wants it."""
    bounds: Json = {}
    if isinstance(kind, inspect.Metadata):
        bounds, kind = kind.extra_json_schema or {}, kind.type
    if isinstance(kind, inspect.UnionType):
        return _fit_any(value, kind.types, bounds, name, warnings)
    if isinstance(kind, inspect.LiteralType):
        return _word(value, tuple(map(str, kind.values)))
    if isinstance(kind, inspect.ListType):
        return _words(value, kind.item_type, name)
    if isinstance(kind, inspect.IntType):
        return _bounded(_whole(value), bounds, name, warnings)
    return _SIMPLE.get(type(kind), _text)(value)


def _fit_any(value: object, kinds: Iterable[inspect.Type], bounds: Json, name: str, warnings: list[str]) -> Any:
    """The value as the first of several kinds that fits, a number first; a moment may be a number or a text."""
    kinds = [kind for kind in kinds if not isinstance(kind, inspect.NoneType)]
    if any(isinstance(kind, inspect.FloatType) for kind in kinds):
        return _moment(value)
    allowed: list[str] = []
    for kind in sorted(kinds, key=lambda kind: not isinstance(kind, inspect.IntType)):
        try:
            return _fit(value, inspect.Metadata(kind, extra_json_schema=bounds), name, warnings)
        except _Unfit as reason:
            allowed.append(str(reason))
    raise _Unfit(" or ".join(allowed))


def _moment(value: object) -> Any:
    """Epoch ms or a text; the text is parsed later, because that needs the clock."""
    if isinstance(value, str) or _is_number(value):
        return value
    raise _Unfit("epoch ms, or a date like 2026-01-31")


def _word(value: object, allowed: tuple[str, ...]) -> str:
    folded = value.strip().lower() if isinstance(value, str) else ""
    for word in allowed:
        if word.lower() == folded:
            return word
    raise _Unfit(f"{_or(allowed)}{' (' + hint + ')' if (hint := _did_you_mean(folded, allowed)) else ''}")


def _words(value: object, kind: inspect.Type, name: str) -> list[str]:
    """A list of words; also accepts one word, or several separated by commas."""
    if not isinstance(value, str | list | tuple):
        raise _Unfit("a list of words")
    value = [value] if isinstance(value, str) else value
    value = [word for each in value for word in (each.split(",") if isinstance(each, str) else [each])]
    allowed = tuple(map(str, kind.values)) if isinstance(kind, inspect.LiteralType) else WORDS.get(name)
    words = [each for each in value if each is not None and not _is_blank(each)]
    return [_word(each, allowed) if allowed else _text(each) for each in words]


def _is_blank(value: object) -> bool:
    return isinstance(value, str) and not value.strip()


def _share(value: object) -> float:
    """A number from 0 to 1."""
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise _Unfit("a number from 0 to 1")
    return number


def _object(value: object) -> Json:
    """An object, or JSON text that is one."""
    try:
        parsed = records.loads(value.encode()) if isinstance(value, str) else value
    except (BadRecord, UnicodeError):
        parsed = None
    if not isinstance(parsed, dict):
        raise _Unfit('a JSON object such as {"role": "user"}')
    return parsed


def _truth(value: object) -> bool:
    folded = str(value).strip().lower() if isinstance(value, str | int | float) else ""
    if folded in _YES or folded in _NO:
        return folded in _YES
    raise _Unfit("true or false")


def _whole(value: object) -> int:
    if isinstance(value, str):
        try:
            value = float(value) if len(value.strip()) > 15 or not value.strip().lstrip("+-").isdigit() else int(value)
        except ValueError:
            value = None
    if not _is_number(value) or value % 1:
        raise _Unfit("a whole number")
    return int(value)


def _is_number(value: object) -> TypeGuard[int | float]:
    is_int = isinstance(value, int) and not isinstance(value, bool)
    return is_int or (isinstance(value, float) and math.isfinite(value))


def _bounded(number: int, bounds: Json, name: str, warnings: list[str]) -> int:
    least, most = bounds.get("minimum", -_GREATEST), bounds.get("maximum", _GREATEST)
    bounded = max(least, min(most, number))
    if bounded != number:
        side = f"at most {most}" if number > most else f"at least {least}"
        warnings.append(f"`{name}`: {_repr(number)} was taken as {bounded}; it is {side}")
    return int(bounded)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if not _is_number(value) or abs(value) > _GREATEST:
        raise _Unfit("a text")
    return str(value)


_SIMPLE: dict[type[inspect.Type], Callable[[object], Any]] = {
    inspect.BoolType: _truth,
    inspect.FloatType: _share,
    inspect.DictType: _object,
}


def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint with the most similar known name; empty if none is similar."""
    by_folded = {_folded(each): each for each in known}
    kin = _KIN.get(_folded(name), "")
    similar = (
        [_folded(kin)] if kin in by_folded.values() else difflib.get_close_matches(_folded(name)[:100], by_folded, 1)
    )
    return f"did you mean {by_folded[similar[0]]}?" if similar else ""


def _or(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _repr(value: object) -> str:
    """A short repr of a value, on one line, however large or deep the value is."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # Python refuses to write out a number of thousands of digits
        return "a number of thousands of digits"


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_SHORT.maxlong = 40


_Rule = tuple[tuple[str, ...], Callable[[Any], bool], str]
"""Names of arguments, whether they are without effect, and why."""


def _no_directory(request: Recall | RecallSessions) -> bool:
    return not request.directory.strip()


_RULES: dict[type[Any], tuple[_Rule, ...]] = {
    Recall: (
        (("within", "fallback"), _no_directory, "it needs `directory`"),
        (
            ("within",),
            lambda request: request.fallback and not _no_directory(request),
            "`fallback` searches the directory and below, then its project, then everything",
        ),
        (("scope",), lambda request: bool(request.sessionID.strip()), "`sessionID` decides"),
        (
            ("expandResults", "expandBudgetMessages", "expandBudgetChars", "expandBudgetTokens", "window"),
            lambda request: request.expand == "none",
            "it needs `expand`",
        ),
        (("window",), lambda request: request.expand == "message", "it needs `expand=context` or `expand=messages`"),
        (
            ("expandBudgetTokens",),
            lambda request: request.expand in {"message", "context"},
            "it needs `expand=messages`",
        ),
    ),
    RecallContext: (
        (("budgetTokens",), lambda request: request.format == "parts", "it needs `format=messages`"),
        (("maxChars",), lambda request: request.format == "messages", "`format=messages` shows whole messages"),
        (
            ("window",),
            lambda request: request.before is not None and request.after is not None,
            "`before` and `after` are given",
        ),
    ),
    RecallSessions: ((("within",), _no_directory, "it needs `directory`"),),
}


@cache
def _by_client_name(schema: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.encode_name: field for field in msgspec.structs.fields(schema)}


def ignored(request: msgspec.Struct, argument_names: Collection[str]) -> list[str]:
    """A warning for each argument that has no effect on `request`; `argument_names` are as clients write them."""
    fields = _by_client_name(type(request))
    warnings: dict[str, str] = {}
    for names, has_no_effect, why in _RULES.get(type(request), ()):
        for name in names:
            field = fields[name]
            is_set = name in argument_names and getattr(request, field.name) != field.default
            if is_set and name not in warnings and has_no_effect(request):
                warnings[name] = f"`{name}` is ignored: {why}"
    return list(warnings.values())
