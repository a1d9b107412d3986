"""Killed at any point, a published tree is the old or the new one, and a request file is worked on and answered once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon.model import Page
from daemon.publish import MANIFEST, publish, recover
from daemon.publish.edits import CLOSE, EMPTY, composed
from daemon.requests import Requests

pytestmark = [pytest.mark.crash, pytest.mark.on_disk]

TREE = "home/u/app"
OLD = [
    Page("README.md", "old readme"), Page("gone/x.md", "x"), Page("mine.md", "ours"),
    Page("s/1.md", "session", key="ses_1"), Page("s/2.md", "other session", key="ses_2"), Page("gone/noted.md", "y"),
]  # fmt: skip
NEW = [
    Page("README.md", "new readme"), Page("src/deep/b.md", "b"), Page("mine.md", "ours 2"),
    Page("s/2.md", "session", key="ses_1"), Page("s/1.md", "other session 2", key="ses_2"),
]  # fmt: skip
NOTED = {"README.md": "on the front", "s/1.md": "on session 1", "s/2.md": "on session 2", "gone/noted.md": "on y"}

SERVER = f"""
import json, os, signal, sys
from pathlib import Path
from daemon.model import Page
from daemon.publish import publish
from daemon.requests import Requests

def publish_pages(place, step, pages):
    publish(place, {TREE!r}, [Page(path, content, key=key) for path, content, key in pages], step=step)

def work(place, step, _):
    requests = Requests(place, quiet_seconds=0, home=Path("/home/u"), step=step)
    claimed = requests.claim()
    if claimed and claimed.name == "bad":
        requests.fail(claimed, ValueError("no"))
    elif claimed:
        requests.finish(claimed, {{"attempt": claimed.attempt}})

for line in sys.stdin:
    name, place, left, given = json.loads(line)
    child = os.fork()
    if not child:
        def step(point):
            global left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        status = 70
        try:
            globals()[name](Path(place), step, given)
            status = 0
        finally:
            os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Forks a child for each line that it reads, and answers how it ended."""


@pytest.fixture(scope="module")
def server() -> Iterator[subprocess.Popen[str]]:
    """Children of one process that has imported everything: an interpreter for each would take most of the time."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def run(server: subprocess.Popen[str]) -> Callable[..., bool]:
    """Run a child that kills itself before its step number `kill_at`; whether it died of that."""

    def run(name: str, place: Path, kill_at: int, given: object = None) -> bool:
        server.stdin.write(json.dumps([name, str(place), kill_at, given]) + "\n")
        server.stdin.flush()
        ended = int(server.stdout.readline())
        assert ended in {0, -signal.SIGKILL}
        return ended != 0

    return run


def tree(out: Path) -> dict[str, str]:
    folder = out / TREE
    return {
        str(p.relative_to(folder)): p.read_text(encoding="utf-8")
        for p in folder.rglob("*")
        if p.is_file() and p.name != MANIFEST
    }


def page(text: str, notes: str = "") -> str:
    return composed(text.encode(), f"\n{notes}\n".encode()).decode()


BESIDE = {"mine.md": "edited", "foreign.md": "foreign", "gone/noted.md": page("y", NOTED["gone/noted.md"])}
BEFORE = BESIDE | {
    "README.md": page("old readme", NOTED["README.md"]),
    "gone/x.md": page("x"),
    "s/1.md": page("session", NOTED["s/1.md"]),
    "s/2.md": page("other session", NOTED["s/2.md"]),
}
AFTER = BESIDE | {
    "README.md": page("new readme", NOTED["README.md"]),
    "src/deep/b.md": page("b"),
    "mine.current.md": page("ours 2"),
    "s/1.md": page("other session 2", NOTED["s/2.md"]),
    "s/2.md": page("session", NOTED["s/1.md"]),
}


