"""What a read's output proves of the file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.transcript.evidence.call_results import read_lines
from daemon.transcript.tool_calls import release
from tests.support.stores.records import read_output

VERSIONS = ("1.0.61", "1.1.65", "1.18.33")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "text", ["a\nb\n", "a", "", "\n", "a\n\n", "1: x\n2: y\n", "</content>\n(End of file - total 3 lines)\n", "é 🥛\n"]
)
def test_a_whole_file_is_known_as_whole(version: str, text: str) -> None:
    found = read_lines(read_output("/a", text, version), {}, version)
    assert found is not None
    assert found.is_whole
    assert found.is_exact == (version != "1.18.33")
    assert found.text == (text if found.is_exact else text.removesuffix("\n"))


def test_carriage_returns_show_up_to_1_1_65_only() -> None:
    old, new = (read_lines(read_output("/a", "a\r\nb\r\n", version), {}, version) for version in ("1.1.65", "1.18.33"))
    assert old is not None
    assert new is not None
    assert (old.text, new.text) == ("a\r\nb\r\n", "a\nb")


_HEAD = "<path>/a</path>\n<type>file</type>\n<content>"


@pytest.mark.parametrize(
    ("output", "metadata"),
    [
        (_HEAD + "1: a\n2: b\n\n(File has more lines. Use 'offset' parameter to read beyond line 2)\n</content>", {}),
        (_HEAD + "1: a\n\n(End of file - total 2 lines)\n</content>", {}),
        (_HEAD + "2: b\n\n(End of file - total 2 lines)\n</content>", {}),
        (_HEAD + "1: a\n\n(End of file - total 1 lines)\n</content>", {"truncated": True}),
        (_HEAD + "\n1: a\n\n(Output capped at 50 KB. Showing lines 1-1. Use offset=2 to continue.)\n</content>", {}),
        (_HEAD + "1: " + "x" * 2000 + "...\n\n(End of file - total 1 lines)\n</content>", {}),
        (
            _HEAD
            + "\n1: "
            + "x" * 2000
            + "... (line truncated to 2000 chars)\n\n(End of file - total 1 lines)\n</content>",
            {},
        ),
        (_HEAD + "1: " + "🥛" * 1001 + "\n\n(End of file - total 1 lines)\n</content>", {}),
        ("<file>\n00001| a\n\n(File has more lines. Use 'offset' parameter to read beyond line 1)\n</file>", {}),
        (_HEAD + "1: a", {}),
    ],
)
def test_what_is_cut_or_begins_later_is_not_whole(output: str, metadata: dict[str, object]) -> None:
    found = read_lines(output, metadata, "1.1.65")
    assert found is not None
    assert not found.is_whole


def test_reminders_behind_the_content_are_no_part_of_it() -> None:
    found = read_lines(
        read_output("/a", "x\n", "1.1.65") + "\n\n<system-reminder>\n3: y\n</system-reminder>", {}, "1.1.65"
    )
    assert found is not None
    assert (found.is_whole, found.text) == (True, "x\n")


@pytest.mark.parametrize(
    "output", ["", "Image read successfully", "<path>/a</path>\n<type>directory</type>\n<entries>\nb\n</entries>"]
)
def test_folders_and_images_show_no_lines(output: str) -> None:
    assert read_lines(output, {}, "1.1.65") is None


@pytest.mark.parametrize("version", ["1.2.1", "1.15.13", "", "local"])
def test_a_version_that_may_hide_line_ends_is_not_trusted_with_them(version: str) -> None:
    found = read_lines(read_output("/a", "x\n", "1.1.65"), {}, version)
    assert found is not None
    assert not found.is_exact


def test_releases_compare_as_numbers() -> None:
    assert release("1.18.33") == (1, 18, 33)
    assert release("1.2.0-beta") == (1, 2, 0)
    assert release("dev") is None


@given(st.text(), st.text(max_size=8))
def test_it_reads_any_output(text: str, version: str) -> None:
    for output in (text, _HEAD + text, "<file>\n" + text):
        found = read_lines(output, {}, version)
        assert found is None or len(found.lines) >= 0


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
def test_any_text_comes_back_from_an_exact_read(text: str) -> None:
    text = text.removeprefix("\ufeff")
    found = read_lines(read_output("/a", text, "1.1.65"), {}, "1.1.65")
    assert found is not None
    assert found.text == text
