"""Reads the archive to find damage: a sample of it, or every record and object.

LevelDB verifies the checksum of what is read, and raises. What has no checksum is compared here: an object with its
id, a record with the JSON that it must be, a message with the parts and a session with the messages that it names, a
large file with its hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from daemon import records
from daemon.archive import keys
from daemon.archive.objects import TREE, object_id, withheld
from daemon.archive.store import Store
from daemon.archive.store.bodies import Body
from daemon.errors import BadRecord
from daemon.filesystem.large_files import LargeFiles
from daemon.model import Json

_MOST_NAMED = 5
_SESSIONS, _MESSAGES = 50, 4
"""How many sessions are in a sample, and how many messages of each."""
_PIECE = 1 << 20

OnPage = Callable[[int], None]
"""Called with the number of entries read so far."""


@dataclass(slots=True)
class Verified:
    """What was read, and what is wrong with it; only the first few are named."""

    entries: int = 0
    sessions: int = 0
    messages: int = 0
    objects: int = 0
    wrong: int = 0
    named: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Note something wrong."""
        self.wrong += 1
        if len(self.named) < _MOST_NAMED:
            self.named.append(text)


def verify(store: Store, files: LargeFiles, on_page: OnPage | None = None) -> Verified:
    """Read a sample, or with `on_page` everything.

    Raises:
        ArchiveCorrupt: a checksum failed.
    """
    result = Verified()
    if on_page is None:
        _sample(store, result)
    else:
        _everything(store, result, on_page)
    for trouble in _large_files(store, files, whole=on_page is not None):
        result.note(trouble)
    return result


def _sample(store: Store, result: Verified) -> None:
    """Messages of some sessions with their parts, evenly, and some objects."""
    sessions = [key for key in store.keys(b"sess:") if key.endswith(b":order")]
    for key in sessions[:: max(1, len(sessions) // _SESSIONS)]:
        result.sessions += 1
        ids: list[str] = records.loads(store.get(key) or b"[]")
        for message_id in ids[:: max(1, len(ids) // _MESSAGES)]:
            _check_is_there(store, key, message_id, result)
            _check_message(store, message_id, result)
    for first in range(256):
        for key, _ in store.page(keys.OBJECT + b"%02x" % first, 1)[:1]:
            if key.startswith(keys.OBJECT):
                _check_object(store, key, result)
    result.entries = result.messages + result.objects


def _everything(store: Store, result: Verified, on_page: OnPage) -> None:
    for key, value in _entries(store, result, on_page):
        if key.startswith(keys.OBJECT):
            _check_object(store, key, result)
        elif key.startswith(b"msg:") and key.endswith(b":hash"):
            _check_message(store, keys.unescape(key.decode()[4:-5]), result)
        elif key.startswith(b"sess:") and key.endswith(b":order"):
            result.sessions += 1
            _check_order(store, key, value, result)
        elif Body.parse(value) is not None:
            store.get(key)


def _large_files(store: Store, files: LargeFiles, *, whole: bool) -> Iterator[str]:
    """What is wrong with the records that are kept as files; with `whole` each file is read."""
    for key, raw in store.scan(keys.LARGE):
        entry: Json = records.load_object(raw)
        path = files.path(entry["sha256"])
        if not path.is_file():
            if store.stored(key) is not None:  # else it was forgotten meanwhile
                yield f"{path} is missing"
        elif path.stat().st_size != entry["bytes"]:
            yield f"{path} has {path.stat().st_size} bytes in place of {entry['bytes']}"
        elif whole and _sha256(path) != entry["sha256"]:
            yield f"{path} has another content than its name says"


def _entries(store: Store, result: Verified, on_page: OnPage) -> Iterator[tuple[bytes, bytes]]:
    after = b""
    while page := store.page(after):
        yield from page
        result.entries += len(page)
        on_page(result.entries)
        after = page[-1][0]


def _check_object(store: Store, key: bytes, result: Verified) -> None:
    value = store.get(key)
    if value is None:
        return  # forgotten meanwhile, or `page` has read a key that a commit was about to write
    result.objects += 1
    named = key[len(keys.OBJECT) :].decode()
    kind, raw = value[:1].decode(), value[1:]
    if object_id(kind, raw) != named and not (kind == TREE and _lacks_what_was_forgotten(raw)):
        result.note(f"object {named} has another content than its id says")


def _lacks_what_was_forgotten(tree: bytes) -> bool:
    try:
        return bool(withheld(tree))
    except BadRecord:
        return False


def _check_order(store: Store, key: bytes, value: bytes, result: Verified) -> None:
    whole = store.get(key) if Body.parse(value) is not None else value
    for message_id in records.loads(whole or b"[]"):
        _check_is_there(store, key, message_id, result)


def _check_is_there(store: Store, order: bytes, message_id: str, result: Verified) -> None:
    """Check that there is a message that a session's order names, unless it was forgotten meanwhile."""
    is_there = store.stored(keys.message_state(message_id)) is not None
    if not is_there and message_id in records.loads(store.get(order) or b"[]"):
        result.note(f"message {message_id} is gone")


def _check_message(store: Store, message_id: str, result: Verified) -> None:
    """Read a message and its parts. What has been replaced meanwhile is looked up again by its current state."""
    state_raw = store.get(keys.message_state(message_id))
    if state_raw is None:
        return
    result.messages += 1
    state: Json = records.load_object(state_raw)
    places = {f"message {message_id}": keys.message_raw(message_id)}
    places |= {f"part {part} of message {message_id}": keys.part(message_id, part) for part in state["parts"]}
    for name, key in places.items():
        raw = store.get(key)
        if raw is None:
            if store.stored(keys.message_state(message_id)) is not None:  # else it was forgotten meanwhile
                result.note(f"{name} is gone")
            continue
        try:
            records.load_object(raw)
        except BadRecord as error:
            result.note(f"{name}: {error}")


def _sha256(path: Path) -> str:
    total = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            total.update(piece)
    return total.hexdigest()
