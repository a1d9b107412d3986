"""Where each recorded file and folder has its page, and how pages link to one another.

Guarantees: the names are those that `publish` will write (so every link leads to its page), and distinct where a file
system folds case or Unicode forms. Same paths, same layout. It writes nothing.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import islice

from daemon import markdown
from daemon.markdown import Href
from daemon.publish import names
from daemon.reconstitute.answer import Record, Source
from daemon.reconstitute.facts.session_values import Citation, SessionFacts
from daemon.reconstitute.facts.values import Facts
from daemon.redact import redact

README = "README.md"
FOLDER = "sessions"
MOST_WEIGHT = 250_000
"""About how many bytes of a session stand on one page; GitHub renders none of more than 512 kB."""
_LIGHT = 2_000
"""What a message weighs of which nothing is known."""
_MOST_SLUG = 48
_DEFAULT_TITLE = re.compile(r"(?:New|Child) session - \d{4}-\d\d-\d\dT[\d:.]+Z")


class Layout:
    """Page paths for relative file paths (``src/app.py``) and the folders above them ("" is the target itself).

    A folder's page comes before any file's: a recovered file ``README`` is the one that gets a number. The `large`
    files have a text beside their page (``src/data.json.txt``) that holds the whole of them. `sessions` are the wanted
    paths of session pages, which have precedence over files, so that their names depend on no file.
    """

    def __init__(self, files: Iterable[str], large: Iterable[str] = (), sessions: Sequence[str] = ()) -> None:
        ordered, texts = sorted(set(files)), sorted(set(large))
        with_files = {folder for path in ordered for folder in ancestors(path)}
        folders = ["", *sorted(with_files, key=lambda folder: (folder.count("/"), folder))]
        paths = [posixpath.join(folder, README) for folder in folders]
        pages = iter(
            names([*paths, *sessions, *(f"{path}.md" for path in ordered), *(f"{path}.txt" for path in texts)])
        )
        self._folders = dict(zip(folders, pages, strict=False))
        self.sessions = tuple(islice(pages, len(sessions)))
        self._files = dict(zip(ordered, pages, strict=False))
        self._texts = dict(zip(texts, pages, strict=True))

    @property
    def folders(self) -> tuple[str, ...]:
        """All folders, the target first, then by depth and name."""
        return tuple(self._folders)

    def folder(self, folder: str) -> str:
        """The page of a folder."""
        return self._folders[folder]

    def file(self, path: str) -> str:
        """The page of a file."""
        return self._files[path]

    def beside(self, path: str) -> str:
        """The text beside the page of a large file."""
        return self._texts[path]


def ancestors(path: str) -> list[str]:
    """The folders above a relative path, outermost first, without "" itself."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[: depth + 1]) for depth in range(len(parts))]


def between(page: str, target: str) -> str:
    """The relative path from one page to another."""
    return posixpath.relpath(target, posixpath.dirname(page) or ".")


@dataclass(frozen=True, slots=True)
class Chapter:
    """One page of a session: its `number` of `count`, and the messages that stand on it, each with its own number."""

    path: str
    facts: SessionFacts
    number: int
    count: int
    messages: Mapping[str, int]


class Transcripts:
    """The session pages of a tree; paths are relative to its root.

    `chapters` are those that have a page, by their final paths; without them each of `sessions` has.
    """

    def __init__(self, sessions: Sequence[SessionFacts], chapters: Sequence[Chapter] | None = None) -> None:
        self.chapters = tuple(divided(sessions) if chapters is None else chapters)
        self._first = {chapter.facts.id: chapter.path for chapter in reversed(self.chapters)}
        self._places = {
            (chapter.facts.id, message_id): (chapter.path, number)
            for chapter in self.chapters
            for message_id, number in chapter.messages.items()
        }
        self._numbers = {
            session.id: (ordinal, _numbers(session))
            for ordinal, session in enumerate(sorted(sessions, key=_age), start=1)
        }

    def place(self, session_id: str, message_id: str) -> tuple[int, int]:
        """The number of a session, the oldest is 1, and of a message in it; 0 where it is not known.

        Sessions that come later change none.
        """
        ordinal, numbers = self._numbers.get(session_id, (0, {}))
        return ordinal, numbers.get(message_id, 0)

    def href(self, page: str, session_id: str, message_id: str = "") -> Href:
        """The link from `page` to a session, or to a message in it; empty where it has no page.

        A message that the page does not show leads to the session's beginning.
        """
        path, number = self._places.get((session_id, message_id), (self._first.get(session_id, ""), 0))
        if not path:
            return Href("")
        return Href.to(between(page, path) if path != page or not number else "", anchor(number) if number else "")


