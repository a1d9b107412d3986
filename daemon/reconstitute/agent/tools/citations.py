"""What a model says is held against what it was shown: statements that pass, and what was wrong with the others.

Lenient in shape, since small models are: one text where a list belongs, ids in brackets, quotes beside or in the
citations. Strict in truth: a statement needs a quote from a message that is in the archive and was shown in this run,
or from a file as such a message left it. Every quote must stand there, and every path must be recorded. Cited messages
without a quote are not published. Nothing is mended that a person would read as said: what fails is told in words for
the model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from daemon import records
from daemon.archive import Archive
from daemon.display import shorten
from daemon.errors import BadRecord, BadRequest
from daemon.model import Json
from daemon.reconstitute.agent.context.blocks import clean, name
from daemon.reconstitute.agent.context.ledger import Ledger, is_long_enough
from daemon.reconstitute.agent.tools.call import Paths
from daemon.reconstitute.answer import Answer, Source, Statement

MOST_STATEMENTS = 30
LONGEST = 1500
"""Characters of a statement's text, of its reason, and of a note."""
_MOST_IDS = 20
_LONGEST_QUOTE = 600
_HINTS = 3
"""Unknown paths of one draft, for which the model is told what it may have meant."""
_TEXT = ("text", "statement", "claim", "content", "answer", "description", "note")
_STATEMENTS = ("statements", "statement", "claims", "answers", "answer")
_IDS = ("message_ids", "message_id", "messages", "citations", "citation", "sources", "source", "ids", "messageID")
_ID = ("message_id", "messageID", "id", "message")
_QUOTES = ("quote", "quotes")
_PATHS = ("paths", "path", "files", "file")
_NOTES = ("note", "notes", "comment", "remark")
_SPLIT = re.compile(r"[\s,;]+")
_WRAPPED = "[](){}<>`'\"#.,;:“”"
_FILLERS = frozenset({"", "message", "messages", "and", "id", "ids"})
_BRACKETED = re.compile(r"\s*[\[(]([^\[\]()]{1,400})[\])]")


@dataclass(frozen=True, slots=True)
class CheckedDraft:
    """What came of a draft: `statements` passed; `problems` say in words for the model what was wrong with the others,
    `dropped` counts those.
    """

    statements: tuple[Statement, ...] = ()
    problems: tuple[str, ...] = ()
    note: str = ""
    dropped: int = 0

    def answer(self, question_id: str, model: str = "") -> Answer:
        """As it is kept."""
        return Answer(question_id, self.statements, model, self.note, self.dropped)


@dataclass(slots=True)
class _Cited:
    """What one statement cites, as written: message ids, and quotes with the id they are said to be from, or empty."""

    ids: dict[str, None] = field(default_factory=dict)
    quotes: dict[tuple[str, str], None] = field(default_factory=dict)


