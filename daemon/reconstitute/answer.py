"""What a model answered about a target, after its citations were checked: plain values, kept as JSON in the archive.

Every statement stands on sources that exist and that the model was shown; what failed that is not here, only counted.
Text is redacted and inert only when it is rendered. No logic beyond the way to JSON and back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from daemon.display import counted
from daemon.model import Json

OUTDATED = "There is newer evidence than this."
"""The end of a statement's reason when what it stands on has changed since."""


@dataclass(frozen=True, slots=True)
class Source:
    """A message that a statement stands on. `quote` is text that the model saw in it, checked by code.

    With `path`, an absolute one, the quote stands in that file's recovered content as the message left it; without, in
    the message itself. `created` is the message's time, epoch ms; `title` its session's.
    """

    message_id: str
    session_id: str
    title: str
    created: int
    quote: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that is said, why it is so where a reason is known, what it stands on, and the paths it speaks of."""

    text: str
    reason: str = ""
    sources: tuple[Source, ...] = ()
    paths: tuple[str, ...] = ()

    @property
    def when(self) -> int:
        """The time of its latest source, epoch ms; 0 without one."""
        return max((source.created for source in self.sources), default=0)

    @property
    def is_outdated(self) -> bool:
        """Whether there is newer evidence than it has seen."""
        return self.reason.endswith(OUTDATED)

    @property
    def why(self) -> str:
        """The reason alone."""
        return self.reason.removesuffix(OUTDATED).strip()


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question. Without statements it says in `note` why there are none.

    `dropped` counts statements that failed the check; `model` is the model's name for people.
    """

    question_id: str
    statements: tuple[Statement, ...]
    model: str = ""
    note: str = ""
    dropped: int = 0

    @property
    def quotes(self) -> int:
        """How many quotes support it: each was found, by code, in a message or file that the model was shown."""
        return len({source for statement in self.statements for source in statement.sources})

    @property
    def sessions(self) -> int:
        """How many sessions these quotes are from."""
        return len({source.session_id for statement in self.statements for source in statement.sources})


@dataclass(frozen=True, slots=True)
class Record:
    """What a model found out about a target: answers by question id, descriptions by absolute path, and the rest.

    `recorded` are paths beneath the target that a model took up because messages speak of them, each with the line of a
    message that names it (None: only file records do); `notes` are remarks of it that answer no question; `unasked` are
    the questions that no model was asked yet, and why.

    `struck` are entries of the facts (by facts.values.key) that a model says do not hold, each with the reason as its
    text and what that stands on: such an entry stays on the page, struck through. `summaries` say by session id in one
    sentence what came of a session.
    """

    answers: dict[str, Answer]
    descriptions: dict[str, Statement]
    recorded: tuple[tuple[str, Source | None], ...] = ()
    notes: tuple[Statement, ...] = ()
    unasked: dict[str, str] = field(default_factory=dict)
    struck: dict[str, Statement] = field(default_factory=dict)
    summaries: dict[str, Statement] = field(default_factory=dict)


EMPTY_RECORD = Record({}, {})


def unchecked(number: int) -> str:
    """The note of an answer of which no statement held."""
    return f"{counted(number, 'statement')} of the model could not be checked."


def to_json(value: Answer | Statement) -> Json:
    """As it is kept."""
    return asdict(value)


def statement(stored: Json) -> Statement:
    """The inverse of to_json for a Statement. Version 0.1 also kept sources without a quote: those prove nothing."""
    sources = tuple(Source(**source) for source in stored["sources"] if source["quote"])
    return Statement(stored["text"], stored["reason"], sources, tuple(stored["paths"]))


def source(stored: object) -> Source | None:
    """The inverse of to_json for a Source; None also for the model's own words, which 0.1 kept in its place."""
    return Source(**stored) if isinstance(stored, dict) else None


def statements(stored: Iterable[Json]) -> tuple[Statement, ...]:
    """Those of the stored statements that still have a source."""
    return tuple(entry for entry in map(statement, stored) if entry.sources)


def answer(stored: Json) -> Answer:
    """The inverse of to_json for an Answer. Version 0.1 also kept how sure the model said it was."""
    sound = statements(stored["statements"])
    dropped = stored["dropped"] + len(stored["statements"]) - len(sound)
    fields = {name: value for name, value in stored.items() if name != "confidence"}
    return Answer(**fields | {"statements": sound, "dropped": dropped})
