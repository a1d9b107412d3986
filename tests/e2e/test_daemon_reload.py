"""SIGHUP has a running daemon read its configuration again, and nothing of what it does is lost by that."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.talk import Talk, words
from tests.support.processes.daemon_process import Daemon, until
from tests.support.servers.fake_ollama import FakeOllama
from tests.support.stores.make_opencode import JsonStore


@pytest.fixture
def store(data_dir: Path) -> JsonStore:
    return JsonStore(data_dir)


@pytest.fixture
def running(daemon: Daemon, store: JsonStore) -> Daemon:
    message = Talk(store).ask(f"About {words(1)}.")
    daemon.run()
    assert daemon.wait_until_found({words(1): message})
    return daemon


def test_a_changed_configuration_is_in_force_after_a_reload(running: Daemon, store: JsonStore, tmp_path: Path) -> None:
    before = running.status()
    running.configure(
        {"output": {"dir": tmp_path / "other"}}, targets=[{"path": "/home/dev/shop", "schedule": "0 3 * * *"}]
    )
    running.hang_up()
    status = running.until_status(lambda now: now["started"] != before["started"], "the reload")
    assert status["pid"] == before["pid"]
    assert [target["path"] for target in status["targets"]] == ["/home/dev/shop"]
    assert "output.dir" in running.log_end()
    assert "targets" in running.log_end()
    assert running.ask("status").returncode == 0  # it has the settings of this command
    message = Talk(store, "ses_0002").ask(f"About {words(2)}.")
    assert running.wait_until_found({words(2): message})
    assert running.terminate()[0] == 0


def test_a_mistake_leaves_the_former_configuration_in_force(running: Daemon) -> None:
    before, text = running.status(), running.config.read_text()
    running.config.write_text(text + "\n[log]\nlevel = 'loud'\n")
    running.hang_up()
    status = running.until_status(lambda now: now["errors"], "the error")
    (error,) = status["errors"]
    assert (error["where"], "log.level" in error["message"]) == ("configuration", True)
    assert status["started"] == before["started"]
    running.config.write_text(text + "\n[[targets]]\npath = '/x'\nschedule = 'often'\n")
    running.hang_up()
    running.until_status(lambda now: "targets[0].schedule" in str(now["errors"]), "the second error")
    assert running.status()["started"] == before["started"]


def test_a_reload_does_not_wait_for_a_slow_model(
    make_daemon: Callable[..., Daemon], store: JsonStore, tmp_path: Path
) -> None:
    """The process starts anew in its own place: nobody but systemd would start it after its end."""
    with FakeOllama() as server:
        server.delay_s = 100
        tables = {"embedding": {"provider": "ollama", "model": "embedder", "url": server.url}}
        running = make_daemon(tables=tables).run(fork=False)
        message = Talk(store).ask(f"About {words(1)}.")
        assert running.wait_until_found({words(1): message})
        until(server.embedded, what="a request to the model")
        before = running.status()
        running.configure({"output": {"dir": tmp_path / "other"}})
        running.hang_up()
        status = running.until_status(lambda now: now["started"] != before["started"], "the reload")
        assert status["pid"] == before["pid"]
        assert "did not end in time" in running.log_path.read_text()
        assert running.ask("status").returncode in (0, 1)  # it has the settings of this command
        assert running.search(words(1))
        server.delay_s = 0
        running.until_status(lambda now: now["outbox"]["semantic"] == 0, "the embedding")
        assert running.terminate()[0] == 0


@pytest.mark.parametrize("key", ["watch.requests_dir", "archive.dir"])
def test_a_setting_that_cannot_be_had_leaves_the_former_one_in_force(running: Daemon, tmp_path: Path, key: str) -> None:
    before = running.status()
    (tmp_path / "file").write_text("in the way")
    section, _, name = key.partition(".")
    running.configure({section: {name: tmp_path / "file" / "ours"}})
    running.hang_up()
    status = running.until_status(lambda now: now["started"] != before["started"], "the reload")
    assert [error["where"] for error in status["errors"]] == ["configuration"]
    running.drop_request("a.txt", "relative\n")
    assert [path.name for path in running.wait_for_results(1)] == ["a.txt.result.json"]


def test_an_unchanged_configuration_changes_nothing(running: Daemon) -> None:
    before = running.status()
    for _ in range(20):
        running.hang_up()
    until(lambda: running.log_end().count("nothing") >= 1, 60, "the log's line")
    time.sleep(0.5)
    assert running.status()["started"] == before["started"]


def test_signals_at_every_moment_of_a_reload_end_in_the_newest_configuration(running: Daemon) -> None:
    for number in range(1, 25):
        running.configure({"limits": {"pages": number}})
        running.hang_up()
        time.sleep(0.05 * (number % 7))

    def is_newest() -> bool:
        done = running.ask("status", "--json")
        status = json.loads(done.stdout) if done.returncode == 0 else {}
        return bool(status.get("running")) and not status.get("differs")

    until(is_newest, 60, "the newest configuration")
    running.configure({"limits": {"pages": 99}})
    running.hang_up()
    time.sleep(0.02)
    assert running.terminate()[0] == 0
