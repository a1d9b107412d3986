"""Bytes as OpenCode wrote them become values, and values become bytes for the archive.

Raw bytes are never changed; what is parsed from them is made valid text (a lone surrogate, which JavaScript may write
and nothing else can store, becomes U+FFFD: docs/reliability.md, S14). No file access, no knowledge of any store.

An id of OpenCode's is ``<prefix>_``, 12 hex digits and 14 base-62 characters (opencode-formats.md, Directory). The
digits are the low 48 bits of ``ms * 4096 + counter``, inverted for sessions. 36 bits of milliseconds remain, so the
clock wraps every 795 days, last on 2026-08-14: ids tell a time only near a known one, and never an order across a wrap.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, TypeVar

import msgspec
import orjson

from daemon.errors import BadRecord
from daemon.model import FileEdit, Json, LargePart, Message, Part

T = TypeVar("T")

_SURROGATE = re.compile("[\ud800-\udfff]")
_built: set[type] = set()
_building = threading.Lock()
_FILE_EDIT = msgspec.json.Decoder(FileEdit)
OWN_SESSION_TITLE = "[reconstitute]"
"""How the title of every session begins that we ask an OpenCode server for. None of them is ever archived (S13)."""
OWN_MARK = "reconstitute-model"
"""Our agent in such sessions, and a tool switched off that there is not: each of their messages names one of them."""
_SPAN = 1 << 36
_DAY_MS = 86_400_000
_MASK = (1 << 48) - 1


def loads(raw: bytes) -> Any:
    """JSON bytes as a value of valid text.

    Raises:
        BadRecord: not JSON.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        pass  # orjson refuses lone surrogates, NaN and integers over 64 bits, all of which JavaScript can write
    try:
        return clean(json.loads(raw))
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"not JSON: {error}") from None


def load_object(raw: bytes) -> Json:
    """JSON bytes that must be an object.

    Raises:
        BadRecord: not JSON, or JSON of another kind.
    """
    value = loads(raw)
    if not isinstance(value, dict):
        raise BadRecord(f"JSON, but a {type(value).__name__} where a record belongs")
    return value


def load_objects(raw: bytes) -> list[Json]:
    """JSON bytes that must be an array; items that are not objects are left out.

    Raises:
        BadRecord: not JSON, or JSON of another kind.
    """
    value = loads(raw)
    if not isinstance(value, list):
        raise BadRecord(f"JSON, but a {type(value).__name__} where an array belongs")
    return [item for item in value if isinstance(item, dict)]


def dumps(value: object) -> bytes:
    """A value as compact JSON bytes; keys sorted, so equal values give equal bytes."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    except (TypeError, orjson.JSONEncodeError):
        text = json.dumps(clean(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return text.encode("utf-8")


def clean(value: object) -> Any:
    """The same value with every string valid UTF-8."""
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


def with_fields(fields: Json, data: str | bytes) -> bytes:
    """`data`, the text of a JSON object, with `fields` put before its own: still byte for byte what was written.

    Raises:
        BadRecord: `data` is not an object.
    """
    body = (data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data).strip()
    if not body.startswith(b"{"):
        raise BadRecord("not a JSON object")
    if not fields:
        return body
    head = dumps(fields)[:-1]
    start = 1 if body[1:2] == b'"' else len(body) - len(body[1:].lstrip())
    return head + b"}" if body[start:] == b"}" else b"".join((head, b",", memoryview(body)[start:]))


def digest(*pieces: bytes) -> str:
    """One hash over several byte strings, unambiguous about where each ends."""
    return digest_of(pieces)


def digest_of(pieces: Iterable[bytes]) -> str:
    """As `digest`, of byte strings that need not all be in memory at once."""
    total = hashlib.sha256()
    for piece in pieces:
        total.update(len(piece).to_bytes(8, "big"))
        total.update(piece)
    return total.hexdigest()


def message_digest(message: Message) -> str:
    """One hash over a message's record and those of its parts."""
    return digest_of(chain([message.raw], (part.raw for part in message.parts)))


