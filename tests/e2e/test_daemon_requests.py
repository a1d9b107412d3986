"""Whatever is dropped among the requests gets an answer beside it, and no file of that kind stops the daemon."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.talk import PROJECT, Talk, words
from tests.support.processes.daemon_process import Daemon
from tests.support.stores.make_opencode import JsonStore


@pytest.fixture
def filled(data_dir: Path) -> Talk:
    talk = Talk(JsonStore(data_dir))
    talk.write(f"{PROJECT}/notes.md", f"{words(1)}\n")
    return talk


def results(daemon: Daemon, number: int) -> dict[str, dict[str, Any]]:
    """The results by the request's name, with the folder they lie in."""
    return {
        path.name.removesuffix(".result.json"): json.loads(path.read_text()) | {"folder": path.parent.name}
        for path in daemon.wait_for_results(number)
    }


BAD = {
    "relative.txt": ("garden/notes\n", "not an absolute path"),
    "key.toml": (f'path = "{PROJECT}"\nquestion = "?"\n', "did you mean questions"),
    "broken.toml": ("path = \n", "not TOML"),
    "broken.json": ('{"path": ', "not JSON"),
    "deep.json": ("[" * 20_000, "nested too deeply"),
    "climbs.txt": ("/home/../etc\n", "climbs"),
    "root.txt": ("/\n", "the root is no target"),
    "nothing.txt": ("# only a remark\n", "names no path"),
    "unknown.txt": ("/home/dev/never/heard/of\n", "no session touched it"),
    "time.toml": (f'path = "{PROJECT}"\nat = "yesteryear"\n', "yesteryear"),
    "huge.txt": ("/home/dev/garden\n" * 5000, "larger than 64 KiB"),
}


def test_bad_requests_fail_with_a_reason_and_do_not_block_a_good_one(
    daemon: Daemon, filled: Talk, tmp_path: Path
) -> None:
    daemon.run()
    for name, (content, _) in BAD.items():
        daemon.drop_request(name, content)
    (daemon.requests_dir / "garbage.bin").write_bytes(bytes(range(256)) * 4)
    private = tmp_path / "private"
    private.write_text(f"{PROJECT}\n")
    (daemon.requests_dir / "link.txt").symlink_to(private)
    os.mkfifo(daemon.requests_dir / "pipe.txt")
    (daemon.requests_dir / "folder").mkdir()
    expected = {name: reason for name, (_, reason) in BAD.items()}
    expected |= {"garbage.bin": "not UTF-8", **dict.fromkeys(("link.txt", "pipe.txt", "folder"), "not a regular file")}

    found = results(daemon, len(expected))

    assert {name: result["folder"] for name, result in found.items()} == dict.fromkeys(expected, "failed")
    for name, reason in expected.items():
        assert reason in found[name]["error"]["message"], name
    assert private.read_text() == f"{PROJECT}\n"
    daemon.drop_request("good.txt", f"{PROJECT}\n")
    assert results(daemon, len(expected) + 1)["good.txt"]["status"] == "done"
    assert words(1) in (daemon.output_dir / PROJECT[1:] / "notes.md.md").read_text()
    assert daemon.terminate()[0] == 0


def test_an_unwritable_output_fails_and_later_requests_work(daemon: Daemon, filled: Talk, tmp_path: Path) -> None:
    occupied = tmp_path / "occupied"
    occupied.write_text("a file of mine")
    daemon.output_dir.write_text("a file of mine, too")
    daemon.run()
    daemon.drop_request("own.toml", f'path = "{PROJECT}"\noutput = "{occupied}"\n')
    daemon.drop_request("beneath.toml", f'path = "{PROJECT}"\noutput = "{occupied}/pages"\n')
    daemon.drop_request("default.txt", f"{PROJECT}\n")

    found = results(daemon, 3)

    places = {"own.toml": occupied, "beneath.toml": occupied, "default.txt": daemon.output_dir}
    for name, place in places.items():
        assert (found[name]["folder"], found[name]["error"]["type"]) == ("failed", "OutputRefused")
        assert str(place) in found[name]["error"]["message"]
    assert occupied.read_text() == "a file of mine"
    daemon.output_dir.unlink()
    daemon.drop_request("again.txt", f"{PROJECT}\n")
    assert results(daemon, 4)["again.txt"]["status"] == "done"
    assert daemon.status()["errors"][-1]["message"].startswith(str(daemon.output_dir))


def test_a_folder_with_files_of_someone_elses_is_left_alone(daemon: Daemon, filled: Talk) -> None:
    place = daemon.output_dir / PROJECT[1:]
    place.mkdir(parents=True)
    (place / "mine.txt").write_text("mine")
    daemon.run()
    daemon.drop_request("garden.txt", f"{PROJECT}\n")

    found = results(daemon, 1)

    assert "holds files that are not ours" in found["garden.txt"]["error"]["message"]
    assert [path.name for path in place.iterdir()] == ["mine.txt"]


def test_requests_dropped_while_no_daemon_runs_are_done_by_the_next_one(
    make_daemon: Callable[..., Daemon], filled: Talk
) -> None:
    daemon = make_daemon()
    daemon.drop_request("one.txt", f"{PROJECT}\n")
    daemon.drop_request("two.toml", f'path = ["{PROJECT}", "{PROJECT}/notes.md"]\n')
    daemon.run()
    found = results(daemon, 2)
    assert {name: result["status"] for name, result in found.items()} == {"one.txt": "done", "two.toml": "done"}
    assert [each["target"] for each in found["two.toml"]["result"]["results"]] == [PROJECT, f"{PROJECT}/notes.md"]
    assert daemon.request_files() == [
        "done/one.txt",
        "done/one.txt.result.json",
        "done/two.toml",
        "done/two.toml.result.json",
    ]
