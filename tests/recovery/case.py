"""A case as its file tells it, once for each storage it is played in."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.recovery.store import Json


@dataclass(frozen=True)
class Case:
    """One case in one storage: its data, with the values that its version chooses."""

    kind: str
    data: Json

    @property
    def name(self) -> str:
        return f"{self.data['id']}-{self.kind}"


def cases(folder: Path) -> Iterator[Case]:
    """Every case of every file, once a storage."""
    for file in sorted(folder.glob("*.toml")):
        for data in tomllib.loads(file.read_text())["case"]:
            for kind in data.get("stores", ["json", "sqlite"]):
                yield Case(kind, _chosen(data, "json" if kind == "both" else kind))


def _chosen(value: Any, kind: str) -> Any:
    """`value` with every ``{json = …, sqlite15 = …, sqlite = …}`` replaced by the one that counts."""
    if isinstance(value, dict):
        if value and value.keys() <= {"json", "sqlite15", "sqlite"}:
            nearest = "sqlite" if kind == "sqlite15" and kind not in value else kind
            return _chosen(value.get(nearest), kind)
        return {name: _chosen(item, kind) for name, item in value.items()}
    if isinstance(value, list):
        return [_chosen(item, kind) for item in value]
    return value
