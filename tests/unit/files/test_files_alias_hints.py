"""Folders that may be one project under two names are named, and never joined unasked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon import records
from daemon.archive import Archive
from daemon.files import Files
from daemon.hints import for_commands
from tests.support.stores.replaying import archived_session, keep, write


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive") as opened:
        yield opened


def _session(archive: Archive, name: str, directory: str, project: str = "global") -> None:
    batch = archive.batch()
    batch.session(archived_session(f"ses_{name}", directory, project_id=project), "s", 1)
    archive.commit(batch)


def _fill(archive: Archive, second: int, folder: str, *contents: str) -> None:
    keep(archive, [write(second + n / 100, f"{folder}/f{n}", text) for n, text in enumerate(contents)])


def test_folders_of_one_project_are_told_with_the_command_that_joins_them(archive: Archive) -> None:
    _session(archive, "a", "/p/old", "first-commit")
    _session(archive, "b", "/p/new", "first-commit")
    _session(archive, "c", "/p/other", "another")
    [hint] = Files(archive).hints("/p/new")
    assert hint.startswith("/p/old is of the same project")
    assert for_commands(hint).endswith("`reconstitute alias /p/old /p/new`")
    assert Files(archive).hints("/p/none") == []


def test_what_projects_the_source_tells_of_counts_too(archive: Archive) -> None:
    told = [
        {"id": "x", "worktree": "/p/old", "sandboxes": ["/p/box"], "directories": ["/p/new"]},
        {"id": "global", "worktree": "/"},
    ]
    archive.set_note("projects s", records.dumps(told).decode())
    assert [hint.split()[0] for hint in Files(archive).hints("/p/new")] == ["/p/box", "/p/old"]


def test_sessions_of_no_project_have_only_their_files_in_common(archive: Archive) -> None:
    _session(archive, "a", "/p/old")
    _session(archive, "b", "/p/new")
    assert Files(archive).hints("/p/new") == []
    _fill(archive, 10, "/p/old", "1\n", "2\n", "3\n", "4\n")
    _fill(archive, 20, "/p/new", "1\n", "2\n", "x\n", "y\n", "z\n")
    assert len(Files(archive).rows()) == 9
    assert Files(archive).hints("/p/new") == []  # two alike are too few
    _fill(archive, 30, "/p/new", "1\n", "2\n", "3\n", "y\n", "z\n")
    files = Files(archive)
    files.refresh()
    assert [hint.split()[:3] for hint in files.hints("/p/new")] == [["/p/old", "holds", "3"]]


@pytest.mark.parametrize("second", ["/p/old/inner", "/p"])
def test_a_folder_within_the_other_is_no_kin(archive: Archive, second: str) -> None:
    _session(archive, "a", "/p/old", "first-commit")
    _session(archive, "b", second, "first-commit")
    assert Files(archive).hints("/p/old") == []


def test_what_was_joined_is_not_told_again(archive: Archive) -> None:
    _session(archive, "a", "/p/old", "first-commit")
    _session(archive, "b", "/p/new", "first-commit")
    files = Files(archive)
    files.alias("/p/old", "/p/new")
    assert files.hints("/p/new") == []
