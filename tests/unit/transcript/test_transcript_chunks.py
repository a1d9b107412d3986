"""Windows for embedding: bounded, covering, stable."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from daemon.model import Document, Kind, Section
from daemon.transcript.chunks import CHUNKER_VERSION, WINDOW, chunks, windows

_WORDS = st.lists(
    st.sampled_from(["word", "two words. ", "\n", "\n\n", " ", "日本語", "é", "🥛", "x" * 300, "def f(a):\n"]),
    max_size=60,
).map("".join)
_SECTIONS = st.lists(st.tuples(_WORDS, st.sampled_from(["", "bash", "read"])), max_size=4)


def _document(*sections: tuple[str, str]) -> Document:
    made = tuple(
        Section(f"prt_{n}", Kind.TOOL_OUTPUT if name else Kind.ANSWER, words, name)
        for n, (words, name) in enumerate(sections)
    )
    return Document("msg_1", "ses_1", made)


@given(_WORDS)
def test_windows_cover_every_character_that_is_not_blank(words: str) -> None:
    spans = windows(words)
    covered = {at for start, end in spans for at in range(start, end)}
    assert all(at in covered for at, char in enumerate(words) if not char.isspace())
    assert all(0 < end - start <= WINDOW for start, end in spans)
    assert spans == sorted(set(spans))


@given(_SECTIONS)
def test_chunks_are_numbered_bounded_full_and_the_same_each_time(sections: list[tuple[str, str]]) -> None:
    found = chunks(_document(*sections), 64)
    assert found == chunks(_document(*sections), 64)
    assert [one.number for one in found] == list(range(len(found)))
    assert all(one.text.strip() and len(one.text) <= WINDOW for one in found)
    left = "".join(c for one in found for c in one.text)
    assert all(c in left for words, _ in sections for c in words if not c.isspace())


@given(_WORDS)
def test_neighbouring_windows_overlap_where_the_text_allows(words: str) -> None:
    for (start, end), (after, _) in pairwise(windows(words)):
        assert start < after < end


def test_a_document_without_text_has_no_chunks() -> None:
    assert chunks(_document(), 16) == []
    assert chunks(_document((" \n\t", "")), 16) == []


def test_short_sections_share_a_window_and_a_long_one_stands_alone() -> None:
    found = chunks(_document(("short", ""), ("also short", "bash"), ("long. " * 400, "read")), 16)
    assert found[0].text == "short\n\nalso short"
    assert (found[0].kinds, found[0].tools) == (("answer", "tool_output"), ("bash",))
    assert {one.tools for one in found[1:]} == {("read",)}
    assert len(found) > 3


def test_a_window_ends_at_a_line_or_a_sentence_and_the_next_begins_at_one() -> None:
    lines = [f"line number {n} says something of middling length." for n in range(60)]
    for one in chunks(_document(("\n".join(lines), "")), 16):
        assert one.text.startswith("line number ")
        assert one.text.endswith("length.")


def test_a_long_output_is_embedded_by_its_head_and_tail() -> None:
    found = chunks(_document(("a " * 2000 + "b " * 2000, "bash")), 1)
    whole = " ".join(one.text for one in found)
    assert "characters left out" in whole
    assert found[0].text.startswith("a a")
    assert found[-1].text.endswith("b b")
    assert len(found) <= 3


def test_wide_scripts_get_smaller_windows() -> None:
    assert max(len(one.text) for one in chunks(_document(("語" * 5000, "")), 64)) <= 260


def test_no_window_is_only_a_tail_that_the_one_before_already_holds() -> None:
    for size in range(800, 2000, 7):
        spans = windows("word " * (size // 5))
        assert all(later[1] > earlier[1] for earlier, later in pairwise(spans))


def test_a_changed_rule_has_a_new_version() -> None:
    """If this fails, the chunker cuts otherwise than before: give CHUNKER_VERSION a new value, then write the new digest."""
    prose = " ".join(f"Sentence {n} says that the walrus has {n % 7} tusks." for n in range(120))
    code = "\n\n".join(f"def f{n}(a):\n    return a + {n}" for n in range(60))
    wide = "数据库设计师昨天讨论了。" * 90
    made = chunks(_document((prose, ""), ("short", ""), ("also short", ""), (code, "read"), (wide, "")), 64)
    digest = sha256(repr([(one.number, one.text, one.kinds, one.tools) for one in made]).encode()).hexdigest()
    assert (CHUNKER_VERSION, digest[:12]) == ("c1", "6bcca82554c1")
