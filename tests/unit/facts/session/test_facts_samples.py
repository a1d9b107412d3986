"""Laws that hold of the facts of every real session: the three sample archives, all folders."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from daemon.archive import Archive
from daemon.files import Files
from daemon.ingest import Capture
from daemon.opencode.discover import Sources
from daemon.opencode.snapshots import Snapshots
from daemon.reconstitute.facts.session import file_changes, finish, read_session
from daemon.reconstitute.facts.session_values import CallStatus, Ending, SessionFacts
from tests.conftest import SAMPLES, unpack
from tests.support.secrets.canaries import SECRETS
from tests.support.stores.intake import intake_of


@pytest.fixture(scope="module", params=sorted(SAMPLES))
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SessionFacts]]:
    """The facts of all sessions of a sample."""
    root: Path = tmp_path_factory.mktemp("facts")
    sample = unpack(request.param, root / "sample")
    with Archive(root / "archive") as archive:
        sources = Sources(sample.data_dir, 64)
        for source in sources.refresh():
            intake_of(archive, sample.data_dir, quiet_s=0, free_mb=0).scan(source, patient=False)
        sources.close()
        with closing(Snapshots(sample.data_dir)) as snapshots:
            Capture(archive, snapshots, data_dir=sample.data_dir).run(60)
        changes = file_changes.by_session(Files(archive).histories("/"))
        newest = max(session.updated for session in archive.sessions())
        made = [
            read_session(
                archive, session, list(archive.messages(session.id)), changes.get(session.id, ()),
                is_whole=True, until=None, newest=newest,
            )
            for session in archive.sessions()
        ]  # fmt: skip
        for one in made:
            assert list(one.message_ids) == archive.message_ids(one.id)
        yield list(finish(made))


def _by_title(told: list[SessionFacts], title: str) -> SessionFacts:
    return next(one for one in told if one.title.startswith(title))


def test_every_message_is_in_exactly_one_turn(told: list[SessionFacts]) -> None:
    assert len(told) > 10
    for one in told:
        assert list(itertools.chain.from_iterable(turn.message_ids for turn in one.turns)) == list(one.message_ids)


def test_calls_and_replies_belong_to_messages_of_their_turn(told: list[SessionFacts]) -> None:
    for turn in itertools.chain.from_iterable(one.turns for one in told):
        assert {call.message_id for call in turn.calls} <= set(turn.message_ids)
        assert {reply.message_id for reply in turn.replies} <= set(turn.message_ids)
        assert turn.prompt_id in {"", turn.message_ids[0]}
        assert all(call.title and "\n" not in call.title for call in turn.calls)


def test_turns_and_sessions_are_in_order_of_time(told: list[SessionFacts]) -> None:
    assert [one.session.created for one in told] == sorted(one.session.created for one in told)
    for one in told:
        times = [turn.time for turn in one.turns]
        assert times == sorted(times)
        assert all(turn.ended >= turn.time for turn in one.turns)


def test_a_call_that_ended_well_has_no_error(told: list[SessionFacts]) -> None:
    calls = [call for one in told for turn in one.turns for call in turn.calls]
    assert {CallStatus.OK, CallStatus.FAILED, CallStatus.STOPPED} <= {call.status for call in calls}
    assert not [call.title for call in calls if call.status is CallStatus.OK and (call.error or call.exit)]


def test_sub_agents_and_forks_name_sessions_that_are_there(told: list[SessionFacts]) -> None:
    ids = {one.id for one in told}
    children = {call.child for one in told for turn in one.turns for call in turn.calls} - {""}
    assert len(children) >= 3
    assert children <= ids
    fork = _by_title(told, "Settings with revert (fork")
    assert (fork.forked_from, fork.copied) == (_by_title(told, "Settings: revert story").id, 3)
    assert not fork.changes


def test_what_the_scenario_of_the_samples_did_is_told(told: list[SessionFacts]) -> None:
    story = _by_title(told, "Settings: revert story")
    assert [(turn.prompt, turn.taken_back) for turn in story.turns][1] == ("Turn DEBUG off and add a SECRET.", True)
    assert {(one.path.rpartition("/")[2], one.kind, one.undone) for one in story.changes} == {
        ("settings.py", "added", False), ("extra_settings.py", "added", True), ("shell_note.txt", "added", False),
    }  # fmt: skip
    assert [one.pending for one in _by_title(told, "Pending revert").reverts] == [True]
    wrong = _by_title(told, "Things that go wrong")
    assert [turn.ending for turn in wrong.turns] == [
        Ending.ANSWERED, Ending.STOPPED, Ending.STOPPED, Ending.FAILED, Ending.ANSWERED, Ending.ANSWERED,
    ]  # fmt: skip
    assert [turn.is_compaction for turn in _by_title(told, "Analyse the big log").turns].count(True) == 1
    assert {todo.status for todo in _by_title(told, "Build the Flask").todos} == {"completed"}
    moved = {(one.kind, one.path.rpartition("/")[2]) for one in _by_title(told, "CSV command").changes}
    assert {("moved", "README.rst"), ("deleted", "old_script.py"), ("added", "version.py")} <= moved
    assert not {name for _, name in moved} & {"README.md", "sample.csv"}


def test_nothing_of_a_secret_is_told(told: list[SessionFacts]) -> None:
    shown = b"".join(msgspec.json.encode((one.title, one.turns, one.todos, one.changes)) for one in told)
    assert len(shown) > 10_000
    for _, secret, _ in SECRETS:
        assert secret.encode() not in shown
