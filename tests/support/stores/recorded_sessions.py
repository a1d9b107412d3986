"""A small archive of our own making: sessions told in a few lines, archived and indexed by the real parts."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from daemon import records
from daemon.archive import Archive
from daemon.archive.batch import Batch
from daemon.archive.objects import BLOB, TREE
from daemon.embed import Vector
from daemon.errors import BadInput
from daemon.index.lexical import Lexical
from daemon.index.semantic import Semantic
from daemon.ingest.outbox import LexicalDrain, SemanticDrain
from daemon.model import Message, Part, Session
from daemon.recall.search import RecallEngine
from daemon.transcript.evidence.edits import edits

START = 1_795_000_000_000
MINUTE = 60_000


class WordEmbedder:
    """The model's stand-in: each word one direction, `synonyms` mapped to one; the same text, the same vector."""

    fingerprint, dims, name = "words-of-a-text-64", 64, "word directions (test)"

    def __init__(self, synonyms: dict[str, str] | None = None) -> None:
        self._synonyms = synonyms or {}

    def embed(self, texts: Any) -> list[Vector | BadInput]:
        return [self._one(text) for text in texts]

    def embed_query(self, text: str) -> Vector | BadInput:
        return self.embed([text])[0]

    def legible(self, text: str) -> float:
        return 1.0

    def known_words(self, text: str) -> float:
        return 1.0

    def _one(self, text: str) -> Vector | BadInput:
        vector = np.zeros(self.dims, dtype=np.float32)
        for word in text.lower().split():
            known = self._synonyms.get(word.strip(".,?!"), word.strip(".,?!"))
            vector[int(hashlib.sha256(known.encode()).hexdigest(), 16) % self.dims] += 1.0
        length = float(np.linalg.norm(vector))
        return vector / np.float32(length) if length else BadInput("no words")


class FailingModel(WordEmbedder):
    """A model that answers every question with the same error."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def embed(self, texts: Any) -> list[Vector | BadInput]:
        raise self._error


class FailingLexical:
    """Fault injection (docs/reliability.md, C4): an index that fails whatever it is asked, as a torn one would."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def search(self, *_: Any, **_more: Any) -> Any:
        raise self._error

    literal = windows = fuzzy = regex = by_time = spellings = frequencies = allowed_ids = search


