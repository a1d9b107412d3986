"""A target's pages follow what is recorded: at once, at their times, never twice, and never over a person's own edits."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daemon.archive import Archive
from daemon.publish.edits import CLOSE
from tests.e2e.talk import PROJECT, Talk, words
from tests.support.processes.daemon_process import Daemon, until
from tests.support.stores.make_opencode import JsonStore, session

NOTES = f"{PROJECT}/notes.md"
DAY_MS = 86_400_000


@pytest.fixture
def talk(data_dir: Path) -> Talk:
    made = Talk(JsonStore(data_dir))
    made.write(NOTES, f"first {words(1)}\n")
    return made


def page(daemon: Daemon, path: str = NOTES) -> str:
    place = daemon.output_dir / f"{path[1:]}.md"
    return place.read_text() if place.exists() else ""


def written(daemon: Daemon) -> dict[str, tuple[int, int]]:
    """Each published file with its inode and time: a file written anew has others."""
    found = {str(path): path.stat() for path in daemon.output_dir.rglob("*") if path.is_file()}
    return {path: (stat.st_ino, stat.st_mtime_ns) for path, stat in found.items()}


def runs(daemon: Daemon) -> int:
    """How often a target ran, by the log, over all starts."""
    return daemon.log_path.read_text().count(f"path={PROJECT} ")


def is_settled(daemon: Daemon) -> bool:
    """Whether the first scan is over and what was due has begun or ended."""
    status = daemon.status()
    return bool(status["sources"][0]["lastScan"]) and status["jobs"] == {"running": None, "queued": 0}


def target(daemon: Daemon) -> dict[str, Any]:
    (found,) = daemon.status()["targets"]
    return dict(found)


def test_a_continuous_target_updates_in_seconds_and_only_on_changes(
    make_daemon: Callable[..., Daemon], talk: Talk
) -> None:
    """A change that does not alter a page writes nothing."""
    daemon = make_daemon(targets=[{"path": PROJECT}]).run()
    until(lambda: words(1) in page(daemon))

    talk.write(NOTES, f"second {words(2)}\n")
    until(lambda: words(2) in page(daemon))

    daemon.wait_until_drained()
    until(lambda: daemon.status()["jobs"] == {"running": None, "queued": 0})
    before = written(daemon)
    with daemon.client() as client:
        for line in client.post("/index", json={}).text.splitlines():
            assert "error" not in line
    daemon.drop_request("again.txt", f"{PROJECT}\n")
    (result,) = daemon.wait_for_results(1)
    assert '"written": 0' in result.read_text()
    assert written(daemon) == before
    daemon.terminate()

    count = runs(daemon)
    daemon.run()
    until(lambda: runs(daemon) > count)
    daemon.terminate()
    assert written(daemon) == before


def test_a_run_that_was_missed_while_the_daemon_was_down_is_made_up_once(
    make_daemon: Callable[..., Daemon], talk: Talk
) -> None:
    daemon = make_daemon(targets=[{"path": PROJECT, "schedule": "0 3 * * *", "refresh": "scheduled"}])
    assert daemon.ask("run", "--once").returncode == 0
    assert words(1) in page(daemon)
    daemon.run()
    until(lambda: is_settled(daemon))
    daemon.terminate()
    assert runs(daemon) == 0, daemon.log_end()  # it had run a moment before

    now = int(time.time() * 1000)
    with Archive(daemon.archive_dir) as archive:
        last = archive.target_get(PROJECT, "last")
        archive.target_put(PROJECT, "last", last | {"time": now - 3 * DAY_MS})
    talk.write(NOTES, f"second {words(2)}\n")
    daemon.run()
    until(lambda: target(daemon)["lastRun"] >= now)
    assert words(2) in page(daemon)

    talk.write(NOTES, f"third {words(3)}\n")
    until(lambda: daemon.search(words(3)))
    daemon.terminate()
    daemon.run()
    until(lambda: is_settled(daemon))
    daemon.terminate()
    assert runs(daemon) == 1
    assert words(3) not in page(daemon)


def test_a_page_a_person_edited_is_kept_beside_the_current_one(make_daemon: Callable[..., Daemon], talk: Talk) -> None:
    daemon = make_daemon(targets=[{"path": PROJECT}]).run()
    until(lambda: words(1) in page(daemon))
    until(lambda: target(daemon)["state"] == "done")
    edited = daemon.output_dir / f"{NOTES[1:]}.md"
    current = edited.with_name("notes.md.current.md")
    noted = daemon.output_dir / PROJECT[1:] / "README.md"
    noted.write_bytes(noted.read_bytes().replace(CLOSE, b"My notes.\n" + CLOSE))
    before = edited.read_bytes()
    edited.write_text("My own words.\n")

    talk.write(NOTES, f"second {words(2)}\n")

    until(lambda: current.exists() and words(2) in current.read_text())
    until(lambda: target(daemon)["warnings"])
    assert edited.read_text() == "My own words.\n"
    assert b"My notes.\n" in noted.read_bytes()
    said = " ".join(daemon.ask("status").stdout.split())
    assert "notes.md.md was edited by hand and is kept as it is; the current page is notes.md.current.md" in said

    edited.write_bytes(before)
    until(lambda: words(2) in page(daemon))
    until(lambda: not current.exists())
    until(lambda: target(daemon)["warnings"] == [])


def test_the_tree_follows_what_changes_without_a_new_message(
    make_daemon: Callable[..., Daemon], talk: Talk, tmp_path: Path
) -> None:
    """A session is renamed, and a file comes back on the disk."""
    project = tmp_path / "work"
    talk.write(f"{project}/plan.txt", f"first {words(1)}\n")
    daemon = make_daemon(targets=[{"path": str(project)}]).run()
    pages = daemon.output_dir / str(project)[1:]

    def tells(title: str) -> bool:
        return any(title in path.read_text() for path in pages.rglob("*.md"))

    until(lambda: tells("Garden"))
    daemon.wait_until_drained()
    until(lambda: is_settled(daemon))

    talk.store.session(session("ses_a", PROJECT, "Tomatoes"))
    until(lambda: tells("Tomatoes"))
    until(lambda: is_settled(daemon))

    plan = pages / "plan.txt.md"
    before = plan.read_bytes()
    project.mkdir()
    (project / "plan.txt").write_text(f"first {words(1)}\n")
    until(lambda: plan.read_bytes() != before)


def test_a_requested_continuous_target_survives_a_restart(make_daemon: Callable[..., Daemon], talk: Talk) -> None:
    daemon = make_daemon().run()
    daemon.drop_request("follow.toml", f'path = "{PROJECT}"\nrefresh = "continuous"\n')
    assert [path.parent.name for path in daemon.wait_for_results(1)] == ["done"]
    assert words(1) in page(daemon)
    talk.write(NOTES, f"second {words(2)}\n")
    until(lambda: words(2) in page(daemon))
    daemon.terminate()

    talk.write(NOTES, f"third {words(3)}\n")
    daemon.run()
    until(lambda: words(3) in page(daemon))
    talk.write(NOTES, f"fourth {words(4)}\n")
    until(lambda: words(4) in page(daemon))
    assert target(daemon)["path"] == PROJECT


def test_a_target_without_records_says_so_and_gets_its_pages_later(
    make_daemon: Callable[..., Daemon], data_dir: Path
) -> None:
    daemon = make_daemon(targets=[{"path": PROJECT}], make_data_dir=False).run()
    readme = daemon.output_dir / PROJECT[1:] / "README.md"
    until(readme.exists)
    Talk(JsonStore(data_dir)).write(NOTES, f"first {words(1)}\n")
    until(lambda: words(1) in page(daemon))


def test_a_schedule_that_is_no_cron_text_is_refused_by_name(make_daemon: Callable[..., Daemon]) -> None:
    daemon = make_daemon(targets=[{"path": PROJECT, "schedule": "sometimes"}])
    ended = daemon.ask("run")
    assert ended.returncode == 78
    assert "targets[0].schedule" in ended.stderr