def same(first: Message, second: Message) -> bool:
    """Whether two messages are the same records, byte for byte."""
    if first.raw != second.raw or len(first.parts) != len(second.parts):
        return False
    return all(part.raw == was.raw for part, was in zip(first.parts, second.parts, strict=True))


def blob_id(content: bytes) -> str:
    """Git's id of a file's content, in lower-case hexadecimal: what snapshot trees and FileEdit.blob name."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def integer(value: object, default: int = 0) -> int:
    """A whole number out of somebody else's record, or the default."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return default
    return int(value) if abs(value) < 2**62 else default


def text(value: object, default: str = "") -> str:
    """A string out of somebody else's record, or the default."""
    return value if isinstance(value, str) else default


def table(value: object) -> Json:
    """An object out of somebody else's record, or an empty one."""
    return value if isinstance(value, dict) else {}


def part(raw: bytes, message_id: str, session_id: str) -> Part:
    """A part record; ids missing in it are taken from where it was found.

    Raises:
        BadRecord: not an object, or without id or type.
    """
    data = load_object(raw)
    if not text(data.get("id")) or not text(data.get("type")):
        raise BadRecord("a part without id or type")
    return Part(
        id=data["id"],
        message_id=text(data.get("messageID")) or message_id,
        session_id=text(data.get("sessionID")) or session_id,
        type=data["type"],
        data=data,
        raw=raw,
    )


def large_part(read: Callable[[], bytes], message_id: str, session_id: str) -> Part:
    """As `part`, without holding on to the bytes, which `read` gives.

    Raises:
        BadRecord: as `part`.
    """
    return LargePart.of(part(read(), message_id, session_id), read)


def message(raw: bytes, parts: Sequence[Part] = (), session_id: str = "") -> Message:
    """A message record (opencode-formats.md, Records).

    Raises:
        BadRecord: not an object, or without id or role.
    """
    data = load_object(raw)
    if not text(data.get("id")) or not text(data.get("role")):
        raise BadRecord("a message without id or role")
    time = table(data.get("time"))
    return Message(
        id=data["id"],
        session_id=text(data.get("sessionID")) or session_id,
        role=data["role"],
        created=integer(time.get("created")),
        completed=integer(time.get("completed")) or None,
        data=data,
        raw=raw,
        parts=parts,
    )


def built(schema: type[T]) -> type[T]:
    """`schema`, which any thread may hand to msgspec from now on: to convert, to inspect, to describe.

    What msgspec knows of a type it builds at the first use. Left to itself, a second thread that comes meanwhile finds
    it half built and takes the process down.
    """
    if schema not in _built:
        with _building:
            msgspec.json.Decoder(schema)
            _built.add(schema)
    return schema


def edit_to_json(edit: FileEdit) -> bytes:
    """A file edit for the archive."""
    return dumps(msgspec.to_builtins(edit))


def edit_from_json(raw: bytes) -> FileEdit:
    """A file edit out of the archive."""
    return _FILE_EDIT.decode(raw)


def time_of(identifier: str, near_ms: int) -> int | None:
    """The epoch ms at which `identifier` was made, taken to be the closest possibility to `near_ms`.

    None where it is no id of OpenCode's making.

    >>> time_of("msg_1fc13507f001gL2TNTlx7a0gIk", 1795230000000)
    1795230486655
    """
    prefix, _, digits = identifier.partition("_")
    if len(digits) < 12:
        return None
    try:
        bits = int(digits[:12], 16)
    except ValueError:
        return None
    if prefix == "ses":
        bits = ~bits & _MASK
    ms = bits >> 12
    return ms + round((near_ms - ms) / _SPAN) * _SPAN


def time_until(identifier: str, now_ms: int) -> int | None:
    """As `time_of`, where no time near it is known: the last possibility that is not to come.

    A day of grace is for clocks that differ.
    """
    return time_of(identifier, now_ms + _DAY_MS - _SPAN // 2)
