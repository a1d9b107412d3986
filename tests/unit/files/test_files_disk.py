"""What stands on the disk, compared with what was recovered."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from daemon.files import Disk, compare, standing


@pytest.mark.parametrize(
    ("there", "recovered", "expected"),
    [
        (b"same\n", b"same\n", Disk.IDENTICAL),
        (b"", b"", Disk.IDENTICAL),
        (b"same\r\n", b"same\n", Disk.DIFFERS),
        (b"sama\n", b"same\n", Disk.DIFFERS),
        (None, b"x", Disk.MISSING),
        (None, None, Disk.MISSING),
        (b"x", None, Disk.PRESENT),
    ],
)
def test_bytes_decide(tmp_path: Path, there, recovered, expected):
    path = tmp_path / "file"
    if there is not None:
        path.write_bytes(there)
    assert compare(str(path), recovered) is expected


def test_a_link_to_the_very_content_differs_and_is_not_followed(tmp_path: Path):
    (tmp_path / "real").write_bytes(b"x")
    (tmp_path / "link").symlink_to("real")
    assert compare(str(tmp_path / "link"), b"x") is Disk.DIFFERS


def test_a_directory_or_a_pipe_in_the_files_place_differs_without_waiting(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert compare(str(tmp_path / "pipe"), b"") is Disk.DIFFERS
    assert compare(str(tmp_path / "folder"), b"") is Disk.DIFFERS


def test_a_file_in_a_folders_place_means_the_recovered_file_is_missing(tmp_path: Path):
    (tmp_path / "was-folder").write_bytes(b"")
    assert compare(str(tmp_path / "was-folder" / "file"), b"x") is Disk.MISSING


@pytest.mark.parametrize("name", ["a\0b", "n" * 300, "\udcff\ud800"])
def test_a_name_the_system_does_not_take_is_unreadable_not_missing(tmp_path: Path, name):
    assert compare(f"{tmp_path}/{name}", b"x") is Disk.UNREADABLE


def test_hash_and_size_decide_and_a_deleted_file_matches_an_empty_place(tmp_path: Path) -> None:
    there, empty = tmp_path / "there", tmp_path / "empty"
    there.write_bytes(b"same\n")
    empty.touch()
    (tmp_path / "link").symlink_to(there)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    hashed = hashlib.sha256(b"same\n").hexdigest()
    other = hashlib.sha256(b"sama\n").hexdigest()
    known = {
        ("there", hashed, 5, False): Disk.IDENTICAL,
        ("there", other, 5, False): Disk.DIFFERS,
        ("there", hashed, 6, False): Disk.DIFFERS,
        ("there", "", None, False): Disk.PRESENT,
        ("there", hashed, 5, True): Disk.DIFFERS,
        ("empty", hashlib.sha256(b"").hexdigest(), 0, False): Disk.IDENTICAL,
        ("gone", hashed, 5, False): Disk.MISSING,
        ("gone", "", None, False): Disk.MISSING,
        ("gone", hashed, 5, True): Disk.ABSENT,
        ("there/beneath", hashed, 5, False): Disk.MISSING,
        ("link", hashed, 5, False): Disk.DIFFERS,
        ("folder", hashed, 5, False): Disk.DIFFERS,
        ("pipe", hashed, 0, False): Disk.DIFFERS,
        ("n" * 300, hashed, 5, False): Disk.UNREADABLE,
        ("nul\0", hashed, 5, False): Disk.UNREADABLE,
    }
    for (name, sha256, size, deleted), expected in known.items():
        assert standing(f"{tmp_path}/{name}", sha256, size, deleted=deleted) is expected, name
