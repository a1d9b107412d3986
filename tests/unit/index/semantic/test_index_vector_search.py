"""Filtered questions to the semantic index, answered with the help of the lexical one: against all rows, one by one."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.errors import IndexBroken
from daemon.index import Entry, Filters, VectorRow, number_of
from daemon.index.lexical import Lexical
from daemon.index.lexical.overlay import Overlay
from daemon.index.semantic import Semantic, vector_search
from daemon.index.semantic.vector_cache import VectorCache
from daemon.model import Chunk, Document, Kind, Section, Vector
from tests.unit.index.semantic.test_index_semantic import opened, serving

DIMS = 16
DAY = 86_400_000
KINDS = (Kind.ANSWER, Kind.TOOL_OUTPUT, Kind.REASONING)
FILTERS = {
    "none": Filters(),
    "a session": Filters(session_id="ses_3"),
    "a directory": Filters(directory="/work/shop"),
    "a project": Filters(project_id="prj_1"),
    "a role": Filters(role="user"),
    "a kind": Filters(kinds=("tool_output",)),
    "two kinds": Filters(kinds=("prompt", "reasoning")),
    "a tool": Filters(tools=("grep",)),
    "two tools": Filters(tools=("grep", "read")),
    "a month": Filters(after=20 * DAY, before=50 * DAY),
    "a path": Filters(path="/work/shop/src"),
    "a path by all its names": Filters(path="/work/shop/src/7.py", former=("/work/shop/src/1.py", "/nowhere")),
    "deleted": Filters(deleted=True),
    "kept": Filters(deleted=False),
    "some sessions": Filters(sessions=frozenset({"ses_1", "ses_4"})),
    "all but some sessions": Filters(besides=frozenset({"ses_0", "ses_5"})),
    "some sessions but one": Filters(sessions=frozenset({"ses_1", "ses_4"}), besides=frozenset({"ses_4"})),
    "nothing": Filters(role="system"),
    "several": Filters(directory="/work", role="assistant", kinds=("answer",), after=10 * DAY, deleted=False),
    "hardly any": Filters(session_id="ses_2", role="user", before=40 * DAY),
}


def unit(seed: int) -> Vector:
    vector = np.random.default_rng(seed).standard_normal(DIMS).astype(np.float32)
    return vector / np.linalg.norm(vector)


@dataclass(frozen=True)
class Made:
    """A message with a chunk for each of its sections."""

    entry: Entry
    rows: tuple[VectorRow, ...]


def message(number: int) -> Made:
    """Every third a prompt of the user, the others with three sections of the assistant; spread over all that filters."""
    mid, is_user = f"msg_{number:03}", number % 3 == 0
    kinds = (Kind.PROMPT,) if is_user else KINDS
    tools = ("",) if is_user else ("", ("bash", "grep", "read")[number % 5 % 3], "")
    sections = tuple(
        Section(f"prt_{number}_{place}", kind, f"text {place} of {number}", tool)
        for place, (kind, tool) in enumerate(zip(kinds, tools, strict=True))
    )
    place = number % 4
    entry = Entry(
        Document(mid, f"ses_{number % 7}", sections, (f"/work/shop/src/{number % 2}.py",) if place == 1 else ()),
        "user" if is_user else "assistant",
        number * DAY // 2,
        number,
        "a title",
        f"prj_{number % 2}",
        ("/work/shop", "/work/shop/sub", "/work/shopping", "/elsewhere")[place],
        deleted=number % 10 == 0,
    )
    rows = tuple(
        VectorRow(
            Chunk(mid, place, section.text, (str(section.kind),), (section.tool,) if section.tool else ()),
            unit(number * 10 + place),
            entry,
        )
        for place, section in enumerate(sections)
    )
    return Made(entry, rows)


def passes(row: VectorRow, filters: Filters) -> bool:
    """Said anew, without an index: what a chunk must be for these filters."""

    def beneath(path: str, top: str) -> bool:
        return path == top or path.startswith(f"{top}/")

    entry = row.entry
    return (
        (not filters.session_id or entry.document.session_id == filters.session_id)
        and (filters.sessions is None or entry.document.session_id in filters.sessions)
        and entry.document.session_id not in filters.besides
        and (not filters.project_id or entry.project_id == filters.project_id)
        and (not filters.directory or beneath(entry.directory, filters.directory))
        and (not filters.role or entry.role == filters.role)
        and (not filters.kinds or bool(set(filters.kinds) & set(row.chunk.kinds)))
        and (not filters.tools or not set(filters.tools).isdisjoint(row.chunk.tools))
        and (filters.after is None or entry.created >= filters.after)
        and (filters.before is None or entry.created < filters.before)
        and (
            not filters.path
            or any(beneath(path, top) for path in entry.document.paths for top in (filters.path, *filters.former))
        )
        and (filters.deleted is None or entry.deleted == filters.deleted)
    )


def records(found: Collection[Any]) -> list[str]:
    return [match.record for match in found]


ALL = [message(number) for number in range(240)]


@dataclass
class House:
    """Both indexes of the same messages; `asked` counts how often the lexical one was asked which pass."""

    lexical: Lexical
    semantic: Semantic
    asked: int = 0

    def allowed_ids(self, filters: Filters, most: int, among: Collection[int] | None = None) -> Collection[int] | None:
        self.asked += 1
        return self.lexical.allowed_ids(filters, most, among)

    def best(self, filters: Filters, limit: int, vector: Vector) -> list[str]:
        return records(self.semantic.query(vector, filters, limit, self.allowed_ids))


def made(place: Path, within_s: float) -> House:
    house = House(Lexical(), Semantic(place, "model-1", DIMS))
    house.lexical.replace([one.entry for one in ALL])
    house.semantic.upsert([row for one in ALL for row in one.rows])
    house.semantic.prepare(within_s)
    return house


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    ready = made(tmp_path_factory.mktemp("nearest") / "semantic", math.inf)
    yield ready
    ready.semantic.close()


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """It knows of all chunks, but not of all vectors yet."""
    ready = made(tmp_path_factory.mktemp("listed") / "semantic", 0.0)
    assert ready.semantic._search._is_listed
    assert not ready.semantic._search.is_read
    yield ready
    ready.semantic.close()


def expected(filters: Filters, limit: int, vector: Vector) -> list[str]:
    """The nearest of all rows that pass."""
    rows = [row for one in ALL for row in one.rows if passes(row, filters)]
    return [row.chunk.id for row in sorted(rows, key=lambda row: -float(row.vector @ vector))[:limit]]


@pytest.mark.parametrize("way", ["compared", "sifted", "sifted after counting", "read", "named"])
@pytest.mark.parametrize("filters", FILTERS.values(), ids=FILTERS.keys())
def test_the_nearest_that_pass_are_found_in_whatever_way_chroma_is_asked(
    house: House, listed: House, filters: Filters, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The sizes from on which each way is taken, so that a small index goes through all of them.
    sizes = {
        "compared": {},
        "sifted": {"_MOST_MESSAGES": 0},
        "sifted after counting": {"_MOST_COMPARED": 0},
        "read": {"_READ_COST": 0},
        "named": {"_READ_COST": 1_000_000},
    }[way]
    for name, size in sizes.items():
        monkeypatch.setattr(vector_search, name, size)
    house = listed if way in {"read", "named"} else house
    for limit in (1, 7, 400):
        wanted = expected(filters, limit, unit(5))
        found = house.best(filters, limit, unit(5))
        assert set(found) <= {row.chunk.id for one in ALL for row in one.rows if passes(row, filters)}
        assert len(found) == len(wanted)
        # Stored vectors are moved by 0.003, and the graph is approximate: a neighbour may take the last place.
        assert len(set(found) & set(wanted)) >= len(wanted) - max(1, len(wanted) // 20)
        assert found[:1] == wanted[:1]


def test_equal_vectors_hide_no_other(tmp_path: Path) -> None:
    """Chroma's graph leads past rows that stand behind many equal ones."""
    made = Semantic(tmp_path / "semantic", "model-1", DIMS)
    rows = [row for one in map(message, range(1500)) for row in one.rows]
    rows = [replace(row, vector=unit(99_999)) if number % 10 else row for number, row in enumerate(rows)]
    made.upsert(rows)

    def hidden() -> list[str]:
        others = rows[::10][:200]
        return [row.chunk.id for row in others if row.chunk.id not in records(made.query(row.vector, Filters(), 20))]

    made.prepare()
    assert hidden() == []
    made.close()


