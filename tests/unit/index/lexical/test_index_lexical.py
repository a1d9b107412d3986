"""The lexical index over a real tantivy directory: what is found, in which order, and what damage does."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import regex  # type: ignore[import-untyped]
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daemon.errors import ArchiveLocked, BadRequest, IndexBroken
from daemon.index import Entry, Filters, tokens
from daemon.index.lexical import Lexical, prefilter, scan
from daemon.index.lexical.searcher import Snapshot
from daemon.model import Document, Kind, Section
from tests.support.examples import examples

ANY = Filters()


def entry(
    mid,
    *texts,
    kind=Kind.PROMPT,
    created=0,
    session="ses_1",
    role="user",
    directory="/home/ann/shop",
    project="prj",
    tool="",
    paths=(),
    window="",
    deleted=False,
):
    sections = tuple(
        text if isinstance(text, Section) else Section(f"prt_{mid}_{n}", kind, text, tool)
        for n, text in enumerate(texts)
    )
    document = Document(mid, session, sections, paths)
    return Entry(document, role, created, 0, "a title", project, directory, window, deleted)


@pytest.fixture
def index(tmp_path):
    made = Lexical(tmp_path / "lexical")
    yield made
    made.close()


def ids(matches):
    return [match.message_id for match in matches]


def search(index, query, filters=ANY, limit=10):
    return ids(index.search(query, filters, limit))


@pytest.mark.parametrize("query", ["rateLimit", "rate-limit", "rate_limit", "RATE_LIMIT", "rateLimit()", "rate limit"])
@pytest.mark.parametrize(
    "text", ["see rateLimit(app)", "the rate-limit header", "RATE_LIMIT=5", "a rate limit of five"]
)
def test_every_spelling_of_an_identifier_finds_every_other(index, query, text):
    index.replace([entry("m1", text), entry("m2", "nothing of the kind")])
    assert search(index, query) == ["m1"]


@pytest.mark.parametrize(
    "query", ["rateLimiter", "rate_limits", "fooRateLimit", "rateLimitFoo", "src/apps.py", "KX-7f3b"]
)
def test_an_absent_identifier_finds_nothing_rather_than_another(index, query):
    index.replace([entry("m1", "rateLimit rate_limit src/app.py KX-7f3a limiter")])
    assert search(index, query) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("app.py", ["m1"]),
        ("src/app.py", ["m1"]),
        (r"src\app.py", ["m1"]),
        ("/home/ann/shop/src/app.py", ["m1"]),
        ("app", ["m1", "m2"]),
        ("limiting", ["m3"]),
        ("限制", ["m4"]),
        ("速率限制器", ["m4"]),
        ("限度", []),
        ("率", ["m4"]),
        ("größe", ["m5"]),
        ("GRÖSSE", ["m5"]),
        ("the", ["m3"]),
        ("...", []),
        ("", []),
        ('a" AND (NOT x:*^~', []),
    ],
)
def test_words_paths_and_scripts_are_found(index, query, expected):
    index.replace(
        [
            entry("m1", "edited /home/ann/shop/src/app.py:12 today"),
            entry("m2", "the-app is slow", directory="/x"),
            entry("m3", "we limit the number of calls"),
            entry("m4", "速率限制器的测试"),
            entry("m5", "Die Größe zählt"),
        ]
    )
    found = search(index, query)
    assert found[: len(expected)] == expected if query == "the" else sorted(found) == expected


def test_complete_matches_come_before_partial_ones(index):
    index.replace(
        [
            entry("some", "cache cache cache cache"),
            entry(
                "all",
                "it took a while, but in the end the cache of the whole system became properly invalid again " * 3,
            ),
            entry("phrase", "the invalid cache"),
        ]
    )
    assert search(index, "invalid cache") == ["phrase", "all", "some"]


def test_what_was_said_ranks_above_what_a_tool_printed(index):
    index.replace(
        [
            entry("out", "migration failed: migration", kind=Kind.TOOL_OUTPUT, tool="bash"),
            entry("dump", "migration " + "line of output " * 3000, kind=Kind.TOOL_OUTPUT, tool="bash"),
            entry("said", "should we run that migration tomorrow or rather on monday, what do you think?"),
        ]
    )
    assert search(index, "migration") == ["said", "out", "dump"]


def test_tool_output_cannot_crowd_out_a_prompt(index):
    noise = "quota reached, quota " + "and the usual lines of a long build log " * 8
    index.replace([entry(f"out{n}", noise, kind=Kind.TOOL_OUTPUT) for n in range(60)])
    index.replace([entry("said", "is there any limit to how much disk a user may take, some kind of quota perhaps?")])
    assert search(index, "quota", limit=3)[0] == "said"


def test_what_a_call_was_given_and_what_came_of_it_are_a_hit_each(index):
    both = (Section("prt_1", Kind.TOOL_INPUT, "grep needle"), Section("prt_1", Kind.TOOL_OUTPUT, "a needle"))
    index.replace([entry("m1", *both), entry("m2", "needle")])
    assert sorted(search(index, "needle")) == ["m1", "m1", "m2"]
    assert sorted(ids(index.literal("needle", ANY, 10))) == ["m1", "m1", "m2"]
    assert index.count() == 3


def test_a_match_tells_part_kind_tool_text_and_the_words_it_holds(index):
    index.replace([entry("m1", "Running pytest\nfailed", kind=Kind.TOOL_OUTPUT, tool="bash")])
    (match,) = index.search("why did pytest run the zebra", ANY, 5)
    assert (match.part_id, match.kind, match.tool, match.text) == (
        "prt_m1_0",
        "tool_output",
        "bash",
        "Running pytest\nfailed",
    )
    assert match.terms == ("pytest", "run")
    assert match.score > 0


FILTERED = {
    "a": entry("a", "needle", created=10, directory="/p/one", paths=("/p/one/src/a.py", "/etc/hosts"), window="needle"),
    "b": entry(
        "b",
        "needle",
        created=20,
        session="ses_2",
        role="assistant",
        kind=Kind.ANSWER,
        directory="/p/one/sub",
        window="needle",
    ),
    "c": entry(
        "c",
        "needle",
        created=30,
        kind=Kind.TOOL_OUTPUT,
        tool="bash",
        directory="/p/onetwo",
        project="other",
        window="needle",
        deleted=True,
    ),
}

EVERY_WAY = {
    "search": lambda index, filters: index.search("needle", filters, 10),
    "windows": lambda index, filters: index.windows("needle", filters, 10),
    "fuzzy": lambda index, filters: index.fuzzy("neddle", filters, 10),
    "literal": lambda index, filters: index.literal("eedl", filters, 10),
    "regex": lambda index, filters: index.regex("n.edle", filters, 10, 5.0)[0],
    "nearest before": lambda index, filters: index.by_time(100, filters, 10, before=True),
    "nearest from": lambda index, filters: index.by_time(0, filters, 10, before=False),
}


@pytest.fixture(scope="module")
def filtered(tmp_path_factory):
    made = Lexical(tmp_path_factory.mktemp("filtered") / "lexical")
    made.replace(FILTERED.values())
    yield made
    made.close()


BY_FILTERS = [
    (ANY, "abc"),
    (Filters(session_id="ses_2"), "b"),
    (Filters(project_id="other"), "c"),
    (Filters(directory="/p/one"), "ab"),
    (Filters(directory="/p/one/"), "ab"),
    (Filters(directory="/p"), "abc"),
    (Filters(directory="/"), "abc"),
    (Filters(directory="/p/one/sub/x"), ""),
    (Filters(role="user"), "ac"),
    (Filters(kinds=("answer", "tool_output")), "bc"),
    (Filters(kinds=("prompt", "answer", "title")), "ab"),
    (Filters(kinds=("reasoning",)), ""),
    (Filters(tools=("bash",)), "c"),
    (Filters(after=20), "bc"),
    (Filters(before=20), "a"),
    (Filters(after=10, before=30, role="assistant"), "b"),
    (Filters(sessions=frozenset()), ""),
    (Filters(sessions=frozenset({"ses_2", "ses_7"})), "b"),
    (Filters(sessions=frozenset({"ses_1", *(f"ses_none{n}" for n in range(5000))})), "ac"),
    (Filters(besides=frozenset({"ses_2", "ses_none"})), "ac"),
    (Filters(besides=frozenset({"ses_1"}), kinds=("answer",)), "b"),
    (Filters(path="/p/one/src/a.py"), "a"),
    (Filters(path="/p/one/src/"), "a"),
    (Filters(path="/"), "a"),
    (Filters(path="/etc/host"), ""),
    (Filters(deleted=True), "c"),
    (Filters(deleted=False), "ab"),
    (Filters(role="\ud800"), ""),
]


@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize(("filters", "expected"), BY_FILTERS)
def test_filters_hold_in_every_search(filtered, way, filters, expected):
    assert sorted(ids(EVERY_WAY[way](filtered, filters))) == list(expected)


@pytest.mark.parametrize(
    ("needle", "expected"),
    [
        ("if (a[i] != b)", ["new"]),
        ("IF (A[I]", ["new"]),
        ("a", ["new", "old", "tiny"]),
        ("b)", ["new"]),
        ("x\n\ty", ["old"]),
        ("y\0", []),
        ("straSSE", ["old"]),
        ("東", ["old"]),
        ("", []),
        ("(.*)", []),
        ("ab", []),
        ("if (a[i] != b) {", []),
    ],
)
def test_a_literal_is_found_as_it_stands_newest_first(index, needle, expected):
    index.replace(
        [
            entry("tiny", "a", created=1),
            entry("new", "if (a[i] != b)\n", created=9),
            entry("old", "a x\n\ty Straße 東", created=5),
        ]
    )
    assert ids(index.literal(needle, ANY, 10)) == expected


def test_literal_pages_on_until_it_has_enough(index):
    # every document has the needle's trigrams, only the oldest has the needle
    index.replace(
        [entry(f"m{n}", "abc bcd cde", created=n) for n in range(1, 150)] + [entry("m0", "xabcdex", created=0)]
    )
    assert ids(index.literal("abcde", ANY, 5)) == ["m0"]


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(max_size=12), max_size=4), st.text(min_size=1, max_size=4))
def test_literal_agrees_with_python(index, texts, needle):
    index.remove([f"m{n}" for n in range(4)])
    index.replace([entry(f"m{n}", text, created=n) for n, text in enumerate(texts)])
    stored = [text.encode("utf-8", "replace").decode() for text in texts]
    expected = [f"m{n}" for n, text in enumerate(stored) if tokens.caseless(needle) in tokens.caseless(text)]
    assert ids(index.literal(needle, ANY, 10)) == expected[::-1]


PIECES = [
    *(
        "error",
        "Error",
        "ERROR",
        "file",
        "fil",
        "le",
        "kobe",
        "test's",
        "TEST'S",
        "test",
        "ed",
        "noted",
        "in",
        "aib",
        "aİb",
    ),
    *("aıb", "Straße", "STRASSE", "strasse", "ﬁle", "Kobe", "foo_bar", "fooBar", "foo-bar", "src/app.py", "2026-11-21"),
    *(
        "don't",
        "e\u0301",
        "\u0301",
        "限制",
        "限",
        "ｆｉｌｅ",
        "x" * 70,
        "(",
        ".",
        "/",
        "-",
        "_",
        "'s",
        "’s",
        "1",
        "12a",
    ),
    *(" ", " ", " ", "\n", "\t", "\u00a0", "\u3000", ", "),
]
WRITTEN = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


WAYS = {
    "each word in its place": {"_WORTH_A_PLACE": 0, "_SMALL": 0.0, "_LEADS": 100},
    "some words in their places": {"_WORTH_A_PLACE": 0, "_SMALL": 0.0, "_LEADS": 0, "_MOST_PLACES": 1},
    "last words anywhere": {"_WORTH_A_PLACE": 100, "_SMALL": 2.0, "_LEADS": 0, "_ALONE": 0},
    "no last words": {"_MOST_BEGINNINGS": 0, "_SMALL": 0.0, "_LEADS": -1, "_LEAST_GRAMS": 1, "_MOST_SESSIONS": 0},
}
BY_ENDINGS = {
    "first words by their ends, with the last": {"_SMALL": 0.0, "_LEADS": 0, "_RARE": 0},
    "first words by their ends": {"_SMALL": 0.0, "_LEADS": 0, "_RARE": 1_000_000},
    "only some first words": {"_SMALL": 0.0, "_LEADS": 0, "_MOST_ENDINGS": 1, "_MOST_PAIRS": 1},
}


@pytest.fixture(params=[*WAYS, *BY_ENDINGS])
def crowded(index, monkeypatch, request):
    """An index that asks for words in their places, as it does once reading every text would take too long."""
    for name, value in ({"_FEW": 0, "_GRAMS_WITHOUT_LEAD": 2} | (WAYS | BY_ENDINGS)[request.param]).items():
        monkeypatch.setattr(prefilter, name, value)
    monkeypatch.setattr(scan, "_PAGE", 1)
    if request.param in BY_ENDINGS:
        index.spellings("", 1)  # reads them, and keeps up with what is written
    return index


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WRITTEN, min_size=1, max_size=6), st.data())
def test_a_literal_finds_all_texts_that_have_it_whatever_their_words(crowded, texts, data):
    crowded.remove([f"m{n}" for n in range(6)])
    crowded.replace([entry(f"m{n}", text, created=n) for n, text in enumerate(texts)])
    for _ in range(12):
        source = data.draw(st.sampled_from(texts)) or " "
        start = data.draw(st.integers(0, len(source) - 1))
        needle = source[start : start + data.draw(st.integers(1, 30))]
        needle = data.draw(st.sampled_from([needle, needle.upper(), needle.lower()]))
        expected = [f"m{n}" for n, text in enumerate(texts) if tokens.caseless(needle) in tokens.caseless(text)]
        assert ids(crowded.literal(needle, ANY, 10)) == expected[::-1]


PARTS = st.sampled_from(
    [r"\s", r"\s+", r"\s*", r"\w+", "[a-z]+", ".", r"\b", "(?:error|test)", r"(in\s+)?", "^", r"\S*"]
)
WORDS = st.sampled_from([piece for piece in PIECES if piece not in "(./"])
CLASSES = st.sampled_from(
    ["[a-z]", "[a-t]{2}", "[A-Z]{3,}", r"\d", r"\d{2,}", "_", "-", "e", "[^e]", r"\b", r"\w", "[e-s]?"]
)


def test_the_newest_matches_survive_when_the_prefilter_times_out(index, monkeypatch):
    now = [0.0]

    def slow(_reading, _pattern, _filters, end):
        now[0] = end

    monkeypatch.setattr(scan, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(prefilter, "classed", slow)
    index.replace([entry(f"m{n}", f"room {n}00", created=n) for n in range(1, 4)])
    found, is_all = index.regex(r"\d\d\d", ANY, 10, 0.5)
    assert (ids(found), is_all) == (["m3", "m2", "m1"], False)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(WRITTEN, min_size=1, max_size=6),
    st.lists(
        st.one_of(
            st.lists(st.one_of(WORDS, PARTS), min_size=1, max_size=5).map("".join),
            st.lists(CLASSES, min_size=3, max_size=6).map("".join),
        ),
        min_size=16,
        max_size=16,
    ),
)
def test_an_expression_matches_all_texts_whatever_their_words(crowded, texts, patterns):
    crowded.remove([f"m{n}" for n in range(6)])
    crowded.replace([entry(f"m{n}", text, created=n) for n, text in enumerate(texts)])
    for pattern in patterns:
        expected = [f"m{n}" for n, text in enumerate(texts) if regex.search(pattern, text, regex.IGNORECASE)]
        found, is_all = crowded.regex(pattern, ANY, 10, 20.0)
        assert (ids(found), is_all) == (expected[::-1], True), pattern


@pytest.mark.parametrize(
    ("needle", "expected"),
    [
        ("error in the file", ["whole", "longer"]),
        ("rror in the fil", ["whole", "longer"]),
        (" in the ", ["whole", "longer", "accent", "apart"]),
        ("error in  the file", []),
        ("in the straßen", ["accent"]),
        ("in the strasse", ["accent"]),
        ("see in the cafe", []),
        ("see in the café", ["accent"]),
    ],
)
def test_words_of_a_literal_are_asked_for_in_their_order(crowded, needle, expected):
    crowded.replace(
        [
            entry("apart", "the file has an error in the other file, in the end", created=1),
            entry("accent", "see in the cafe\u0301, in the STRASSEN", created=2),
            entry("longer", "an xError in the files", kind=Kind.TOOL_OUTPUT, created=3),
            entry("whole", "error in the file", created=4),
        ]
    )
    assert ids(crowded.literal(needle, ANY, 10)) == expected


def test_words_that_end_like_the_first_one_are_read_and_kept_up_with(index, monkeypatch):
    monkeypatch.setattr(prefilter, "_FEW", 0)
    asked = []
    phrase = Snapshot.phrase
    monkeypatch.setattr(
        Snapshot, "phrase", lambda self, field, words: asked.append(words) or phrase(self, field, words)
    )
    index.replace([entry("m1", "an error file", created=1), entry("m2", "no TypeError; the file", created=2)])
    assert ids(index.literal("error file", ANY, 5)) == ["m1"]
    assert not any("error" in words for words in asked)
    index.spellings("", 1)
    index.replace([entry("m3", "one MyError: file", created=3), entry("m4", "My" + "x" * 70 + "error file", created=4)])
    asked.clear()
    assert ids(index.literal("error file", ANY, 5)) == ["m4", "m1"]
    assert ids(index.literal("error: file", ANY, 5)) == ["m3"]
    assert {words[0] for words in asked} >= {"error", "typeerror", "myerror"}


@pytest.mark.parametrize("needle", ["the needle her", "see the needle here", "the needle", " needle ", "ere now the"])
def test_filters_hold_where_words_are_asked_for_in_their_places(crowded, needle):
    written = "we see the needle here now, the needle there now then"
    texts = {name: replace(one.document.sections[0], text=written) for name, one in FILTERED.items()}
    crowded.replace(
        replace(one, document=replace(one.document, sections=(texts[name],))) for name, one in FILTERED.items()
    )
    for filters, expected in BY_FILTERS:
        assert ids(crowded.literal(needle, filters, 10)) == [*expected][::-1], filters


_TEXT = st.lists(st.sampled_from(("quay", "crane", "rateLimit", "moved", "rate limit", "的数据")), min_size=1).map(
    " ".join
)


@given(st.lists(st.tuples(_TEXT, st.sampled_from(Kind)), min_size=1, max_size=12), _TEXT, st.data())
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_messages_score_the_same_whether_found_or_asked_for(texts, query, data):
    """The score that a search gives a message is the one that it has when it is asked for by id."""
    index = Lexical()
    entries = [
        entry(f"m{number}", Section(f"prt_{number}", kind, text), window=" ".join(text for text, _ in texts[:number]))
        for number, (text, kind) in enumerate(texts)
    ]
    index.replace(entries)
    asked = data.draw(st.sets(st.sampled_from([one.document.message_id for one in entries])))
    for filters in (ANY, Filters(kinds=("prompt", "tool_output"))):
        found = {match.message_id: match.score for match in index.search(query, filters, 100)}
        windows = {match.message_id: match.score for match in index.windows(query, filters, 100)}
        parts_of, windows_of = index.scores(query, filters, asked, asked)
        expected = [{i: score for i, score in some.items() if i in asked} for some in (found, windows)]
        scored = [{match.message_id: match.score for match in some} for some in (parts_of, windows_of)]
        assert scored[0] == pytest.approx(expected[0])
        assert scored[1] == pytest.approx(expected[1])
    index.close()


def test_a_window_tells_how_much_its_own_message_says(index):
    said = (Section("p0", Kind.ANSWER, "the quay"), Section("p1", Kind.TOOL_OUTPUT, "quay " * 50))
    index.replace([entry("m1", *said, window="before\nthe quay")])
    assert [match.length for match in index.windows("quay", ANY, 5)] == [len("the quay")]
    assert index.scores("", ANY, ["m1"], ["m1"]) == ([], [])
    assert index.scores("quay", ANY, [], []) == ([], [])


def test_a_window_is_found_by_its_words_and_is_no_part(index):
    index.replace(
        [
            entry("m1", "hello", window="hello cache", created=1),
            entry("m2", "yes", kind=Kind.ANSWER, window="hello cache eviction yes", created=2),
            entry("m3", window="eviction"),
        ]
    )
    (best, other) = index.windows("the evictions of the cache", ANY, 5)
    assert (best.message_id, best.terms, best.part_id, best.kind, best.text) == (
        "m2",
        ("evictions", "cache"),
        "",
        "",
        "",
    )
    assert (other.message_id, other.terms) == ("m1", ("cache",))
    assert index.count() == 2
    assert (
        search(index, "cache") == ids(index.literal("cache", ANY, 5)) == ids(index.regex("cache", ANY, 5, 5)[0]) == []
    )
    assert ids(index.by_time(9, ANY, 9, before=True)) == ["m2", "m1"]
    assert index.spellings("cachee", 5) == []
    index.remove(["m2"])
    assert ids(index.windows("eviction", ANY, 5)) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("prefiltr", {"m1": [("prefiltr", "prefilter")], "m2": [("prefiltr", "prefilter")]}),
        ("ECONNREFUSD", {"m2": [("ECONNREFUSD", "ECONNREFUSED")]}),
        ("postgers", {"m1": [("postgers", "Postgres")]}),
        ("runPrefiltr", {"m1": [("runPrefiltr", "prefilter")], "m2": [("runPrefiltr", "prefilter")]}),
        ("rateLimitr", {"m3": [("rateLimitr", "ratelimit")]}),
        ("prefilter", {"m1": [], "m2": []}),
        ("cace", {"m3": [("cace", "cache")]}),
        ("cach", {"m3": []}),  # of one stem: held as asked
        ("cahces", {}),  # two of six letters
        ("cac", {}),  # too short
        ("7f3b9c", {}),  # a hash is itself or nothing
        ("sha257", {}),
        ("1235", {}),
        ("postgrrrs", {"m1": [("postgrrrs", "Postgres")]}),
        ("postxxxs", {}),
        ("", {}),
    ],
)
def test_near_spellings_are_found_and_named(index, query, expected):
    index.replace(
        [
            entry("m1", "the prefilter of Postgres"),
            entry("m2", "prefilterRows() raised ECONNREFUSED 1234", kind=Kind.TOOL_OUTPUT),
            entry("m3", "cache rate_limit 7f3a9c sha256", kind=Kind.REASONING),
        ]
    )
    assert {match.message_id: list(match.spelling_pairs) for match in index.fuzzy(query, ANY, 10)} == expected


def test_what_has_the_word_as_asked_stands_above_what_has_a_near_one(index):
    near = [entry(f"near{n}", "filter filter filter") for n in range(5)]
    exact = entry("exact", "a long dump that has it once: filtre " + "and more lines " * 200, kind=Kind.TOOL_OUTPUT)
    index.replace([*near, exact])
    found = index.fuzzy("filtre", ANY, 10)
    assert (found[0].message_id, found[0].terms, found[0].spelling_pairs) == ("exact", ("filtre",), ())
    assert [(match.terms, match.spelling_pairs) for match in found[1:]] == [((), (("filtre", "filter"),))] * 5


def test_the_nearer_spelling_comes_first_and_more_words_before_fewer(index):
    index.replace(
        [
            entry("two", "profiler"),
            entry("one", "prefilter"),
            entry("both", "a prefilter for these rows, which took a long while to find"),
            entry("rows", "rows"),
        ]
    )
    assert ids(index.fuzzy("prefiltr", ANY, 5))[-1] == "two"
    assert ids(index.fuzzy("prefiltr rows", ANY, 5))[0] == "both"


def test_words_written_after_the_first_question_are_near_ones_too(index):
    index.replace([entry("m1", "prefilter")])
    assert index.spellings("prefiltr", 5) == [("prefilter", 1)]
    index.replace([entry("m2", "prefilters"), entry("m3", "prefilters")])
    assert index.spellings("prefiltr", 5) == [("prefilter", 1), ("prefilters", 2)]
    index.remove(["m1"])
    assert ids(index.fuzzy("prefiltr", ANY, 5)) in (["m2", "m3"], ["m3", "m2"])


def test_spellings_come_nearest_first_then_most_frequent(index):
    index.replace([entry(f"m{n}", "parses") for n in range(3)] + [entry("m9", "parser parsers parsed")])
    assert index.spellings("parse", 10) == [("parses", 3), ("parsed", 1), ("parser", 1)]
    assert index.spellings("parse", 1) == [("parses", 3)]
    assert index.spellings("par", 5) == index.spellings("sha256", 5) == index.spellings("", 5) == []


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"post\w+", [("m1", ("Postgres",))]),
        (r"error \d+: (refused|reset)", [("m3", ("Error 104: reset",)), ("m2", ("error 111: refused",))]),
        (r"^line two$", []),
        (r"(?m)^line two$", [("m4", ("line two",))]),
        (r"[a-f0-9]{8}", [("m4", ("deadbeef",))]),
        (r"(?:foo){0}deadbeef", [("m4", ("deadbeef",))]),
        (r"nowhere", []),
        (r"東.", [("m1", ("東京",))]),
        (r"x*", [("m4", ()), ("m3", ()), ("m2", ()), ("m1", ())]),
    ],
)
def test_a_regular_expression_finds_what_it_matches_newest_first(index, pattern, expected):
    index.replace(
        [
            entry("m1", "on Postgres in 東京", created=1),
            entry("m2", "error 111: refused", created=2),
            entry("m3", "Error 104: reset", created=3),
            entry("m4", "line one\nline two\ndeadbeef", created=4),
        ]
    )
    found, complete = index.regex(pattern, ANY, 10, 10.0)
    assert ([(match.message_id, match.terms) for match in found], complete) == (expected, True)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("aib", ["dotted"]), (r"aib\s+noted", ["dotted"]), ("see aIb", ["dotless"]), (r"[a-z]ib\s+x", [])],
)
def test_an_expression_takes_both_other_letters_for_i(crowded, pattern, expected):
    crowded.replace([entry("dotted", "an a\u0130b noted"), entry("dotless", "see a\u0131b x"), entry("none", "ab")])
    assert ids(crowded.regex(pattern, ANY, 10, 5.0)[0]) == expected


def test_a_hostile_expression_stops_in_time_and_says_so(index):
    index.replace([entry("old", "aab", created=1), entry("trap", "a" * 4000 + "b", created=2)])
    begun = time.monotonic()
    found, complete = index.regex("(a+)+$", ANY, 10, 0.3)
    assert (found, complete) == ([], False)
    assert time.monotonic() - begun < 30
    assert ids(index.regex("a+b", ANY, 10, 5.0)[0]) == ["trap", "old"]


@pytest.mark.parametrize(
    "pattern", ["(", "[z-a]", "*a", "", "a" * 1001, "a{1000000000}", "((a{500}){500}){500}", "(" * 900]
)
def test_what_is_no_expression_or_too_large_is_a_bad_request(index, pattern):
    with pytest.raises(BadRequest, match="pattern"):
        index.regex(pattern, ANY, 10, 1.0)


@pytest.mark.parametrize(
    ("moment", "before", "expected"),
    [
        (30, True, ["b", "a2"]),
        (31, True, ["c", "b"]),
        (20, False, ["b", "c"]),
        (0, True, []),
        (10**9, False, ["far"]),
        (10**13, True, ["far", "c"]),
    ],
)
def test_what_stands_next_to_a_moment_is_found_in_its_order(index, moment, before, expected):
    index.replace(
        [
            entry("a1", "x", created=10),
            entry("a2", "x", created=11),
            entry("b", "x", created=20),
            entry("c", "x", created=30),
            entry("far", "x", created=10**12),
        ]
    )
    assert ids(index.by_time(moment, ANY, 2, before=before)) == expected


def test_common_words_do_not_hide_the_one_text_that_quotes_them(index):
    crowd = [entry(f"m{n}", "cold was water the in pipe " * (1 + n % 5)) for n in range(300)]
    index.replace([*crowd, entry("quote", "cold water in the pipe")])
    assert search(index, "cold water in the pipe", limit=3)[0] == "quote"


def test_replacing_a_message_leaves_nothing_of_its_old_text(index):
    index.replace([entry("m1", "old words", "more"), entry("m2", "kept")])
    index.replace([entry("m1", "fresh")])
    assert (search(index, "old"), search(index, "fresh"), search(index, "kept")) == ([], ["m1"], ["m2"])
    assert index.count() == 2


def test_a_message_given_twice_in_one_call_counts_once(index):
    index.replace([entry("m1", "first"), entry("m1", "second")])
    assert (search(index, "first"), search(index, "second"), index.count()) == ([], ["m1"], 1)


def test_removed_messages_are_gone_after_reopening(tmp_path):
    index = Lexical(tmp_path / "lexical")
    index.replace([entry("m1", "needle"), entry("m2", "needle")])
    index.remove(["m1", "unknown"])
    index.close()
    index.close()
    again = Lexical(tmp_path / "lexical")
    assert search(again, "needle") == ["m2"]
    again.close()


def test_a_failing_batch_leaves_nothing_behind(index):
    def broken():
        yield entry("m1", "half")
        raise RuntimeError("source went away")

    with pytest.raises((RuntimeError, IndexBroken)):
        index.replace(broken())
    index.replace([entry("m2", "whole")])
    assert (search(index, "half"), search(index, "whole")) == ([], ["m2"])


def test_searching_goes_on_while_another_thread_writes(index):
    index.replace([entry("m", "constant needle")])
    failures: list[int] = []

    def read():
        failures.extend(n for n in range(60) if "m" not in search(index, "constant"))

    reader = threading.Thread(target=read)
    reader.start()
    for n in range(15):
        index.replace([entry(f"n{n}", "other")])
    reader.join()
    assert failures == []


def test_a_second_process_is_told_that_the_index_is_taken(index, tmp_path):
    code = f"from pathlib import Path; from daemon.index.lexical import Lexical; Lexical(Path({str(tmp_path / 'lexical')!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ArchiveLocked" in done.stderr
    with pytest.raises(ArchiveLocked):
        Lexical(tmp_path / "lexical")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "lexical"
    made = Lexical(path)
    for batch in range(3):
        made.replace([entry(f"m{batch}_{n}", f"needle word{n} batch{batch} and some more text") for n in range(40)])
    made.remove(["m0_1"])
    made.close()
    return path


def files(path):
    return sorted(p.name for p in path.iterdir() if not p.name.startswith("."))


def broken_or_intact(path):
    """What opening says; when it opens, everything must be there."""
    try:
        index = Lexical(path)
    except IndexBroken as error:
        return "broken" if str(path) in str(error) else f"unnamed: {error}"
    try:
        assert index.count() == 119
        assert len(index.search("needle", ANY, 200)) == 119
        assert len(index.literal("ome mor", ANY, 200)) == 119
    finally:
        index.close()
    return "intact"


@pytest.mark.parametrize("harm", ["delete", "truncate", "empty"])
def test_a_file_deleted_or_cut_is_found_on_opening(whole, tmp_path, harm):
    verdicts = {}
    for name in files(whole):
        path = tmp_path / name.replace(".", "_")
        shutil.copytree(whole, path)
        victim = path / name
        if harm == "delete":
            victim.unlink()
        else:
            os.truncate(victim, victim.stat().st_size // 2 if harm == "truncate" else 0)
        verdicts[name] = broken_or_intact(path)
    assert set(verdicts.values()) == {"broken"}, verdicts


def test_a_flipped_byte_anywhere_is_found_or_harmless(whole, tmp_path):
    chance = random.Random(7)
    verdicts: list[Any] = []
    for name in files(whole):
        for _ in range(4):
            path = tmp_path / f"{len(verdicts)}"
            shutil.copytree(whole, path)
            data = bytearray((path / name).read_bytes())
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            (path / name).write_bytes(data)
            verdicts.append((name, broken_or_intact(path)))
            shutil.rmtree(path)
    found = [verdict for name, verdict in verdicts if not name.endswith(".json")]
    assert {verdict for _, verdict in verdicts} <= {"broken", "intact"}, verdicts
    assert found.count("broken") >= len(found) - 2, verdicts  # a flip in a footer's version text harms nothing


@pytest.mark.parametrize("key", ["max_doc", "num_deleted_docs"])
def test_a_wrong_number_in_the_list_of_segments_is_found_or_harmless(whole, tmp_path, key):
    path = tmp_path / "lexical"
    shutil.copytree(whole, path)
    meta = (path / "meta.json").read_text()
    start = meta.index(f'"{key}":') + len(key) + 4
    (path / "meta.json").write_text(meta[:start] + "3" + meta[start + 1 :].lstrip("0123456789"))
    assert broken_or_intact(path) == ("broken" if key == "max_doc" else "intact")


def test_an_index_of_another_version_is_refused(whole, tmp_path):
    path = tmp_path / "lexical"
    shutil.copytree(whole, path)
    (path / "version").write_text("0 0.20.0 abc\n")
    with pytest.raises(IndexBroken, match="another version"):
        Lexical(path)


def test_a_directory_of_something_else_is_refused(tmp_path):
    (tmp_path / "lexical").mkdir()
    (tmp_path / "lexical" / "notes.txt").write_text("mine")
    with pytest.raises(IndexBroken):
        Lexical(tmp_path / "lexical")


WRITER = """
    import sys
    from pathlib import Path
    from daemon.index import Entry
    from daemon.index.lexical import Lexical
    from daemon.model import Document, Kind, Section

    index = Lexical(Path(sys.argv[1]))
    for n in range(10_000):
        batch = [
            Entry(Document(f"m{n}_{k}", "s", (Section(f"p{n}_{k}", Kind.PROMPT, f"needle n{n}"),)), "user", n, 0, "", "", "/")
            for k in range(5)
        ]
        index.replace(batch)
        print(n, flush=True)