class Checker:
    """Checks against one run's ledger."""

    def __init__(self, archive: Archive, ledger: Ledger, paths: Paths) -> None:
        self._archive, self._ledger, self._paths = archive, ledger, paths
        self._hints = _HINTS

    def check(self, draft: Json) -> CheckedDraft:
        """The draft of an answer: ``{statements: [{text, message_ids, quote, reason?, paths?}], note?}``.

        An answer without statements passes where its note says why.
        """
        self._hints = _HINTS
        entries = _entries(draft)
        note = _long(_first(draft, _NOTES))
        accepted: dict[str, Statement] = {}
        problems: list[str] = []
        dropped = 0
        for number, entry in enumerate(entries[:MOST_STATEMENTS], start=1):
            statement, wrong = self._statement(entry)
            if statement is not None:
                accepted.setdefault(statement.text, statement)
            else:
                dropped += 1
                beginning = name(_text(_first(entry, _TEXT)), 60)
                label = f"statement {number}" + (f" ({beginning!r})" if beginning else "")
                problems += [f"{label}: {problem}" for problem in wrong]
        if len(entries) > MOST_STATEMENTS:
            dropped += len(entries) - MOST_STATEMENTS
            problems.append(f"there are {len(entries)} statements; give the {MOST_STATEMENTS} that matter most")
        if not entries and not note:
            problems.append("there is no statement; where the records do not tell, say in `note` what you looked for")
        return CheckedDraft(tuple(accepted.values()), tuple(problems), note, dropped)

    def statement(self, entry: Json) -> tuple[Statement | None, list[str]]:
        """One statement, or None and what was wrong with it."""
        self._hints = _HINTS
        return self._statement(entry)

    def _statement(self, entry: Json) -> tuple[Statement | None, list[str]]:
        text, cited = self._citations_of(entry)
        reason = _text(entry.get("reason")).strip()
        problems = []
        if not text:
            problems.append("it has no text")
        for part, value in (("its text", text), ("its reason", reason)):
            if len(value) > LONGEST:
                problems.append(f"{part} has {len(value)} characters; say it in {LONGEST} or split it")
        problems += self._wrong_ids(list(cited.ids))
        sources = []
        for owner, quote in list(cited.quotes)[:_MOST_IDS]:
            source, problem = self._verify(quote, [owner] if owner else list(cited.ids))
            if source is not None:
                sources.append(source)
            else:
                problems.append(problem)
        if not problems and not sources:
            problems.append(
                "it has no quote; add a few words copied exactly from a cited message, or from a file it left"
            )
        paths, wrong = self._resolve_paths(_listed(_first(entry, _PATHS)))
        problems += wrong
        if problems:
            return None, problems
        place = {message_id: number for number, message_id in enumerate(cited.ids)}
        sources.sort(key=lambda source: place[source.message_id])
        return Statement(clean(text), clean(reason), tuple(sources), tuple(paths)), []

    def _citations_of(self, entry: Json) -> tuple[str, _Cited]:
        """The text, and what it cites; ids that stand in brackets in the text are taken out of it."""
        text = _text(_first(entry, _TEXT)).strip()
        cited = _Cited()
        for key in _IDS:
            self._cite(entry.get(key), cited)
        for key in _QUOTES:
            self._quote(entry.get(key), cited)
        text = _BRACKETED.sub(lambda match: self._cite_bracketed(match, cited), text).strip()
        return text, cited

    def _cite_bracketed(self, match: re.Match[str], cited: _Cited) -> str:
        ids = [id_ for word in _SPLIT.split(match[1]) if (id_ := word.strip(_WRAPPED)) not in _FILLERS]
        if not ids or not all(id_ in self._ledger for id_ in ids):
            return match[0]
        cited.ids.update(dict.fromkeys(ids))
        return ""

    def _cite(self, value: object, cited: _Cited) -> None:
        """Take up ids in whatever shape they come."""
        for item in _as_list(value):
            if isinstance(item, dict):
                ids = self._split(_text(_first(item, _ID)))
                cited.ids.update(dict.fromkeys(ids))
                for quote in _listed(_first(item, (*_QUOTES, "text"))):
                    cited.quotes[ids[0] if len(ids) == 1 else "", quote] = None
            else:
                cited.ids.update(dict.fromkeys(self._split(_text(item))))

    def _quote(self, value: object, cited: _Cited) -> None:
        for item in _as_list(value):
            if isinstance(item, dict):
                self._cite(item, cited)
            elif _text(item).strip():
                cited.quotes["", _text(item)] = None

    def _split(self, text: str) -> list[str]:
        """The ids in a text: several with commas, each perhaps in brackets or quotation marks."""
        if text.strip() in self._ledger:
            return [text.strip()]
        return [id_ for word in _SPLIT.split(text) if (id_ := word.strip(_WRAPPED)).lower() not in _FILLERS]

    def _wrong_ids(self, ids: Sequence[str]) -> list[str]:
        if not ids:
            return ["it cites no message; give in `message_ids` the ids of messages shown to you that say it"]
        if len(ids) > _MOST_IDS:
            return [f"it cites {len(ids)} messages; give the few that say it, at most {_MOST_IDS}"]
        problems = []
        for id_ in ids:
            if self._archive.state(id_) is None:
                similar = ", ".join(name(similar_id) for similar_id in self._ledger.similar(id_))
                hint = f"ids that were shown: {similar}" if similar else "search first: none was shown yet"
                problems.append(f"there is no message {name(id_)!r}; {hint}")
            elif id_ not in self._ledger:
                problems.append(f"message {name(id_)} was not shown to you; call read_message with it, then cite it")
        return problems

    def _verify(self, quote: str, ids: Sequence[str]) -> tuple[Source | None, str]:
        """(the source in which the quote stands, ""), or (None, what is wrong)."""
        subject = f"the quote {name(quote, 60)!r}"
        if len(quote) > _LONGEST_QUOTE:
            return None, f"{subject} has {len(quote)} characters; quote the {_LONGEST_QUOTE} that matter, or less"
        for id_ in ids:
            verified, path = self._ledger.find(quote, id_)
            if verified:
                return self._ledger.source(id_, verified, path), ""
        for id_ in self._ledger:
            if id_ not in ids and self._ledger.find(quote, id_)[0]:
                return None, f"{subject} stands in message {name(id_)}; cite that one for it"
        if not is_long_enough(quote):
            return None, f"{subject} is too short to be found; quote a few words as they stand"
        where = ", ".join(name(id_) for id_ in ids[:3]) or "any message"
        return None, f"{subject} does not stand in what you were shown of {where}; copy it exactly"

    def _resolve_paths(self, texts: Sequence[str]) -> tuple[list[str], list[str]]:
        paths: dict[str, None] = {}
        problems = []
        for text in texts[: _MOST_IDS * 2]:
            try:
                paths[self._paths.known(text, is_hinted=self._hints > 0)] = None
            except BadRequest as error:
                self._hints -= 1
                problems.append(str(error))
        return list(paths), problems


