"""Which paths a text may name: on the safe side, so every word that could be one counts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import unquote

from daemon import records
from daemon.model import Json
from daemon.transcript.tool_calls import absolute

_WORD = re.compile(r"(?:\\.|[^\s\"'`<>()\[\]{}|,;=&:#])+")
_QUOTED = re.compile(r"\"([^\"\n]{1,4096})\"|'([^'\n]{1,4096})'|`([^`\n]{1,4096})`")
_ESCAPED = re.compile(r"\\(.)")
_OPTION = re.compile(r"-\w|@|--?[\w-]+=")
_ENTERED = re.compile(r"(?:^|[\s;&|(])(?:cd|pushd)\s+(?:\"([^\"\n]+)\"|'([^'\n]+)'|([^\s;&|)]+))|-C\s*(\S+)")
_HOME = re.compile(r"~(?=/|$)|\$HOME\b|\$\{HOME\}")
_MOST_ENTERED = 32
_MOST_SHELL = 100_000
_QUOTE = re.compile(r"['\"\\]")


def texts(data: Json, in_state: tuple[str, ...] = ()) -> Iterator[str]:
    """Every text of a record that may name a file; of a call's state only these fields, or all."""
    state = records.table(data.get("state"))
    yield from _leaves({name: state.get(name) for name in in_state} if in_state else state)
    for name in ("url", "filename", "source", "files"):
        yield from _leaves(data.get(name))


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield unquote(value[7:]) if value.startswith("file://") else value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)


def entered(data: Json, bases: Sequence[str]) -> list[str]:
    """The folders that a call works in besides `bases`: its `workdir`, and those that its command enters."""
    call_input = records.table(records.table(data.get("state")).get("input"))
    names = [records.text(call_input.get(name)) for name in ("workdir", "cwd", "path")]
    names += [next(filter(None, match.groups()), "") for match in _ENTERED.finditer(command(data))]
    folders: dict[str, None] = {}
    for name in names:
        for base in (*bases, *folders):
            place = absolute(name, base) if name and len(folders) < _MOST_ENTERED else None
            if place is not None and place != "/" and place not in bases:
                folders = {**folders, place: None}
    return list(folders)


def command(data: Json) -> str:
    """The command of a call that has one; empty for any other."""
    return records.text(records.table(records.table(data.get("state")).get("input")).get("command"))


def at_home(text: str, homes: Iterable[str]) -> Iterator[str]:
    """The text with each of the home folders for ``~`` and ``$HOME``; itself where it names none."""
    if _HOME.search(text) is None:
        yield text
    else:
        yield from (_HOME.sub(lambda _, home=home: home, text) for home in homes)  # type: ignore[misc]


def spellings(text: str, homes: Iterable[str]) -> Iterator[str]:
    """The text, and as a shell may read it: with a home folder for ``~``, and without quotes and backslashes."""
    yield text
    if len(text) <= _MOST_SHELL:
        yield from (spelling for spelling in at_home(text, homes) if spelling != text)
        if _QUOTE.search(text):
            yield _QUOTE.sub("", text)


def paths(text: str, bases: Sequence[str]) -> Iterator[str]:
    """Every absolute path that the text may name."""
    for name in dict.fromkeys(_names(text)):
        for base in ("/",) if name.startswith("/") else bases:
            place = absolute(name, base)
            if place is not None:
                yield place


def _names(text: str) -> Iterator[str]:
    if "\n" not in text:
        yield text.strip()
    for line in text.splitlines():
        yield line.strip().rstrip(":")
        yield line.strip().partition(":")[0]
    for match in _QUOTED.finditer(text):
        yield match[match.lastindex or 0]
    for word in _WORD.findall(text):
        name = _ESCAPED.sub(r"\1", word)
        yield name
        yield name.rstrip(".!?")
        option = _OPTION.match(name)
        if option:
            yield name[option.end() :]
        if name.startswith(("a/", "b/")):  # as a diff names its two sides
            yield name[2:]
