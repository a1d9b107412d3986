"""The planted secrets of tests/hostile/secrets.toml, put together: none is real."""

from __future__ import annotations

import itertools
import tomllib
from dataclasses import dataclass
from pathlib import Path

HOSTILE = Path(__file__).parents[2] / "hostile"
_RUNS = {
    "hex": "3a7f09c1d2e8b456",
    "upper": "Q7ZK2MX9B4TJ5WRC",
    "alnum": "a8Kd0Zq3Lw7Rt5Yb2Nc",
    "word": "x4Jp9_Vm2Hs-7Tq0Fg8Dn",
    "b64": "MIIEvQ8BADanBgk5qhkiG9w0BAQ+EFAASC/2Kd",
}


def _piece(piece: str) -> str:
    name, star, count = piece.partition("*")
    if star and name in _RUNS and count.isdigit():
        return "".join(itertools.islice(itertools.cycle(_RUNS[name]), int(count)))
    return piece


SECRETS: list[tuple[str, str, str]] = [
    (row["kind"], "".join(map(_piece, row["pieces"])), row["text"])
    for row in tomllib.loads((HOSTILE / "secrets.toml").read_text(encoding="utf-8"))["secret"]
]
"""(kind, secret, text with the secret's place as {})."""


@dataclass(frozen=True)
class RuleCase:
    """What one rule must hide, what it must leave, and the text around both, with their place as {}."""

    name: str
    secret: str
    near_miss: str
    text: str


RULES: list[RuleCase] = [
    RuleCase(
        row["name"],
        "".join(map(_piece, row["secret"].split("|"))),
        "".join(map(_piece, row["near_miss"].split("|"))),
        row.get("text", "see {} and go on"),
    )
    for row in tomllib.loads((HOSTILE / "rules.toml").read_text(encoding="utf-8"))["rule"]
]
