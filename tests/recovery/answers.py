"""What Reconstitute answers about a file, and what is wrong with an answer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.recovery.case import Case
from tests.recovery.forms import content_of
from tests.recovery.store import Content, Json
from tests.recovery.story import Moment, Story

SURE = ("proven", "verified")


@dataclass(frozen=True)
class Answer:
    """The state of one path: as of now, or at a time. `content` is what is offered, with the grade it is offered at."""

    grade: str
    deleted: bool = False
    content: bytes | None = None
    last: bytes | None = None
    """Of a path that is gone, or no longer certain: the newest whole content that was."""
    kinds: frozenset[str] = frozenset()
    outside: bool = False

    @property
    def is_sure(self) -> bool:
        return self.grade in SURE


UNKNOWN = Answer("lost")


def of_now(history: Any) -> Answer:
    """The present state, from a FileHistory."""
    latest = history.latest
    last = history.last_content
    if latest is None:
        return Answer(str(history.grade), history.deleted)
    return Answer(
        str(history.grade),
        history.deleted,
        None if history.deleted else latest.content,
        last.content if last is not None else None,
        frozenset(str(kind) for kind in latest.kinds),
        any(revision.outside_change for revision in history.revisions),
    )


def of_revision(revision: Any | None) -> Answer:
    """The state at a time, from the Revision that stood then."""
    if revision is None:
        return UNKNOWN
    kinds = frozenset(str(kind) for kind in revision.kinds)
    content = None if revision.deleted else revision.content
    return Answer(str(revision.grade), revision.deleted, content, revision.content, kinds, revision.outside_change)


def contradiction(answer: Answer, truth: Content | None) -> str:
    """Why a sure answer is not the truth; empty where it is, or where nothing is promised."""
    if not answer.is_sure:
        return ""
    if answer.deleted:
        return "" if truth is None else f"called gone ({answer.grade}), but it held {_short(truth)}"
    if truth is None:
        return f"called {answer.grade} with {_short(answer.content)}, but it was gone"
    return "" if answer.content == truth else f"{answer.grade}: {_short(answer.content)} instead of {_short(truth)}"


def shortfalls(expected: Json, answer: Answer) -> Iterator[str]:
    """Each way in which the answer is not what the case asks for."""
    grade = expected.get("grade", "sure")
    allowed = {"sure": SURE, "refused": ("stale", "partial", "lost")}.get(grade) if isinstance(grade, str) else grade
    if answer.grade not in (allowed or (grade,)):
        yield f"graded {answer.grade}, not {grade}"
    if "deleted" in expected and answer.deleted != expected["deleted"]:
        yield f"deleted is {answer.deleted}"
    offered = answer.content if answer.is_sure and not answer.deleted else answer.last
    if expected.get("if_sure", False) and not answer.is_sure:
        return
    for name, wanted in wanted_content(expected):
        if offered is None or (hashlib.sha256(offered).hexdigest() if name == "sha256" else offered) != wanted:
            yield f"offers {_short(offered)} instead of {_short(wanted)}"
    missing = set(expected.get("kinds", ())) - answer.kinds
    if missing:
        yield f"evidence {sorted(answer.kinds)} without {sorted(missing)}"
    if "outside" in expected and answer.outside != expected["outside"]:
        yield f"outside change is {answer.outside}"


def wanted_content(expected: Json) -> Iterator[tuple[str, Any]]:
    """The content that a case asks for: ``text`` or its sha256."""
    if "text" in expected:
        yield "text", content_of(expected["text"])
    if "sha256" in expected:
        yield "sha256", expected["sha256"]


def _short(content: Any) -> str:
    shown = repr(content)
    return shown if len(shown) <= 240 else f"{shown[:120]} … {shown[-80:]} ({len(content)})"


def untruths(case: Case, story: Story) -> Iterator[str]:
    """Where a case's own expectation is not what its story left on the disk: a mistake in the case."""
    for expected in case.data["expect"]:
        moment = moment_of(story, expected.get("at", ""))
        truth = Story.truth(moment.disk, story.absolute(expected["path"]))
        if expected.get("deleted", False):
            if truth is not None:
                yield f"{expected['path']}: not gone, but {_short(truth)}"
        elif expected.get("grade", "sure") in ("sure", *SURE):
            wanted = list(wanted_content(expected))
            if not wanted:
                yield f"{expected['path']}: asks for no content"
            for name, value in wanted:
                is_it = hashlib.sha256(truth).hexdigest() if name == "sha256" and isinstance(truth, bytes) else truth
                if is_it != value:
                    yield f"{expected['path']}: holds {_short(truth)}, not {_short(value)}"


def moment_of(story: Story, label: str) -> Moment:
    """The moment after the event with this label; the last one without."""
    if not label:
        return story.moments[-1]
    return next(moment for moment in reversed(story.moments) if moment.label == label)
