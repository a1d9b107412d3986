"""The three sample archives: no proven revision may differ from what the file really was at that time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from daemon import config
from daemon.app.engine import Engine
from daemon.files import FileHistory, Files
from tests.conftest import Sample


@pytest.fixture
def histories(any_sample: Sample, tmp_path: Path) -> dict[str, FileHistory]:
    tables = {
        "opencode": {"data_dir": str(any_sample.data_dir)},
        "archive": {"dir": str(tmp_path / "archive")},
        "output": {"dir": str(tmp_path / "out")},
        "embedding": {"provider": "builtin"},
    }
    with Engine(msgspec.convert(tables, config.Config)) as engine:
        engine.scan(everything=True, patient=False)
        # Contents of snapshots are read from the archive when they are asked for: all of them while it is open.
        found = {history.path: history for history in Files(engine.archive).histories("/")}
        for history in found.values():
            for revision in history.revisions:
                revision.whole = type(revision.whole)(revision.content) if revision.whole is not None else None
        return found


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
        latest = [revision for revision in histories[path].revisions if revision.proven][-1]
        assert latest.content == ends[path], path
    assert len(proven) >= 12


def test_a_file_changed_last_by_a_command_is_current_only_if_right(
    any_sample: Sample, histories: dict[str, FileHistory]
) -> None:
    """Snapshots tell what the commands made of them; without those they are in doubt, and never what they were before."""
    work = any_sample.truth["work"]
    for name in ("csv-cli/analysis.md", "csv-cli/poem.txt", "todo-api/Makefile"):
        path = f"{work}/{name}"
        latest = histories[path].latest
        assert latest is not None
        if latest.proven:
            assert latest.content == any_sample.blob(any_sample.truth["files"][path]["sha256"]), name
            assert latest.kinds & {"snapshot", "diff", "shell"}, name


def test_a_forks_copies_of_calls_are_no_second_changes(any_sample: Sample, histories: dict[str, FileHistory]) -> None:
    settings = histories[f"{any_sample.truth['work']}/todo-api/settings.py"]
    assert len([r for r in settings.revisions if r.operation == "write"]) == 1
    moved = histories[f"{any_sample.truth['work']}/csv-cli/csvcli/query/filters.py"]
    assert b"(inclusive)" in ([revision for revision in moved.revisions if revision.proven][-1].content or b"")
