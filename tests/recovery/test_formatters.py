"""Formatters x calls x later evidence: what is called certain is what the formatter left, in each OpenCode version.

Every formatter does one thing that real ones do. The records say what OpenCode says, the text before the formatter or
the one after it, and the disk holds what the formatter made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.recovery.answers import SURE
from tests.recovery.case import Case
from tests.recovery.test_recovery import asked, contradictions, taken_in

FORMATTERS: dict[str, Callable[[str], str]] = {
    "nothing": lambda text: text,
    "spaces": lambda text: re.sub(r"(?<=\w)=", " = ", text),
    "indentation": lambda text: text.replace("    ", "\t"),
    "last newline": lambda text: text.rstrip("\n"),
    "blank lines": lambda text: text.replace("\n", "\n\n", 1),
    "line ends": lambda text: text.replace("\n", "\r\n"),
    "order of lines": lambda text: "".join(sorted(text.splitlines(keepends=True))),
}
BASE = "def f():\n    a=1\n    return a\nlast\n"
EDITED = BASE.replace("return a", "return b")
CALLS = ("write", "overwrite", "edit", "add", "update")
EVIDENCE = ("none", "read", "edit", "diff", "tree")
ALL_FORMATS = '{"formatter": {"any": {"command": ["fmt", "$FILE"], "extensions": [".x"]}}}'


def _base(name: str) -> dict[str, Any]:
    return {"bash": f"cat > {name} <<'END'\n{BASE}END", "leaves": {name: BASE}}


def _patch(name: str, kind: str) -> str:
    lines = "".join(f"+{line}\n" for line in BASE.splitlines())
    change = lines if kind == "Add" else "@@\n-    return a\n+    return b\n"
    return f"*** Begin Patch\n*** {kind} File: {name}\n{change}*** End Patch"


def _called(call: str, name: str, formatted: Callable[[str], str]) -> Iterator[dict[str, Any]]:
    """The call on one file, and what its formatter then left."""
    if call in ("overwrite", "edit", "update"):
        yield _base(name)
    if call in ("write", "overwrite"):
        yield {"write": name, "content": EDITED, "leaves": {name: formatted(EDITED)}}
    elif call == "edit":
        yield {"edit": name, "old": "return a", "new": "return b", "after": formatted(EDITED)}
    else:
        text = BASE if call == "add" else EDITED
        yield {"patch": _patch(name, call.title()), "leaves": {name: text}, "formatted": {name: formatted(text)}}


def _story(kind: str, call: str, evidence: str) -> Case:
    events: list[dict[str, Any]] = [{"write": "opencode.json", "content": ALL_FORMATS}]
    for number, formatted in enumerate(FORMATTERS.values()):
        name = f"{number}.x"
        events += _called(call, name, formatted)
        now = formatted(BASE if call == "add" else EDITED)
        if evidence == "read":
            events.append({"read": name})
        elif evidence == "edit":
            after = formatted(now.replace("last", "first"))
            events.append({"edit": name, "old": "last", "new": "first", "after": after})
    events += [{"user": "And now?"}, {"bash": "git status"}]
    names = [f"{number}.x" for number in range(len(FORMATTERS))]
    has_git = evidence in ("diff", "tree")
    data = {"id": f"{call}-{evidence}", "shows": "", "git": has_git, "strict": names, "events": events, "expect": []}
    return Case(kind, data | {"summary": evidence == "diff", "pruned": evidence == "diff"})


@pytest.mark.parametrize("kind", ["json", "sqlite"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("evidence", EVIDENCE)
def test_nothing_is_certain_but_what_the_formatter_left(kind: str, call: str, evidence: str, tmp_path: Path) -> None:
    with taken_in(_story(kind, call, evidence), tmp_path) as (told, engine):
        assert list(contradictions(engine.recorded, told)) == []
        found = [asked(engine.recorded, told, {"path": f"{number}.x"}) for number in range(len(FORMATTERS))]

    is_sure = {name: answer.grade in SURE for name, answer in zip(FORMATTERS, found, strict=True)}
    assert not any(answer.outside for answer in found)
    # OpenCode up to 1.2.1 records the text after an edit, and shows every byte in a read; trees and diffs do always.
    shows_bytes = evidence in ("diff", "tree") or (kind == "json" and (evidence in ("read", "edit") or call == "edit"))
    assert set(is_sure.values()) == {shows_bytes}, is_sure
