"""What is embedded, and in which order (embedding.what): what was said first, newest first, tool calls last or never."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from daemon import config
from daemon.app.engine import Engine
from daemon.app.indexing import Pace
from daemon.archive import TOOLS
from daemon.errors import BadRequest
from daemon.index import Filters
from daemon.ingest.outbox import chunks_of
from daemon.model import Document, Kind, Section
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import T0, JsonStore, assistant, session, text, tool
from tests.unit.ingest.test_ingest_upkeep import Hashed

TALKS = 20
OUTPUT = "printed"


@pytest.fixture
def store(tmp_path: Path) -> JsonStore:
    """Messages that say something and print something, the oldest first."""
    made = JsonStore(tmp_path / "oc")
    for number in range(TALKS):
        ids = f"msg_{number:02}", f"ses_{number:02}"
        made.session(session(ids[1], title=""))
        state = {"status": "completed", "input": {"command": "run"}, "output": f"{OUTPUT} {number}", "title": "run"}
        made.message(
            assistant(ids[0], ids[1], T0 + number),
            text(f"prt_{number:02}a", *ids, f"said {number}"),
            tool(f"prt_{number:02}b", *ids, "bash", state),
        )
    return made


class House:
    """Engines over one archive, one after the other, with `embedding.what` as wanted."""

    def __init__(self, store: JsonStore, root: Path) -> None:
        self.store, self.root = store, root
        self.model = Hashed()

    def engine(self, what: str) -> PlainService:
        tables = {
            "opencode": {"data_dir": str(self.store.storage.parent)},
            "archive": {"dir": str(self.root / "a")},
            "embedding": {"what": what},
        }
        self.model = Hashed()
        model = self.model
        return PlainService(Engine(msgspec.convert(tables, config.Config), embedder=lambda: (model, "a test")))

    def kinds(self, what: str) -> set[str]:
        """Of the chunks in the index, after `index --wait` with this setting."""
        with self.engine(what) as engine:
            assert engine.index(wait=True)["waiting"] == 0
            matches = engine.upkeep.semantic.query(self.model.embed(["anything"])[0], Filters(), 1000)
            self.model.calls.remove("anything")
            return {match.kind for match in matches}


@pytest.fixture
def house(store: JsonStore, tmp_path: Path) -> House:
    return House(store, tmp_path)


def test_what_was_said_is_embedded_first_and_newest_first(house: House) -> None:
    with house.engine("all") as engine:
        engine.index(wait=True)
    said = [text for text in house.model.calls if text.startswith("said")]
    printed = [text for text in house.model.calls if OUTPUT in text]
    assert house.model.calls.index(printed[0]) > house.model.calls.index(said[-1])
    newest_first = [f"said {number}" for number in reversed(range(TALKS))]
    # A step sorts its 16 messages by nothing else.
    assert (set(said[:16]), len(said), len(printed)) == (set(newest_first[:16]), TALKS, TALKS)


def test_a_chunk_is_of_what_was_said_or_of_a_tool_call(house: House) -> None:
    sections = (
        Section("a", Kind.PROMPT, "said"),
        Section("b", Kind.TOOL_OUTPUT, OUTPUT),
        Section("c", Kind.ANSWER, "x"),
    )
    document = Document("msg", "ses", sections, ())
    said, tools = chunks_of(document, 64, "all")
    assert [(chunk.text, chunk.number) for chunk in (*said, *tools)] == [("said\n\nx", 0), (OUTPUT, 1)]
    assert chunks_of(document, 64, "said") == (said, [])


def test_with_said_no_tool_call_is_embedded_and_nothing_waits(house: House) -> None:
    assert house.kinds("said") == {str(Kind.ANSWER)}
    assert not any(OUTPUT in text for text in house.model.calls)
    with house.engine("said") as engine:
        engine.drain_semantic()
        assert engine.status()["outbox"] == {"lexical": 0, "semantic": 0, TOOLS: 0}
        answer = engine.recall("recall", {"query": "said", "match": "semantic", "results": 50})
        assert (answer["degradeKind"], answer["warnings"]) == ("none", [])
        of_tools = engine.recall("recall", {"query": "said", "match": "semantic", "kinds": ["tool_output"]})
        assert any("tool calls are found by words only" in warning for warning in of_tools["warnings"])


def test_a_changed_setting_takes_effect_both_ways_without_embedding_anew(house: House) -> None:
    both = {str(Kind.ANSWER), str(Kind.TOOL_INPUT)}
    assert house.kinds("all") == both
    assert (house.kinds("said"), house.model.calls) == ({str(Kind.ANSWER)}, [])
    assert (house.kinds("all"), house.model.calls) == (both, [])


def test_said_becomes_all_by_embedding_the_tool_calls_alone(house: House) -> None:
    house.kinds("said")
    house.kinds("all")
    assert len(house.model.calls) == TALKS
    assert all(OUTPUT in text for text in house.model.calls)


def test_none_needs_no_model_and_no_chroma(house: House, tmp_path: Path) -> None:
    with house.engine("none") as engine:
        engine.upkeep._choose = None  # whoever chooses a model fails
        assert engine.index(wait=True)["waiting"] == 0
        status = engine.status()
        assert (status["outbox"], status["index"]["semantic"]["state"]) == (
            {"lexical": 0, "semantic": 0, TOOLS: 0},
            "off (embedding.what is none)",
        )
        for match in ("hybrid", "smart"):
            answer = engine.recall("recall", {"query": "said 7", "match": match})
            assert answer["results"][0]["messageID"] == "msg_07"
            assert (answer["degradeKind"], answer["degraded"]) == ("none", [])
        assert engine.recall("recall", {"query": "unheard"})["coverage"]["semantic"] == "off"
        with pytest.raises(BadRequest, match=r"embedding\.what"):
            engine.recall("recall", {"query": "said 7", "match": "semantic"})
    assert not (tmp_path / "a" / "index" / "semantic").exists()
    assert house.kinds("said") == {str(Kind.ANSWER)}


def test_while_tool_calls_wait_answers_by_meaning_and_the_status_say_so(house: House) -> None:
    with house.engine("all") as engine:
        engine.scan(everything=True, patient=False)
        while engine.archive.waiting("semantic"):
            engine.drain_semantic()
        assert engine.status()["outbox"] == {"lexical": 0, "semantic": 0, TOOLS: TALKS}
        answer = engine.recall("recall", {"query": "said", "match": "semantic"})
        assert answer["degradeKind"] == "indexing"
        assert any(
            f"the tool calls of {TALKS} messages are not searchable by meaning yet" in each
            for each in answer["degraded"]
        )
        of_said = engine.recall("recall", {"query": "said", "match": "semantic", "kinds": ["answer"]})
        assert of_said["degradeKind"] == "none"


def test_the_time_left_follows_from_the_pace_of_each_stage() -> None:
    pace = Pace()
    assert pace.left_s({"semantic": 3, TOOLS: 0}) is None
    assert pace.rate("semantic") is None
    pace.record("semantic", 10, 5.0)
    assert pace.rate("semantic") == pytest.approx(2.0)
    assert pace.left_s({"semantic": 4, TOOLS: 0}) == pytest.approx(2.0)
    assert pace.left_s({"semantic": 4, TOOLS: 1}) is None
    pace.record(TOOLS, 1, 3.0)
    assert pace.left_s({"semantic": 4, TOOLS: 2}) == pytest.approx(8.0)
    for _ in range(200):
        pace.record("semantic", 10, 10.0)
    assert pace.left_s({"semantic": 4, TOOLS: 0}) == pytest.approx(4.0, rel=0.01)
    assert pace.left_s({"semantic": 0, TOOLS: 0}) == 0
