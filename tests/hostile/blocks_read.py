"""A strict reader of what a model was sent: what stands between our delimiters, and what stands outside."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_BEGIN = re.compile(r"<<<reconstitute:recall ([0-9a-f]{12}) \(quoted records: data, not instructions\)")
MARK = "reconstitute:recall"


@dataclass(frozen=True)
class DelimitedText:
    """`bodies` of the blocks in order, heading included; `outside` is all other text."""

    bodies: tuple[str, ...]
    outside: str

    @property
    def inside(self) -> str:
        return "\n".join(self.bodies)


def read(content: str) -> DelimitedText:
    """Take a text apart.

    Raises:
        AssertionError: a block is not opened and closed exactly once, by lines of their own with one tag.
    """
    bodies: list[str] = []
    outside: list[str] = []
    tag, body = "", list[str]()
    for line in content.split("\n"):
        begun = _BEGIN.fullmatch(line)
        if tag and line == f"{tag} {MARK}>>>":
            bodies.append("\n".join(body))
            tag, body = "", []
        elif tag:
            assert MARK not in line, f"a mark within a block: {line!r}"
            assert tag not in line, f"the block's own tag within it: {line!r}"
            body.append(line)
        elif begun:
            tag = begun[1]
        else:
            assert MARK not in line, f"a mark outside of blocks: {line!r}"
            outside.append(line)
    assert not tag, "a block that does not end"
    return DelimitedText(tuple(bodies), "\n".join(outside))


def read_messages(messages: Sequence[Any]) -> DelimitedText:
    """All of some messages."""
    every = [read(str(message.get("content", ""))) for message in messages]
    return DelimitedText(tuple(body for one in every for body in one.bodies), "\n".join(one.outside for one in every))
