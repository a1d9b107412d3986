"""Files of the archive's database go missing or are cut: never a new archive in silence, never a table deleted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from unittest import mock

import plyvel
import pytest

from daemon.archive import Archive
from daemon.archive.store import integrity
from daemon.errors import ArchiveCorrupt
from tests.support.stores.make_opencode import T0, text, user
from tests.unit.archive.test_archive import everything, make, put

ROUNDS, MESSAGES = 3, 12
_OURS = ("LOG", "LOG.old", "LOCK")


def fill(directory: Path, number: int) -> None:
    with Archive(directory) as archive:
        for one in range(number * MESSAGES, (number + 1) * MESSAGES):
            name = f"msg_{one:03}"
            put(archive, make(user(name, "ses_1", T0 + one), text(f"prt_{one}", name, "ses_1", "words " * 50)))


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One archive with several tables, as a clean end leaves it, as a kill does, and as 0.1 did."""
    root = tmp_path_factory.mktemp("whole")
    for number in range(ROUNDS):
        fill(root / "closed", number)
    with Archive(root / "closed"):
        shutil.copytree(root / "closed", root / "killed")
    shutil.copytree(root / "closed", root / "made by 0.1")
    (root / "made by 0.1" / integrity.MARKER).unlink()
    return {name: root / name for name in ("closed", "killed", "made by 0.1")}


def cut(path: Path, share: float) -> None:
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])


def damages(place: Path) -> Iterator[tuple[str, Callable[[Path], None]]]:
    names = sorted(integrity.files(place))
    for name in names:
        yield f"{name} removed", lambda p, n=name: (p / n).unlink()  # type: ignore[misc]
        yield f"{name} emptied", lambda p, n=name: cut(p / n, 0)  # type: ignore[misc]
        yield f"{name} cut", lambda p, n=name: cut(p / n, 0.5)  # type: ignore[misc]
    for kind in ("CURRENT", "MANIFEST-", ".ldb", ".log", ""):
        chosen = [name for name in names if kind in name]
        others = [name for name in names if kind not in name]
        yield f"all {kind or 'files'} removed", lambda p, c=chosen: [(p / n).unlink() for n in c]  # type: ignore[misc]
        if others:
            yield f"only {kind} left", lambda p, o=others: [(p / n).unlink() for n in o]  # type: ignore[misc]
    yield "the folder removed", shutil.rmtree


def hashes(place: Path) -> dict[str, str]:
    found = sorted(place.iterdir()) if place.exists() else []
    return {p.name: sha256(p.read_bytes()).hexdigest() for p in found if p.name not in _OURS}


def opened(directory: Path) -> tuple[dict[str, object], str]:
    try:
        return everything(directory), ""
    except ArchiveCorrupt as error:
        return {}, str(error)


@pytest.mark.parametrize("state", ["closed", "killed", "made by 0.1"])
def test_files_that_are_gone_or_cut_are_refused_and_nothing_is_changed(
    states: dict[str, Path], tmp_path: Path, state: str
) -> None:
    shutil.copytree(states[state], tmp_path / "intact")
    truth = everything(tmp_path / "intact")
    assert len(truth) == ROUNDS * MESSAGES + 2
    assert sum(name.endswith(".ldb") for name in integrity.files(states[state] / "leveldb")) >= 2
    refused = 0
    for number, (what, damage) in enumerate(damages(states[state] / "leveldb")):
        victim = tmp_path / str(number)
        shutil.copytree(states[state], victim)
        damage(victim / "leveldb")
        before = hashes(victim / "leveldb")
        found, refusal = opened(victim)
        if refusal:
            refused += 1
            assert hashes(victim / "leveldb") == before, what
            assert "restore a backup with `reconstitute restore-archive`" in refusal, what
            continue
        if found == truth:
            continue
        if before:  # a log that was cut looks like one whose last commits never came: their cursor is gone with them
            assert ".log" in what, what
            assert "removed" not in what, what
            assert set(found) <= set(truth), what
        else:  # nothing is left that would tell of an archive
            assert state == "made by 0.1", what
        shutil.rmtree(victim)
    assert refused >= 12


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_log_that_was_damaged_after_a_clean_end_is_refused(tmp_path: Path, share: float) -> None:
    """LevelDB itself takes it for a torn one and drops what follows."""
    for hole in (1, 512):
        victim = tmp_path / str(hole)
        fill(victim, 0)
        (log,) = (victim / "leveldb").glob("*.log")
        content = bytearray(log.read_bytes())
        start = int(share * len(content))
        content[start : start + hole] = bytes(byte ^ 4 if hole == 1 else 0 for byte in content[start : start + hole])
        log.write_bytes(content)
        before = hashes(victim / "leveldb")
        assert f"{log.name} is damaged" in opened(victim)[1]
        assert hashes(victim / "leveldb") == before