"""


def test_after_a_kill_during_writing_every_acknowledged_batch_is_there(tmp_path):
    path = tmp_path / "lexical"
    for trial, wanted in enumerate((3, 11, 6)):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(WRITER), str(path)], stdout=subprocess.PIPE, text=True
        )
        acknowledged = -1
        for line in process.stdout:
            acknowledged = int(line)
            if acknowledged >= wanted + trial:
                process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        index = Lexical(path)
        for n in range(acknowledged + 1):
            assert len(index.search(f"n{n}", ANY, 10)) == 5
        assert index.count() % 5 == 0, "a batch is whole or absent"
        index.close()


def test_frequencies_count_windows_and_say_how_many_hold_each_word(index: Lexical) -> None:
    said = {"m1": "the crane moves slowly", "m2": "a crane and a rate limit", "m3": "nothing of the kind"}
    index.replace([entry(name, text, window=text) for name, text in said.items()])
    assert index.frequencies("which crane has a rateLimit, or cranes?") == (
        3,
        {"crane": 2, "rateLimit": 0, "cranes": 2},
    )


def test_a_window_with_every_word_does_not_beat_one_with_the_rare_words(index: Lexical) -> None:
    common = [entry(f"c{n}", "meeting lunch", window="meeting lunch today") for n in range(30)]
    rare = entry("r", "xylophone xylophone lunch", window="xylophone xylophone lunch")
    both = entry("b", "filler", window="meeting lunch xylophone " + "filler " * 60)
    index.replace([*common, rare, both])
    assert ids(index.windows("xylophone lunch meeting", ANY, 5))[0] == "r"
