"""The archive's keys (docs/architecture.md, Keys), built and taken apart in one place.

Ids and paths come from records that others wrote, so `:`, `%` and NUL in them are escaped, and no record can use the
keys of another.
"""

from __future__ import annotations

import hashlib

SCHEMA = b"meta:schema"
COUNTS = b"meta:counts"
FORGETTING = b"meta:forgetting"
"""A forgetting that is not complete yet."""
MIGRATION = b"meta:migration"
"""The last migration: from which schema to which, and the folder with the backup that was made before."""
OBJECT = b"obj:"
TARGET = b"target:"
NO_RECORDS = (
    b"cache:",
    b"cur:",
    b"dirty:",
    b"exp:",
    b"link:",
    b"meta:",
    b"out:",
    b"target:",
    b"unread:",
    b"vec:",
    b"view:",
    b"want:",
)
"""Keys of what is derived from records, of work that waits, and of what targets remember."""
LATEST = 9_999_999_999_999
"""Epoch ms far in the future (year 2286); subtracting from it makes newer sort first."""


def escape(text: str) -> str:
    """`text` without the characters that separate key fields."""
    if text.isidentifier():  # as nearly all ids are; one check instead of three
        return text
    return text.replace("%", "%25").replace(":", "%3A").replace("\0", "%00")


def unescape(text: str) -> str:
    """The inverse of escape."""
    if "%" not in text:
        return text
    return text.replace("%00", "\0").replace("%3A", ":").replace("%25", "%")


def _key(*fields: str) -> bytes:
    return ":".join(fields).encode("utf-8", "replace")


def _place(path: str) -> bytes:
    """A path; a name in a snapshot that is not UTF-8 has lone surrogates, by which it differs from others."""
    return path.replace("\0", "%00").encode("utf-8", "surrogatepass")


def session_meta(session_id: str) -> bytes:
    return _key("sess", escape(session_id), "meta")


def session_prefix(session_id: str) -> bytes:
    """Begins the keys of everything of a session but its messages."""
    return _key("sess", escape(session_id), "")


def message_prefixes(message_id: str) -> tuple[bytes, ...]:
    """Begin the keys of all records of a message and its parts."""
    return tuple(_key(kind, escape(message_id), "") for kind in ("msg", "part", "partwas", "large"))


def session_of_meta(key: bytes) -> str:
    """The session whose own record has this key; empty for any other key."""
    return unescape(key[5:-5].decode()) if key.startswith(b"sess:") and key.endswith(b":meta") else ""


def session_order(session_id: str) -> bytes:
    return _key("sess", escape(session_id), "order")


def session_version(session_id: str, digest: str) -> bytes:
    return _key("sess", escape(session_id), "was", digest[:16])


def session_secrets(session_id: str) -> bytes:
    return _key("sess", escape(session_id), "secrets")


def message_raw(message_id: str) -> bytes:
    return _key("msg", escape(message_id), "raw")


def message_version(message_id: str, digest: str) -> bytes:
    return _key("msg", escape(message_id), "was", digest[:16])


def message_state(message_id: str) -> bytes:
    return _key("msg", escape(message_id), "hash")


def part(message_id: str, part_id: str) -> bytes:
    return _key("part", escape(message_id), escape(part_id))


def part_version(message_id: str, part_id: str, digest: str) -> bytes:
    return _key("partwas", escape(message_id), escape(part_id), digest[:16])


def part_versions(message_id: str, part_id: str = "") -> bytes:
    """Begins the keys of the versions of a part that are not current; without a part those of all of a message."""
    return _key("partwas", escape(message_id), *([escape(part_id)] if part_id else []), "")


def message_versions(message_id: str) -> bytes:
    """The same of a message's own record."""
    return _key("msg", escape(message_id), "was", "")


def session_versions(session_id: str) -> bytes:
    """The same of a session's record."""
    return _key("sess", escape(session_id), "was", "")


def file_prefix(path: str) -> bytes:
    return b"file:" + path.replace("\0", "%00").encode("utf-8", "replace") + b"\0"


def file_edit(path: str, time: int, part_id: str, number: int) -> bytes:
    return file_prefix(path) + f"{max(time, 0):013d}\0{escape(part_id)}\0{number:06d}".encode("utf-8", "replace")


def folder_prefix(folder: str) -> bytes:
    """All edits of paths beneath a folder."""
    return b"file:" + (folder.rstrip("/") + "/").replace("\0", "%00").encode("utf-8", "replace")


