"""The name of an entry of the facts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from daemon.reconstitute.facts.session_values import Citation
from daemon.reconstitute.facts.values import Command, OpenKind, OpenPoint, Purpose, Rule, Script, key

CITED = Citation("ses_1", "msg_1", 1, "Use SQLite.")
ENTRIES: list[Any] = [
    Rule("Use SQLite.", "user", "decision", 1, CITED),
    Rule("Use SQLite.", "user", "rule", 1, CITED),
    Rule("Use SQLite.", "user", "rule", 1, replace(CITED, message_id="msg_2")),
    OpenPoint(OpenKind.TODO, "Use SQLite.", 1, CITED),
    Purpose("Use SQLite.", "README.md", CITED),
    Purpose("Use SQLite.", "README.md"),
    Command("run", "make run", "", 1),
    Command("run", "make run", "api", 1),
    Script("run", "make run", "python app.py", "/x/Makefile"),
]


def test_each_entry_has_a_key_of_its_own():
    assert len({key(one) for one in ENTRIES}) == len(ENTRIES)


def test_a_key_is_the_same_in_every_process():
    assert key(ENTRIES[0]) == "af96716464a9e4a6"


def test_a_key_stays_when_more_becomes_known_of_the_entry():
    command = Command("run", "make run", "", 1)
    assert key(replace(command, times=7, succeeded=CITED)) == key(command)
    assert key(replace(ENTRIES[0], invalid_because="replaced later")) == key(ENTRIES[0])