def prepare(out: Path) -> None:
    """The old tree with notes, an edited page and a file that is not ours."""
    publish(out, TREE, OLD)
    for name, notes in NOTED.items():
        path = out / TREE / name
        path.write_bytes(path.read_bytes().replace(EMPTY + CLOSE, f"\n{notes}\n".encode() + CLOSE))
    (out / TREE / "mine.md").write_text("edited")
    (out / TREE / "foreign.md").write_text("foreign")
    assert tree(out) == BEFORE


def test_killed_at_any_point_a_tree_is_the_old_one_or_the_new_one_whole(tmp_path, run):
    pages = [(page.path, page.content, page.key) for page in NEW]
    outcomes = []
    for kill_at in range(200):
        out = tmp_path / str(kill_at)
        prepare(out)
        was_killed = run("publish_pages", out, kill_at, pages)
        recover(out)
        found = tree(out)
        assert found in (BEFORE, AFTER), kill_at
        outcomes.append(found == AFTER)
        assert not (out / ".reconstitute.next").exists()
        listed = json.loads((out / TREE / MANIFEST).read_bytes())["pages"]
        assert sorted(listed) == sorted((AFTER if outcomes[-1] else BEFORE).keys() - {"foreign.md"})
        again = publish(out, TREE, NEW)
        assert (again.kept, again.retired) == (["mine.md"], ["gone/noted.md"])
        assert tree(out) == AFTER
        if not was_killed:
            break
    assert not was_killed
    assert outcomes == sorted(outcomes)  # old before the commit, new after it
    assert outcomes.count(False) > 10
    assert outcomes.count(True) > 10


def test_a_tree_becomes_complete_despite_repeated_kills(tmp_path, run):
    pages = [(page.path, page.content, page.key) for page in NEW]
    prepare(tmp_path)
    kill_at = 0
    while run("publish_pages", tmp_path, kill_at, pages):
        assert set(tree(tmp_path).values()) <= set(BEFORE.values()) | set(AFTER.values())
        kill_at += 3
    assert tree(tmp_path) == AFTER


@pytest.mark.parametrize(("name", "text"), [("a.toml", 'path = "/a"'), ("bad", "/b"), ("worse", "not a path")])
def test_killed_at_any_point_a_request_is_answered_once_and_never_lost(tmp_path, run, name, text):
    ended_in = "done" if name == "a.toml" else "failed"
    for kill_at in range(100):
        place = tmp_path / str(kill_at)
        place.mkdir()
        (place / name).write_text(text)
        was_killed = run("work", place, kill_at)
        attempts = 1
        while was_killed and attempts < 10 and (list((place / "running").glob("*")) or (place / name).exists()):
            run("work", place, 1000)
            attempts += 1
        assert sorted(p.name for p in (place / ended_in).iterdir()) == [name, f"{name}.result.json"], kill_at
        assert (place / ended_in / name).read_text() == text
        assert json.loads((place / ended_in / f"{name}.result.json").read_bytes())["attempt"] <= 2
        others = {"done", "failed", "running"} - {ended_in}
        assert not [p for folder in others for p in (place / folder).iterdir()]
        if not was_killed:
            break
    assert not was_killed
    assert kill_at > 5


def test_a_request_that_kills_its_worker_is_given_up_after_three_attempts(tmp_path):
    (tmp_path / "a").write_text("/a")
    child = "import os, signal, sys; from pathlib import Path; from daemon.requests import Requests\n"
    child += "assert Requests(Path(sys.argv[1]), quiet_seconds=0).claim(); os.kill(os.getpid(), signal.SIGKILL)"
    ends = [subprocess.run([sys.executable, "-c", child, str(tmp_path)], timeout=60, check=False) for _ in range(3)]
    assert [end.returncode for end in ends] == [-signal.SIGKILL] * 3
    requests = Requests(tmp_path, quiet_seconds=0)
    assert requests.claim() is None
    requests.close()
    assert "was started 3 times" in json.loads((tmp_path / "failed/a.result.json").read_bytes())["error"]["message"]
    assert (tmp_path / "failed/a").read_text() == "/a"
