"""A service that crashed again and again answers from what is archived, says why, and can be told to try again."""

from __future__ import annotations

import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.talk import Talk, words
from tests.support.processes.daemon_process import Daemon, until
from tests.support.stores.make_opencode import JsonStore

CRASHES = 5


@pytest.fixture
def supervised(data_dir: Path, tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that a service manager starts, as it seems; nobody reads what it is told."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        with Daemon(data_dir, tmp_path / "run", environment={"NOTIFY_SOCKET": str(tmp_path / "notify")}) as daemon:
            yield daemon


@pytest.fixture
def store(data_dir: Path) -> JsonStore:
    return JsonStore(data_dir)


def crash(daemon: Daemon, times: int = CRASHES) -> None:
    for _ in range(times):
        daemon.run()
        daemon.kill()


def test_after_several_crashes_it_answers_and_reads_nothing(supervised: Daemon, store: JsonStore) -> None:
    first = Talk(store).ask(f"About {words(1)}.")
    supervised.run()
    assert supervised.wait_until_found({words(1): first})
    supervised.kill()
    crash(supervised, CRASHES - 1)
    Talk(store, "ses_0002").ask(f"About {words(2)}.")
    supervised.run()
    status = supervised.status()
    (error,) = status["errors"]
    assert error["where"] == "safe mode"
    assert "crashed 5 times" in error["message"]
    assert status["watch"] == "nothing: safe mode"
    (trouble,) = [row for row in status["troubles"] if row["what"] == "watch"]
    assert trouble["message"].startswith("safe mode: the service crashed 5 times")
    assert trouble["fix"].endswith("systemctl --user restart reconstitute")
    assert [hit["messageID"] for hit in supervised.search(words(1))] == [first]
    assert supervised.search(words(2)) == []
    recall = supervised.ask("recall", words(2))
    assert "the service crashed 5 times" in recall.stderr
    assert "works on it" not in recall.stderr
    index = supervised.ask("index")
    assert index.returncode == 75
    assert "crashed 5 times" in index.stderr
    assert supervised.ask("forget", "ses_0002", "--yes").returncode == 75
    for arguments in (("/home/dev/shop",), ("/home/dev/shop", "--estimate")):
        assert supervised.ask(*arguments).returncode == 75
    assert supervised.terminate()[0] == 0


def test_in_safe_mode_a_broken_index_of_words_is_said_to_lack_them(supervised: Daemon, store: JsonStore) -> None:
    message = Talk(store).ask(f"About {words(1)}.")
    supervised.run()
    assert supervised.wait_until_found({words(1): message})
    supervised.kill()
    crash(supervised, CRASHES - 1)
    shutil.rmtree(supervised.archive_dir / "index" / "lexical")
    supervised.run()
    assert supervised.status()["errors"]
    recall = supervised.ask("recall", words(1))
    assert "1 message is not searchable by words" in recall.stderr
    assert words(1) in supervised.ask("recall-get", message).stdout


@pytest.mark.parametrize("way", ["restart", "reload"])
def test_it_tries_again_when_it_is_told_to(supervised: Daemon, store: JsonStore, way: str) -> None:
    crash(supervised)
    message = Talk(store).ask(f"About {words(1)}.")
    supervised.run()
    assert supervised.status()["errors"]
    if way == "restart":
        supervised.terminate()
        supervised.run()
    else:
        assert supervised.process is not None
        supervised.hang_up()
    supervised.until_status(lambda status: not status["errors"], "a normal run")
    assert supervised.wait_until_found({words(1): message})


def test_stops_between_crashes_keep_it_from_safe_mode(supervised: Daemon) -> None:
    crash(supervised, CRASHES - 1)
    supervised.run()
    assert supervised.terminate()[0] == 0
    crash(supervised, CRASHES - 1)
    supervised.run()
    assert supervised.status()["errors"] == []


def test_stops_of_any_kind_are_no_crashes(supervised: Daemon) -> None:
    for _ in range(CRASHES + 1):
        supervised.start()
        until((supervised.archive_dir / "daemon.lock").exists)
        assert supervised.terminate()[0] in (0, -signal.SIGTERM)  # by default, when it has not begun to listen
        assert supervised.ask("run", "--once").returncode == 0
    supervised.run()
    assert supervised.status()["errors"] == []


def test_by_hand_it_never_runs_in_safe_mode(daemon: Daemon) -> None:
    crash(daemon, CRASHES + 1)
    daemon.run()
    assert daemon.status()["errors"] == []