@dataclass
class Recorded:
    """An open archive with its indexes, and the ways to tell it what happened."""

    archive: Archive
    lexical: Lexical
    embedder: WordEmbedder
    vectors: Semantic
    clock: int = START
    count: int = 0

    def session(self, sid: str, directory: str, title: str = "A session", raw: bytes = b"{}", **more: Any) -> str:
        self.clock += MINUTE
        told = {"version": "1.18.33"} | more
        session = Session(sid, "prj", directory, title, self.clock, self.clock, raw, **told)
        batch = self.archive.batch()
        batch.session(session, "test", 2)
        self.archive.commit(batch)
        return sid

    def say(self, sid: str, role: str, *parts: str | dict[str, Any]) -> str:
        """One message: a string is a text part, a dict a part record without its ids. Answers its id."""
        self.count += 1
        self.clock += MINUTE
        mid = f"msg_{self.count:04d}"
        made = []
        for number, part in enumerate(parts):
            data = {"type": "text", "text": part} if isinstance(part, str) else part
            if "state" in data and "time" not in data["state"]:
                data["state"] = data["state"] | {"time": {"start": self.clock, "end": self.clock}}
            data |= {"id": f"prt_{self.count:04d}_{number}", "messageID": mid, "sessionID": sid}
            made.append(records.part(records.dumps(data), mid, sid))
        return self.put(sid, mid, role, tuple(made))

    def put(self, sid: str, mid: str, role: str, parts: tuple[Part, ...], **fields: Any) -> str:
        data = {"id": mid, "sessionID": sid, "role": role, "time": {"created": self.clock, "completed": self.clock + 1}}
        data |= fields
        self._keep(records.message(records.dumps(data), parts, sid))
        return mid

    def _keep(self, message: Message) -> None:
        parts, session = message.parts, self.archive.session(message.session_id)
        batch = self.archive.batch()
        hash_ = records.digest(message.raw, *(part.raw for part in parts))
        batch.message(message, source="test", generation=2, hash_=hash_, edits=edits(message, session))
        self.archive.commit(batch)

    def snapshot(self, sid: str, root: str, files: dict[str, bytes], *calls: dict[str, Any]) -> str:
        """A step of tool `calls` that ended with `files` (by relative path) in the work tree; their tree is archived."""
        batch = self.archive.batch()
        tree = self._tree(batch, {name.encode("utf-8", "surrogateescape"): data for name, data in files.items()})
        self.archive.commit(batch)
        self.count += 1
        self.clock += MINUTE
        mid = f"msg_{self.count:04d}"
        made = []
        for number, part in enumerate([*calls, {"type": "step-finish", "snapshot": tree}]):
            data = part | {"id": f"prt_{self.count:04d}_{number}", "messageID": mid, "sessionID": sid}
            if "state" in data:
                data["state"] = data["state"] | {"time": {"start": self.clock, "end": self.clock}}
            made.append(records.part(records.dumps(data), mid, sid))
        return self.put(sid, mid, "assistant", tuple(made), path={"cwd": root, "root": root})

    def _tree(self, batch: Batch, files: dict[bytes, bytes]) -> str:
        """Git's tree object of `files`, and all beneath it."""
        folders: dict[bytes, dict[bytes, bytes]] = {}
        entries: dict[bytes, tuple[bytes, str]] = {}
        for name, data in files.items():
            first, _, rest = name.partition(b"/")
            if rest:
                folders.setdefault(first, {})[rest] = data
            else:
                entries[first] = b"100644", self.archive.objects.put(batch, BLOB, data)
        for name, inside in folders.items():
            entries[name] = b"40000", self._tree(batch, inside)
        raw = b"".join(b"%b %b\0%b" % (mode, name, bytes.fromhex(id_)) for name, (mode, id_) in sorted(entries.items()))
        return self.archive.objects.put(batch, TREE, raw)

    def copy_to(self, other: Recorded, *, newest_first: bool) -> None:
        """Everything recorded here goes into another archive, message by message, in the opposite order if so asked."""
        sessions = sorted(self.archive.sessions(), key=lambda session: session.created, reverse=newest_first)
        for session in sessions:
            batch = other.archive.batch()
            batch.session(session, "test", 2)
            other.archive.commit(batch)
        ids = [mid for session in sessions for mid in self.archive.message_ids(session.id)]
        for mid in sorted(ids, reverse=newest_first):
            message = self.archive.message(mid)
            assert message is not None
            other._keep(message)

    def delete(self, mid: str) -> None:
        batch = self.archive.batch()
        batch.forget_message_source(mid, "test", self.clock)
        self.archive.commit(batch)

    def index(self) -> None:
        """Drain the outbox into both indexes; a secret that is recognised on the way puts messages into it again."""
        words = LexicalDrain(self.archive, self.lexical, 1024)
        meaning = SemanticDrain(self.archive, self.vectors, self.embedder, indexed_kb=1024, embedded_kb=16, batch=64)
        while words.step(10_000).messages + meaning.step(1000).messages:
            pass

    def recall(self, *, semantic: Any = ..., lexical: Any = None, embedder: Any = None, **more: Any) -> RecallEngine:
        """The search engine over this archive; `semantic` None is an index that is not ready."""
        vectors = self.vectors if semantic is ... else semantic
        return RecallEngine(self.archive, lexical or self.lexical, lambda: vectors, embedder or self.embedder, **more)


def call(
    tool: str, status: str = "completed", output: str = "", metadata: dict[str, Any] | None = None, **given: Any
) -> dict[str, Any]:
    """A tool part."""
    state = {"status": status, "input": given, "output": output, "title": tool, "metadata": metadata or {}}
    return {"type": "tool", "tool": tool, "callID": f"call_{tool}", "state": state}


def read(path: str, *lines: str) -> dict[str, Any]:
    """A read of a whole file, as OpenCode 1.18 shows it."""
    shown = "".join(f"{number}: {line}\n" for number, line in enumerate(lines, start=1))
    end = f"(End of file - total {len(lines)} lines)\n</content>"
    return call("read", output=f"<path>{path}</path>\n<type>file</type>\n<content>\n{shown}\n{end}", filePath=path)


@cache
def _empty_index() -> TemporaryDirectory[str]:
    """An empty semantic index to copy: Chroma takes twice as long to make its tables as to open them."""
    place = TemporaryDirectory()
    Semantic(Path(place.name, "semantic"), WordEmbedder.fingerprint, WordEmbedder.dims).close()
    return place


@contextmanager
def recorded(directory: Path, synonyms: dict[str, str] | None = None) -> Iterator[Recorded]:
    embedder = WordEmbedder(synonyms)
    if not (directory / "semantic").exists():
        shutil.copytree(Path(_empty_index().name, "semantic"), directory / "semantic")
    with (
        Archive(directory / "archive") as archive,
        closing(Lexical(directory / "lexical")) as lexical,
        closing(Semantic(directory / "semantic", embedder.fingerprint, embedder.dims)) as vectors,
    ):
        vectors.prepare()  # as the daemon does with what it keeps open
        yield Recorded(archive, lexical, embedder, vectors)