@pytest.mark.parametrize("filters", [Filters(), Filters(kinds=("tool_output",)), Filters(tools=("grep",))], ids=str)
def test_similarities_of_messages_are_those_of_a_query_for_all(house: House, listed: House, filters: Filters) -> None:
    wanted = {f"msg_{number:03}" for number in range(0, 240, 7)}
    best: dict[str, float] = {}
    for match in house.semantic.query(unit(5), filters, 1000, house.allowed_ids):
        best.setdefault(match.message_id, match.score)
    for semantic in (house.semantic, listed.semantic):  # in memory they are rounded
        found = semantic.similarities(unit(5), filters, [*wanted, "msg_gone"])
        assert {match.message_id for match in found} == wanted & set(best)
        assert [match.score for match in found] == pytest.approx([best[match.message_id] for match in found], abs=1e-2)
        assert semantic.similarities(unit(5), filters, []) == []


def test_what_is_sifted_too_thin_is_asked_for_by_name(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_search, "_MOST_COMPARED", 0)
    monkeypatch.setattr(vector_search, "_DEEPEST", 1)
    monkeypatch.setattr(vector_search, "EF_SEARCH", 1)
    filters = FILTERS["hardly any"]
    assert house.best(filters, 3, unit(5)) == expected(filters, 3, unit(5))


