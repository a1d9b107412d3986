"""A recovered content as a page shows it; the notes are tested with the pages they stand on."""

from __future__ import annotations

import pytest

from daemon.files import Grade, Revision
from daemon.files.content import Content as Bytes
from daemon.files.content import Fragments, Run
from daemon.model import Operation
from daemon.reconstitute.pages.file import ContentDisplay, display_revision

SECRET = "ghp_" + "a1B2" * 9


def _revision(whole: Bytes | None, grade: Grade = Grade.PROVEN, fragments: Fragments | None = None) -> Revision:
    return Revision(1, grade, whole, "s", "m", "p", "write", Operation.WRITE, fragments=fragments)


def test_of_nothing_there_is_nothing_to_show():
    assert display_revision(None) == ContentDisplay(None, ())
    assert display_revision(_revision(None)) == ContentDisplay(None, ())


def test_a_proven_content_is_shown_with_its_end_and_a_stale_one_without():
    assert display_revision(_revision(Bytes(b"x\n"))) == ContentDisplay("x\n", ())
    assert display_revision(_revision(Bytes(b"x"))).notes == ("It has no newline at its end.",)
    assert display_revision(_revision(Bytes(b"x"), Grade.STALE)) == ContentDisplay("x", ())


def test_of_a_partial_content_the_known_lines_are_shown_redacted():
    found = display_revision(_revision(None, Grade.PARTIAL, Fragments((Run(2, ("b", f"key = '{SECRET}'")),))))
    assert found.text is not None
    assert found.text.startswith("<<< lines 1 to 1 are not known >>>\nb\n")
    assert SECRET not in found.text


def test_a_content_that_was_not_kept_is_not_said_to_be_empty():
    gone = Bytes(None, id_="a" * 40, load=lambda _: None)
    found = display_revision(_revision(gone))
    assert found == ContentDisplay(None, ("The content is known by its hash, but it was not kept.",))


@pytest.mark.parametrize("state", [Grade.PROVEN, Grade.STALE])
def test_an_empty_file_is_said_to_be_empty(state: Grade):
    assert display_revision(_revision(Bytes(b""), state)).notes == ("The file is empty.",)
