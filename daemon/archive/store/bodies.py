"""Large values in LevelDB: written ahead in pieces, and stored under their key as a reference to the pieces.

A commit with a value of 50 MB would be held in memory several times over, and its log would have to be replayed whole
at the next start. So such a value is cut into pieces, which are written before the commit that refers to them, in small
synced writes of their own. They are invisible until that commit, so a reader gets the old value or the new one. Each
body has its own name and belongs to one key. It has a mark that the commit removes; a mark that exists at the next
start belongs to a commit that never happened.
"""

from __future__ import annotations

import hashlib
import io
import secrets
from collections.abc import Callable, Iterator
from typing import NamedTuple

PIECE = 1 << 20
"""Bytes of one piece at most."""

AHEAD = b"ahead:"
"""Begins the keys of all marks; the value is the size of the body."""

NEVER_LARGE = (b"out:", b"cur:", b"dirty:", b"body:", AHEAD)
"""Begins keys whose values are never large."""

_MARK = b"\0body\0"
"""Begins a reference; no record, JSON value, object or vector of ours begins so and has the same length."""


class Body(NamedTuple):
    """A reference: the name of the body, its hash and its size in bytes.

    The pieces of a body whose name begins with "z" are compressed (compression), others are not.
    """

    name: str
    sha256: str
    size: int

    @classmethod
    def of(cls, raw: bytes) -> Body:
        """A new body for this value."""
        return cls(f"z{secrets.token_hex(8)}", hashlib.sha256(raw).hexdigest(), len(raw))

    @classmethod
    def parse(cls, value: bytes | None) -> Body | None:
        """The body that a stored value refers to; None if it is a value itself."""
        if value is None or not value.startswith(_MARK):
            return None
        fields = value[len(_MARK) :].split(b" ")
        if len(fields) != len(cls._fields) or not fields[2].isdigit():
            return None
        return cls(fields[0].decode(), fields[1].decode(), int(fields[2]))

    def reference(self) -> bytes:
        """The stored value under the key itself."""
        return _MARK + f"{self.name} {self.sha256} {self.size}".encode()

    def mark(self) -> bytes:
        """The key of its mark."""
        return AHEAD + self.name.encode()

    def pieces(self) -> list[bytes]:
        """The keys of its pieces, in order."""
        return pieces(self.name, self.size)

    def holds(self, raw: bytes) -> bool:
        """Whether `raw` is the content of the body."""
        return len(raw) == self.size and hashlib.sha256(raw).hexdigest() == self.sha256

    def cut(self, raw: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The pieces of its content with their keys."""
        for number, key in enumerate(self.pieces()):
            yield key, raw[number * PIECE : (number + 1) * PIECE]

    def whole(self, get: Callable[[bytes], bytes | None]) -> bytes | None:
        """Its content, from the pieces that `get` returns; None if one is missing."""
        raw = io.BytesIO()  # returns its bytes without a copy
        for key in self.pieces():
            piece = get(key)
            if piece is None:
                return None
            raw.write(piece)
        return raw.getvalue()


def pieces(name: str, size: int) -> list[bytes]:
    """The keys of the pieces of a body."""
    return [f"body:{name}:{number:06d}".encode() for number in range(-(-size // PIECE))]


def size_of(value: bytes) -> int:
    """The size of a value, or of the body that it refers to."""
    body = Body.parse(value)
    return len(value) if body is None else body.size