@given(
    filters=st.builds(
        Filters,
        directory=st.sampled_from(["", "/work", "/work/shop"]),
        role=st.sampled_from(["", "user", "assistant"]),
        kinds=st.sampled_from([(), ("prompt",), ("answer", "reasoning")]),
        tools=st.sampled_from([(), ("bash",), ("bash", "read")]),
        after=st.none() | st.integers(0, 60 * DAY),
        before=st.none() | st.integers(60 * DAY, 130 * DAY),
        sessions=st.none() | st.sets(st.sampled_from([f"ses_{n}" for n in range(7)])).map(frozenset),
        besides=st.sets(st.sampled_from([f"ses_{n}" for n in range(7)]), max_size=3).map(frozenset),
        path=st.sampled_from(["", "/work/shop/src/1.py"]),
        deleted=st.none() | st.booleans(),
    ),
    seed=st.integers(0, 1000),
)
def test_both_indexes_filter_alike(house: House, filters: Filters, seed: int) -> None:
    here = house.semantic.query(unit(seed), filters, 1000, house.allowed_ids)
    there = house.semantic.query(unit(seed), filters, 1000)
    wanted = set(expected(filters, 1000, unit(seed)))
    assert set(records(here)) == wanted
    assert set(records(there)) == wanted


def test_matches_may_come_without_their_texts_and_are_told_them_later(house: House) -> None:
    filters = FILTERS["a tool"]
    bare = house.semantic.query(unit(5), filters, 5, house.allowed_ids, without_texts=True)
    whole = house.semantic.query(unit(5), filters, 5, house.allowed_ids)
    assert {(match.kind, match.tool, match.text) for match in bare} == {("", "", "")}
    assert house.semantic.with_texts(bare) == whole
    assert all(match.tool == "grep" and match.text.startswith("text 1 of") for match in whole)
    assert [match.message_id for match in bare] == [match.record.partition("#")[0] for match in whole]


def test_until_it_has_read_what_there_is_the_index_filters_for_itself(tmp_path: Path) -> None:
    made = House(Lexical(), Semantic(tmp_path / "semantic", "model-1", DIMS))
    made.lexical.replace([one.entry for one in ALL[:20]])
    made.semantic.upsert([row for one in ALL[:20] for row in one.rows])
    before = made.best(Filters(role="user"), 50, unit(1))
    assert (len(before), made.asked) == (7, 0)
    made.semantic.prepare()
    assert (made.best(Filters(role="user"), 50, unit(1)), made.asked) == (before, 1)
    made.semantic.close()


