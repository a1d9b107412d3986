"""An installation to be broken: a source, its archive, a configuration; and the rows that `doctor` then prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from daemon.archive import Archive
from daemon.cli import main
from tests.support.stores.make_opencode import T0, Database, session, text, user


@dataclass
class Installation:
    """The places of one installation. `tables` is its configuration, which `write` writes."""

    root: Path
    capsys: pytest.CaptureFixture[str]
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.source, self.archive_dir = self.root / "opencode", self.root / "archive"
        self.output, self.config = self.root / "out", self.root / "c.toml"
        self.program = f"reconstitute --config {self.config}"
        self.tables = {
            "opencode": {"data_dir": str(self.source)},
            "archive": {"dir": str(self.archive_dir)},
            "output": {"dir": str(self.output)},
            "chat": {"provider": "none"},
            "embedding": {"what": "none", "provider": "builtin"},
        }
        self.source.mkdir()
        self.add(*(f"msg_{number}" for number in range(6)))
        self.write({})
        assert self.run("index")[0] == 0

    def add(self, *message_ids: str, session_id: str = "ses_1", created: int = T0) -> None:
        """Messages that OpenCode writes now."""
        database = Database(self.source / "opencode.db")
        database.session(session(session_id))
        for message_id in message_ids:
            said = text(f"prt_{message_id}", message_id, session_id, f"water the kale of {message_id}")
            database.message(user(message_id, session_id, created), said)
        database.close()

    def write(self, tables: Mapping[str, Mapping[str, Any]]) -> None:
        """Write the configuration, with `tables` over what it was."""
        for name, table in tables.items():
            self.tables[name] = {**self.tables.get(name, {}), **table}
        lines = [
            line
            for name, table in self.tables.items()
            for line in (f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items()))
        ]
        self.config.write_text("\n".join(lines) + "\n")

    def run(self, *words: str) -> tuple[int, str]:
        """The exit code of a command, and what it printed on stdout."""
        self.capsys.readouterr()
        code = main(["--config", str(self.config), *words])
        return code, self.capsys.readouterr().out

    def rows(self, *words: str) -> tuple[int, dict[str, dict[str, str]]]:
        """The exit code of `doctor`, and its rows by what they are about; of several the worst."""
        code, out = self.run("doctor", "--json", *words)
        order = ("ok", "not checked", "attention", "broken")
        rows = sorted(json.loads(out)["checks"], key=lambda row: order.index(row["state"]))
        return code, {row["what"].split(" ")[0] if "/" in row["what"] else row["what"]: row for row in rows}

    def archive(self) -> Archive:
        """The archive itself, opened."""
        return Archive(self.archive_dir)
