"""The pages of a followed folder beside a real OpenCode at work: current within seconds, and still where nothing changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.live.opencode import OpenCode, make_project
from tests.live.recovery_work import write
from tests.live.scripted_model import ScriptedModel, Step
from tests.support.pages.page_links import broken
from tests.support.processes.daemon_process import Daemon, until

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

TURNS = 4
OLD, NEW = "Garden plans", "Orchard plans"


@dataclass
class Followed:
    """What was seen. `seconds` from the end of each turn, by its answer, until the front page told of it.

    `before` and `after` are the inode and time of each published file around a second run and a restart.
    """

    seconds: list[float] = field(default_factory=list)
    request: str = ""
    before: dict[str, tuple[int, int]] = field(default_factory=dict)
    after_request: dict[str, tuple[int, int]] = field(default_factory=dict)
    after_restart: dict[str, tuple[int, int]] = field(default_factory=dict)
    titled: dict[str, str] = field(default_factory=dict)
    renamed_s: float = 0.0
    renamed: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def run(
    binary: Path,
    model: ScriptedModel,
    quick_embedder: dict[str, dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Followed]:
    root = tmp_path_factory.mktemp("pages")
    garden = make_project(root / "work" / "garden", {"README.md": "# Garden\n\nBeds, trees and water.\n"})
    seen = Followed()
    targets = [{"path": garden}]
    daemon = Daemon(root / "oc" / "data" / "opencode", root / "ours", tables=quick_embedder, targets=targets)
    front = daemon.output_dir / str(garden).lstrip("/") / "README.md"
    with daemon, OpenCode(binary, root / "oc", model.url) as opencode:
        daemon.run()
        session = opencode.create_session(garden, OLD)
        for number in range(TURNS):
            prompt, named = f"Plant bed number {number} with beans.", f"bed-{number}.md"
            answer = f"Bed {number} is done."
            model.add(prompt, [Step(calls=(write(garden / named, f"# Bed {number}\n"),)), Step(text=answer)])
            opencode.prompt(session, prompt)
            finished = time.monotonic()
            until(partial(_tells, front, prompt, named, answer), what="the front page")
            seen.seconds.append(time.monotonic() - finished)
        seen.titled = _pages(daemon)
        _run_again(daemon, garden, seen)
        opencode.rename(session, NEW)
        finished = time.monotonic()
        until(lambda: NEW in front.read_text() and OLD not in front.read_text(), what="the new name")
        seen.renamed_s = time.monotonic() - finished
        until(lambda: _is_quiet(daemon))
        seen.renamed = _pages(daemon)
        daemon.terminate()
        yield seen


def _tells(front: Path, prompt: str, named: str, answer: str) -> bool:
    """Whether a front page has the prompt, the file that was written and that it was answered, and its session the answer."""
    page = front.read_text() if front.exists() else ""
    said = [path.read_text() for path in front.parent.glob("sessions/*.md")]
    is_told = prompt in page and f"[{named}](" in page and ", answered" in page
    return is_told and any(answer in text for text in said)


def _run_again(daemon: Daemon, garden: Path, seen: Followed) -> None:
    """The same folder once more, by a request and by a restart, when all is settled."""
    daemon.wait_until_drained()
    until(lambda: _is_quiet(daemon))
    seen.before = _written(daemon)
    daemon.drop_request("again.txt", f"{garden}\n")
    (result,) = daemon.wait_for_results(1)
    seen.request = result.read_text()
    seen.after_request = _written(daemon)
    daemon.terminate()
    runs = daemon.log_path.read_text().count(f"path={garden} ")
    daemon.run()
    until(lambda: daemon.log_path.read_text().count(f"path={garden} ") > runs, what="a run after the restart")
    until(lambda: _is_quiet(daemon))
    seen.after_restart = _written(daemon)


def _is_quiet(daemon: Daemon) -> bool:
    return bool(daemon.status()["jobs"] == {"running": None, "queued": 0})


def _written(daemon: Daemon) -> dict[str, tuple[int, int]]:
    files = {str(path): path.stat() for path in daemon.output_dir.rglob("*") if path.is_file()}
    return {path: (stat.st_ino, stat.st_mtime_ns) for path, stat in files.items()}


def _pages(daemon: Daemon) -> dict[str, str]:
    root = daemon.output_dir
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*.md"))}


def test_the_front_page_tells_of_a_finished_message_by_itself(
    run: Followed, record_property: Callable[[str, object], None]
) -> None:
    current = ", ".join(f"{one:.2f}" for one in run.seconds)
    summary = f"front page current after {current} s; renamed after {run.renamed_s:.2f} s"
    record_property("current", summary)
    print(summary)
    assert len(run.seconds) == TURNS


def test_a_second_run_writes_nothing(run: Followed) -> None:
    assert '"written": 0' in run.request
    assert run.before
    assert run.after_request == run.before
    assert run.after_restart == run.before


def test_a_renamed_session_is_renamed_on_the_pages(run: Followed) -> None:
    assert any(OLD in text for text in run.titled.values())
    assert [path for path, text in run.renamed.items() if OLD in text] == []
    assert sum(NEW in text for text in run.renamed.values()) >= sum(OLD in text for text in run.titled.values())
    sessions = [path for path in run.renamed if "/sessions/" in path]
    assert len(sessions) == 1
    assert sessions[0].endswith("-orchard-plans.md")


def test_every_link_of_the_pages_resolves(run: Followed) -> None:
    assert broken(run.titled) == []
    assert broken(run.renamed) == []
