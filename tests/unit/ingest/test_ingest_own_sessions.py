"""What we ask a model through OpenCode never comes into the archive (docs/reliability.md, S13)."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from daemon.archive import Archive
from daemon.ingest import Intake
from daemon.model import SourceCounts
from daemon.opencode import Source
from daemon.opencode.discover import Sources
from daemon.records import OWN_MARK, OWN_SESSION_TITLE
from tests.support.stores.intake import intake_of
from tests.support.stores.make_opencode import Database, JsonStore, assistant, session, text, user

OURS = f"{OWN_SESSION_TITLE} chat 0a1b2c3d-41-99"
MODEL = {"providerID": "p", "modelID": "m"}

Store = JsonStore | Database
Message = tuple[dict[str, Any], dict[str, Any]]


@dataclass
class Taking:
    """A store of OpenCode's, and our archive of it."""

    store: Store
    archive: Archive
    intake: Intake
    sources: Sources

    def take(self) -> tuple[set[str], SourceCounts]:
        """One pass; the sessions that the archive has messages of, and the figures."""
        (source,) = self.sources.refresh()
        self.intake.scan(source, patient=False)
        messages = [self.archive.message(m) for m in self.archive.all_message_ids()]
        return {m.session_id for m in messages if m is not None}, self.intake.counts(source)

    def known(self) -> list[str]:
        return sorted(found.id for found in self.archive.sessions())


@pytest.fixture(params=["JSON files", "SQLite"])
def taking(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Taking]:
    data_dir = tmp_path / "opencode"
    store: Store = JsonStore(data_dir) if request.param == "JSON files" else Database(data_dir / "opencode.db")
    with Archive(tmp_path / "archive") as archive:
        sources = Sources(data_dir, 64)
        yield Taking(store, archive, intake_of(archive, data_dir, quiet_s=0.3, free_mb=1), sources)
        sources.close()


def prompt_of_ours(session_id: str, number: int = 1) -> Message:
    """As the server records what chat.opencode.server sends."""
    name = f"msg_{session_id}_{number}"
    more = {"agent": OWN_MARK, "model": MODEL, "system": "be brief", "tools": {"*": False, OWN_MARK: False}}
    said = text(f"prt_{session_id}_{number}", name, session_id, "a secret question", metadata={OWN_MARK: "77aa"})
    return user(name, session_id, **more), said


def answer_to_us(session_id: str, number: int = 2) -> Message:
    name = f"msg_{session_id}_{number}"
    info = assistant(name, session_id, mode=OWN_MARK, agent=OWN_MARK, path={"cwd": "/c", "root": "/c"})
    return info, text(f"prt_{session_id}_{number}", name, session_id, "a secret answer")


def of_a_user(session_id: str, number: int = 1) -> Message:
    name = f"msg_{session_id}_{number}"
    info = user(name, session_id, agent="build", model=MODEL, tools={"bash": False})
    return info, text(f"prt_{session_id}_{number}", name, session_id, f"about {OWN_SESSION_TITLE} and {OWN_MARK}")


def put(store: Store, record: dict[str, Any] | None, *messages: Message) -> None:
    if record is not None:
        store.session(record)
    for info, *parts in messages:
        store.message(info, *parts)


def test_a_session_of_ours_is_seen_counted_as_skipped_and_not_archived(taking: Taking) -> None:
    put(taking.store, session("ses_ours", title=OURS), prompt_of_ours("ses_ours"), answer_to_us("ses_ours"))
    put(taking.store, session("ses_theirs"), of_a_user("ses_theirs"))
    for _ in range(2):
        sessions, counts = taking.take()
        assert sessions == {"ses_theirs"}
        assert (counts.seen, counts.kept, counts.skipped, counts.quarantined) == (3, 1, 2, 0)
        assert taking.known() == ["ses_theirs"]


HALVES: dict[str, tuple[Callable[[str], Message], ...]] = {
    "our prompt": (prompt_of_ours,),
    "the answer": (answer_to_us,),
    "both": (prompt_of_ours, answer_to_us),
    # Where the server does not see our folder, another agent answers.
    "a prompt through another agent": (lambda s: (prompt_of_ours(s)[0] | {"agent": "build"}, prompt_of_ours(s)[1]),),
    "a prompt whose tools are not recorded": (
        lambda s: (
            {k: v for k, v in prompt_of_ours(s)[0].items() if k not in ("agent", "tools")},
            prompt_of_ours(s)[1],
        ),
    ),
}


@pytest.mark.parametrize("messages", HALVES.values(), ids=HALVES)
def test_messages_without_their_session_are_known_for_ours(
    taking: Taking, messages: tuple[Callable[[str], Message], ...]
) -> None:
    put(taking.store, None, *(message("ses_ours") for message in messages))
    put(taking.store, session("ses_theirs"), of_a_user("ses_theirs"))
    sessions, counts = taking.take()
    assert (sessions, taking.known()) == ({"ses_theirs"}, ["ses_theirs"])
    assert counts.skipped == len(messages)


def test_user_messages_without_their_session_are_archived(taking: Taking) -> None:
    put(taking.store, None, of_a_user("ses_theirs"))
    assert taking.take()[0] == {"ses_theirs"}