def anchor(number: int) -> str:
    """The heading above a message, which is its own slug in every renderer."""
    return f"msg-{number:02d}"


def name_of(facts: SessionFacts) -> str:
    """A session's title; where OpenCode gave it none of its own, what it was asked first. One line, redacted."""
    title = " ".join(redact(facts.title).split())
    if title and not _DEFAULT_TITLE.fullmatch(title):
        return title
    return next((line for turn in facts.turns if (line := " ".join(redact(turn.prompt).split()))), "")


def divided(sessions: Sequence[SessionFacts]) -> list[Chapter]:
    """All chapters, sessions oldest first. A name depends on the session alone, unless an older one has the same."""
    ordered = sorted(sessions, key=_age)
    chapters = []
    for facts, path in zip(ordered, names([f"{FOLDER}/{_stem(session)}.md" for session in ordered]), strict=True):
        parts = _parts(facts)
        for number, messages in enumerate(parts, start=1):
            name = path if number == 1 else f"{path.removesuffix('.md')}-page-{number}.md"
            chapters.append(Chapter(name, facts, number, len(parts), messages))
    return chapters


def cited_sessions(facts: Facts, record: Record) -> frozenset[str]:
    """The ids of the sessions that any fact beside the sessions' own cites, or any statement beside their summaries."""
    return frozenset(_cited((replace(facts, sessions=()), replace(record, summaries={}))))


def slug(text: str) -> str:
    """Letters, digits and their marks of any script, in lower case, with a hyphen for all else; at most 48."""
    lower = unicodedata.normalize("NFC", text.lower())
    letters = "".join(c if unicodedata.category(c)[0] in "LMN" else "-" for c in lower[: 8 * _MOST_SLUG])
    words = re.sub("-+", "-", letters).strip("-")
    if len(words) <= _MOST_SLUG:
        return words
    prefix = words[: _MOST_SLUG + 1]
    return (prefix.rpartition("-")[0] if "-" in prefix[_MOST_SLUG // 2 :] else prefix[:_MOST_SLUG]).strip("-")


def _cited(value: object) -> Iterator[str]:
    if isinstance(value, Citation | Source):
        yield value.session_id
    elif isinstance(value, tuple):
        for item in value:
            yield from _cited(item)
    elif isinstance(value, dict):
        yield from _cited(tuple(value.values()))
    elif is_dataclass(value):
        yield from _cited(tuple(getattr(value, field.name) for field in fields(value)))


def _stem(facts: SessionFacts) -> str:
    day = markdown.day(facts.session.created)
    return f"{day if day[:1].isdigit() else 'undated'}-{slug(name_of(facts)) or 'session'}"


def _parts(facts: SessionFacts) -> list[dict[str, int]]:
    """The messages of each page with their numbers. A page ends between turns, and within one only if it is too long.

    It is filled from the first message on, so that what comes later does not move what stands.
    """
    numbers = _numbers(facts)
    sizes = dict(zip(facts.message_ids, facts.sizes or [_LIGHT] * len(numbers), strict=True))
    parts: list[dict[str, int]] = [{}]
    weight = 0
    for turn in _turns(facts):
        total = sum(sizes[message_id] for message_id in turn)
        for group in [turn] if total <= MOST_WEIGHT else [[message_id] for message_id in turn]:
            size = sum(sizes[message_id] for message_id in group)
            if parts[-1] and weight + size > MOST_WEIGHT:
                parts.append({})
                weight = 0
            parts[-1] |= {message_id: numbers[message_id] for message_id in group}
            weight += size
    return parts


def _numbers(facts: SessionFacts) -> dict[str, int]:
    """The places of its messages in the whole session, from 1."""
    return dict(zip(facts.message_ids, facts.numbers or range(1, len(facts.message_ids) + 1), strict=True))


def _age(facts: SessionFacts) -> tuple[int, str]:
    return facts.session.created, facts.id


def _turns(facts: SessionFacts) -> Iterator[list[str]]:
    """The messages turn by turn; one that belongs to no turn stands alone."""
    turn_of = {message: number for number, turn in enumerate(facts.turns) for message in turn.message_ids}
    turn: list[str] = []
    for message in facts.message_ids:
        if turn and (message not in turn_of or turn_of[message] != turn_of.get(turn[-1])):
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn
