"""The orders of injections.toml, put together, with the secrets that some of them hold."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

SECRET = "ghp_" + "a1B2" * 9
SPLIT = "\u200b".join((SECRET[:9], SECRET[9:20], SECRET[20:]))
"""The same, with invisible characters in it, which keep it from looking like one."""
_LONG = "word " * 2800


@dataclass(frozen=True)
class Payload:
    """One text; `number` tells its place in every list of them."""

    number: int
    name: str
    group: str
    text: str


def payloads(outside: Path) -> list[Payload]:
    """All of them; `outside` is the folder that their paths lead to."""
    rows = tomllib.loads((Path(__file__).parent / "injections.toml").read_text(encoding="utf-8"))["payload"]
    values = {"{outside}": str(outside), "{long}": _LONG.strip(), "{secret}": SECRET, "{split}": SPLIT}
    made = []
    for number, row in enumerate(rows):
        text = row["text"]
        for name, value in values.items():
            text = text.replace(name, value)
        made.append(Payload(number, row["name"], row["group"], text))
    return made
