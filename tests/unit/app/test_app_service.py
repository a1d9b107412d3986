"""The watchdog is fed only while work is possible, and a daemon that cannot be built leaves the archive free.

What comes in is looked at when it comes, and what may wait gives way to it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.app import daemon as service
from daemon.app import loops as feeding
from daemon.app.crashes import MAX_CRASHES, Crashes
from daemon.app.daemon import Daemon
from daemon.app.engine import Engine
from daemon.app.heartbeat import Heartbeat
from daemon.app.loops import IntakeLoop, WordsLoop
from daemon.app.reload import Reload
from daemon.app.yielding import YieldingEmbedder
from daemon.archive import Archive
from daemon.embed.builtin import WorkerEmbedder
from daemon.errors import ArchiveCorrupt, ConfigError, IndexBroken, OutputRefused, Retry
from daemon.index import Filters
from daemon.index.lexical import Lexical
from daemon.worker import Worker
from tests.support.processes.daemon_process import until
from tests.support.stores.make_opencode import Database, JsonStore, assistant, session, text
from tests.support.stores.recorded_sessions import FailingLexical
from tests.unit.app.conftest import configuration


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("name", ["_intake", "_embed", "_jobs"])
def test_one_hung_loop_is_enough_to_stop_the_pings(daemon: Daemon, name: str) -> None:
    clock = Clock()
    loop = getattr(daemon, name)
    loop.heartbeat = Heartbeat(loop.heartbeat.name, clock)
    loop.sign()
    clock.now += 60
    assert daemon._can_work()
    clock.now += 3600
    assert not daemon._can_work()
    loop.heartbeat.idle()
    assert daemon._can_work()


def test_a_model_call_may_take_longer_than_a_scan(daemon: Daemon) -> None:
    clock = Clock()
    for loop, minutes in ((daemon._intake, 1.9), (daemon._embed, 14), (daemon._jobs, 14)):
        loop.heartbeat = Heartbeat(loop.heartbeat.name, clock)
        loop.sign()
        clock.now += minutes * 60
        assert loop.heartbeat.is_alive, loop.heartbeat.name
        loop.heartbeat.idle()


def test_a_corrupt_archive_ends_the_service(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_message_id: str) -> None:
        raise ArchiveCorrupt("the archive failed a check")

    monkeypatch.setattr(daemon._engine.archive, "state", broken)
    assert not daemon._can_work()
    assert daemon._code == ArchiveCorrupt.exit_code


def test_a_corrupt_archive_ends_the_daemon_with_its_own_exit_code(daemon: Daemon) -> None:
    daemon._fatal(ArchiveCorrupt("the archive failed a check"))
    assert daemon._code == ArchiveCorrupt.exit_code


def test_a_wrong_schedule_is_found_before_the_archive_is_taken(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"targets\[0\]\.schedule"):
        Daemon(configuration(tmp_path, targets=[{"path": "/home/dev", "schedule": "61 * * * *"}]))
    assert not (tmp_path / "archive").exists()


def test_a_daemon_that_cannot_be_built_leaves_the_archive_free(tmp_path: Path) -> None:
    occupied = tmp_path / "occupied"
    occupied.write_text("a file")
    with pytest.raises(OutputRefused, match=str(occupied)):
        Daemon(configuration(tmp_path, watch={"requests_dir": str(occupied)}))
    with Archive(tmp_path / "archive") as archive:
        assert archive.figures()["messages"] == 0


class Following:
    """An intake loop over a source of one kind, and what may be written into that."""

    def __init__(self, root: Path, kind: str, **watch: Any) -> None:
        self.data_dir = root / "opencode"
        self.store = JsonStore(self.data_dir) if kind == "json" else Database(self.data_dir / "opencode.db")
        self.engine = Engine(configuration(root, watch=watch))
        self.failures: list[BaseException] = []
        self.loop = IntakeLoop(self.engine, self.failures.append)
        self.words = WordsLoop(self.engine, self.failures.append)
        self.loop.on_scanned = self.words.wake
        self.words.on_indexed = self.loop.settled

    def start(self) -> None:
        self.loop.start()
        self.words.start()

    def stop(self) -> None:
        for each in (self.loop, self.words):
            each.stop()
            assert each.join(90)

    def say(self, name: str, word: str, *, finished: bool = True) -> str:
        """Have OpenCode write an answer with this word, a moment ago; the path that an event would name."""
        now = int(time.time() * 1000)
        head = assistant(f"msg_{name}", "ses_a", now, now if finished else None)
        part = text(f"prt_{name}", f"msg_{name}", "ses_a", f"The {word} is ready.")
        if isinstance(self.store, Database):
            self.store.message(head, part, updated=now)
            return str(self.store.path.with_name("opencode.db-wal"))
        self.store.message(head, part)
        return str(self.store.storage / "message" / "ses_a" / f"msg_{name}.json")

    def finds(self, word: str) -> bool:
        return bool(self.engine.unindexed.over(self.engine.upkeep.lexical).literal(word, Filters(), 5))


@pytest.fixture(params=["json", "database"])
def follow(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Following]]:
    made: list[Following] = []

    def follow(**watch: Any) -> Following:
        made.append(Following(tmp_path, request.param, **watch))
        made[0].store.session(session("ses_a"))
        return made[0]

    yield follow
    for each in made:
        each.stop()
        each.engine.close()
        if isinstance(each.store, Database):
            each.store.close()
        assert each.failures == []


def test_a_finished_message_is_not_held_back_by_the_quiet_time(follow: Callable[..., Following]) -> None:
    follows = follow(quiet_seconds=60)
    follows.say("a", "lantern")
    follows.say("b", "orchard", finished=False)

    follows.loop.turn()

    assert (follows.finds("lantern"), follows.finds("orchard")) == (True, False)


def test_what_gets_finished_is_found_by_the_next_look(follow: Callable[..., Following]) -> None:
    follows = follow(quiet_seconds=60)
    follows.say("a", "orchard", finished=False)
    follows.loop.turn()
    follows.loop.hint(follows.say("a", "orchard"))

    follows.loop.turn()

    assert follows.finds("orchard")


def test_words_for_near_spellings_are_read_after_a_quiet_while(
    follow: Callable[..., Following], monkeypatch: pytest.MonkeyPatch
) -> None:
    follows = follow()
    index = follows.engine.upkeep.lexical
    assert isinstance(index, Lexical)
    follows.say("a", "lantern")
    follows.loop.turn()
    monkeypatch.setattr(feeding, "_QUIET_S", 3600.0)
    follows.words.turn()
    assert (follows.finds("lantern"), index._vocabulary) == (True, None)
    monkeypatch.setattr(feeding, "_QUIET_S", 0.0)

    follows.words.turn()

    assert index._vocabulary is not None
    follows.loop.hint(follows.say("b", "orchard"))
    follows.loop.turn()
    follows.words.turn()
    assert [index.spellings(word, 3) for word in ("lantren", "orchrd")] == [[("lantern", 1)], [("orchard", 1)]]


def test_who_looks_only_once_does_not_read_words_for_later(follow: Callable[..., Following]) -> None:
    follows = follow()
    follows.say("a", "lantern")
    follows.engine.scan(everything=True)
    index = follows.engine.upkeep.lexical
    assert isinstance(index, Lexical)
    assert (follows.finds("lantern"), index._vocabulary) == (True, None)


def test_an_index_with_unreadable_words_is_reported_once_and_rebuilt(
    follow: Callable[..., Following], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeding, "_QUIET_S", 0.0)
    follows = follow()
    follows.say("a", "lantern")
    follows.engine.scan(everything=True)
    upkeep = follows.engine.upkeep
    whole = upkeep.lexical
    upkeep.lexical = FailingLexical(IndexBroken("the word index is torn"))  # type: ignore[assignment]  # a stand-in
    follows.words.turn()
    assert [error.message for error in follows.engine.errors] == ["the word index is torn"]
    upkeep.lexical = whole  # rebuilding closes it first

    until(lambda: follows.words.turn() and follows.finds("lantern"))

    assert upkeep.lexical is not whole
    assert len(follows.engine.errors) == 1


def test_an_event_leads_to_a_look_at_once(follow: Callable[..., Following], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeding, "_TICK_S", 3600.0)  # without the event nobody would look again
    follows = follow()
    follows.start()
    until(follows.loop.calm.is_set)

    follows.loop.hint(follows.say("a", "lantern"))

    until(lambda: follows.finds("lantern"))


def test_an_event_during_a_look_leads_to_another_look_at_once(
    follow: Callable[..., Following], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeding, "_TICK_S", 3600.0)
    follows = follow()
    has_read, has_said = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        has_read.set()  # the sources have been read, this look is not over
        assert has_said.wait(90)

    follows.engine.on_scanned = hold
    follows.start()
    assert has_read.wait(90)

    follows.loop.hint(follows.say("late", "lantern"))
    assert not follows.finds("lantern")
    has_said.set()

    until(lambda: follows.finds("lantern"))


def test_many_events_before_a_look_lead_to_one_look(
    follow: Callable[..., Following], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeding, "_TICK_S", 3600.0)
    follows = follow()
    looks: list[bool] = []
    follows.engine.on_scanned = lambda _: looks.append(True)
    for number in range(50):
        follows.loop.hint(follows.say(f"{number:02d}", f"lantern{number:02d}"))

    follows.start()

    until(lambda: follows.finds("lantern49") and follows.loop.calm.is_set())
    assert len(looks) == 1


def test_it_is_calm_when_nothing_waits_to_be_looked_at(follow: Callable[..., Following]) -> None:
    follows = follow()
    calm = [follows.loop.calm.is_set()]
    follows.loop.turn()
    calm.append(follows.loop.calm.is_set())
    path = follows.say("a", "lantern")
    follows.loop.hint(path)
    calm.append(follows.loop.calm.is_set())
    follows.engine.on_scanned = lambda _: follows.loop.hint(path)
    follows.loop.turn()
    calm.append(follows.loop.calm.is_set())
    follows.engine.on_scanned = lambda _: None
    follows.loop.turn()
    calm.append(follows.loop.calm.is_set())
    follows.words.turn()
    calm.append(follows.loop.calm.is_set())

    assert calm == [False, True, False, False, False, True]


def test_what_came_in_is_found_before_the_index_has_committed_it(follow: Callable[..., Following]) -> None:
    follows = follow()
    follows.say("a", "lantern")
    found: list[bool] = []
    follows.loop.on_scanned = lambda: found.append(follows.finds("lantern"))

    follows.loop.turn()

    assert found == [True]
    assert follows.engine.archive.waiting("lexical") == 1
    follows.words.turn()
    assert follows.engine.archive.waiting("lexical") == 0
    assert follows.engine.upkeep.lexical.literal("lantern", Filters(), 5)
    assert follows.finds("lantern")


def test_embedding_is_asked_for_only_when_the_index_has_what_came_in(follow: Callable[..., Following]) -> None:
    follows = follow()
    follows.say("a", "lantern")
    waiting: list[int] = []
    follows.words.on_indexed = lambda: waiting.append(follows.engine.archive.waiting("lexical"))
    follows.words.turn()
    follows.loop.turn()
    follows.words.turn()
    assert waiting == [0]


class Asked(threading.Event):
    """Never set; counts how often somebody waited for it."""

    times = 0

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None, "embedding would wait for ever"
        self.times += 1
        return False


@pytest.mark.parametrize(("texts", "waits"), [(0, 0), (1, 0), (2, 1), (4, 1), (9, 3)])
def test_embedding_gives_way_every_few_texts_and_a_question_never_waits(worker: Worker, texts: int, waits: int) -> None:
    calm, builtin = Asked(), WorkerEmbedder(worker)
    wanted = [f"text number {number}" for number in range(texts)]

    found = YieldingEmbedder(builtin, calm).embed(wanted)

    assert [list(vector) for vector in found] == [list(vector) for vector in builtin.embed(wanted)]
    assert calm.times == waits


def test_a_single_run_and_the_end_of_a_run_give_way_to_nobody(tmp_path: Path) -> None:
    for number, end in enumerate((Daemon.once, Daemon._drain)):
        made = Daemon(configuration(tmp_path / str(number)))
        try:
            assert not made._intake.calm.is_set()
            end(made)
            assert made._intake.calm.is_set()
        finally:
            made._requests.close()
            made._engine.close()


def test_a_single_run_with_questions_left_for_a_model_has_its_own_code(
    tmp_path: Path,
) -> None:
    store = JsonStore(tmp_path / "opencode")
    store.session(session("ses_a", "/home/dev/garden"))
    store.message(assistant("msg_a", "ses_a", 1, 2), text("prt_a", "msg_a", "ses_a", "The lantern is ready."))
    chat = {"provider": "ollama", "url": "http://127.0.0.1:9", "model": "m"}  # nobody listens there
    made = Daemon(configuration(tmp_path, chat=chat, targets=[{"path": "/home/dev/garden"}]))

    assert made.once() == Retry.exit_code
    assert made._jobs.later == ["/home/dev/garden"]


def test_safe_mode_ends_after_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(service, "_SAFE_S", 0.5)
    crashes = Crashes(tmp_path / "archive")
    (tmp_path / "archive").mkdir(mode=0o700)
    for _ in range(MAX_CRASHES):
        crashes.begin()
    safe = Daemon(configuration(tmp_path), Reload(lambda: safe._config))
    assert safe.run() == 0
    assert safe._engine.safe_mode
    assert safe.successor is safe._config
    assert crashes.begin() == []  # the next run, a normal one


def test_the_daemon_s_own_embedder_gives_way_to_its_intake(daemon: Daemon) -> None:
    embedder = daemon._engine.upkeep.embedder

    assert isinstance(embedder, YieldingEmbedder)
    assert embedder._calm is daemon._intake.calm
    assert daemon._engine.archive.note("embedder") == "builtin"
