"""Files are written into a new folder exactly, beneath it, over nothing; what goes wrong is said and leaves no half file."""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.errors import OutputRefused
from daemon.filesystem.new_folder import NAME_IN_USE, NewFolder
from tests.support.examples import examples

pytestmark = pytest.mark.on_disk

CONTENTS = {
    "crlf.txt": b"one\r\ntwo\r\n",
    "bom.txt": b"\xef\xbb\xbfx\n",
    "no newline": b"last line",
    "empty": b"",
    "binary.bin": bytes(range(256)),
    "deep/er/ünï cödé 日本.py": "y = 'ß'\n".encode(),
    'tab\tand "quote" and \\ and \n newline': b"odd\n",
    "\x1b[31mred": b"escape\n",
    "n" * 255: b"long\n",
    "-rf": b"dash\n",
    "deep/.gitignore": b"*.pyc\n",
}


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and not p.is_symlink()}


def test_every_file_has_exactly_its_bytes_under_exactly_its_name(tmp_path: Path) -> None:
    to = tmp_path / "a" / "b"
    with NewFolder(to) as folder:
        assert [folder.write(name, data) for name, data in CONTENTS.items()] == [""] * len(CONTENTS)
        folder.finish()
    assert tree(to) == CONTENTS
    assert folder.files == len(CONTENTS)


@given(st.dictionaries(st.text(min_size=1, max_size=12), st.binary(max_size=300), max_size=6))
@settings(max_examples=examples(150), deadline=None)
def test_a_file_of_any_name_is_restored_whole_or_skipped_with_a_reason(
    tmp_path_factory: pytest.TempPathFactory, wanted: dict[str, bytes]
) -> None:
    base = tmp_path_factory.mktemp("x")
    with NewFolder(base / "to") as folder:
        reasons = {name: folder.write(name, data) for name, data in wanted.items()}
    written = {name for name, reason in reasons.items() if not reason}
    found = {os.fsencode(p.relative_to(base / "to")): p.read_bytes() for p in (base / "to").rglob("*") if p.is_file()}
    assert found == {os.fsencode(name): wanted[name] for name in written}
    assert [p.name for p in base.iterdir()] in ([], ["to"])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("../out", "not a plain one"),
        ("a/../../out", "not a plain one"),
        ("/etc/out", "not a plain one"),
        ("a//b", "not a plain one"),
        ("./a", "not a plain one"),
        ("", "not a plain one"),
        ("a\0b", "not a plain one"),
        ("\ud800", "not valid Unicode"),
        ("n" * 256, "longer than 255 bytes"),
        ("ü" * 128, "longer than 255 bytes"),
        (".git/hooks/post-checkout", "git would run"),
        ("sub/.GIT/config", "git would run"),
        (".g\u200cit/config", "git would run"),
    ],
)
def test_a_name_that_must_not_be_made_is_passed_over_with_the_reason(tmp_path: Path, name: str, says: str) -> None:
    with NewFolder(tmp_path / "to") as folder:
        assert says in folder.write(name, b"x")
        assert folder.write("good", b"x") == ""
    assert tree(tmp_path) == {"to/good": b"x"}


def test_of_a_file_and_a_folder_of_one_name_the_second_is_skipped(tmp_path: Path) -> None:
    with NewFolder(tmp_path / "to") as folder:
        assert folder.write("a", b"file") == ""
        assert folder.write("a/b", b"beneath") == NAME_IN_USE
        assert folder.write("c/d", b"beneath") == ""
        assert folder.write("c", b"file") == NAME_IN_USE
        assert folder.write("a", b"again") == NAME_IN_USE
    assert tree(tmp_path / "to") == {"a": b"file", "c/d": b"beneath"}