def check(draft: Json, ledger: Ledger, paths: Paths, archive: Archive) -> CheckedDraft:
    """One draft against one ledger (Checker.check)."""
    return Checker(archive, ledger, paths).check(draft)


# -- the shapes that models give their answers ---------------------------------------------------------------------


def _entries(draft: Json) -> list[Json]:
    """The statements of a draft, each a table; ids given for all of them go to each that has none of its own, and what
    else is given beside a single one goes to that.
    """
    value = next((draft[key] for key in _STATEMENTS if draft.get(key)), None)
    if isinstance(value, str):
        value = _parsed(value)
    if value is None:
        return [draft] if draft.get("text") else []
    entries = [item if isinstance(item, dict) else {"text": _text(item)} for item in _as_list(value)]
    common = _IDS if len(entries) > 1 else (*_IDS, *_QUOTES, *_PATHS)
    shared = {key: draft[key] for key in common if draft.get(key)}
    return [entry if _first(entry, _IDS) else shared | entry for entry in entries]


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _parsed(text: str) -> Any:
    """A list or table that was written as text, or the text."""
    if not text.lstrip().startswith(("[", "{")):
        return text
    try:
        return records.loads(text.encode("utf-8", "replace"))
    except BadRecord:
        return text


def _first(entry: Json, keys: Sequence[str]) -> Any:
    return next((entry[key] for key in keys if entry.get(key)), None)


def _text(value: object) -> str:
    """A text that can be stored, of a text or a small number; else empty."""
    if isinstance(value, str):
        return str(records.clean(value))
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53
    return str(value) if is_number else ""


def _listed(value: object) -> list[str]:
    """Texts, of one or of a list of them."""
    return [item for item_ in _as_list(value) if (item := _text(item_)).strip()]


def _long(value: object) -> str:
    """A note: one text, or the lines of several, as long as one may be."""
    return shorten(clean("\n".join(_listed(value))).strip(), LONGEST)
