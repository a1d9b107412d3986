"""Names are answered by themselves: what is another name, or a part of one, says so, in every mode."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from daemon.index import Match
from daemon.model import Json
from daemon.recall.candidates import fuzzy
from daemon.recall.query import Recall, names, parse
from daemon.recall.query.names import Standing
from tests.support.stores.recorded_sessions import Recorded, call, recorded

BY_WORDS = ("hybrid", "smart", "fuzzy")
SUBSTRINGS = (*BY_WORDS, "literal")

STANDS = {
    ("getUserById", "x.getUserById(1)"): Standing.WHOLE,
    ("getUserById", "getUserById_v2"): Standing.INSIDE,
    ("compute_shard", "compute_shard_key hashes"): Standing.INSIDE,
    ("compute_shard", "_compute_shard()"): Standing.INSIDE,
    ("x86", "x86_64"): Standing.INSIDE,
    ("E4711", "an E4711-like error"): Standing.INSIDE,
    ("E4711", "Ｅ４７１１ again"): Standing.WHOLE,
    ("1.18", "version 1.18.33"): Standing.INSIDE,
    ("1.18", "we use 1.18."): Standing.WHOLE,
    ("C++", "I like C++."): Standing.WHOLE,
    ("C++", "wombat --c"): Standing.NOWHERE,
    ("c#", "in C#, yes"): Standing.WHOLE,
    ("c#", "rm -c"): Standing.NOWHERE,
    ("__init__", "def __init__(self)"): Standing.WHOLE,
    ("__init__", "init"): Standing.NOWHERE,
    ("--e", "run --e now"): Standing.WHOLE,
    ("--e", "e"): Standing.NOWHERE,
    ("--max-shard", "--max-shard-count"): Standing.INSIDE,
    ("--max-shard", "the max shard"): Standing.INSIDE,
    ("a.b", "sed s/a/b/"): Standing.INSIDE,
    ("a.b", "see a.b now"): Standing.WHOLE,
    ("/etc", "x /etc/hosts"): Standing.WHOLE,
    ("/etc", "/usr/etc"): Standing.INSIDE,
    ("src/app.py", r"C:\\src\\app.py"): Standing.WHOLE,
    ("rateLimit", "the **rate** limit"): Standing.WHOLE,
    ("rateLimit", "rate_limiter"): Standing.INSIDE,
    ("debits 100 != credits 98", "debits 100 != credits 99"): Standing.NOWHERE,
    ("debits 100 != credits 99", "debits 100  !=\ncredits 99"): Standing.WHOLE,
    ("지수 백오프", "로직에 지수 백오프를 추가"): Standing.WHOLE,
    ("config.yaml", "请读取config.yaml文件"): Standing.WHOLE,
    ("读取config.yaml", "请读取config.yaml。"): Standing.WHOLE,
    ("config.yaml", "读取myconfig.yaml"): Standing.INSIDE,
    ("->", "a->b"): Standing.WHOLE,
}


@pytest.mark.parametrize(("case", "expected"), STANDS.items(), ids=str)
def test_marks_and_what_stands_beside_it_tell_a_name_from_another(case: tuple[str, str], expected: Standing):
    assert names.stands(*case) is expected


@given(st.text(min_size=1, max_size=30), st.text(max_size=60))
@example("\u0130.x", "i\u0307.x")
def test_any_name_can_be_looked_for_in_any_text(name: str, text: str):
    assert names.stands(name, text) in Standing
    assert isinstance(names.around(name, text), str)
    assert names.written(name, text)


@given(
    st.from_regex(r"[a-z]{2,6}([A-Z][a-z]{2,5}|_[a-z]{2,5}|[0-9]{1,3}){1,2}", fullmatch=True),
    st.from_regex(r"[a-z]{1,3}|_[a-z0-9]{1,3}|[0-9]", fullmatch=True),
    st.sampled_from(["{}", "({})", "see {}.", "a={};", "`{}`"]),
)
def test_a_name_is_whole_by_itself_and_never_in_one_with_more_letters(name: str, more: str, frame: str):
    assert names.stands(name, frame.format(name)) is Standing.WHOLE
    assert names.stands(name, frame.format(name + more)) is Standing.INSIDE
    assert names.around(name, frame.format(name + more)) == name + more


def test_another_form_of_a_word_is_told_as_the_text_has_it():
    assert names.written("PASETOS", "we use PASETO tokens") == "PASETO"
    assert names.written("went", "they have Gone") == "Gone"
    assert names.written("tokens", "we use PASETO tokens") == "tokens"
    assert names.written("E4711", "nothing like it") == "E4711"


def test_a_marked_name_in_a_million_characters_is_found_quickly():
    text = "a c b -- x " * 100_000
    began = time.process_time()
    assert {names.stands(name, text) for name in ("C++", "--e4", "a.x", "/etc")} == {Standing.NOWHERE}
    assert time.process_time() - began < 30


# -- questions -------------------------------------------------------------------------------------------------------

PARSED = {
    "C++ templates": (("C++",), ("templates",)),
    "is c# like F#?": (("c#", "F#"), ("like",)),
    ".": ((".",), ()),
    " ( ": (("(",), ()),
    '"': (('"',), ()),
    "a word": ((), ("word",)),
}


@pytest.mark.parametrize(("query", "expected"), PARSED.items())
def test_marks_are_asked_for_as_they_are(query: str, expected: tuple[tuple[str, ...], tuple[str, ...]]):
    parsed = parse.parse(query)
    assert (parsed.named, parsed.words) == expected


def test_what_is_asked_for_is_told_as_it_was_looked_up():
    assert parse.searched_terms(parse.parse('"a phrase" max-shard Don\'t rateLimit Why')) == (
        "a phrase",
        "rateLimit",
        "max-shard",
        "Don't",
    )


# -- a real archive --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with recorded(tmp_path_factory.mktemp("lab")) as made:
        made.session("one", "/work/one")
        made.say("one", "user", "Why does computeShardKey return None for getUserById_v2? Try base64encoder, wombat.")
        made.say("one", "assistant", "compute_shard_key hashes, see --max-shard-count, x86_64 and E4711 in (keys).")
        made.say("one", "assistant", "We use PASETO tokens behind the ingress-nginx-controller; max is 3, nginx is up.")
        made.session("two", "/work/two")
        made.say(
            "two", "user", "my key AKIAIOSFODNN7EXAMPLE is out; the ingress is down", call("bash", command="rm -f")
        )
        made.say("two", "assistant", call("bash", command="wombat --c; sed s/a/b/", output='ledger.py", line 217'))
        made.say("two", "assistant", call("bash", command="run", output="debits 100 != credits 99"))
        made.say("two", "assistant", "재시도 로직에 지수 백오프를 추가했습니다.")
        made.say("two", "assistant", "请读取config.yaml文件")
        made.index()
        yield made


def _ask(house: Recorded, query: str, match: str, **more) -> Json:
    return house.recall().answer(Recall(query=query, match=match, **more))


def _said(answer: Json) -> str:
    return "\n".join(answer["warnings"])


ABSENT = [
    *("getUserById", "compute_shard", "computeShard", "base64encod", "x86", "getUserById_v", "--max-shard", "E471"),
    *("C++", "c#", "F#", "a.b", "--e", "ledger.py:218", '"debits 100 != credits 98"', "config.yam", "_wombat_"),
    *("why does getUserById return None", "wombat --e", "ingress C++", "E471 tokens", "max-shard", "ingress-nginx"),
]


@pytest.mark.parametrize("match", ["hybrid", "smart", "fuzzy", "literal", "semantic"])
@pytest.mark.parametrize("query", ABSENT)
def test_a_name_absent_as_a_whole_is_never_answered_without_a_warning(lab: Recorded, query: str, match: str):
    answer = _ask(lab, query, match)
    sure = [one for one in answer["results"] if one["why"]["confidence"] == "high"]
    labelled = "inside longer" in _said(answer) or "contains" in _said(answer)
    assert labelled or not sure
    if match in BY_WORDS:
        assert labelled


@pytest.mark.parametrize("query", [query for query in ABSENT if " " not in query and "-" not in query[1:]])
@pytest.mark.parametrize("match", BY_WORDS)
def test_no_other_name_is_what_was_asked_for(lab: Recorded, query: str, match: str):
    confidences = {one["why"]["confidence"] for one in _ask(lab, query, match)["results"]}
    assert confidences <= ({"low", "medium"} if match == "fuzzy" else {"low"})  # medium: holds other parts of it


PRESENT = {
    "getUserById_v2": "msg_0001",
    "compute_shard_key": "msg_0002",
    "x86_64": "msg_0002",
    "--max-shard-count": "msg_0002",
    '"debits 100 != credits 99"': "msg_0006",
    '"지수 백오프"': "msg_0007",
    "지수 백오프": "msg_0007",
    "config.yaml": "msg_0008",
    "读取config.yaml": "msg_0008",
    "config.yaml을": "msg_0008",
}


@pytest.mark.parametrize("match", BY_WORDS)
@pytest.mark.parametrize(("query", "first"), PRESENT.items())
def test_a_name_that_stands_whole_is_sure_and_nothing_is_said_against_it(
    lab: Recorded, query: str, first: str, match: str
):
    answer = _ask(lab, query, match)
    best = answer["results"][0]
    assert (best["messageID"], best["why"]["confidence"], best["score"]) == (first, "high", 1.0)
    assert "hold" not in _said(answer)
    assert "inside" not in _said(answer)


@pytest.mark.parametrize(
    "query", ["max-shard", "compute_shard", "ingress-nginx", "getuserbyid", "base64encod", ".", "(", "shard_key"]
)
def test_fuzzy_finds_whatever_literal_and_smart_find(lab: Recorded, query: str):
    found = {
        match: {one["messageID"] for one in _ask(lab, query, match, results=50)["results"] if one["matchMode"] == match}
        for match in ("literal", "smart", "fuzzy")
    }
    assert found["literal"]
    assert found["fuzzy"] >= found["literal"] | found["smart"]
    assert "no current text" not in _said(_ask(lab, query, "fuzzy"))


@pytest.mark.parametrize("query", ["getuserbyid", "base64encod", "getUserById"])
def test_a_longer_name_is_near_and_below_the_name_itself(lab: Recorded, query: str):
    results = _ask(lab, query, "fuzzy")["results"]
    assert [one["near"][0][0] for one in results] == [query]
    assert query.lower() in results[0]["near"][0][1].lower()
    assert results[0]["score"] < 1


@pytest.mark.parametrize("query", [".", "("])
@pytest.mark.parametrize("match", SUBSTRINGS[:3])
def test_nothing_is_said_to_be_nowhere_that_was_not_looked_for(lab: Recorded, query: str, match: str):
    answer = _ask(lab, query, match)
    assert answer["results"]
    assert "no current text" not in _said(answer)


@pytest.mark.parametrize("query", ["AKIAIOSFODNN7EXAMPLE", "where is AKIAIOSFODNN7EXAMPLE"])
@pytest.mark.parametrize("match", ["smart", "hybrid", "fuzzy", "literal"])
def test_whether_a_secret_is_recorded_is_not_told_but_why_it_is_not_found(lab: Recorded, query: str, match: str):
    answer = _ask(lab, query, match)
    assert "msg_0004" not in [result["messageID"] for result in answer["results"] if result["matchMode"] != "semantic"]
    assert "looks like a secret" in _said(answer)
    assert "no current text" not in _said(answer)
    assert "AKIA" not in str(answer)


def test_absent_words_are_named_as_words_and_compounds_as_typed(lab: Recorded):
    said = _said(_ask(lab, "gorilla max-shards quuxel flibber", "hybrid"))
    assert "'gorilla', 'max-shards', 'quuxel', 'flibber' as words" in said
    assert "'max'," not in said


def test_semantic_results_say_that_the_word_occurs_only_inside_longer_ones(lab: Recorded):
    answer = _ask(lab, "getuserbyid", "hybrid")
    assert {one["matchMode"] for one in answer["results"]} <= {"semantic"}
    assert "occurs only inside longer words" in _said(answer)
    assert ("only similar in meaning" in _said(answer)) == bool(answer["results"])


@pytest.mark.parametrize("query", ["oauth2calback", "why E4712", "getUserById_v3"])
@pytest.mark.parametrize("match", BY_WORDS)
def test_a_name_with_digits_is_said_not_to_be_looked_for_by_near_spellings(lab: Recorded, query: str, match: str):
    said = _said(_ask(lab, query, match))
    assert f"searched only for words without digits, so not for '{query.rsplit(maxsplit=1)[-1]}'" in said
    assert "letters alone" not in _said(_ask(lab, "ECONNREFUSD", match))
    assert "letters alone" not in _said(_ask(lab, "x86_64", match))


def test_fuzzy_ranks_exact_names_then_near_then_longer_ones():
    """Results without any of these come last."""
    near = [
        Match("others", 9.0, "p", "prompt", text="why it fails", terms=("fails",)),
        Match(
            "nearly",
            8.0,
            "p",
            "prompt",
            text="parseConfg fails",
            terms=("fails",),
            spelling_pairs=(("parseConfig", "parseConfg"),),
        ),
        Match("whole", 7.0, "p", "prompt", text="a parse-config", terms=("parseConfig",)),
    ]
    standing = [
        Match("longer", 9e11, "p", "prompt", text="parseConfigs fails", terms=("parseConfig",)),
        Match("also", 8e11, "p", "prompt", text="parseConfig()", terms=("parseConfig",)),
    ]
    order, is_inside = fuzzy.merged(parse.parse("parseConfig fails"), near, standing)
    assert [match.message_id for match in order] == ["whole", "also", "nearly", "longer", "others"]
    assert [match.score for match in order] == sorted((match.score for match in order), reverse=True)
    assert is_inside
    assert order[3].spelling_pairs == (("parseConfig", "parseConfigs"),)
    assert order[3].terms == ()
