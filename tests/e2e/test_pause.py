"""A service that is paused archives what comes, does nothing else, says so, and goes on where it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.e2e.talk import Talk, words
from tests.support.processes.daemon_process import Daemon
from tests.support.stores.make_opencode import JsonStore


def _paused(service: Daemon, *arguments: str) -> None:
    asked = service.ask("pause", *arguments)
    assert asked.returncode == 0, asked.stderr


def _waiting(status: dict[str, Any]) -> bool:
    return bool(status["outbox"]["lexical"] or status["outbox"]["semantic"])


def test_a_pause_stops_all_but_archiving_and_holds_over_a_restart(tmp_path: Path) -> None:
    talk = Talk(JsonStore(tmp_path / "oc"))
    talk.ask(f"Number the rows. {words(1)}")
    targets = [{"path": "/home/dev/garden", "refresh": "continuous"}]
    with Daemon(tmp_path / "oc", tmp_path / "ours", targets=targets) as service:
        service.run()
        service.wait_until_drained()
        service.until_status(lambda status: status["targets"][0]["lastRun"], "the first run of the target")
        _paused(service)
        before = service.until_status(lambda status: not status["jobs"]["running"], "the end of what was under way")
        talk.ask(f"Water the beds. {words(2)}")
        found = service.until_status(lambda status: status["archive"]["messages"] == 2, "the archived message")
        assert _waiting(found)
        assert service.search(words(2))[0]["snippet"]  # found by words at once, though it is not indexed
        service.terminate()
        service.run()
        again = service.until_status(lambda status: status["archive"]["messages"] == 2, "the archive after the restart")
        assert again["pause"] == before["pause"]
        assert _waiting(again)
        assert again["targets"][0]["lastRun"] == before["targets"][0]["lastRun"]
        shown = " ".join(service.ask("status").stdout.split())
        assert "reconstitute pause --resume" in shown
        _paused(service, "--resume")
        ended = service.wait_until_drained()
        assert ended["pause"] is None
        last = before["targets"][0]["lastRun"]
        service.until_status(lambda status: status["targets"][0]["lastRun"] > last, "the run that the pause put off")


def test_a_pause_ends_at_its_time_by_itself(tmp_path: Path) -> None:
    talk = Talk(JsonStore(tmp_path / "oc"))
    talk.ask("Number the rows.")
    with Daemon(tmp_path / "oc", tmp_path / "ours") as service:
        service.run()
        service.wait_until_drained()
        _paused(service, "--until", "3s")
        talk.ask("Water the beds.")
        service.until_status(lambda status: status["pause"] is None, "the end of the pause")
        service.until_status(lambda status: status["archive"]["messages"] == 2 and not _waiting(status), "the rest")
