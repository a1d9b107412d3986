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
_VALUE = re.compile(r"[^\s\"'`()\[\]{}<>]+")
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
        names = text[line:end].split(separator) if separator else []
        kinds = [name_kind(name.strip(_AROUND).replace(" ", "_")) for name in names]
        if separator in ";," and any(name.startswith(" ") for name in names):
            continue  # a sentence
        if not any(kinds) or not all(_NAME.fullmatch(name.strip(_AROUND)) for name in names if name.strip()):
            continue
        while done < len(text):
            row = text[done : _line_end(text, done)]
            if row.count(separator) == len(names) - 1:
                yield from _cells(row, done, separator, kinds)
            elif not _RULE.fullmatch(row):
                break
            done += len(row) + 1


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return end if end >= 0 else len(text)


def _cells(row: str, start: int, separator: str, kinds: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    for cell, kind in zip(row.split(separator), kinds, strict=True):
        value = cell.strip(_AROUND)
        if (
            kind
            and _VALUE.fullmatch(value)
            and not is_reference(value.lower())
            and is_literal(value, is_password=kind == "password")
        ):
            at = start + cell.index(value)
            yield at, at + len(value), kind
        start += len(cell) + len(separator)
