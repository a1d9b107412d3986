"""Parses request files: paths, one per line, or a TOML or JSON table (docs/how-it-works.md). Pure functions.

An invalid file raises BadRequest with the file, the line or key, and the fix. Nothing is guessed or ignored.
"""

from __future__ import annotations

import difflib
import json
import tomllib
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from daemon.errors import BadRequest
from daemon.model import Json

_KEYS = ("path", "questions", "at", "output", "refresh")
_REFRESH = ("once", "scheduled", "continuous")


@dataclass(frozen=True, slots=True)
class Request:
    """One path to reconstitute, absolute; `at` is a time as it was written.

    Empty fields mean the configured values; an empty `refresh` is one run that changes nothing about what is kept up to
    date.
    """

    path: str
    questions: tuple[str, ...] = ()
    at: str = ""
    output: str = ""
    refresh: str = ""


def parse(name: str, data: bytes, home: Path) -> tuple[Request, ...]:
    """The requests in a file of this name and content, one for each path; `home` is what ``~`` stands for.

    Raises:
        BadRequest: naming the file, the line or key, and the fix.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRequest(f"{name}: byte {error.start}: not UTF-8 text; save it as UTF-8") from None
    try:
        requests = _form(name, text)(name, text, home)
    except RecursionError:
        raise BadRequest(f"{name}: nested too deeply; give 'path' a text or a list of texts") from None
    except ValueError:  # Python converts no integer of more than 4300 digits
        raise BadRequest(f"{name}: a number is too long; give 'path' a text or a list of texts") from None
    if not requests:
        raise BadRequest(f"{name}: names no path; write an absolute path on a line of its own")
    return requests


def _form(name: str, text: str) -> Callable[[str, str, Path], tuple[Request, ...]]:
    suffix = name.lower().rpartition(".")[2]
    if suffix == "toml":
        return _parse_toml
    if suffix == "json" or text.lstrip()[:1] in {"{", "["}:
        return _parse_json
    try:
        return _parse_toml if "path" in tomllib.loads(text) else _parse_lines
    except (tomllib.TOMLDecodeError, RecursionError):
        return _parse_lines


def _parse_lines(name: str, text: str, home: Path) -> tuple[Request, ...]:
    requests = []
    for number, line in enumerate(text.splitlines(), 1):
        path = line.strip()
        if path and not path.startswith("#"):
            requests.append(Request(_absolute(path, f"{name}: line {number}", home)))
    return tuple(requests)


def _parse_toml(name: str, text: str, home: Path) -> tuple[Request, ...]:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadRequest(f'{name}: not TOML: {error}; the least is: path = "/absolute/path"') from None
    return _parse_table(table, name, home)


def _parse_json(name: str, text: str, home: Path) -> tuple[Request, ...]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise BadRequest(
            f'{name}: {place}: not JSON: {error.msg}; the least is: {{"path": "/absolute/path"}}'
        ) from None
    requests: list[Request] = []
    for number, item in enumerate(value if isinstance(value, list) else [value]):
        place = f"{name}: item {number}" if isinstance(value, list) else name
        requests += _parse_table({"path": item} if isinstance(item, str) else item, place, home)
    return tuple(requests)


def _parse_table(table: object, place: str, home: Path) -> tuple[Request, ...]:
    if not isinstance(table, dict):
        raise BadRequest(f"{place}: neither a path nor an object; write it as an object with the key 'path'")
    for key in table:
        if key not in _KEYS:
            similar = difflib.get_close_matches(str(key), _KEYS, n=1)
            hint = f"did you mean {similar[0]}?" if similar else f"known are {', '.join(_KEYS)}"
            raise BadRequest(f"{place}: {printable(str(key))}: unknown key; {hint}")
    questions = tuple(question.strip() for question in _texts(table, "questions", place) if question.strip())
    output = _text(table, "output", place)
    refresh = _text(table, "refresh", place)
    if refresh and refresh not in _REFRESH:
        raise BadRequest(f"{place}: refresh: {printable(refresh)!r} is unknown; use one of {', '.join(_REFRESH)}")
    output = _absolute(output, f"{place}: output", home) if output else ""
    at = _text(table, "at", place)
    if at and refresh == "continuous":
        raise BadRequest(
            f"{place}: at: a state of the past does not change, so there is nothing to keep up to date; leave out "
            f"'at', or 'refresh'"
        )
    paths = _texts(table, "path", place)
    return tuple(Request(_absolute(path, f"{place}: path", home), questions, at, output, refresh) for path in paths)


def _texts(table: Json, key: str, place: str) -> list[str]:
    value = table.get(key, [])
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    raise BadRequest(f"{place}: {key}: must be a text or a list of texts")


def _text(table: Json, key: str, place: str) -> str:
    value = table.get(key, "")
    if key == "at" and isinstance(value, (datetime, date)):
        return value.isoformat()
    if key == "at" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return value.strip()
    raise BadRequest(f"{place}: {key}: must be a text in quotes")


def _absolute(path: str, place: str, home: Path) -> str:
    display = repr(printable(path))
    if path == "~" or path.startswith("~/"):
        path = f"{home}{path[1:]}"
    if not path.startswith("/"):
        raise BadRequest(f"{place}: {display} is not an absolute path; write it from / or ~/ on")
    if path != printable(path):
        raise BadRequest(f"{place}: {display} holds a control character; give the folder above it")
    names = [name for name in path.split("/") if name not in {"", "."}]
    if ".." in names:
        raise BadRequest(f"{place}: {display} climbs with '..'; write the path it leads to")
    return "/" + "/".join(names)


def printable(text: str) -> str:
    """`text` for a message: control characters and lone surrogates become ``_``."""
    return "".join("_" if unicodedata.category(c) in {"Cc", "Cs"} else c for c in text)
