"""Finds secrets beneath the name of their column: tables of Markdown, of a database's shell, CSV files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from daemon.redact.assignments import name_kind
from daemon.redact.values import is_literal, is_reference

_SEPARATORS = "|│\t;,"
_LONGEST_LINE = 2000
"""Characters."""
_NAME = re.compile(r"[^\W\d][\w.-]{0,40}(?: [\w.-]{1,40}){0,3}")
_LETTER = re.compile(r"[^\W\d]")
_VALUE = re.compile(r"[\s\"'`*]*+(?P<value>[^\s\"'`()\[\]{}<>]++)[^\w(]*+\Z")
_RULE = re.compile(r"[ \t|+:=│┼├┤─-]{3,2000}\r?")
"""The line between the names of a table and its rows."""
_AROUND = " \"'`*\r"


def find(text: str, starts: Sequence[int]) -> Iterator[tuple[int, int, str]]:
    """Spans of secrets as (start, end, kind), ordered and disjoint; `starts` are the places of `assignments.STARTS`."""
    done = 0
    for at in starts:
        if at < done:
            continue
        line = text.rfind("\n", done, at) + 1 or done
        end = _line_end(text, line)
        done = end + 1
        if end - line > _LONGEST_LINE:
            continue
        separator = next((mark for mark in _SEPARATORS if mark in text[line:end]), "")
        cells = text[line:end].split(separator) if separator else []
        if separator in ";," and any(cell.startswith(" ") for cell in cells[1:]):
            continue  # a sentence
        names = [_name(cell) for cell in cells]
        kinds = [name_kind(name.replace(" ", "_")) for name in names]
        if not any(kinds) or not all(_NAME.fullmatch(name) for name in names if _LETTER.search(name)):
            continue
        while done < len(text):
            row = text[done : _line_end(text, done)]
            if len(row) <= _LONGEST_LINE and row.count(separator) == len(names) - 1:
                yield from _cells(row, done, separator, kinds)
            elif not _RULE.fullmatch(row):
                break
            done += len(row) + 1


def _name(cell: str) -> str:
    """The name in a cell; before the first one may be the beginning of a JSON string."""
    name = cell.strip(_AROUND)
    return name if _NAME.fullmatch(name) else name.rpartition('"')[2].strip()


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return end if end >= 0 else len(text)


def _cells(row: str, start: int, separator: str, kinds: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    for cell, kind in zip(row.split(separator), kinds, strict=True):
        match = _VALUE.match(cell) if kind else None
        if (
            match is not None
            and not is_reference(match["value"].lower())
            and is_literal(match["value"], is_password=kind == "password")
        ):
            yield start + match.start("value"), start + match.end("value"), kind
        start += len(cell) + len(separator)