def test_a_link_planted_while_it_works_is_never_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    with NewFolder(tmp_path / "to") as folder:
        assert folder.write("first", b"1") == ""
        (tmp_path / "to" / "sub").symlink_to(outside)
        (tmp_path / "to" / "file").symlink_to(outside / "file")
        assert folder.write("sub/x", b"2") == NAME_IN_USE
        assert folder.write("file", b"3") == NAME_IN_USE
        assert folder.write("made/x", b"4") == ""
        assert folder.write("other/x", b"5") == ""
        (tmp_path / "to" / "made").rename(tmp_path / "to" / "moved")
        (tmp_path / "to" / "made").symlink_to(outside)
        assert folder.write("made/y", b"6") == NAME_IN_USE
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "link", "full folder", "dangling link", "beneath a file"])
def test_only_a_new_or_empty_folder_is_accepted_before_anything_is_written(tmp_path: Path, kind: str) -> None:
    to = tmp_path / "to"
    if kind == "file":
        to.write_text("work")
    elif kind == "link":
        (tmp_path / "real").mkdir()
        to.symlink_to(tmp_path / "real")
    elif kind == "dangling link":
        to.symlink_to(tmp_path / "nowhere")
    elif kind == "beneath a file":
        to.write_text("work")
        to = to / "inner"
    else:
        to.mkdir()
        (to / "work").write_text("work")
    before = tree(tmp_path)
    with pytest.raises(OutputRefused, match=r"name "), NewFolder(to) as folder:
        folder.write("a", b"x")
    assert tree(tmp_path) == before


def test_an_empty_folder_is_used_and_one_that_filled_up_meanwhile_is_not(tmp_path: Path) -> None:
    to = tmp_path / "to"
    to.mkdir()
    with NewFolder(to) as folder:
        assert folder.write("a", b"x") == ""
    (to / "a").unlink()
    with NewFolder(to) as folder:
        (to / "work").write_text("mine")
        with pytest.raises(OutputRefused, match="not empty"):
            folder.write("a", b"x")
    assert tree(to) == {"work": b"mine"}


def test_nothing_is_made_before_the_first_file(tmp_path: Path) -> None:
    with NewFolder(tmp_path / "to") as folder:
        folder.finish()
    assert list(tmp_path.iterdir()) == []


def test_protected_places_are_refused_even_through_a_link(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.mkdir()
    (tmp_path / "way").symlink_to(archive)
    for to in (archive, archive / "new", tmp_path / "way" / "new"):
        with pytest.raises(OutputRefused, match="not to be written to"):
            NewFolder(to, (archive,))
    NewFolder(tmp_path / "archive-2", (archive,)).close()


def test_modes_are_the_users_own_and_programs_can_be_run(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with NewFolder(tmp_path / "to") as folder:
            folder.write("plain", b"x")
            folder.write("sub/tool", b"x", executable=True)
    finally:
        os.umask(before)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "to").rglob("*")}
    assert modes == {"plain": 0o640, "sub": 0o750, "tool": 0o750}


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Writing more into one file fails, as on a full disk, in this process."""
    former = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, former)


def test_a_full_disk_stops_the_restore_without_a_half_written_file(tmp_path: Path) -> None:
    with NewFolder(tmp_path / "to") as folder, files_of_at_most(5000):
        folder.write("a", b"x" * 4000)
        folder.write("sub/b", b"y" * 5000)
        with pytest.raises(OutputRefused, match=r"to: .*; 2 files are there and complete, the rest is not"):
            folder.write("sub/c", b"z" * 9000)
    assert tree(tmp_path / "to") == {"a": b"x" * 4000, "sub/b": b"y" * 5000}


def test_a_folder_that_may_not_be_written_to_is_an_error_and_not_silence(tmp_path: Path) -> None:
    with NewFolder(Path("/proc/reconstitute-test")) as folder, pytest.raises(OutputRefused, match="cannot be made"):
        folder.write("a", b"x")


def test_ten_megabytes_arrive(tmp_path: Path) -> None:
    data = os.urandom(1 << 20) * 10
    with NewFolder(tmp_path / "to") as folder:
        folder.write("big", data)
        folder.finish()
    assert hashlib.sha256((tmp_path / "to" / "big").read_bytes()).digest() == hashlib.sha256(data).digest()