def view(path: str = "") -> bytes:
    """The end state of a file, stored so that many can be listed at once; without a path the prefix."""
    return b"view:" + _place(path)


def links(folder: str = "") -> bytes:
    """The symbolic links that the snapshots of a folder show; without a folder the prefix."""
    return b"link:" + _place(folder)


def outdated(path: str = "") -> bytes:
    """A path whose edits have changed since its view was stored; without a path the prefix."""
    return b"dirty:" + _place(path)


def alias(path: str = "") -> bytes:
    """The folder that an older one has become; without a path the prefix."""
    return b"alias:" + _place(path)


def session_extra(session_id: str) -> bytes:
    """Data of a session and of none of its messages: its reverts, its session_diff file."""
    return _key("sess", escape(session_id), "extra")


def session_event(session_id: str, event_id: str | None = None) -> bytes:
    """A record of a session that is not a message; without an id the prefix of all of them."""
    return _key("sess", escape(session_id), "event", escape(event_id or ""))


def session_todos(session_id: str) -> bytes:
    return _key("sess", escape(session_id), "todo")


def stored_object(object_id: str) -> bytes:
    return OBJECT + _key(escape(object_id))


def skipped(object_id: str) -> bytes:
    """The reason why an object was left out."""
    return _key("skip", escape(object_id))


def settled(tree_id: str) -> bytes:
    """The note that everything beneath a tree has been captured or left out for a reason."""
    return _key("full", escape(tree_id))


def capture_queue(name: str = "") -> bytes:
    """An entry of the capture queue; without a name its prefix."""
    return _key("want", escape(name))


LARGE = b"large:"
"""Begins the keys of all records that are stored as files."""


def large(message_id: str, part_id: str) -> bytes:
    """A record that is stored as a file; without a part the message's own."""
    return LARGE + _key(escape(message_id), escape(part_id))


SPILL = b"spill:"


def spill(path: str) -> bytes:
    return SPILL + _key(escape(path))


def unknown(type_: str, message_id: str) -> bytes:
    return _key("unk", escape(type_), escape(message_id))


VECTOR = b"vec:"


def vector(fingerprint: str, sha256: str) -> bytes:
    return VECTOR + _key(fingerprint, sha256)


UNREAD = b"unread:"


def unread(message_id: str) -> bytes:
    return UNREAD + escape(message_id).encode("utf-8", "replace")


OUTBOX = b"out:"
"""Begins the keys of all messages that wait to be indexed."""


TOOLS = "tools"
"""The outbox's third stage: messages whose tool calls are embedded after all spoken text."""


def outbox(stage: str, created: int, message_id: str) -> bytes:
    """Newest first, because people search for recent messages."""
    return _key("out", stage, f"{LATEST - min(max(created, 0), LATEST):013d}", escape(message_id))


def stage(key: bytes) -> str:
    """The stage of an entry of the outbox."""
    return key.split(b":", 2)[1].decode()


def cursor(source: str, session_id: str = "", unit: str = "") -> bytes:
    """With neither session nor unit: the source's own state; with a session only: the prefix of its marks."""
    return _key("cur", escape(source), escape(session_id), escape(unit))


def cursor_prefix(source: str, session_id: str | None = None) -> bytes:
    fields = ["cur", escape(source)] + ([] if session_id is None else [escape(session_id)])
    return _key(*fields) + b":"


def note(name: str) -> bytes:
    return _key("meta", "note", escape(name))


def cache(kind: str, key: str) -> bytes:
    return _key("cache", kind, escape(key))


def expiry(expires_ms: int, key: bytes) -> bytes:
    return f"exp:{expires_ms:013d}:".encode() + key


def target(path: str, name: str) -> bytes:
    return _key("target", escape(path), escape(name))


QUARANTINE = b"quar:"
"""Begins the keys of all quarantined records."""


def quarantine(source: str, place: str) -> bytes:
    return _key("quar", escape(source), escape(place))


FORGOTTEN = b"forgot:"
"""Begins the keys of all ids that were forgotten."""


def forgotten(kind: str, *names: str) -> bytes:
    """The key of a forgotten id, which holds only the id's hash."""
    return FORGOTTEN + hashlib.sha256("\0".join((kind, *names)).encode("utf-8", "replace")).hexdigest()[:32].encode()


def last_field(key: bytes) -> str:
    """The last field of a key, as it was before it was escaped."""
    return unescape(key.decode("utf-8", "replace").rsplit(":", 1)[1])


def after(prefix: bytes) -> bytes:
    """The first key after all keys that begin with `prefix`."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
