"""The three sample archives: no proven revision may differ from what the file really was at that time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from daemon.files import doubts
from daemon.files.history import FileHistory, Revision, earlier, history
from daemon.model import FileEdit
from daemon.transcript.edits import edits
from tests.conftest import Sample
from tests.sample_records import load


@pytest.fixture
def histories(any_sample: Sample, tmp_path: Path) -> dict[str, FileHistory]:
    found = load(any_sample, tmp_path)
    by_path: dict[str, list[FileEdit]] = defaultdict(list)
    for message in found.messages:
        for edit in edits(message, found.sessions.get(message.session_id)):
            by_path[edit.path].append(edit)

    def recorded(path: str) -> list[FileEdit]:
        ordered = sorted(by_path[path], key=lambda edit: (edit.time, edit.part_id))
        return doubts.with_reverts(ordered, found.sessions.get, lambda edit: edit.message_id in found.removed)

    def before(path: str, edit: FileEdit) -> Revision | None:
        return history(path, earlier(recorded(path), edit), before).latest

    return {path: history(path, recorded(path), before) for path in list(by_path)}


@dataclass
class Comparison:
    right: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    doubted: list[str] = field(default_factory=list)
    unrecorded: list[str] = field(default_factory=list)


def _checkpoints(sample: Sample) -> Iterator[tuple[str, str, int, int, str | None]]:
    """(path, turn, ms of the turn before, ms of this one, sha256 or None for a deleted file) of each change."""
    lines = sample.timeline()
    times = sorted({line["time"] for line in lines})
    begun = {time: int(previous * 1000) for previous, time in zip([0.0, *times], times, strict=False)}
    for line in lines:
        yield line["path"], line["after"], begun[line["time"]], int(line["time"] * 1000) + 1, line["sha256"]


def _compare(sample: Sample, histories: dict[str, FileHistory]) -> Comparison:
    done = Comparison()
    for path, turn, begin, end, sha256 in _checkpoints(sample):
        last = histories[path].at(end) if path in histories else None
        if last is None:
            continue
        truth = None if sha256 is None else sample.blob(sha256)
        name = f"{turn} {path}"
        if not last.proven:
            done.doubted.append(name)
        elif last.content == truth and last.deleted == (truth is None):
            done.right.append(name)
        elif last.time <= begin:
            done.unrecorded.append(name)
        else:
            done.wrong.append(f"{name}: {last.content!r} instead of {truth!r} by {last.evidence}")
    return done


def test_no_proven_revision_differs_from_the_file_as_it_was(
    any_sample: Sample, histories: dict[str, FileHistory]
) -> None:
    done = _compare(any_sample, histories)
    print(f"\n{any_sample.name}: right {len(done.right)}, doubted {done.doubted}, unrecorded {done.unrecorded}")
    assert done.wrong == []
    assert len(done.right) >= 30
    # The user's own change of README.md, and what a revert and its undoing did, are recorded nowhere but in snapshots.
    assert {name.split()[0].split("/")[0] for name in done.unrecorded} <= {"A9-revert", "A13-rare"}


def test_every_file_that_tools_alone_changed_ends_as_proven(
    any_sample: Sample, histories: dict[str, FileHistory]
) -> None:
    truth = any_sample.truth["files"]
    ends = {path: any_sample.blob(entry["sha256"]) for path, entry in truth.items() if entry["by_tool"]}
    proven = {path for path in ends if path in histories and not histories[path].stale}
    print(sorted(set(ends) - proven))
    for path in proven:
        latest = histories[path].latest_proven
        assert latest is not None
        assert latest.content == ends[path], path
    assert len(proven) >= 12


def test_a_file_that_a_command_changed_last_is_not_called_current(
    any_sample: Sample, histories: dict[str, FileHistory]
) -> None:
    work = any_sample.truth["work"]
    for name in ("csv-cli/analysis.md", "csv-cli/poem.txt", "todo-api/Makefile"):
        assert histories[f"{work}/{name}"].stale, name


def test_a_forks_copies_of_calls_are_no_second_changes(any_sample: Sample, histories: dict[str, FileHistory]) -> None:
    settings = histories[f"{any_sample.truth['work']}/todo-api/settings.py"]
    assert len([r for r in settings.revisions if r.operation == "write"]) == 1
    moved = histories[f"{any_sample.truth['work']}/csv-cli/csvcli/query/filters.py"].latest_proven
    assert moved is not None
    assert b"(inclusive)" in (moved.content or b"")