def test_what_is_written_and_removed_afterwards_is_taken_note_of(tmp_path: Path) -> None:
    answers = Filters(kinds=("answer",), after=0)
    made = House(Lexical(), Semantic(tmp_path / "semantic", "model-1", DIMS))
    made.lexical.replace([one.entry for one in ALL[:20]])
    made.semantic.upsert([row for one in ALL[:10] for row in one.rows])
    made.semantic.prepare()
    made.semantic.upsert([row for one in ALL[10:20] for row in one.rows])
    assert len(made.best(answers, 50, unit(1))) == 13
    made.semantic.keep(
        {ALL[1].entry.document.message_id: ("msg_001#0", "msg_001#1"), ALL[2].entry.document.message_id: ()}
    )
    assert len(made.best(answers, 50, unit(1))) == 12
    assert len(made.best(Filters(kinds=("reasoning",), after=0), 50, unit(1))) == 11
    other = ALL[1].rows[0]
    made.semantic.upsert([VectorRow(Chunk("msg_001", 0, "now a thought", ("reasoning",)), other.vector, other.entry)])
    assert len(made.best(answers, 50, unit(1))) == 11
    assert made.asked > 0
    made.semantic.close()


def test_kinds_alone_are_told_without_asking_the_other_index(house: House) -> None:
    had = house.asked
    found = house.best(Filters(kinds=("answer",)), 50, unit(1))
    assert (len(found), house.asked) == (50, had)
    assert set(found) <= set(house.best(Filters(kinds=("answer",), after=0), 1000, unit(1)))
    assert house.asked > had


def test_rows_removed_by_another_daemon_do_not_break_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path) as url:
        ours, other = (opened(url) for _ in range(2))
        made = House(Lexical(), ours)
        made.lexical.replace([one.entry for one in ALL[:60]])
        ours.upsert([row for one in ALL[:60] for row in one.rows])
        ours.prepare()
        assert len(made.best(Filters(role="user"), 50, unit(1))) == 20
        other.keep({ALL[0].entry.document.message_id: ()})
        found = ours.query(unit(1), Filters(role="user"), 50, made.allowed_ids)
        assert {match.message_id for match in found if not match.text} == {"msg_000"}
        # As long as vectors are still being read, the server is given names, and refuses one that it does not have.
        monkeypatch.setattr(vector_search, "_READ_COST", 1_000_000)
        assert ours._search._cache is not None
        ours._search._cache.put("msg_000#0", ("prompt",))
        assert len(made.best(Filters(role="user"), 50, unit(1))) == 19
        ours.prepare()
        assert ours._search.is_read
        assert len(made.best(Filters(role="user"), 50, unit(1))) == 19


def test_a_failure_of_the_other_index_is_not_taken_for_one_of_this(house: House) -> None:
    def broken(_filters: Filters, _most: int, _among: Collection[int] | None = None) -> Collection[int] | None:
        raise IndexBroken("the words are gone")

    for _ in range(5):
        with pytest.raises(IndexBroken, match="words are gone"):
            house.semantic.query(unit(1), Filters(role="user"), 5, broken)
    assert len(house.semantic.query(unit(1), Filters(role="user"), 5)) == 5


@pytest.mark.parametrize("filters", FILTERS.values(), ids=FILTERS.keys())
def test_the_lexical_index_names_the_messages_that_pass(house: House, filters: Filters) -> None:
    def one_passes(made: Made) -> bool:
        # A filter of kind and one of tool need not be met by the same part.
        plain = [Filters(**{**_fields(filters), "kinds": (), "tools": ()})]
        each = [*plain, Filters(kinds=filters.kinds), Filters(tools=filters.tools)]
        return all(any(passes(row, some) for row in made.rows) for some in each)

    wanted = {number_of(made.entry.document.message_id) for made in ALL if one_passes(made)}
    assert set(house.lexical.allowed_ids(filters, 1000) or ()) == wanted
    some = {number_of(f"msg_{number:03}") for number in range(100)}
    assert set(house.lexical.allowed_ids(filters, 100, some) or ()) == wanted & some
    assert (house.lexical.allowed_ids(filters, max(0, len(wanted) - 1)) is None) == bool(wanted)
    assert house.lexical.allowed_ids(filters, 10, ()) == []


def _fields(filters: Filters) -> dict[str, Any]:
    return {name: getattr(filters, name) for name in filters.__slots__}


