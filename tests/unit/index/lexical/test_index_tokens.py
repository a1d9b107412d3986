"""Words of a text: identifiers meet however they are spelt, and nothing is lost or invented."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.index.tokens import LONGEST, Form, fields, fold, loose, stem, terms

pieces = st.lists(st.from_regex(r"[a-z]{2,8}", fullmatch=True), min_size=2, max_size=4)


def only(text: str):
    found = list(terms(text))
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("text", "whole", "parts"),
    [
        ("rateLimit", "ratelimit", ("rate", "limit")),
        ("rate-limit", "ratelimit", ("rate", "limit")),
        ("rate_limit", "ratelimit", ("rate", "limit")),
        ("RATE_LIMIT", "ratelimit", ("rate", "limit")),
        ("HTTPServer", "httpserver", ("http", "server")),
        ("__init__", "init", ("init",)),
        ("utf-8", "utf8", ("utf", "8")),
        ("sha256", "sha256", ("sha256",)),
        ("IDs", "ids", ("ids",)),
        ("don't", "dont", ("dont",)),
        ("user's", "user", ("user",)),
        ("Straße", "strasse", ("strasse",)),
        ("ｆｕｌｌ", "full", ("full",)),
        ("größeÄndern", "grösseändern", ("grösse", "ändern")),
        ("हिन्दी", "हिन्दी", ("हिन्दी",)),
    ],
)
def test_a_name_is_one_word_with_its_pieces(text, whole, parts):
    term = only(text)
    assert (term.whole, term.pieces) == (whole, parts)


@pytest.mark.parametrize(
    ("text", "whole", "sequence"),
    [
        ("src/app.py", "src/app.py", ("src", "app", "py")),
        (r"src\app.py", "src/app.py", ("src", "app", "py")),
        (r"src\\app.py", "src/app.py", ("src", "app", "py")),
        ("src/.gitignore", "src/.gitignore", ("src", "gitignore")),
        ("lib/rate-limit.ts", "lib/rate-limit.ts", ("lib", "ratelimit", "ts")),
        ("1.18.33", "1.18.33", ("1", "18", "33")),
        ("2026-11-21", "2026-11-21", ("2026", "11", "21")),
    ],
)
def test_a_path_keeps_its_segments_in_order_and_itself(text, whole, sequence):
    term = only(text)
    assert (term.form, term.whole, term.sequence) == (Form.PATH, whole, sequence)
    assert whole in term.bag


def test_scripts_without_spaces_become_bigrams_and_single_characters():
    term = only("東京都")
    assert term.sequence == ("東京", "京都")
    assert set(term.bag) == set("東京都")
    assert only("東").bag == ("東",)


def test_mixed_scripts_are_separated():
    assert [term.whole for term in terms("Chromaの索引を作る。done")] == ["chroma", "の索引を作る", "done"]


@pytest.mark.parametrize(
    ("one", "other"), [("limits", "limit"), ("limiting", "limited"), ("caches", "cached"), ("Servers", "server")]
)
def test_english_word_forms_share_a_stem(one, other):
    assert only(one).bag == only(other).bag


def test_a_stem_leaves_what_is_no_english_word():
    assert [stem(word) for word in ("sha256s", "größes", "as")] == ["sha256s", "größes", "as"]


def test_a_long_token_is_cut_but_stays_itself():
    one, other = "x" * 500 + "a", "x" * 500 + "b"
    assert len(only(one).whole) <= LONGEST
    assert only(one).whole == only(one.upper()).whole != only(other).whole


def test_text_without_words_has_none():
    assert list(terms(" \n\t --- ___ ... ''' \ud800 {}();")) == []
    assert fields("") == ("", "", "")


@given(pieces)
def test_every_spelling_of_a_name_is_the_same_whole(parts):
    spellings = [
        parts[0] + "".join(part.capitalize() for part in parts[1:]),
        "-".join(parts),
        "_".join(parts),
        "_".join(parts).upper(),
        "".join(part.capitalize() for part in parts),
    ]
    assert {only(spelling).whole for spelling in spellings} == {"".join(parts)}


@given(st.text())
def test_tokens_are_short_and_hold_no_space_whatever_the_text(text):
    for term in terms(text):
        assert term.sequence
        assert term.text in unicodedata.normalize("NFKC", text)
        for token in (*term.sequence, *term.pieces):
            assert token
            assert len(token) <= LONGEST
            assert token.split() == [token]


@given(st.text(), st.text())
def test_a_document_is_the_sum_of_its_lines(one, other):
    together, apart = fields(f"{one}\n{other}"), (fields(one), fields(other))
    for number in (0, 1):
        assert (
            together[number].split(" ") == [t for t in f"{apart[0][number]} {apart[1][number]}".split(" ") if t]
            or not together[number]
        )


ascii_text = st.lists(
    st.one_of(
        st.text(alphabet=[*map(chr, range(9, 127))], max_size=4),
        st.sampled_from(
            ["it's", "don't", "x'S", "rateLimit", "HTTPServer", "a-b", "2026-11-24", "/src/", "\\\\", "./", "..", "_"]
        ),
    ),
    max_size=12,
).map("".join)


@given(ascii_text)
def test_ascii_has_the_same_terms_as_other_text(text):
    """ASCII has a pattern of its own, because it is faster."""
    assert list(terms(text)) == list(terms(f"{text} é"))[:-1]


@given(ascii_text)
def test_a_plain_word_has_the_tokens_of_its_term(text):
    made = list(terms(text))
    assert fields(text).bag.split() == [token for term in made for token in term.bag]
    assert fields(text).spelt.split() == list(dict.fromkeys(word for term in made for word in term.spelt))


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_folding_is_stable(text):
    assert fold(fold(text)) == fold(text)


@given(st.text())
def test_document_and_query_see_the_same_tokens(text):
    sequence, bag, spelt = fields(text)
    assert sequence.split() == [token for term in terms(text) for token in term.sequence]
    assert set(bag.split()) == {token for term in terms(text) for token in term.bag}
    assert sorted(spelt.split()) == sorted({token for term in terms(text) for token in term.spelt})


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("limiting limiting", "limiting"),
        ("prefilterRows", "prefilterrows prefilter rows"),
        ("src/rateLimits.py", "src ratelimits rate limits"),
        ("sha256 7f3a 2026-11-21 of x", ""),
        ("東京都", ""),
        ("größer", "grösser"),
    ],
)
def test_words_and_pieces_are_kept_as_they_are_spelt(text, spelt):
    assert fields(text).spelt == spelt


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("limiting\n\nlimits", "limit limit"),
        ("rateLimits", "rate limit ratelimits"),
        ("src/app.py", "src app py src/app.py"),
        ("東京都", "東 京 都 東京 京都"),
        ("", ""),
    ],
)
def test_without_order_names_and_bigrams_stand_beside_stems(text, tokens):
    assert loose(text) == tokens
