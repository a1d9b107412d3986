"""What a program wrote, not the project: words of a generator, and the files that a build leaves.

Words of a generator are known by how the file came to be, else by how little they say.

A file that appeared while a generator ran (``npm create``, ``flutter create``, ``cargo new``) and was not changed since
holds the generator's words. Where no record shows that, a text counts as a generator's that says what the project was
made with, or of which nothing is left without names and the words that fit every project.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from daemon.files.history import FileHistory, Revision
from daemon.model import Operation
from daemon.reconstitute.facts.session_values import FileChange, SessionFacts, Turn
from daemon.reconstitute.recover import Recovered
from daemon.transcript.shell.names import words

_MADE_BY_HAND = frozenset({Operation.WRITE, Operation.APPEND, Operation.EDIT, Operation.PATCH})
_GENERATOR = re.compile(
    r"(?:^|[\s;&|(/])(?:npm|pnpm|yarn|bun|cargo|flutter|dart|ng|nx|rails|dotnet|uv|poetry|hatch|pdm|rye|mix|stack|cabal|"
    r"django-admin|gradle|mvn|vue|expo|ionic|nest|hugo|composer|laravel|symfony|swift\s+package|zig|dune|lein|sbt|gleam|"
    r"deno|jekyll|wails|tauri)\s+(?:\S+\s+){0,2}?(?:create|new|init|generate|startproject|create-project|archetype:generate|"
    r"phx\.new)\b|\b(?:create-[\w-]+|cookiecutter|degit|copier|yo|sv\s+create|django-admin\s+startproject)\b"
)
_MADE_WITH = re.compile(
    r"^(?:this|the|your)\b.{0,80}\b(?:(?:bootstrapped|scaffolded|initiali[sz]ed|(?:auto-?)?generated)\s+"
    r"(?:with|by|using|from|via)|created\s+(?:with|using))\b"
    r"|\b(?:this|the) (?:template|starter|boilerplate|scaffold)\b|\badd (?:your|a|the) .{0,40}\bhere\b|\blorem ipsum\b"
    r"|\badd your content using\b|\bcreated (?:with|using) create-[\w-]+"
    r"|\beverything you need to (?:build|get started)\b|\byou(?:'ve| have) (?:just )?(?:successfully )?created\b",
    re.IGNORECASE,
)
_FITS_ALL = words(
    "a an the this that my your our is are it its in of for with and to on by here new simple basic minimal default "
    "example sample starter demo template boilerplate hello world project projects app application apps package "
    "library module program repository repo code file files readme description summary title name todo tbd wip "
    "placeholder write add insert put some something short longer text used using use test fixme none untitled "
    "getting started start"
)
_FEWEST_FOLDED = 3
_WORD = re.compile(r"[^\W_]+(?:[.'’+#-][^\W_]+)*[+#]*")


def is_template(text: str) -> bool:
    """Whether a text would fit any project that was made in the same way."""
    if _MADE_WITH.search(text[:400]):
        return True
    for number, word in enumerate(_WORD.findall(text)):
        is_name = number > 0 and word[0].isupper() and text.isascii()
        if word.casefold() not in _FITS_ALL and not is_name:
            return False
    return True


def was_generated(file: Recovered, revision: Revision, sessions: Sequence[SessionFacts]) -> bool:
    """Whether the content of `revision` appeared while a generator ran, and nobody wrote it."""
    if revision.whole is None:
        return False
    same = [one for one in file.revisions if one.whole is not None and one.whole.is_same(revision.whole)]
    if not same or any(one.operation in _MADE_BY_HAND for one in same):
        return False
    first = same[0]
    if not first.appeared and first.operation not in (Operation.RUN, Operation.UNCLEAR):
        return False
    for session in sessions:
        for turn in session.turns if session.id == first.session_id else ():
            if first.message_id in turn.message_ids:
                return any(
                    call.command and call.started <= first.time and _GENERATOR.search(call.command[:2000])
                    for call in turn.calls
                )
    return False


def is_written(files: Sequence[Recovered]) -> bool:
    """Whether programs alone wrote and changed these files of a folder, as trees show: a build's output."""
    there = [file for file in files if not (file.last.proven and file.last.deleted)]
    return len(there) >= _FEWEST_FOLDED and all(map(_is_only_seen, there))


def _is_only_seen(file: Recovered) -> bool:
    changes = FileHistory(file.path, file.revisions).changes
    return changes != [] and all(
        one.revision.operation is Operation.SNAPSHOT and one.maker and not one.is_revert and not one.revision.moved_from
        for one in changes
    )


def folded(changes: Iterable[FileChange], turns: Iterable[Turn], directory: str) -> tuple[FileChange, ...]:
    """The changes of a session, those last that no call tells of; the many of them in one folder as one.

    A build writes a folder anew; that would hide the few files that somebody worked on. `directory` is the session's.
    """
    ran = [call for turn in turns for call in turn.calls if call.command]
    told: list[FileChange] = []
    seen: list[FileChange] = []
    folders: dict[str, list[FileChange]] = defaultdict(list)
    for change in changes:
        (seen if change.seen_in else told).append(change)
        rest = change.path.removeprefix(f"{directory.rstrip('/')}/")
        if change.seen_in and rest != change.path and "/" in rest and not change.undone:
            folders[change.path[: -len(rest)] + rest.partition("/")[0]].append(change)
    many: list[FileChange] = []
    for folder, inside in sorted(folders.items()):
        if len(inside) < _FEWEST_FOLDED:
            continue
        messages = {change.seen_in for change in inside}
        commands = {call.command for call in ran if call.message_id in messages}
        seen = [change for change in seen if change not in inside]
        command = commands.pop() if len(commands) == 1 else ""
        many.append(FileChange(folder, "written", files=len(inside), command=command))
    told.sort(key=lambda change: change.kind not in {"moved", "deleted"})  # which a count of lines does not tell
    return (*told, *seen, *many)