def test_the_newest_version_of_a_message_tells_whether_it_passes() -> None:
    index, fresh = Lexical(), Lexical()
    index.replace([one.entry for one in ALL[:10]])
    altered = Entry(ALL[3].entry.document, "assistant", 5, 3, "a title", "prj_9", "/elsewhere")
    fresh.replace([altered])
    both = Overlay(index, fresh, frozenset({"msg_003"}))
    assert number_of("msg_003") not in (both.allowed_ids(Filters(role="user"), 100) or ())
    assert set(both.allowed_ids(Filters(project_id="prj_9"), 100) or ()) == {number_of("msg_003")}
    assert both.allowed_ids(Filters(), 5) is None


def held(cache: VectorCache, *names: str, kinds: tuple[str, ...] = ()) -> list[str]:
    return [cache.record(row) for row in cache.rows([number_of(name) for name in names], kinds).tolist()]


def test_the_vector_cache_knows_what_is_held_of_which_kind() -> None:
    cache = VectorCache(DIMS)
    for record, kinds in {"a#0": ("prompt",), "a#2": ("answer", "reasoning"), "b#0": ()}.items():
        cache.put(record, kinds)
    assert held(cache, "a", "b", "c") == ["a#0", "a#2", "b#0"]
    assert held(cache, "a", "b", kinds=("reasoning", "title")) == ["a#2"]
    cache.add_kind("b#0", "title")
    cache.add_kind("c#0", "title")
    assert held(cache, "a", "b", "c", kinds=("title",)) == ["b#0"]
    assert [cache.has(record) for record in ("a#2", "a#1", "a#9", "c#0")] == [True, False, False, False]
    assert (cache.has("a#2", ("answer",)), cache.has("a#2", ("prompt",))) == (True, False)
    for record in ("a#0", "a#2", "c#5"):
        cache.remove(record)
    assert held(cache, "a", "b") == ["b#0"]
    cache.put("b#0", ("an odd kind",))
    assert (held(cache, "b", kinds=("title",)), held(cache, "b")) == ([], ["b#0"])


@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "learn", "drop"]), st.integers(0, 5), st.integers(0, 3), st.integers(0, 99)),
        max_size=60,
    )
)
def test_the_vector_cache_knows_the_last_that_it_was_told(steps: list[tuple[str, int, int, int]]) -> None:
    cache, known = VectorCache(DIMS), dict[str, int | None]()
    for what, message, place, seed in steps:
        record = f"m{message}#{place}"
        if what == "put":
            cache.put(record, ("prompt",), None if seed % 3 == 0 else unit(seed))
            known[record] = None if seed % 3 == 0 else seed
        elif what == "learn":
            cache.set_vector(record, unit(seed))
            if record in known:
                known[record] = seed
        else:
            cache.remove(record)
            known.pop(record, None)
    assert set(held(cache, *(f"m{n}" for n in range(6)))) == set(known)
    missing = {record for record, seed in known.items() if seed is None}
    assert set(cache.without_vector(1000)) == missing
    assert cache.is_whole == (not missing)
    rows = cache.rows([number_of(f"m{n}") for n in range(6)])
    found = dict(cache.most_similar(rows, unit(1), 1000))
    for record, number in known.items():
        if number is not None:
            assert found[record] == pytest.approx(float(unit(number) @ unit(1)), abs=0.01)


def test_the_vector_cache_grows_and_reuses_freed_rows() -> None:
    cache = VectorCache(DIMS)
    for number in range(3000):
        cache.put(f"m{number}#0", ("prompt",), unit(number))
    for number in range(0, 3000, 2):
        cache.remove(f"m{number}#0")
    for number in range(3000, 4000):
        cache.put(f"m{number}#0", ("prompt",), unit(number))
    left = [number for number in range(4000) if number % 2 or number >= 3000]
    rows = cache.rows(number_of(f"m{number}") for number in range(4000))
    assert (len(rows), int(rows.max()) < 3000) == (2500, True)
    wanted = sorted(left, key=lambda number: -float(unit(number) @ unit(5)))
    assert [record for record, _ in cache.most_similar(rows, unit(5), 3)] == [f"m{number}#0" for number in wanted[:3]]
    assert len(cache.most_similar(rows, unit(5), 5000)) == 2500
