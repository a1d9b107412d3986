"""Whatever becomes of a database's three files, the running service sees what is written next (docs/reliability.md, S2).

Writers are processes of their own. Each fault has its own database of a channel, all of them beneath one service.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import DISK
from tests.support.processes.daemon_process import Daemon, until
from tests.support.stores.make_opencode import JsonStore, session
from tests.support.stores.sqlite_writer import Writer


def aside(path: Path) -> tuple[Path, Path]:
    return path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")


def drop(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def saved(path: Path, writer: Writer) -> Path:
    """A backup as SQLite makes it, outside the data directory; the writer has written once more since."""
    backup = path.parents[1] / f"backup-{path.name}"
    writer.backup(backup)
    return backup


def renamed_over(path: Path, writer: Writer) -> None:
    backup = saved(path, writer)
    writer.close()
    os.replace(backup, path)
    drop(*aside(path))


def copied_over_in_place(path: Path, writer: Writer) -> None:
    backup = saved(path, writer)
    writer.close()
    shutil.copyfile(backup, path)
    drop(*aside(path))


def restored_without_ending_the_writer(path: Path, writer: Writer) -> None:
    os.replace(saved(path, writer), path)
    drop(*aside(path))


def wal_and_shm_removed(path: Path, writer: Writer) -> None:
    writer.checkpoint("FULL")
    writer.kill()
    drop(*aside(path))


def wal_removed(path: Path, writer: Writer) -> None:
    writer.checkpoint("FULL")
    writer.kill()
    drop(aside(path)[0])


def shm_removed(path: Path, writer: Writer) -> None:
    writer.kill()
    drop(aside(path)[1])


def wal_truncated(path: Path, writer: Writer) -> None:
    writer.checkpoint("FULL")
    writer.kill()
    os.truncate(aside(path)[0], 0)


def wal_truncated_by_a_checkpoint(path: Path, writer: Writer) -> None:
    writer.checkpoint("TRUNCATE")


def removed_and_recreated_at_once(path: Path, writer: Writer) -> None:
    writer.checkpoint("FULL")
    writer.kill()
    drop(*aside(path))
    with Writer(path) as other:
        other.say(f"between{path.stem[9:]}")


def closed(path: Path, writer: Writer) -> None:
    writer.close()


def killed(path: Path, writer: Writer) -> None:
    writer.kill()


def begun_anew(path: Path, writer: Writer) -> None:
    writer.close()
    drop(path, *aside(path))


def gone_for_a_while(path: Path, writer: Writer) -> None:
    writer.close()
    away = path.parents[1] / path.name
    os.rename(path, away)
    drop(*aside(path))
    os.rename(away, path)


def moved_behind_a_link(path: Path, writer: Writer) -> None:
    writer.close()
    moved = path.parents[1] / path.name
    os.rename(path, moved)
    drop(*aside(path))
    path.symlink_to(moved)


def wal_removed_behind_a_link(path: Path, writer: Writer) -> None:
    moved_behind_a_link(path, writer)
    moved = path.resolve()
    with Writer(path) as other:
        other.say(f"between{path.stem[9:]}")
        other.checkpoint("FULL")
        other.kill()
    drop(*aside(moved))


FAULTS: tuple[Callable[[Path, Writer], None], ...] = (
    renamed_over, copied_over_in_place, restored_without_ending_the_writer, wal_and_shm_removed, wal_removed,
    shm_removed, wal_truncated, wal_truncated_by_a_checkpoint, removed_and_recreated_at_once, closed, killed,
    begun_anew, gone_for_a_while, moved_behind_a_link, wal_removed_behind_a_link,
)  # fmt: skip


@pytest.fixture(scope="module")
def service() -> Iterator[Daemon]:
    """Without file events: neither they nor the full scan, which is an hour away, may be what finds the rows.

    On the disk, because there a new file may get the inode of one that was removed.
    """
    with tempfile.TemporaryDirectory(dir=DISK) as root:
        data_dir = Path(root, "opencode")
        JsonStore(data_dir).session(session("ses_json"))
        watch = {"enabled": False, "scan_minutes": 60}
        with Daemon(data_dir, Path(root, "ours"), tables={"watch": watch}) as daemon:
            yield daemon.run()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_new_rows_are_seen_whatever_becomes_of_the_files(
    service: Daemon, fault: Callable[[Path, Writer], None]
) -> None:
    name = fault.__name__.replace("_", "")
    data_dir = Path(service.config.parent.parent / "opencode")
    path = data_dir / f"opencode-{name}.db"
    with Writer(path) as writer:
        before = writer.say(f"before{name}")
        assert service.wait_until_found({f"before{name}": before})
        fault(path, writer)
        with Writer(path) as next_writer:
            after = next_writer.say(f"after{name}")
            assert service.wait_until_found({f"after{name}": after})
            again = next_writer.say(f"again{name}")
            assert service.wait_until_found({f"again{name}": again})
    until(lambda: state(service, path) == "ok")


def state(service: Daemon, path: Path) -> str:
    (found,) = {row["state"] for row in service.status()["sources"] if row["name"].endswith(f":{path}")}
    return str(found)
