"""Ids are short on a terminal and whole everywhere else; every command takes both."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.e2e.talk import PROJECT
from tests.support.processes.command_line import Cli
from tests.support.stores.make_opencode import JsonStore, session, text, user

SESSION, MESSAGE = "ses_01d5506278c9rkfm3FEPRZW2i0", "msg_005713c111a8vJd5tp2C3Qpu81"
SHORT_SESSION, SHORT_MESSAGE = "ses_01d5..ZW2i0", "msg_0057..Qpu81"
WHOLE = re.compile(f"{SESSION}|{MESSAGE}")


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    store = JsonStore(tmp_path / "opencode")
    store.session(session(SESSION, PROJECT, "Herons"))
    store.message(user(MESSAGE, SESSION), text("prt_1", MESSAGE, SESSION, f"the heron, see {MESSAGE}"))
    places = {"OPENCODE_DIR": "opencode", "ARCHIVE_DIR": "archive", "OUTPUT_DIR": "output"}
    made = {f"RECONSTITUTE_{name}": str(tmp_path / place) for name, place in places.items()}
    return Cli(None, tmp_path, made | {"RECONSTITUTE_EMBEDDING_WHAT": "none"})


def test_a_short_id_of_a_terminal_is_taken_by_every_command(cli: Cli) -> None:
    listed = cli.on_terminal("recall-sessions", **cli.environment)
    assert SHORT_SESSION in listed
    shown = cli.on_terminal("recall-messages", SHORT_SESSION, **cli.environment)
    assert SHORT_MESSAGE in shown
    assert len(WHOLE.findall(shown)) == 1  # the one that was said, which is no id of ours to shorten
    for command in ("recall-get", "recall-context", "recall-timeline"):
        assert "the heron" in cli.on_terminal(command, SHORT_MESSAGE, **cli.environment)
    for words in (["recall", "heron", "--session", SHORT_SESSION], ["export", "--format", "markdown", "--session"]):
        seen = cli.on_terminal(*words, *([SHORT_SESSION] if words[0] == "export" else []), **cli.environment)
        assert "the heron" in seen


def test_a_pipe_and_json_have_whole_ids(cli: Cli) -> None:
    piped = cli("recall-messages", SHORT_SESSION, **cli.environment).stdout
    assert set(WHOLE.findall(piped)) == {SESSION, MESSAGE}
    answer = json.loads(cli("recall-get", SHORT_MESSAGE, "--json", **cli.environment).stdout)
    assert (answer["message"]["id"], answer["context"]["sessionID"]) == (MESSAGE, SESSION)
    assert SESSION in cli.on_terminal("recall-sessions", "--json", **cli.environment)
