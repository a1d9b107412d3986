"""What models found out is kept to be found by its meaning: all of it, nothing else, at no cost where nothing changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon import config
from daemon.app.engine import Engine
from daemon.archive import Archive
from daemon.chat.ollama import OllamaChat
from daemon.config import Agent
from daemon.embed import Embedder, Vector
from daemon.errors import BadInput, BadRequest, IndexBroken, ModelUnavailable, Retry
from daemon.files import Files
from daemon.index.semantic import Semantic
from daemon.ingest import Upkeep
from daemon.model import Json, Target
from daemon.reconstitute import Answerer, Reconstitution
from daemon.reconstitute.agent.notes import Note, Notes, notes_of
from daemon.reconstitute.agent.outcomes import Outcome, OutcomeStore
from daemon.reconstitute.answer import Answer, Source, Statement
from tests.support.servers.evident_model import EvidentModel, Said
from tests.support.servers.fake_ollama import FakeOllama
from tests.support.servers.fake_ollama import call as chat_call
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import JsonStore, session, text, user
from tests.support.stores.recorded_sessions import FailingModel, Recorded, WordEmbedder, call, recorded

SHOP, BARN = "/home/dev/shop", "/home/dev/barn"
SECRET = "ghp_" + "a1B2" * 9


def nothing(_event: Json) -> None:
    """No progress is watched."""


def said(text: str, *, at: int = 1000, paths: tuple[str, ...] = (), ids: Sequence[str] = ("msg_1",)) -> Statement:
    return Statement(text, "", tuple(Source(each, "ses_1", "T", at, "as it was said") for each in ids), paths)


def outcome(question: str, *statements: str | Statement, **more: Any) -> Outcome:
    made = tuple(said(each) if isinstance(each, str) else each for each in statements)
    return Outcome(question, "key", "evidence", "model", 8000, Answer(question, made), "answered", {}, **more)


class Counting(WordEmbedder):
    """Remembers which texts it was asked for; `refuses` those with this word."""

    def __init__(self, synonyms: dict[str, str] | None = None) -> None:
        super().__init__(synonyms)
        self.asked: list[str] = []
        self.refuses = ""

    def embed(self, texts: Any) -> list[Vector | BadInput]:
        self.asked += texts
        made = super().embed(texts)
        return [
            BadInput("no vector for it") if self.refuses and self.refuses in text else vector
            for text, vector in zip(texts, made, strict=True)
        ]

    def close(self) -> None:
        """It holds nothing."""


class Other(Counting):
    fingerprint = "words-of-another-model-64"


@dataclass
class House:
    """An archive with outcomes, and an index of notes that may be lost and opened anew."""

    root: Path
    archive: Archive
    embedder: Counting
    semantic: Semantic
    troubles: list[str] = field(default_factory=list)

    def put(self, target: str, *outcomes: Outcome, moment: str = "") -> None:
        for each in outcomes:
            OutcomeStore(self.archive, target, moment).put(each)

    def notes(self, index: Any = ..., embedder: Embedder | None = None, archive: Archive | None = None) -> Notes:
        used = (lambda: self.semantic.notes) if index is ... else (lambda: index)
        return Notes(
            archive or self.archive,
            used,
            embedder or self.embedder,
            on_failure=lambda name, error: self.troubles.append(f"{name}: {error}"),
        )

    def keep(self, target: str = SHOP) -> list[str]:
        return self.notes().keep(target, nothing)

    def reopen(self, embedder: Counting | None = None, place: str = "semantic") -> None:
        """As the next process would: closed, and opened, perhaps for another model or in another place."""
        self.semantic.close()
        self.embedder = embedder or self.embedder
        self.semantic = Semantic(self.root / place, self.embedder.fingerprint, self.embedder.dims)

    def found(self, query: str, **more: Any) -> list[str]:
        asked: dict[str, Any] = {"target": "/elsewhere", "question_id": "why", "moment": None, "limit": 8}
        return [note.text for note in self.notes().search(query, **asked | more)]

    def written(self) -> str:
        """Names all that was ever written into Chroma: everything goes through its queue in SQLite first."""
        return hashlib.sha256((self.root / "semantic" / "chroma.sqlite3").read_bytes()).hexdigest()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    embedder = Counting({"basket": "cart"})
    with Archive(tmp_path / "archive") as archive:
        semantic = Semantic(tmp_path / "semantic", embedder.fingerprint, embedder.dims)
        made = House(tmp_path, archive, embedder, semantic)
        yield made
        made.semantic.close()


# -- what is a note ----------------------------------------------------------------------------------------------------


def test_statements_descriptions_and_notes_are_searchable_by_meaning(house: House):
    described = {f"{SHOP}/till.py": said("Till counts coins.", paths=(f"{SHOP}/till.py",))}
    remark = said("Snow delayed everything.", at=3000, ids=("msg_2", "msg_3"))
    house.put(SHOP, outcome("why", "The cart lives in Redis.", descriptions=described, notes=(remark,)))
    house.put(SHOP, outcome("purpose:src", "Source code sits there."))
    assert house.keep() == []
    asked: dict[str, Any] = {"target": BARN, "question_id": "why", "moment": None}
    notes = house.notes()
    assert notes.search("basket", 1, **asked) == [
        Note(SHOP, "why", "statement", (), "The cart lives in Redis.", 1000, ("msg_1",))
    ]
    assert notes.search("counts coins", 1, **asked) == [
        Note(SHOP, "why", "description", (f"{SHOP}/till.py",), "Till counts coins.", 1000, ("msg_1",))
    ]
    assert notes.search("snow delayed", 1, **asked) == [
        Note(SHOP, "why", "note", (), "Snow delayed everything.", 3000, ("msg_2", "msg_3"))
    ]
    assert notes.search("source code", 1, **asked)[0].paths == (f"{SHOP}/src",)


def test_notes_are_redacted_before_anything_else_gets_them(house: House):
    reason = Statement(
        "The token was set.", f"It is {SECRET}.", (Source("msg_1", "ses_1", "T", 1000, "as it was said"),)
    )
    house.put(f"/home/dev/{SECRET}", outcome("why", reason))
    assert house.keep(f"/home/dev/{SECRET}") == []
    (text,) = house.found("token")
    assert text.startswith("The token was set. It is ")
    assert SECRET not in text
    assert all(SECRET not in asked for asked in house.embedder.asked)
    stored = [path.read_bytes() for path in (house.root / "semantic").rglob("*") if path.is_file()]
    assert any(b"The token was set." in raw for raw in stored)
    assert all(SECRET.encode() not in raw for raw in stored)


# -- only what changed -------------------------------------------------------------------------------------------------


def test_a_second_time_nothing_is_embedded_and_nothing_written(house: House):
    house.put(SHOP, outcome("why", "The cart lives in Redis.", "Snow delayed everything."))
    house.put(BARN, outcome("why", "Hay is kept dry."))
    house.keep(SHOP)
    assert sorted(house.embedder.asked) == ["Hay is kept dry.", "Snow delayed everything.", "The cart lives in Redis."]
    house.embedder.asked.clear()
    house.reopen()
    before = house.written()
    for _ in range(2):
        assert house.notes().fill(nothing) == []
        assert house.keep(SHOP) == house.keep(BARN) == []
    assert house.embedder.asked == []
    assert house.written() == before
    house.put(BARN, outcome("why", "Hay is kept dry.", "Horses eat it."))
    assert house.keep(BARN) == []
    assert house.written() != before


def test_changed_outcomes_replace_their_notes_and_leave_none_over(house: House):
    house.put(SHOP, outcome("why", "The cart lives in Redis.", "Snow delayed everything."), outcome("how", "By hand."))
    house.put(BARN, outcome("why", "Hay is kept dry."))
    house.notes().fill(nothing)
    house.put(SHOP, outcome("why", "The cart lives in Postgres.", "Snow delayed everything."))
    house.embedder.asked.clear()
    assert house.keep() == []
    assert house.embedder.asked == ["The cart lives in Postgres."]
    assert house.semantic.notes.count() == 4
    found = house.found("cart Redis Postgres snow hand hay", limit=20)
    assert set(found) == {"The cart lives in Postgres.", "Snow delayed everything.", "By hand.", "Hay is kept dry."}
    house.put(SHOP, outcome("why"), outcome("how"))
    assert house.keep() == []
    assert house.found("cart snow hand hay", limit=20) == ["Hay is kept dry."]
    assert house.semantic.notes.count() == 1


def test_texts_that_several_notes_share_are_embedded_once(house: House):
    house.put(SHOP, outcome("why", "It was said."), outcome("how", "It was said."))
    house.put(BARN, outcome("why", "It was said."))
    house.notes().fill(nothing)
    assert house.embedder.asked == ["It was said."]
    assert house.semantic.notes.count() == 3
    assert house.found("said") == ["It was said.", "It was said."], "once for each target"


# -- made good ---------------------------------------------------------------------------------------------------------


def test_what_a_killed_run_left_out_is_made_good_by_the_next(house: House):
    house.put(SHOP, outcome("why", "The cart lives in Redis."))
    house.keep()
    house.put(SHOP, outcome("why", "The cart lives in Postgres."))  # and then it was killed
    house.reopen()
    assert house.notes().fill(nothing) == []
    assert house.found("cart") == ["The cart lives in Postgres."]


def test_a_run_that_is_broken_off_keeps_what_it_has_done(house: House):
    house.put(SHOP, *(outcome(f"own-{number}", f"Fact number{number}.") for number in range(70)))

    def step(event: Json) -> None:
        if event["done"]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        house.notes().fill(step)
    done = house.semantic.notes.count()
    assert 0 < done < 70
    assert not house.semantic.notes.is_whole
    house.embedder.asked.clear()
    assert house.keep() == []
    assert (len(house.embedder.asked), house.semantic.notes.count()) == (70 - done, 70)


def test_a_lost_index_is_refilled_with_no_model_call(house: House):
    house.put(SHOP, outcome("why", "The cart lives in Redis."))
    house.put(BARN, outcome("why", "Hay is kept dry."))
    house.keep()
    house.embedder.asked.clear()
    house.reopen(place="anew")
    with pytest.raises(Retry, match="not open"):
        house.found("cart")
    assert house.keep(BARN) == []
    assert house.embedder.asked == []
    assert house.semantic.notes.count() == 2
    assert house.found("cart", limit=1) == ["The cart lives in Redis."]


def test_another_model_gets_all_notes_and_the_first_one_s_stay(house: House):
    house.put(SHOP, outcome("why", "The cart lives in Redis."))
    house.keep()
    first = house.embedder
    house.reopen(Other())
    assert house.notes().fill(nothing) == []
    assert house.embedder.asked.count("The cart lives in Redis.") == 1
    assert house.found("cart") == ["The cart lives in Redis."]
    house.reopen(first)
    assert house.semantic.notes.count() == 1


def test_notes_are_refilled_after_the_index_was_parked(house: House):
    house.put(SHOP, outcome("why", "The cart lives in Redis."))
    upkeep = Upkeep(
        house.archive, house.root / "index", chroma="embedded", choose=lambda: (house.embedder, "chosen"),
        on_event=lambda _what, _message: None, indexed_kb=64, embedded_kb=4, batch=4,
    )  # fmt: skip
    with closing(upkeep):
        notes = Notes(house.archive, lambda: upkeep.notes, house.embedder)
        assert upkeep.notes is None
        assert upkeep.state()["semantic"]["notes"] is None
        upkeep.open_semantic()
        assert notes.fill(nothing) == []
        assert upkeep.state()["semantic"]["notes"] == 1
        assert upkeep.state()["semantic"]["count"] == 0
        upkeep.rebuild_semantic(IndexBroken("it was found broken"))
        assert upkeep.notes is None
        upkeep.open_semantic()
        assert upkeep.state()["semantic"]["notes"] == 0
        assert notes.fill(nothing) == []
        assert upkeep.state()["semantic"]["notes"] == 1
        assert house.embedder.asked.count("The cart lives in Redis.") == 1


# -- what may be found -------------------------------------------------------------------------------------------------


def test_earlier_answers_to_the_same_question_are_left_out_of_its_notes(house: House):
    house.put(SHOP, outcome("why", "The cart lives in Redis."), outcome("how", "The cart is pushed."))
    house.put(SHOP, outcome("why", "The cart lived in files."), moment="@2026-10-01T000000Z")
    house.put(BARN, outcome("why", "A cart stands in it."))
    house.notes().fill(nothing)
    found = house.found("cart", target=SHOP, question_id="why")
    assert sorted(found) == ["A cart stands in it.", "The cart is pushed."]
    assert len(house.found("cart", target=SHOP, question_id="how")) == 3


def test_nothing_later_than_the_moment_is_found(house: House):
    house.put(SHOP, outcome("why", said("The cart is old.", at=1000), said("The cart is new.", at=2000)))
    house.keep()
    assert house.found("cart", moment=1999) == ["The cart is old."]
    assert len(house.found("cart", moment=2000)) == 2


def test_only_what_the_archive_still_says_is_shown(house: House):
    house.put(SHOP, outcome("why", "The cart lives in Redis."), outcome("how", "The cart is pushed."))
    house.keep()
    house.put(SHOP, outcome("why", "It is nowhere."))
    assert house.found("cart") == ["The cart is pushed."]


def test_archives_that_share_an_index_leave_each_other_s_notes_alone(house: House, tmp_path: Path):
    house.put(SHOP, outcome("why", "The cart lives in Redis."))
    house.notes().fill(nothing)
    with Archive(tmp_path / "other") as other:
        OutcomeStore(other, SHOP, "").put(outcome("why", "The cart lives in a shed."))
        theirs = house.notes(archive=other)
        house.semantic.notes.is_whole = False
        assert theirs.fill(nothing) == []
        assert [n.text for n in theirs.search("cart", 9, target="/", question_id="", moment=None)] == [
            "The cart lives in a shed."
        ]
        assert house.keep() == theirs.keep(SHOP, nothing) == []
    assert house.semantic.notes.count() == 2
    assert house.found("cart") == ["The cart lives in Redis."]


def test_equally_near_notes_stand_in_a_stable_order_the_newest_first(house: House):
    for number in range(6):
        house.put(f"/p{number}", outcome("why", said("The cart rolls.", at=1000 * (number % 3 + 1))))
    house.notes().fill(nothing)
    asked: dict[str, Any] = {"target": "/", "question_id": "", "moment": None}
    found = house.notes().search("cart rolls", 6, **asked)
    assert [note.created for note in found] == [3000, 3000, 2000, 2000, 1000, 1000]
    house.reopen(place="anew")
    house.notes().fill(nothing)
    assert house.notes().search("cart rolls", 6, **asked) == found


# -- what does not work ------------------------------------------------------------------------------------------------


def test_a_text_without_a_vector_is_set_aside_and_not_asked_for_again(house: House):
    house.embedder.refuses = "Redis"
    house.put(SHOP, outcome("why", "The cart lives in Redis.", "Snow delayed everything."))
    assert house.keep() == []
    assert house.semantic.notes.count() == 1
    assert [entry["reason"] for entry in house.archive.quarantined("notes").values()] == ["no vector for it"]
    house.embedder.asked.clear()
    house.reopen()
    assert house.keep() == []
    assert house.embedder.asked == []
    house.reopen(Other())
    assert house.keep() == []
    assert house.semantic.notes.count() == 2
    assert house.archive.quarantined("notes") == {}


def test_what_was_set_aside_and_is_said_no_more_is_forgotten(house: House):
    house.embedder.refuses = "Redis"
    house.put(SHOP, outcome("why", "The cart lives in Redis."))
    house.keep()
    house.put(SHOP, outcome("why", "Snow delayed everything."))
    house.reopen()
    assert house.keep() == []
    assert house.archive.quarantined("notes") == {}


def test_without_an_index_the_run_is_told_if_there_is_something_to_keep(house: House):
    notes = house.notes(index=None)
    assert notes.fill(nothing) == notes.keep(SHOP, nothing) == []
    house.put(SHOP, outcome("why", "The cart lives in Redis."))
    (warning,) = notes.keep(SHOP, nothing)
    assert "1 note: the index by meaning is not ready; the next run makes it good" in warning
    with pytest.raises(ModelUnavailable, match="not open"):
        notes.search("cart", 8, target=BARN, question_id="", moment=None)


def test_a_model_that_is_down_is_told_and_made_good_later(house: House):
    house.put(SHOP, outcome("why", "The cart lives in Redis."))
    down = FailingModel(ModelUnavailable("nothing answers; start it"))
    (warning,) = house.notes(embedder=down).fill(nothing)
    assert "nothing answers; start it; the next run makes it good" in warning
    assert house.troubles == []
    assert house.keep() == []
    with pytest.raises(ModelUnavailable):
        house.notes(embedder=down).search("cart", 8, target=BARN, question_id="", moment=None)
    assert house.found("cart") == ["The cart lives in Redis."]


def test_an_index_that_fails_is_reported_to_its_owner_and_stops_nothing(house: House):
    house.put(SHOP, outcome("why", "The cart lives in Redis."))
    house.keep()
    house.semantic._client.delete_collection("reconstitution_notes_v1-" + house.embedder.fingerprint)
    (warning,) = house.keep()
    assert "Chroma failed while listing its notes" in warning
    with pytest.raises(IndexBroken):
        house.found("cart")
    assert len(house.troubles) == 2
    assert all(trouble.startswith("semantic: ") for trouble in house.troubles)


@pytest.mark.parametrize("query", ["", " \n"])
def test_a_query_must_say_something(house: House, query: str):
    with pytest.raises(BadRequest, match="empty"):
        house.found(query)


def test_a_query_that_has_no_vector_is_no_failure_of_the_index(house: House):
    house.put(SHOP, outcome("why", "The cart lives in Redis."))
    house.keep()
    house.embedder.refuses = "odd"
    with pytest.raises(BadRequest, match="use other words"):
        house.found("odd")
    assert house.troubles == []


def test_an_archive_without_outcomes_has_no_notes_and_is_not_written_to(house: House):
    assert house.notes().fill(nothing) == []
    assert house.semantic.notes.is_whole
    assert house.archive.note("notes owner") == ""
    assert house.found("cart") == []


# -- a whole run -------------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """Recorded sessions of two folders, a model, and the notes of its answers."""

    made: Recorded
    server: FakeOllama
    root: Path

    def of(self, target: str, index: Any = ...) -> Json:
        used: Any = self.made.vectors.notes if index is ... else index
        notes = Notes(self.made.archive, lambda: used, self.made.embedder)
        with closing(OllamaChat(self.server.url, "chat", timeout_s=60)) as chat:
            run = Reconstitution(
                self.made.archive, self.made.recall(), Files(self.made.archive), self.root,
                answerer=Answerer(chat, "", Agent(folders=0, summaries=0)), notes=notes,
            )  # fmt: skip
            return run.run(Target(target))

    def texts(self) -> list[list[str]]:
        """The contents of the messages of every chat since the last time."""
        found = [[str(message.get("content", "")) for message in body["messages"]] for body in self.server.chats]
        self.server.requests.clear()
        return found


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with recorded(tmp_path / "state") as made, FakeOllama({"chat:latest": "cd" * 32}) as server:
        server.capabilities["chat:latest"] = ["completion", "tools"]
        for number, folder in enumerate((SHOP, BARN)):
            made.session(f"ses_{number}", folder, f"Build {folder}")
            made.say(f"ses_{number}", "user", f"Please build a small service in {folder}, since horses eat hay.")
            written = call("write", output="Wrote it.", filePath=f"{folder}/app.py", content="x = 1\n")
            made.say(f"ses_{number}", "assistant", "We decided on SQLite instead of files.", written)
        made.index()
        yield Run(made, server, tmp_path / "out")


_WHY = "The shop serves zebras with honey."


def _seeker(body: Any) -> Any:
    """Looks into the notes, and then says what the first excerpt says."""
    if len(body["messages"]) == 2:
        return chat_call("search_notes", query="zebras honey")
    return EvidentModel()(body)


def test_a_later_question_about_another_folder_finds_what_was_found_out(run: Run):
    run.server.chat_script = EvidentModel({"What is this for": [Said(_WHY, "small service in")]})
    first = run.of(SHOP)
    assert first["warnings"] == []
    assert run.made.vectors.notes.count() == len(notes_of(run.made.archive, SHOP)) > 0
    assert all("search_notes" not in text for texts in run.texts() for text in texts[2:])

    run.server.chat_script = _seeker
    second = run.of(BARN)
    assert (second["warnings"], second["unanswered"]) == ([], 0)
    texts = run.texts()
    assert all(_WHY not in text for chat in texts for text in chat[:2]), "an opening has no notes"
    results = [chat[3] for chat in texts if len(chat) > 3]
    assert results
    assert all(_WHY in text and SHOP in text and "msg_0001" in text for text in results)

    assert (run.of(BARN)["model_calls"], run.of(SHOP)["model_calls"]) == (0, 0)
    assert run.texts() == []


def test_questions_are_answered_with_a_warning_without_a_notes_index(run: Run):
    run.server.chat_script = _seeker
    result = run.of(SHOP, index=None)
    assert result["unanswered"] == 0
    assert "horses eat hay" in (run.root / "home/dev/shop/README.md").read_text()
    assert any("notes was not answered" in warning for warning in result["warnings"])
    assert any("the next run makes it good" in warning for warning in result["warnings"])
    assert any("notes cannot be searched at the moment" in text for chat in run.texts() for text in chat)
    again = run.of(SHOP)
    assert again["model_calls"] > 0, "what could not be searched then is searched now"
    assert again["warnings"] == []
    assert run.of(SHOP)["model_calls"] == 0


def test_the_engine_keeps_notes_and_mends_their_index(tmp_path: Path):
    store = JsonStore(tmp_path / "oc")
    store.session(session("ses_1", directory=SHOP))
    store.message(user("msg_1", "ses_1"), text("prt_1", "msg_1", "ses_1", "Please build a small service for zebras."))
    with FakeOllama({"chat:latest": "cd" * 32}) as server:
        server.capabilities["chat:latest"] = ["completion", "tools"]
        server.chat_script = EvidentModel({"What is this for": [Said(_WHY, "small service for")]})
        tables = {
            "opencode": {"data_dir": str(store.storage.parent)},
            "archive": {"dir": str(tmp_path / "a")},
            "output": {"dir": str(tmp_path / "out")},
            "chat": {"provider": "ollama", "model": "chat", "url": server.url},
        }
        embedder = Counting()
        with PlainService(
            Engine(msgspec.convert(tables, config.Config), embedder=lambda: (embedder, "a test"))
        ) as engine:
            engine.index(nothing, wait=True)

            def count() -> Any:
                return engine.status()["index"]["semantic"]["notes"]

            assert count() == 0
            assert engine.run_target(Target(SHOP), nothing)["warnings"] == []
            kept = count()
            assert kept == len(notes_of(engine.archive, SHOP)) > 0
            semantic = engine.upkeep.semantic
            assert semantic is not None
            semantic._remote.call("close")  # as Chroma does not answer any more
            again = engine.run_target(Target(SHOP), nothing)
            assert any("the next run makes it good" in warning for warning in again["warnings"])
            engine.drain_semantic()  # the loop that feeds the index
            assert count() == 0
            embedder.asked.clear()
            assert engine.run_target(Target(SHOP), nothing)["warnings"] == []
            assert (count(), embedder.asked) == (kept, [])