def test_an_emptied_archive_that_began_in_0_1_is_refused(states: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(states["made by 0.1"], tmp_path / "a")
    assert len(everything(tmp_path / "a")) == ROUNDS * MESSAGES + 2
    assert (tmp_path / "a" / integrity.MARKER).exists()
    shutil.rmtree(tmp_path / "a" / "leveldb")
    with pytest.raises(ArchiveCorrupt, match=r"all its files are gone.*restore a backup"):
        Archive(tmp_path / "a")
    (tmp_path / "a" / integrity.MARKER).unlink()
    assert len(everything(tmp_path / "a")) == 2


def test_a_restored_archive_folder_opens_beside_an_outdated_marker(states: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(states["closed"], tmp_path / "a")
    fill(tmp_path / "a", ROUNDS)
    shutil.rmtree(tmp_path / "a" / "leveldb")
    shutil.copytree(states["closed"] / "leveldb", tmp_path / "a" / "leveldb")
    assert len(everything(tmp_path / "a")) == ROUNDS * MESSAGES + 2


def test_a_backup_copied_over_a_newer_archive_is_refused(states: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(states["closed"], tmp_path / "a")
    fill(tmp_path / "a", ROUNDS)
    shutil.copytree(states["closed"] / "leveldb", tmp_path / "a" / "leveldb", dirs_exist_ok=True)
    before = hashes(tmp_path / "a" / "leveldb")
    with pytest.raises(ArchiveCorrupt, match="CURRENT does not name MANIFEST-"):
        Archive(tmp_path / "a")
    assert hashes(tmp_path / "a" / "leveldb") == before


@pytest.mark.parametrize("is_current", [False, True])
def test_a_kill_while_leveldb_opens_it_is_no_damage(
    states: dict[str, Path], tmp_path: Path, *, is_current: bool
) -> None:
    """LevelDB then leaves a table and a manifest, whether CURRENT names it or not yet, beside those of before."""
    shutil.copytree(states["closed"], tmp_path / "a")
    with mock.patch("plyvel.DB", side_effect=SystemExit), pytest.raises(SystemExit):
        Archive(tmp_path / "a")
    shutil.copytree(states["closed"], tmp_path / "b")
    plyvel.DB(str(tmp_path / "b" / "leveldb")).close()
    new = integrity.files(tmp_path / "b" / "leveldb").keys() - integrity.files(tmp_path / "a" / "leveldb").keys()
    assert any(name.startswith("MANIFEST-") for name in new)
    for name in [*new, *(["CURRENT"] if is_current else [])]:
        shutil.copy(tmp_path / "b" / "leveldb" / name, tmp_path / "a" / "leveldb")
    assert len(everything(tmp_path / "a")) == ROUNDS * MESSAGES + 2


def test_a_making_that_was_cut_short_is_begun_again(tmp_path: Path) -> None:
    marker = integrity.Marker(tmp_path)
    marker.begin()
    assert not marker.is_made
    (tmp_path / "leveldb").mkdir()
    (tmp_path / "leveldb" / "MANIFEST-000001").write_bytes(b"half")
    fill(tmp_path, 0)
    assert len(everything(tmp_path)) == MESSAGES + 2
    assert integrity.Marker(tmp_path).is_made


def test_the_manifest_tells_tables_and_log_as_leveldb_has_them(tmp_path: Path) -> None:
    """Against LevelDB itself, with enough changes that its manifest has many edits, some of them over a block's end."""
    db = plyvel.DB(str(tmp_path / "db"), create_if_missing=True, write_buffer_size=1 << 16)
    for number in range(4000):
        db.put(b"%s%06d" % (b"k" * 500, number % 700), b"v" * 400)
    db.close()
    shutil.copytree(tmp_path / "db", tmp_path / "opened")
    plyvel.DB(str(tmp_path / "opened")).close()  # removes tables that nothing needs: closing cut a compaction short
    found = integrity.files(tmp_path / "db")
    assert found[(tmp_path / "db" / "CURRENT").read_text().strip()] > 32768
    assert integrity.missing_files(tmp_path / "db", found) == []
    # A table made by opening may have the number of one that was removed.
    tables = [
        path.name
        for path in (tmp_path / "opened").glob("*.ldb")
        if path.name in found and path.stat().st_mtime_ns == (tmp_path / "db" / path.name).stat().st_mtime_ns
    ]
    assert tables
    for table in tables:
        assert integrity.missing_files(tmp_path / "db", {n: size for n, size in found.items() if n != table})


def test_the_marker_says_what_it_is_for(tmp_path: Path) -> None:
    Archive(tmp_path / "a").close()
    said = json.loads((tmp_path / "a" / integrity.MARKER).read_text())
    assert "never begins a new archive" in said["about"]
    assert (tmp_path / "a" / integrity.MARKER).stat().st_mode & 0o777 == 0o600
