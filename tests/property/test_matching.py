"""Laws of OpenCode's matching that hold for every text, whatever the version."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daemon.files import apply
from daemon.files.apply import replacers
from daemon.transcript.javascript import Costs

LINES = st.lists(
    st.sampled_from(["a", " a", "a ", "b", "\tb", "", " ", "a  b", "a b", "\\n", "c\\", "{", "}", "\ufeff"])
)
TEXTS = LINES.map("\n".join)
VERSIONS = [
    "0.6.0",
    "1.1.65",
    "1.2.10",
    "1.2.20",
    "1.2.24",
    "1.3.0",
    "1.9.0",
    "1.15.0",
    "1.16.0",
    "1.18.33",
    "2.0.0",
    "",
]
KNOWN = ["1.1.65", "1.2.20", "1.3.2", "1.15.13", "1.18.33"]


@given(TEXTS, TEXTS, st.sampled_from(["", "x", "N\nM", "$&"]), st.booleans(), st.sampled_from(VERSIONS))
def test_a_text_is_told_or_a_refusal_and_never_both(base: str, old: str, new: str, every: bool, version: str) -> None:
    outcome = apply.edited_by(base, old, new, every, version)
    assert outcome.text is None or not outcome.refused
    assert bool(outcome.rule) == (outcome.text is not None)
    assert apply.edited(base, old, new, every, version) == outcome.text


@given(TEXTS, TEXTS.filter(bool), st.booleans())
def test_an_unknown_version_tells_only_what_all_known_ones_tell(base: str, old: str, every: bool) -> None:
    text = apply.edited(base, old, "x", every, "")
    if text is not None:
        assert {apply.edited(base, old, "x", every, version) for version in KNOWN} == {text}


@given(TEXTS, TEXTS.filter(bool))
def test_a_single_edit_puts_the_new_text_in_the_place_of_one_stretch(base: str, old: str) -> None:
    outcome = apply.edited_by(base, old, "<new>", False, "1.18.33")
    if outcome.text is not None:
        head, _, tail = outcome.text.partition("<new>")
        text = base.removeprefix(apply.BOM)
        assert text.startswith(head.removeprefix(apply.BOM))
        assert text.endswith(tail)


@given(TEXTS, TEXTS.filter(bool), st.booleans())
def test_every_place_that_a_tolerant_way_names_stands_in_the_text(base: str, old: str, strict: bool) -> None:
    assert all(place in base for _, place in replacers.candidates(base, old, strict, Costs(10**6)))


@given(LINES, st.data())
def test_a_patch_of_lines_as_they_are_changes_these_lines(lines: list[str], data: st.DataObject) -> None:
    lines = [f"{number} {line}" for number, line in enumerate(lines)]
    start = data.draw(st.integers(0, len(lines)))
    stop = data.draw(st.integers(start, len(lines)))
    if start == stop:
        return
    hunks = [("", tuple(lines[start:stop]), ("new",), False)]
    expected = "".join(f"{line}\n" for line in [*lines[:start], "new", *lines[stop:]])
    for version in ("1.0.0", "1.1.65", "1.18.33", "2.0.0", ""):
        assert apply.patched("".join(f"{line}\n" for line in lines), hunks, version) == expected
