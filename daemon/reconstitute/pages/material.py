"""What a tree is rendered from, and what its pages ask of it.

Guarantees: pure lookups over the material, worked out once; what a model said and what was quoted stay apart. It makes
no Markdown.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Protocol

from daemon.exports.content import MessageContent
from daemon.files.trees import is_beneath
from daemon.model import FileEdit
from daemon.reconstitute.answer import EMPTY_RECORD, Answer, Record, Statement
from daemon.reconstitute.facts import Facts
from daemon.reconstitute.facts.session_values import SessionFacts
from daemon.reconstitute.passages import Findings
from daemon.reconstitute.questions import PURPOSE
from daemon.reconstitute.recover import Recovered
from daemon.reconstitute.scope import Scope
from daemon.records import digest_of

_PACKAGE = Path(__file__).parents[2]
PATH = "path"
"""With a path beneath the target after it, the question what that is."""


class Conversation(Protocol):
    """Where the messages come from (daemon.reconstitute.scope)."""

    def digest(self, message_ids: Sequence[str]) -> str:
        """Changes whenever what `messages` answers may change."""

    def hiding(self) -> AbstractContextManager[None]:
        """Hide the secrets of these sessions in what is redacted meanwhile."""

    def messages(self, session_id: str, message_ids: Sequence[str]) -> Iterator[MessageContent]:
        """These messages, in this order."""


@dataclass(frozen=True, slots=True)
class Material:
    """What a tree is rendered from. `record` is what a model found out; without one the findings are the answers.

    An inner folder's purpose is the record's answer to ``purpose:<relative folder>``, and what a path is that a model
    took up is the answer to ``path:<relative path>``.
    """

    scope: Scope
    files: tuple[Recovered, ...]
    findings: tuple[Findings, ...]
    moment: int | None = None
    warnings: tuple[str, ...] = ()
    record: Record = EMPTY_RECORD
    programs: tuple[FileEdit, ...] = ()  # what may have written files that no record names, see files.Folder
    facts: Facts = field(default_factory=Facts)
    conversation: Conversation | None = None  # what was said in the sessions; without it they have no pages


class MaterialIndex:
    """The material's files, sessions and answers by what a page has in hand; paths are relative to the target."""

    def __init__(self, material: Material) -> None:
        self.material = material
        self.target = material.scope.target
        self.files = {file.relative: file for file in material.files}
        self._by_path = {file.path: file.relative for file in material.files}
        self.titles = {session.session.id: session.title for session in material.scope.sessions}
        self._session_of = {m: session.session.id for session in material.scope.sessions for m in session.message_ids}
        self._directories = {
            session.session.id: session.session.directory
            for session in material.scope.sessions
            if session.session.directory not in {"", "/"}  # what holds everything tells nothing apart
        }

    def is_worked_on(self, relative: str) -> bool:
        """Whether a session changed or read it; of the others only snapshots of a whole project tell."""
        file = self.files[relative]
        return file.was_touched or file.path in self.material.scope.touched

    def sessions(self, files: Iterable[Recovered]) -> list[SessionFacts]:
        """The sessions that touched one of `files`, oldest first."""
        ids = {i for file in files for i in self._touching(file.path)}
        return [session for session in self.material.scope.sessions if session.session.id in ids]

    @cached_property
    def touched(self) -> dict[str, list[str]]:
        """The files of the tree that each session touched, sorted, by session id."""
        by_session: dict[str, list[str]] = {}
        for relative in sorted(self.files):
            for session_id in sorted(self._touching(self.files[relative].path)):
                by_session.setdefault(session_id, []).append(relative)
        return by_session

    def programs(self, folder: str) -> list[FileEdit]:
        """What ran where it may have written files of a folder that no record names, the newest first."""
        path = posixpath.join(self.target, folder) if folder else self.target
        ran = (e for e in reversed(self.material.programs) if is_beneath(e.path, path) or is_beneath(path, e.path))
        return list({(edit.message_id, edit.part_id, edit.note): edit for edit in ran}.values())

    def answer(self, question_id: str, relative: str = "") -> Answer | None:
        """What a model answered to a question about the target, or about a folder or file beneath it."""
        return self.material.record.answers.get(f"{question_id}:{relative}" if relative else question_id)

    def waits(self, question_id: str, relative: str = "") -> bool:
        """Whether a model is still to be asked that question."""
        return (f"{question_id}:{relative}" if relative else question_id) in self.material.record.unasked

    def answered(self, relative: str) -> tuple[Statement, ...]:
        """What a model answered when it was asked what a file, a folder or a path it took up is for."""
        for question_id in (PURPOSE.id, PATH):
            answer = self.answer(question_id, relative)
            if answer is not None and answer.statements:
                return answer.statements
        return ()

    def description(self, relative: str) -> Statement | None:
        """What a model said in passing that a file or folder is for."""
        described = self.material.record.descriptions.get(self._path(relative))
        return None if described is None or not described.text.strip() else described

    def statements(self, relative: str) -> tuple[Statement, ...]:
        """What it was answered, else the description, with its reason in parentheses."""
        described = self.description(relative)
        if (answered := self.answered(relative)) or described is None:
            return answered
        aside = f" ({described.reason.strip()})" if described.reason.strip() else ""
        return (replace(described, text=described.text.strip() + aside, reason=""),)

    def relative(self, path: str) -> str:
        """An absolute path as pages know it; empty where it is not beneath the target."""
        if path in self._by_path:  # the target itself may be a file
            return self._by_path[path]
        return path[len(self.target) + 1 :] if path != self.target and is_beneath(path, self.target) else ""

    def _path(self, relative: str) -> str:
        return self.files[relative].path if relative in self.files else posixpath.join(self.target, relative)

    def _touching(self, path: str) -> set[str]:
        messages = self.material.scope.touched.get(path, ())
        return {self._session_of[message] for message in messages if message in self._session_of}


@cache
def code_version() -> str:
    """A digest of all our code and templates, for the basis of pages: what may be rendered differently is made anew."""
    files = sorted(chain(_PACKAGE.rglob("*.py"), _PACKAGE.rglob("*.j2")))
    return digest_of(
        chain.from_iterable((str(path.relative_to(_PACKAGE)).encode(), path.read_bytes()) for path in files)
    )
