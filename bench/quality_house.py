"""Records texts as sessions in a real archive with real indexes, and asks questions there.

Messages go in as OpenCode's records, through the product's own archive, outbox, chunker, embedder and indexes, and are
asked through `RecallEngine.answer`: what is measured is what users get.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from daemon import records
from daemon.archive import CONTENTS, Archive
from daemon.embed.builtin import Builtin
from daemon.errors import IndexBroken
from daemon.index.lexical import Lexical
from daemon.index.semantic import Semantic
from daemon.ingest.outbox import LexicalDrain, SemanticDrain, index_contents, index_fingerprint
from daemon.model import Message, Session
from daemon.recall.query import Recall
from daemon.recall.search import RecallEngine

DEEP = 50
"""Number of results requested; a session further down counts as not found."""
BUDGET_S = 60.0
"""Long enough that a busy machine changes no figure: quality is measured here, not time."""
_ROLES = ("user", "assistant")


@dataclass(frozen=True)
class Talk:
    """One session to be recorded; `created` is epoch ms. Texts follow one another by a minute, records as they say."""

    id: str
    title: str
    created: int
    messages: tuple[str | Message, ...]


@dataclass(frozen=True)
class Question:
    """One question, and the sessions of which any is a right answer."""

    text: str
    right: frozenset[str]


@dataclass(frozen=True)
class QuestionSet:
    """Sessions of one archive and the questions that are asked there."""

    name: str
    talks: list[Talk]
    questions: list[Question]


@dataclass(frozen=True)
class House:
    """An archive with its indexes, ready to be asked."""

    archive: Archive
    lexical: Lexical
    semantic: Semantic
    recall: RecallEngine
    notes: set[str] = field(default_factory=set)
    """Why answers were not whole: the model cannot read the texts, or not all have vectors."""

    def sessions(self, mode: str, text: str) -> list[str]:
        """How a mode of recall answers a question: session ids, best first."""
        answer = self.recall.answer(Recall(query=text, match=mode, group="session", results=DEEP))
        self.notes.update(map(str, answer["degraded"]))
        return [result["sessionID"] for result in answer["results"]]

    def places(self, mode: str, questions: Sequence[Question]) -> list[int]:
        """The place of the first right session for each question; 0 where none is among the first DEEP."""
        ranks = []
        for question in questions:
            answered = enumerate(self.sessions(mode, question.text), start=1)
            ranks.append(next((place for place, session in answered if session in question.right), 0))
        return ranks


@contextmanager
def house(directory: Path, talks: Iterable[Talk], embedder: Builtin) -> Iterator[House]:
    """Talks archived and indexed in `directory`, embedded with the built-in model; no network.

    What an earlier run left there is used again, its words indexed anew if today's index is another one.

    Raises:
        SystemExit: what is there was made of other talks, or not to the end.
    """
    recorded, mark = list(talks), directory / "made-of"
    digest = sha256(repr([_comparable(talk) for talk in recorded]).encode()).hexdigest()
    if (directory / "archive").exists() and (not mark.exists() or mark.read_text() != digest):
        raise SystemExit(f"{directory}: made of other texts, or not to the end; remove it, or name another folder")
    with ExitStack() as stack:
        archive = stack.enter_context(Archive(directory / "archive"))
        lexical, vectors = (
            _words(directory / "lexical", archive),
            Semantic(directory / "semantic", index_fingerprint(embedder), embedder.dims),
        )
        archive.set_note(CONTENTS, index_contents(embedder, "all"))
        stack.callback(lexical.close)
        stack.callback(vectors.close)
        for talk in recorded if not mark.exists() else ():
            _record(archive, talk)
        mark.write_text(digest)
        words = LexicalDrain(archive, lexical, 1024)
        while words.step(500).messages:
            pass
        meaning = SemanticDrain(archive, vectors, embedder, indexed_kb=1024, embedded_kb=64, batch=64)
        while meaning.step(500).messages:
            print(f"  {archive.waiting('semantic')} messages to embed", end="\r", file=sys.stderr, flush=True)
        yield House(
            archive, lexical, vectors, RecallEngine(archive, lexical, lambda: vectors, embedder, budget_s=BUDGET_S)
        )


def _words(directory: Path, archive: Archive) -> Lexical:
    try:
        return Lexical(directory)
    except IndexBroken:
        shutil.rmtree(directory)
        archive.enqueue_all("lexical")
        return Lexical(directory)


def _comparable(talk: Talk) -> Talk:
    """The talk with a digest in place of each record, whose repr may differ from run to run."""
    return replace(
        talk, messages=tuple(_digest(content) if isinstance(content, Message) else content for content in talk.messages)
    )


def _digest(message: Message) -> str:
    return records.digest(message.raw, *(part.raw for part in message.parts))


def _record(archive: Archive, talk: Talk) -> None:
    batch = archive.batch()
    batch.session(
        Session(talk.id, "prj", "/home/dev/bench", talk.title, talk.created, talk.created, b"{}", version="1.18.33"),
        "bench",
        1,
    )
    for number, content in enumerate(talk.messages):
        message = content if isinstance(content, Message) else _message(talk, number, content)
        batch.message(message, source="bench", generation=1, hash_=_digest(message), edits=[])
    archive.commit(batch)


def _message(talk: Talk, number: int, text: str) -> Message:
    mid, created = f"msg_{talk.id}_{number:04d}", talk.created + 60_000 * number
    data = {"type": "text", "text": text, "id": f"prt_{mid}", "messageID": mid, "sessionID": talk.id}
    part = records.part(records.dumps(data), mid, talk.id)
    head: dict[str, Any] = {"id": mid, "sessionID": talk.id, "role": _ROLES[number % 2]}
    head["time"] = {"created": created, "completed": created + 1}
    return records.message(records.dumps(head), (part,), talk.id)
