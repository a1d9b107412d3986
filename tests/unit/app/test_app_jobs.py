"""Which targets run, how often, and what becomes of a run that cannot be done now."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon import config
from daemon.app import targets
from daemon.app.engine import Engine
from daemon.app.indexing import Interrupted
from daemon.app.jobs import JobLoop
from daemon.app.targets import concerns
from daemon.ingest import ScanResult
from daemon.model import Target
from daemon.requests import Requests
from tests.e2e.talk import PROJECT, Talk
from tests.support.processes.daemon_process import until
from tests.support.servers.fake_ollama import DIGEST, FakeOllama
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import JsonStore


@pytest.mark.parametrize(
    ("places", "target", "answer"),
    [
        ({"/a/b"}, "/a/b", True),
        ({"/a/b/c.py"}, "/a/b", True),
        ({"/a"}, "/a/b", True),
        ({"/a/"}, "/a/b", True),
        ({"/"}, "/a", True),
        ({"/ab"}, "/a", False),
        ({"/a"}, "/ab", False),
        ({"/a/bc"}, "/a/b", False),
        ({"/x", "/a/b"}, "/a", True),
        ({""}, "/a", False),
        (set(), "/a", False),
    ],
)
def test_a_target_is_concerned_by_what_lies_beneath_or_around_it(
    places: set[str], target: str, *, answer: bool
) -> None:
    assert concerns(places, target) is answer


class Jobs:
    """A job loop that is turned by hand, over a small store and a real engine."""

    def __init__(
        self,
        root: Path,
        sections: list[dict[str, Any]],
        model_look_s: float = 600.0,
        rewrite_s: float = 600.0,
        **more: Any,
    ) -> None:
        tables = {
            "opencode": {"data_dir": str(root / "opencode")},
            "archive": {"dir": str(root / "archive")},
            "output": {"dir": str(root / "out")},
            "embedding": {"provider": "builtin"},
            "chat": {"provider": "none"},
            "targets": sections,
        } | more
        self.engine = PlainService(Engine(msgspec.convert(tables, config.Config)))
        self.requests = Requests(self.engine.config.requests_dir, quiet_seconds=0)
        self.ready = threading.Event()
        self.ready.set()
        self.loop = JobLoop(
            self.engine, self.requests, self.ready, lambda _: None, model_look_s=model_look_s, rewrite_s=rewrite_s
        )

    def runs(self, most: int = 10) -> int:
        """Turn until there is nothing to do; how many turns did something."""
        return next(number for number in range(most) if self.loop.turn() > 0)

    def last(self, path: str) -> Any:
        return self.engine.archive.target_get(path, "last")

    def drop(self, name: str, content: str) -> None:
        (self.engine.config.requests_dir / name).write_text(content)

    def close(self) -> None:
        self.requests.close()
        self.engine.close()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Jobs]]:
    talk = Talk(JsonStore(tmp_path / "opencode"))
    talk.write(f"{PROJECT}/notes.md", "Notes\n")
    made: list[Jobs] = []

    def jobs(*sections: dict[str, Any], **more: Any) -> Jobs:
        made.append(Jobs(tmp_path, list(sections), **more))
        made[-1].engine.scan(everything=True, patient=False)
        return made[-1]

    yield jobs
    for each in made:
        each.close()


def test_two_triggers_at_once_are_one_run(make: Callable[..., Jobs]) -> None:
    jobs = make({"path": PROJECT})
    jobs.loop.enqueue(PROJECT)
    jobs.loop.enqueue(PROJECT)
    jobs.loop.on_scan(ScanResult(places={PROJECT}))
    assert jobs.loop.queued == 1

    assert jobs.runs() == 1
    assert jobs.loop.queued == 0
    assert jobs.last(PROJECT)["state"] == "done"


def test_a_trigger_for_now_is_not_put_off_by_an_earlier_one_for_later(make: Callable[..., Jobs]) -> None:
    jobs = make({"path": PROJECT})
    jobs.loop.enqueue(PROJECT, 3600)
    assert jobs.runs() == 0
    jobs.loop.enqueue(PROJECT)
    assert jobs.runs() == 1


def test_only_continuous_targets_that_are_concerned_follow_new_evidence(make: Callable[..., Jobs]) -> None:
    jobs = make(
        {"path": PROJECT},
        {"path": "/home/dev/other"},
        {"path": f"{PROJECT}/docs", "refresh": "scheduled", "schedule": "0 3 * * *"},
    )
    jobs.loop.on_scan(ScanResult(places={f"{PROJECT}/docs/a.md"}))
    assert jobs.loop.queued == 1
    jobs.loop.on_scan(ScanResult())
    assert jobs.loop.queued == 1
    jobs.loop.on_scan(ScanResult(removed=1))  # whom a removal concerns is not told
    assert jobs.loop.queued == 2


def test_nothing_runs_before_the_first_scan(make: Callable[..., Jobs]) -> None:
    jobs = make({"path": PROJECT})
    jobs.ready.clear()
    jobs.loop.enqueue(PROJECT)
    assert jobs.loop.turn() == 0
    assert jobs.loop.queued == 1


def test_a_stop_gives_the_request_back_and_leaves_no_trace_of_the_attempt(make: Callable[..., Jobs]) -> None:
    jobs = make()
    jobs.drop("garden.txt", f"{PROJECT}\n")
    jobs.loop.stop()
    with pytest.raises(Interrupted):
        jobs.loop.turn()
    assert [path.name for path in (jobs.engine.config.requests_dir / "running").iterdir()] == ["0.garden.txt"]
    assert jobs.loop.current is None


def test_a_request_to_follow_a_path_is_a_target_from_then_on(make: Callable[..., Jobs]) -> None:
    jobs = make()
    jobs.drop("garden.toml", f'path = "{PROJECT}"\nrefresh = "continuous"\nquestions = ["Why?"]\n')
    assert jobs.runs() == 1
    jobs.loop.on_scan(ScanResult(places={PROJECT}))
    assert jobs.loop.queued == 1
    assert [target["path"] for target in jobs.engine.status()["targets"]] == [PROJECT]
    jobs.drop("again.toml", f'path = "{PROJECT}"\nrefresh = "continuous"\nquestions = ["How?"]\n')
    jobs.runs()
    known = targets.known(jobs.engine.archive, jobs.engine.config)
    assert known == {PROJECT: Target(PROJECT, questions=("How?",), refresh="continuous")}


def test_a_path_without_records_can_be_followed(make: Callable[..., Jobs]) -> None:
    jobs = make()
    jobs.drop("new.toml", 'path = "/home/dev/new"\nrefresh = "continuous"\n')
    assert jobs.runs() == 1
    assert (jobs.engine.config.requests_dir / "done" / "new.toml").exists()
    assert (jobs.engine.config.output_dir / "home/dev/new/README.md").exists()


def result(jobs: Jobs, folder: str, name: str) -> Any:
    return json.loads((jobs.engine.config.requests_dir / folder / f"{name}.result.json").read_text())


def test_of_several_paths_a_bad_one_does_not_stop_the_others(make: Callable[..., Jobs]) -> None:
    jobs = make()
    jobs.drop("both.txt", f"/home/dev/never\n{PROJECT}\n")
    jobs.runs()
    found = result(jobs, "failed", "both.txt")
    bad, good = found["result"]["results"]
    assert (found["status"], found["error"]["message"]) == ("partly failed", bad["error"]["message"])
    assert bad["target"] == "/home/dev/never"
    assert (bad["error"]["type"], bad["error"]["exitCode"]) == ("NotRecorded", 4)
    assert "no session touched it" in bad["error"]["message"]
    assert (good["target"], "error" in good) == (PROJECT, False)
    assert jobs.loop.failed_jobs == 1


def test_a_refused_request_file_is_in_the_status(make: Callable[..., Jobs]) -> None:
    jobs = make()
    jobs.drop("wrong.txt", "relative/path\n")
    jobs.runs()
    assert jobs.loop.failed_jobs == 1
    (error,) = [error for error in jobs.engine.status()["errors"] if error["where"] == "request wrong.txt"]
    assert "is not an absolute path" in error["message"]


def test_a_failure_of_the_disk_at_one_path_leaves_the_others_their_results(
    make: Callable[..., Jobs], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    jobs = make()
    jobs.drop("a.json", json.dumps([{"path": PROJECT, "output": f"{tmp_path}/file/x"}, {"path": PROJECT}]))
    jobs.runs()
    bad, good = result(jobs, "failed", "a.json")["result"]["results"]
    assert bad["error"]["type"] == "OutputRefused"
    assert good["pages"] > 0


@pytest.mark.parametrize(("failures", "folder"), [(2, "done"), (3, "failed")])
def test_an_output_that_fails_for_a_moment_is_tried_three_times(
    make: Callable[..., Jobs], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int, folder: str
) -> None:
    monkeypatch.setattr("daemon.app.jobs._RETRY_S", 0)
    place, opened = tmp_path / "elsewhere", os.open
    refused: list[Any] = []

    def refusing(path: Any, *values: Any, **named: Any) -> int:
        if path == place and len(refused) < failures:
            refused.append(path)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return opened(path, *values, **named)

    monkeypatch.setattr(os, "open", refusing)
    jobs = make()
    jobs.drop("a.json", json.dumps([{"path": PROJECT}, {"path": PROJECT, "output": str(place)}]))
    jobs.runs()
    said = result(jobs, folder, "a.json")
    assert said["attempt"] == 3
    assert said["result"]["results"][0]["pages"] > 0
    assert ("pages" in said["result"]["results"][1]) is (folder == "done")
    assert len(refused) == failures
    assert jobs.loop.put_off == 2


def test_a_request_with_only_bad_paths_fails_with_a_reason_for_each(make: Callable[..., Jobs]) -> None:
    jobs = make()
    jobs.drop("none.txt", "/home/dev/never\n/home/dev/ever\n")
    jobs.drop("one.txt", "/home/dev/never\n")
    jobs.runs()
    error = result(jobs, "failed", "none.txt")["error"]
    assert error["type"] == "NotRecorded"
    assert "/home/dev/never" in error["message"]
    assert "/home/dev/ever" in error["message"]
    assert "/home/dev/never" in result(jobs, "failed", "one.txt")["error"]["message"]
    assert jobs.loop.failed_jobs == 2


def test_a_failing_target_shows_in_the_status_until_a_good_run(
    make: Callable[..., Jobs],
) -> None:
    jobs = make({"path": PROJECT})
    jobs.loop.enqueue(PROJECT)
    jobs.runs()
    before = jobs.last(PROJECT)
    assert jobs.loop.failed_jobs == 0
    out = jobs.engine.config.output_dir
    out.rename(out.with_name("moved"))
    out.write_text("in the way")
    jobs.loop.enqueue(PROJECT)
    jobs.runs()
    (row,) = jobs.engine.status()["targets"]
    assert row["state"].startswith(f"failed: {out}")
    assert row["lastRun"] >= before["time"]
    assert jobs.last(PROJECT)["result"] == before["result"]
    assert jobs.loop.failed_jobs == 1
    out.unlink()
    jobs.loop.enqueue(PROJECT)
    jobs.runs()
    assert jobs.engine.status()["targets"][0]["state"] == "done"


def test_pages_that_could_not_be_written_are_tried_again_by_themselves(
    make: Callable[..., Jobs], tmp_path: Path
) -> None:
    """No message and no look at the disk tells that a folder can be written to again."""
    elsewhere, way = tmp_path / "elsewhere", tmp_path / "out" / "home"
    elsewhere.mkdir()
    way.parent.mkdir()
    way.symlink_to(elsewhere)
    jobs = make({"path": PROJECT}, rewrite_s=0.0)
    jobs.loop.enqueue(PROJECT)
    jobs.loop.turn()
    assert jobs.loop.failed_jobs == 1
    assert jobs.loop.queued == 0  # so that `run --once` ends
    way.unlink()

    until(lambda: jobs.runs() >= 0 and jobs.last(PROJECT)["state"] == "done")

    assert page(jobs)
    assert list(elsewhere.iterdir()) == []


def test_what_the_configuration_says_goes_before_what_a_request_said(make: Callable[..., Jobs]) -> None:
    jobs = make({"path": PROJECT, "questions": ["Configured?"]})
    jobs.drop("garden.toml", f'path = "{PROJECT}"\nrefresh = "continuous"\nquestions = ["Requested?"]\n')
    assert jobs.runs() == 1
    known = targets.known(jobs.engine.archive, jobs.engine.config)
    assert known[PROJECT].questions == ("Configured?",)


def test_a_failed_run_is_no_success_so_its_schedule_is_made_up_for() -> None:
    assert targets.last_success({}) is None
    assert targets.last_success({"time": 5, "state": "done"}) == 5
    assert targets.last_success({"time": 9, "state": "failed: x", "succeeded": 5}) == 5
    assert targets.last_success({"time": 9, "state": "failed: x", "succeeded": None}) is None


def page(jobs: Jobs) -> str:
    return (jobs.engine.config.output_dir / PROJECT.lstrip("/") / "README.md").read_text()


def test_the_target_that_has_waited_longest_is_next(make: Callable[..., Jobs]) -> None:
    jobs = make({"path": f"{PROJECT}/a"}, {"path": f"{PROJECT}/b"})
    jobs.loop.enqueue(f"{PROJECT}/b")
    jobs.loop.enqueue(f"{PROJECT}/a")
    jobs.loop.turn()
    assert (jobs.last(f"{PROJECT}/a"), jobs.last(f"{PROJECT}/b")["state"]) == (None, "done")


def test_what_is_put_off_is_queued_but_not_due(make: Callable[..., Jobs]) -> None:
    jobs = make({"path": PROJECT})
    jobs.loop.enqueue(PROJECT, 3600)
    assert (jobs.loop.queued, jobs.loop.due, jobs.loop.later) == (1, 0, [PROJECT])
    jobs.loop.enqueue(PROJECT)
    assert (jobs.loop.queued, jobs.loop.due, jobs.loop.later) == (1, 1, [])


@pytest.mark.parametrize(("seconds", "allowed"), [(30, 900), (600, 900), (7200, 7500)])
def test_a_reply_may_take_the_time_that_the_configuration_gives_it(
    make: Callable[..., Jobs], seconds: int, allowed: int
) -> None:
    jobs = make(chat={"timeout_seconds": seconds})
    assert jobs.loop._allowed_s == allowed


@pytest.mark.parametrize("by_request", [True, False])
def test_a_question_more_leaves_the_configured_answers_on_the_page(
    make: Callable[..., Jobs], *, by_request: bool
) -> None:
    jobs = make({"path": PROJECT, "questions": ["Configured?", "Both?"]})
    if by_request:
        jobs.drop("garden.json", json.dumps({"path": PROJECT, "questions": ["Both?", "Requested?"]}))
        assert jobs.runs() == 1
    else:
        jobs.engine.reconstitute(f"{PROJECT}/", questions=["Both?", "Requested?"], progress=lambda _: None)
    assert [page(jobs).count(f"## {question}") for question in ("Configured?", "Both?", "Requested?")] == [1, 1, 1]


@pytest.mark.parametrize(
    ("refresh", "follows", "says"), [("", True, ""), ("once", False, "has ended"), ("scheduled", False, "has ended")]
)
def test_only_a_request_that_says_so_ends_following(
    make: Callable[..., Jobs], refresh: str, says: str, *, follows: bool
) -> None:
    jobs = make()
    jobs.drop("a.toml", f'path = "{PROJECT}"\nrefresh = "continuous"\n')
    assert jobs.runs() == 1
    jobs.loop.enqueue(PROJECT)  # nothing runs what is no target any more
    jobs.drop("b.json", json.dumps({"path": PROJECT, **({"refresh": refresh} if refresh else {})}))
    jobs.runs()
    assert (PROJECT in targets.known(jobs.engine.archive, jobs.engine.config)) is follows
    warnings = " ".join(result(jobs, "done", "b.json")["result"]["results"][0]["warnings"])
    assert ("has ended" in warnings, says in warnings) == (not follows, True)
    jobs.loop.on_scan(ScanResult(places={PROJECT}))
    assert jobs.loop.queued == int(follows)


def test_following_what_was_never_recorded_can_be_ended_too(make: Callable[..., Jobs]) -> None:
    jobs = make()
    jobs.drop("a.toml", 'path = "/home/dev/new"\nrefresh = "continuous"\n')
    jobs.drop("b.toml", 'path = "/home/dev/new"\nrefresh = "once"\n')
    assert jobs.runs() == 2
    assert targets.known(jobs.engine.archive, jobs.engine.config) == {}


def test_a_model_that_comes_up_later_answers_for_the_targets_that_had_none(make: Callable[..., Jobs]) -> None:
    server = FakeOllama(models={"qwen3:8b": DIGEST})
    with server:
        url = server.url
    chat = {"provider": "auto", "url": url, "model": "qwen3:8b"}
    jobs = make({"path": PROJECT}, model_look_s=0.0, chat=chat)
    jobs.loop.enqueue(PROJECT)
    jobs.runs()
    assert (jobs.last(PROJECT)["result"]["model"], jobs.loop.queued) == ("", 0)
    jobs.loop.turn()
    assert jobs.loop.queued == 0  # still nobody there
    server.up()
    try:
        until(lambda: jobs.loop.turn() >= 0 and jobs.last(PROJECT)["result"]["model"] != "")
        assert server.chats
        seen = len(server.requests)
        jobs.loop.turn()
        assert len(server.requests) == seen  # it is there: nothing to look for
    finally:
        server.down()
