"""Every way out of the archive, asked about sessions in which secrets were planted, each in a frame.

One engine in this process, over a store that is read as OpenCode's are. What leaves by each way is collected by the
session it is about; whether a secret can be read in it, `tests.frames.seen` tells.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from daemon import config, log
from daemon.app.engine import Engine
from daemon.config import Log
from daemon.control.calls import silent
from daemon.files import Files
from daemon.ingest import Entries
from daemon.publish.naming import safe_path
from daemon.reconstitute.agent.context.messages import readable_message
from daemon.reconstitute.facts.session import file_changes, finish, read_session
from daemon.redact import redact_value
from tests.e2e.talk import PROJECT, Talk, words
from tests.support.secrets.canaries import SECRETS
from tests.support.secrets.renderings import FRAMES, Framed, texts
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import JsonStore
from tests.unit.ingest.test_ingest_upkeep import Hashed


@dataclass(frozen=True)
class Planted:
    """One session: what was planted in it, the names of canary and frame, and the ids of its messages."""

    number: int
    kind: str
    frame: str
    framed: Framed
    messages: tuple[str, ...]

    @property
    def session(self) -> str:
        return f"ses_{self.number:04d}"

    @property
    def path(self) -> str:
        return f"{PROJECT}/{self.number}/settings.txt"


Pairs = Sequence[tuple[int, str]]
"""(number of a canary, name of a frame)."""


def each_frame() -> Pairs:
    """Every frame once, each with another canary."""
    return [(7 * number % len(SECRETS), name) for number, name in enumerate(FRAMES)]


def each_canary() -> Pairs:
    """Every canary once, the frames one after the other."""
    names = list(FRAMES)
    return [(number, names[number % len(names)]) for number in range(len(SECRETS))]


def plant(store: JsonStore, pairs: Pairs) -> list[Planted]:
    """A session for each pair: as a prompt, an answer, a thought, a tool's input and output, a file, and the title."""
    made = []
    for number, (canary, name) in enumerate(pairs):
        kind, secret, text = SECRETS[canary]
        before, _, after = text.partition("{}")
        framed = FRAMES[name](before, secret, after)
        said = "\n".join(texts(framed.value))
        talk = Talk(store, f"ses_{number:04d}", f"{PROJECT}/{number}", title=f"About {said}")
        path = f"{PROJECT}/{number}/settings.txt"
        ids = [
            talk.ask(f"Look {words(number)}:\n{said}"),
            talk.answer(f"I see:\n{said}", {"type": "reasoning", "text": f"Think.\n{said}"}),
            talk.call("bash", {"command": said, "description": "Run it"}, f"It printed\n{said}"),
            talk.call("fetch", {"url": "https://example.org", "body": framed.value}, f"{said}\n"),
            talk.call("webhook", {"env": [{"name": "NOTE", "value": said}]}, said),
            talk.write(path, f"# {words(number)}\n{said}\n"),
        ]
        made.append(Planted(number, kind, name, framed, tuple(ids)))
    return made


@contextmanager
def engine(root: Path, pairs: Pairs) -> Iterator[tuple[PlainService, list[Planted]]]:
    """An engine that has taken in and indexed what was planted."""
    store = JsonStore(root / "opencode")
    planted = plant(store, pairs)
    tables: dict[str, Any] = {
        "opencode": {"data_dir": str(store.storage.parent)},
        "archive": {"dir": str(root / "archive")},
        "output": {"dir": str(root / "pages")},
        "chat": {"provider": "none"},
    }
    with PlainService(Engine(msgspec.convert(tables, config.Config), embedder=lambda: (Hashed(), "a test"))) as opened:
        opened.index(silent)
        yield opened, planted


def _exported(engine: PlainService, one: Planted, form: str) -> Any:
    out: list[str] = []
    engine.export({"format": form, "session": one.session, "results": "full"}, on_part=out.append)
    whole = "".join(out)
    return whole if form == "markdown" else [json.loads(line) for line in whole.splitlines() if line]


def _documents(engine: PlainService, one: Planted) -> Any:
    entries = Entries(engine.archive, 1024)
    found = [entry for message_id in one.messages if (entry := entries.of(message_id)) is not None]
    return [
        [
            entry.session_title,
            entry.window,
            *(section.text for section in entry.document.sections),
            *entry.document.paths,
        ]
        for entry in found
    ]


def _told(engine: PlainService, one: Planted) -> Any:
    return [
        found.text for message_id in one.messages if (found := readable_message(engine.archive, message_id)) is not None
    ]


def _facts(engine: PlainService, one: Planted) -> Any:
    session = engine.archive.session(one.session)
    assert session is not None
    changes = file_changes.by_session(Files(engine.archive).histories(f"{PROJECT}/{one.number}"))
    messages = list(engine.archive.messages(one.session))
    made = read_session(engine.archive, session, messages, changes[one.session], is_whole=True, until=None)
    (told,) = finish([made])
    return [told.title, told.message_ids, *map(msgspec.to_builtins, (told.turns, told.changes, told.tests))]


def _logged(_engine: PlainService, one: Planted) -> Any:
    stream = io.StringIO()
    log.setup(Log(format="json"), redact_value, stream=stream)
    log.get("test").warning("seen", value=one.framed.value)
    return stream.getvalue()


@lru_cache(maxsize=1)
def _pages(engine: PlainService) -> Any:
    result = engine.reconstitute(PROJECT, progress=silent)
    pages = [path for path in Path(result["output"]).rglob("*") if path.is_file()]
    return [result, *(str(path) for path in pages), *(path.read_text("utf-8", "replace") for path in pages)]


def _content(engine: PlainService, one: Planted) -> Any:
    answer = engine.content(one.path)
    return [answer, base64.b64decode(answer["contentBase64"]).decode("utf-8", "replace")]


WAYS: dict[str, Callable[[PlainService, Planted], Any]] = {
    "index": _documents,
    "recall": lambda engine, one: engine.recall("recall", {"query": words(one.number), "explain": True}),
    "message": lambda engine, one: [engine.recall("recall_get", {"messageID": name}) for name in one.messages],
    "around it": lambda engine, one: engine.recall("recall_context", {"messageID": one.messages[2]}),
    "session": lambda engine, one: engine.recall("recall_messages", {"sessionID": one.session, "limit": 50}),
    "sessions": lambda engine, one: engine.recall("recall_sessions", {"directory": f"{PROJECT}/{one.number}"}),
    "timeline": lambda engine, one: engine.recall("recall_timeline", {"anchor": one.session, "format": "full"}),
    "files": lambda engine, one: [
        engine.recall("recall_files", {"path": one.path, "mentions": True}),
        engine.files(one.path),
    ],
    "file": _content,
    "history": lambda engine, one: engine.history(one.path, diff=True, lines=True),
    "jsonl": lambda engine, one: _exported(engine, one, "jsonl"),
    "messages": lambda engine, one: _exported(engine, one, "messages"),
    "markdown": lambda engine, one: _exported(engine, one, "markdown"),
    "pages": lambda engine, _one: _pages(engine),
    "names": lambda _engine, one: [safe_path(text) for text in texts(one.framed.value)],
    "model": _told,
    "facts": _facts,
    "log": _logged,
}