@pytest.mark.parametrize("taking", ["JSON files"], indirect=True)
@pytest.mark.parametrize("half", ["", '{"id": "ses_ours", "projectID": "pid", "ti'])
def test_a_half_written_session_record_does_not_let_our_messages_in(taking: Taking, half: str) -> None:
    put(taking.store, None, prompt_of_ours("ses_ours"), answer_to_us("ses_ours"))
    assert isinstance(taking.store, JsonStore)
    taking.store.raw("session/pid/ses_ours.json", half)
    assert (taking.take()[0], taking.known()) == (set(), [])
    put(taking.store, session("ses_ours", title=OURS))
    assert (taking.take()[0], taking.known()) == (set(), [])


def deletion(store: Store, session_id: str) -> Iterator[None]:
    """The steps in which OpenCode deletes a session: each message's parts before it, the session's own record last."""
    if isinstance(store, Database):  # one transaction: its foreign keys cascade
        store.execute("BEGIN")
        for table, column in (("part", "session_id"), ("message", "session_id"), ("session", "id")):
            store.execute(f"DELETE FROM {table} WHERE {column} = ?", session_id)
        store.execute("COMMIT")
        yield
        return
    for number in (1, 2):
        name = f"msg_{session_id}_{number}"
        (store.storage / "part" / name / f"prt_{session_id}_{number}.json").unlink()
        yield
        store.drop_message(session_id, name)
        yield
    (store.storage / "session" / "pid" / f"{session_id}.json").unlink()
    yield


class BeingDeleted:
    """A source in which a session is deleted while it is scanned: `pace` steps after each call from the `first` on."""

    def __init__(self, source: Source, steps: Iterator[None], first: int, pace: int) -> None:
        self._source, self._steps = source, steps
        self._calls, self._first, self._pace = 0, first, pace

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._source, name)
        if not callable(value):
            return value

        def call(*arguments: Any) -> Any:
            answer = value(*arguments)
            self._calls += 1
            if self._calls >= self._first:
                collections.deque(itertools.islice(self._steps, self._pace), maxlen=0)
            return answer

        return call


@pytest.mark.parametrize("pace", [1, 2, 3, 9])
@pytest.mark.parametrize("first", range(1, 8))
def test_a_session_of_ours_that_is_just_being_deleted_is_left_out(taking: Taking, first: int, pace: int) -> None:
    put(taking.store, session("ses_ours", title=OURS), prompt_of_ours("ses_ours"), answer_to_us("ses_ours"))
    (source,) = taking.sources.refresh()
    steps = deletion(taking.store, "ses_ours")
    taking.intake.scan(cast("Source", BeingDeleted(source, steps, first, pace)), patient=False)
    assert (taking.known(), list(taking.archive.all_message_ids())) == ([], [])
    collections.deque(steps, maxlen=0)
    assert (taking.take()[0], taking.known()) == (set(), [])


@pytest.mark.parametrize("pace", [1, 2, 3, 9])
@pytest.mark.parametrize("first", range(1, 8))
def test_a_session_that_is_just_being_deleted_leaves_no_message_that_was_not_there(
    taking: Taking, first: int, pace: int
) -> None:
    put(taking.store, session("ses_theirs"), of_a_user("ses_theirs"), of_a_user("ses_theirs", 2))
    (source,) = taking.sources.refresh()
    steps = deletion(taking.store, "ses_theirs")
    taking.intake.scan(cast("Source", BeingDeleted(source, steps, first, pace)), patient=False)
    collections.deque(steps, maxlen=0)
    taking.take()
    kept = [taking.archive.message(name) for name in taking.archive.all_message_ids()]
    assert all(message is not None and "orphan" not in message.data for message in kept)
    assert taking.known() == ["ses_theirs"] or not kept
    assert all(found.title for found in taking.archive.sessions())


def test_a_session_of_ours_that_the_user_renamed_is_archived_whole(taking: Taking) -> None:
    put(taking.store, session("ses_ours", title=OURS), prompt_of_ours("ses_ours"), answer_to_us("ses_ours"))
    assert taking.take()[0] == set()
    put(taking.store, session("ses_ours", title="Mine now"), of_a_user("ses_ours", 3))
    sessions, counts = taking.take()
    assert (sessions, counts.kept, counts.skipped) == ({"ses_ours"}, 3, 0)


def test_a_session_of_the_users_stays_theirs_under_a_title_like_ours(taking: Taking) -> None:
    put(taking.store, session("ses_theirs"), of_a_user("ses_theirs"))
    taking.take()
    put(taking.store, session("ses_theirs", title=OURS), of_a_user("ses_theirs", 2))
    _, counts = taking.take()
    assert (counts.seen, counts.kept) == (2, 2)
    (kept,) = taking.archive.sessions()
    assert kept.title == OURS
    assert len(list(taking.archive.message_ids("ses_theirs"))) == 2


@pytest.mark.parametrize("title", ["About [reconstitute]", "reconstitute", "", " [reconstitute]"])
def test_only_a_title_that_begins_with_the_marker_is_ours(taking: Taking, title: str) -> None:
    put(taking.store, session("ses_theirs", title=title), of_a_user("ses_theirs"))
    assert taking.take()[0] == {"ses_theirs"}


def test_a_fork_of_a_session_of_ours_is_left_out_too(taking: Taking) -> None:
    put(taking.store, session("ses_fork", title=f"{OURS} (fork #1)"), prompt_of_ours("ses_fork"))
    assert taking.take()[0] == set()
