"""A message on its way into the indexes: its window and whether it is deleted, and what sends it there again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.archive import STAGES, Archive
from daemon.index import Filters
from daemon.index.lexical import Lexical
from daemon.ingest import Intake
from daemon.ingest.outbox import Entries, LexicalDrain, entry_of
from daemon.opencode.connection import Connection
from daemon.opencode.database import Database as DatabaseSource
from tests.support.stores.intake import intake_of
from tests.support.stores.make_opencode import T0, Database, assistant, session, text, tool, user

MINUTE = 60_000


class House:
    """A store of one session, read into an archive that feeds a lexical index."""

    def __init__(self, root: Path) -> None:
        self.database = Database(root / "opencode.db")
        self.source = DatabaseSource(Connection(self.database.path))
        self.archive = Archive(root / "archive")
        self.index = Lexical(root / "lexical")
        self.intake: Intake = intake_of(self.archive, quiet_s=0, free_mb=1)
        self.database.session(session("ses_1", title="Importer"))

    def say(self, number: int, words: str, minute: int | None = None) -> None:
        mid, created = f"msg_{number}", T0 + (number if minute is None else minute) * MINUTE
        self.database.message(user(mid, "ses_1", created), text(f"prt_{number}", mid, "ses_1", words))

    def take(self) -> None:
        self.intake.scan(self.source, patient=False)

    def waiting(self, stage: str) -> list[str]:
        return sorted(message_id for message_id, _, _ in self.archive.outbox(stage, 100))

    def empty_outboxes(self) -> None:
        LexicalDrain(self.archive, self.index, 64).step()
        for stage in STAGES:
            self.archive.done(self.archive.outbox(stage, 100))

    def window(self, number: int) -> list[str]:
        entry = entry_of(self.archive, f"msg_{number}", 64)
        assert entry is not None
        return entry.window.split("\n")

    def by_window(self, query: str, filters: Filters | None = None) -> list[str]:
        return sorted(match.message_id for match in self.index.windows(query, filters or Filters(), 20))


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    yield made
    made.index.close()
    made.archive.close()
    made.source.close()
    made.database.close()


@pytest.fixture
def filled(house: House) -> House:
    for number, words in enumerate(("apple", "banana", "cherry", "damson", "elder"), start=1):
        house.say(number, words)
    house.take()
    house.empty_outboxes()
    return house


def test_a_window_is_the_message_and_the_two_before_it(filled: House) -> None:
    assert filled.window(1)[2:] == ["apple"]
    assert filled.window(4)[2:] == ["banana", "cherry", "damson"]
    assert filled.window(4)[0] == "Importer"
    assert filled.by_window("banana") == ["msg_2", "msg_3", "msg_4"]


def test_a_window_leaves_out_what_tools_did_and_keeps_the_task(house: House) -> None:
    house.database.message(
        assistant("msg_1", "ses_1", T0),
        text("prt_1", "msg_1", "ses_1", "I look"),
        tool("prt_2", "msg_1", "ses_1", "bash", {"status": "completed", "input": {"command": "ls"}, "output": "dump"}),
        tool("prt_3", "msg_1", "ses_1", "task", {"status": "completed", "input": {"prompt": "find it"}, "output": "x"}),
    )
    house.take()
    assert house.window(1)[2:] == ["I look", "find it"]


def test_a_secret_is_redacted_in_a_neighbours_window_too(house: House) -> None:
    secret = "ghp_" + "a1B2" * 9
    house.say(1, f"my token is {secret}")
    house.say(2, "thanks")
    house.take()
    assert secret not in "\n".join(house.window(2))
    assert "REDACTED" in "\n".join(house.window(2))


def test_entries_are_the_same_however_many_are_made_together(house: House) -> None:
    """A token that a tool printed is learned while the window of a later message is made."""
    secret = "ghp_" + "a1B2" * 9
    house.say(1, f"it is {secret[4:]}, he said")
    house.database.message(
        assistant("msg_2", "ses_1", T0 + 2 * MINUTE),
        text("prt_2a", "msg_2", "ses_1", "I look"),
        tool("prt_2", "msg_2", "ses_1", "bash", {"status": "completed", "input": {"command": "env"}, "output": secret}),
    )
    house.say(3, "thanks")
    house.take()
    ids = ["msg_3", "msg_2", "msg_1"]
    together = Entries(house.archive, 64, ids=frozenset(ids))
    entries = [together.of(message_id) for message_id in ids]
    assert entries == [entry_of(house.archive, message_id, 64) for message_id in ids]
    assert secret not in str(entries)


def test_a_secret_learned_meanwhile_is_hidden_in_what_was_made_before(house: House) -> None:
    secret = "a1B2" * 9
    for number, words in enumerate(("first", f"it is {secret}", "thanks"), start=1):
        house.say(number, words)
    house.take()
    entries = Entries(house.archive, 64, ids=frozenset({"msg_2", "msg_3"}))
    assert secret in str(entries.of("msg_3"))
    house.archive.secrets.add("ses_1", {secret: "token"})
    assert secret not in str(entries.of("msg_2"))


def test_a_step_that_is_stopped_keeps_what_it_has(house: House) -> None:
    for number in range(1, 4):
        house.say(number, "words")
    house.take()
    assert LexicalDrain(house.archive, house.index, 64).step(100, stop=lambda: True).messages == 1
    assert house.waiting("lexical") == ["msg_1", "msg_2"]


def test_a_changed_message_sends_the_two_behind_it_to_the_lexical_index(filled: House) -> None:
    filled.say(2, "blueberry")
    filled.take()
    assert (filled.waiting("lexical"), filled.waiting("semantic")) == (["msg_2", "msg_3", "msg_4"], ["msg_2"])
    filled.empty_outboxes()
    assert (filled.by_window("banana"), filled.by_window("blueberry")) == ([], ["msg_2", "msg_3", "msg_4"])


def test_a_message_put_between_others_sends_the_two_behind_it(filled: House) -> None:
    filled.database.message(user("msg_0", "ses_1", T0 + 90_000), text("prt_0", "msg_0", "ses_1", "apricot"))
    filled.take()
    assert (filled.waiting("lexical"), filled.waiting("semantic")) == (["msg_0", "msg_2", "msg_3"], ["msg_0"])


def test_the_last_message_of_a_session_sends_none_but_itself(filled: House) -> None:
    filled.say(5, "elderberry")
    filled.take()
    filled.say(6, "fig")
    filled.take()
    assert filled.waiting("lexical") == ["msg_5", "msg_6"]


def test_a_new_title_requeues_every_message_for_words_and_one_for_vectors(filled: House) -> None:
    """The first message goes to the semantic index again, because its chunk begins with the title."""
    filled.database.session(session("ses_1", title="Exporter", time={"created": T0, "updated": T0 + 1}))
    filled.take()
    assert (len(filled.waiting("lexical")), filled.waiting("semantic")) == (5, ["msg_1"])


def test_a_deleted_message_is_marked_in_the_index_until_it_comes_back(filled: House) -> None:
    for table, column in (("part", "message_id"), ("message", "id")):
        filled.database.execute(f"DELETE FROM {table} WHERE {column} = 'msg_3'")
    filled.take()
    assert filled.waiting("semantic") == filled.waiting("lexical") == ["msg_3"]
    filled.empty_outboxes()
    deleted, kept = Filters(deleted=True), Filters(deleted=False)
    assert filled.by_window("cherry", deleted) == ["msg_3"]
    assert [m.message_id for m in filled.index.search("cherry", deleted, 5)] == ["msg_3"]
    assert filled.index.search("cherry", kept, 5) == []
    filled.say(3, "cherry")
    filled.take()
    assert filled.waiting("semantic") == filled.waiting("lexical") == ["msg_3"]
    filled.empty_outboxes()
    assert [m.message_id for m in filled.index.search("cherry", kept, 5)] == ["msg_3"]
    assert filled.by_window("cherry", deleted) == []
