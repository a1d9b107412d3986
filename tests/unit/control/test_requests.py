"""A request file is taken once, whole, and always ends with a result beside it."""

from __future__ import annotations

import errno
import itertools
import json
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.errors import BadRequest, ModelUnavailable
from daemon.filesystem.durable import Root
from daemon.requests import Request, Requests, parse

HOME = Path("/home/u")


class Clock:
    """Stands for the wall clock; begins a minute from now, so that files written now are quiet."""

    def __init__(self) -> None:
        self.now = time.time() + 60

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def box(tmp_path, clock):
    requests = Requests(tmp_path / "requests", clock, home=HOME)
    yield requests
    requests.close()


@pytest.fixture
def folder(tmp_path, box):
    return tmp_path / "requests"


def again(folder: Path, clock: Clock) -> Requests:
    """What a daemon started after a crash has."""
    return Requests(folder, clock, home=HOME)


def result(folder: Path, name: str) -> dict:
    return json.loads((folder / f"{name}.result.json").read_bytes())


GOOD = [
    ("x", "/a", [Request("/a")]),
    ("x", "/a\n\n# note\n  ~/b c  \r\n~\n", [Request("/a"), Request("/home/u/b c"), Request("/home/u")]),
    ("x.txt", "\ufeff/a/./b//c/", [Request("/a/b/c")]),
    ("x", "/", [Request("/")]),
    ("x.toml", 'path = "/a"', [Request("/a")]),
    ("x", 'path = "/a"\nquestions = "why?"', [Request("/a", ("why?",))]),
    ("x", "path = 1", None),
    ("x.TOML", 'path = ["/a", "~/b"]\nat = 2026-11-20T10:00:00Z', [
        Request("/a", (), "2026-11-20T10:00:00+00:00"), Request("/home/u/b", (), "2026-11-20T10:00:00+00:00")]),
    ("x", '\n {"path": "/a", "questions": ["why?", " how? ", ""], "at": "yesterday", "output": "~/o", "refresh": "once"}',
     [Request("/a", ("why?", "how?"), "yesterday", "/home/u/o", "once")]),
    ("x.toml", 'path = "/a"\nrefresh = "continuous"', [Request("/a", refresh="continuous")]),
    ("x.json", '{"path": "/a", "at": 1760000000000}', [Request("/a", (), "1760000000000")]),
    ("x", '["/a", {"path": "/b", "refresh": "scheduled"}]', [Request("/a"), Request("/b", refresh="scheduled")]),
    ("x", "/a\u00a0b", [Request("/a\u00a0b")]),
]  # fmt: skip

BAD = [
    ("x", "a/b", "line 1: 'a/b' is not an absolute path; write it from / or ~/ on"),
    ("x", "/a\n\nC:\\b", "line 3: .* is not an absolute path"),
    ("x", "~other/a", "not an absolute path"),
    ("x", "/a/../../etc", r"climbs with '\.\.'"),
    ("x", "/a\x1b[31m", "control character"),
    ("x", "# only a note\n", "names no path"),
    ("x.toml", "", "names no path"),
    ("x.toml", "path = /a", "not TOML: .*line 1"),
    ("x.toml", 'pth = "/a"', "pth: unknown key; did you mean path?"),
    ("x.toml", 'path = "/a"\nrefresh = "often"', "refresh: 'often' is unknown; use one of once, scheduled"),
    ("x.toml", 'path = "/a"\nat = 2026-11-20\nrefresh = "continuous"', "at: a state of the past .* leave out 'at'"),
    ("x.toml", 'path = "/a"\noutput = "o"', "output: 'o' is not an absolute path"),
    ("x.toml", 'path = "/a"\nquestions = [1]', "questions: must be a text or a list of texts"),
    ("x.toml", 'path = "/a"\nat = true', "at: must be a text in quotes"),
    ("x", "path = 1", "path: must be a text"),
    ("x.json", '{"path": "/a",}', "line 1, column .*: not JSON"),
    ("x", "{", "not JSON"),
    ("x", "[1]", "item 0: neither a path nor an object"),
    ("x", "[[]]", "item 0: neither"),
    ("x.json", "7", "neither a path nor an object"),
    ("x.json", "[" * 60_000, "nested too deeply"),
    ("x.json", f'{{"path": "/a", "at": {"9" * 5000}}}', "a number is too long"),
    ("x.toml", f'path = "/a"\nat = {"9" * 5000}', "a number is too long"),
    ("x", f"path = {'9' * 5000}", "a number is too long"),
    ("x.toml", f'path = "/a"\nat = 0x{"f" * 5000}', "a number is too long"),
    ("x.json", '{"path": "/a", "secret\\u0007": 1}', "secret_: unknown key; known are path"),
]


@pytest.mark.parametrize(("name", "text", "expected"), [row for row in GOOD if row[2] is not None])
def test_a_request_is_read_in_each_of_its_forms(name, text, expected):
    assert list(parse(name, text.encode(), HOME)) == expected


@pytest.mark.parametrize(("name", "text", "message"), BAD)
def test_a_bad_request_is_told_by_file_place_and_fix(name, text, message):
    with pytest.raises(BadRequest, match=message) as caught:
        parse(name, text.encode(), HOME)
    assert str(caught.value).startswith(f"{name}: ")


def test_what_is_not_utf_8_is_told():
    with pytest.raises(BadRequest, match="byte 0: not UTF-8 text; save it as UTF-8"):
        parse("x", "/a".encode("utf-16"), HOME)


@given(
    st.sampled_from(["x", "x.toml", "x.json"]), st.one_of(st.binary(max_size=80), st.text(max_size=80).map(str.encode))
)
def test_any_bytes_give_absolute_paths_or_bad_request(name, data):
    try:
        requests = parse(name, data, HOME)
    except BadRequest:
        return
    assert requests
    assert all(r.path.startswith("/") and "/../" not in f"{r.path}/" for r in requests)


def test_a_dropped_file_is_claimed_finished_and_has_its_result_beside_it(box, folder):
    assert not box.pending()
    assert box.claim() is None
    (folder / "a.toml").write_text('path = "/a"')
    assert box.pending()
    claimed = box.claim()
    assert (claimed.name, claimed.attempt, claimed.requests) == ("a.toml", 1, (Request("/a"),))
    assert not box.pending()
    assert box.claim() is None
    box.finish(claimed, {"pages": 3, "note": "DB_PASSWORD=hunter2hunter"})
    assert (folder / "done/a.toml").read_text() == 'path = "/a"'
    found = result(folder / "done", "a.toml")
    assert (found["status"], found["result"]["pages"]) == ("done", 3)
    assert "hunter2" not in str(found)
    assert list((folder / "running").iterdir()) == []


def test_a_failed_request_says_why(box, folder):
    (folder / "a").write_text("/a")
    box.fail(box.claim(), ModelUnavailable("the model server is down; start it"))
    found = result(folder / "failed", "a")
    assert found["status"] == "failed"
    assert found["error"] == {
        "type": "ModelUnavailable",
        "message": "the model server is down; start it",
        "exitCode": 75,
    }


def test_a_request_that_failed_in_part_has_both_its_results_and_the_reason(box, folder):
    (folder / "a").write_text("/a\n/b")
    box.fail(box.claim(), BadRequest("/a: unknown"), {"results": [1, 2]})
    found = result(folder / "failed", "a")
    assert (found["status"], found["result"]) == ("partly failed", {"results": [1, 2]})
    assert found["error"]["message"] == "/a: unknown"


def test_a_bad_file_goes_to_failed_and_the_next_is_claimed(box, folder):
    (folder / "a").write_text("relative/path")
    os.utime(folder / "a", (1, 1))
    (folder / "b").write_text("/b")
    assert box.claim().name == "b"
    assert "a: line 1: 'relative/path' is not an absolute path" in result(folder / "failed", "a")["error"]["message"]
    assert (folder / "failed/a").exists()


def test_requests_are_claimed_oldest_first(box, folder):
    for age, name in enumerate(["z", "m", "a"]):
        (folder / name).write_text("/x")
        os.utime(folder / name, (1000 + age, 1000 + age))
    assert [box.claim().name for _ in range(3)] == ["z", "m", "a"]


def test_the_same_name_again_gets_a_number_and_no_result_is_overwritten(box, folder):
    names = []
    for n in range(3):
        (folder / "a.toml").write_text(f'path = "/{n}"')
        claimed = box.claim()
        names.append(claimed.name)
        if n != 1:
            box.finish(claimed, {"n": n})
    assert names == ["a.toml", "a-2.toml", "a-3.toml"]
    assert [result(folder / "done", name)["result"]["n"] for name in ("a.toml", "a-3.toml")] == [0, 2]


@pytest.mark.parametrize("name", [".hidden", "a~", "a.tmp", "a.part", ".a.swp", "a.SWP"])
def test_hidden_and_unfinished_files_are_ignored(box, folder, name):
    (folder / name).write_text("/a")
    assert not box.pending()
    assert box.claim() is None
    assert (folder / name).exists()


def test_a_file_that_stays_empty_is_refused(box, folder, clock):
    told = []
    box.on_refused = lambda name, error: told.append((name, str(error)))
    (folder / "empty").touch()
    clock.now = os.stat(folder / "empty").st_mtime + 599
    assert box.pending()
    assert box.claim() is None
    assert (folder / "empty").exists()
    clock.now += 2
    assert box.claim() is None
    assert "empty: names no path" in result(folder / "failed", "empty")["error"]["message"]
    assert told == [("empty", result(folder / "failed", "empty")["error"]["message"])]
    assert not box.pending()


def test_whatever_goes_to_failed_untried_is_told(box, folder, clock, tmp_path):
    told = []
    box.on_refused = lambda name, error: told.append(name)
    (folder / "directory").mkdir()
    (folder / "large").write_bytes(b"/" * 70_000)
    os.symlink("/etc/hostname", folder / "link")
    (folder / "relative").write_text("a/b")
    (folder / "binary").write_bytes(b"\xff\xfe\x00")
    (folder / "running/3.thrice").write_text("/a")
    (folder / "running/stray").write_text("/a")
    box.close()
    box = again(folder, clock)
    box.on_refused = lambda name, error: told.append(name)
    assert box.claim() is None
    names = {name.removesuffix(".result.json") for name in os.listdir(folder / "failed")}
    assert names == set(told) == {"directory", "large", "link", "relative", "binary", "thrice", "stray"}
    box.close()


def test_a_file_still_being_written_waits_until_it_is_quiet(box, folder, clock):
    (folder / "a").write_text("/a")
    clock.now = os.stat(folder / "a").st_mtime
    assert box.pending()
    assert box.claim() is None
    clock.now += 0.2
    os.utime(folder / "a", (clock.now, clock.now))
    clock.now += 0.2
    assert box.claim() is None
    clock.now += 0.2
    assert box.claim().name == "a"


def test_a_file_from_the_future_is_taken_after_it_was_seen_unchanged(box, folder, clock):
    (folder / "a").write_text("/a")
    os.utime(folder / "a", (2**33, 2**33))
    assert box.claim() is None
    clock.now -= 30  # the clock is set back
    assert box.claim() is None
    clock.now += 0.4
    assert box.claim().name == "a"


def test_a_renamed_in_file_is_taken_at_once(box, folder, tmp_path):
    (tmp_path / "elsewhere").write_text("/a")
    os.rename(tmp_path / "elsewhere", folder / "a")
    assert box.claim().name == "a"


def test_what_is_no_small_file_of_ours_is_moved_aside_unopened(box, folder, tmp_path):
    private = tmp_path / "private"
    private.write_text("/secret")
    (folder / "link").symlink_to(private)
    (folder / "dangling").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    (folder / "directory").mkdir()
    (folder / "directory/inner").write_text("/a")
    with open(folder / "huge", "wb") as huge:
        huge.truncate(1_000_000_000)
    if os.geteuid() == 0:  # only root can make a file of another user
        (folder / "foreign").write_text("/a")
        os.chown(folder / "foreign", 12345, 12345)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "socket"))
        assert box.claim() is None
    if os.geteuid() == 0:
        assert "belongs to user id 12345" in result(folder / "failed", "foreign")["error"]["message"]
    names = ["link", "dangling", "pipe", "directory", "huge", "socket"]
    assert all(
        "is not a regular file" in result(folder / "failed", n)["error"]["message"] for n in names if n != "huge"
    )
    assert "is larger than 64 KiB" in result(folder / "failed", "huge")["error"]["message"]
    assert private.read_text() == "/secret"
    assert (folder / "failed/link").is_symlink()
    assert (folder / "failed/directory/inner").exists()
    assert sorted(p.name for p in folder.iterdir()) == ["done", "failed", "running"]
    assert not box.pending()


def test_a_link_planted_as_one_of_our_folders_is_refused(tmp_path, clock):
    (tmp_path / "requests").mkdir()
    (tmp_path / "victim").mkdir()
    (tmp_path / "requests/running").symlink_to(tmp_path / "victim")
    with pytest.raises(Exception, match="a link or a file, not a directory"):
        Requests(tmp_path / "requests", clock, home=HOME)


@pytest.mark.parametrize(
    "name", [b"\xff\xfe", b"a\x1b[31m", b"n" * 255, b"back\\slash", b"git~1", "é".encode() * 120 + b".toml"]
)
def test_a_file_with_a_hostile_name_is_claimed_under_a_harmless_one(box, folder, name):
    with open(os.fsencode(folder) + b"/" + name, "w") as file:
        file.write('path = "/a"')
    claimed = box.claim()
    assert claimed.name.isprintable()
    box.finish(claimed, {})
    assert (folder / "done" / claimed.name).exists()
    assert result(folder / "done", claimed.name)["status"] == "done"


def test_a_thousand_files_at_once_are_each_taken_once(box, folder):
    for n in range(1000):
        (folder / f"{n}").write_text(f"/{n}")
    paths = []
    while claimed := box.claim():
        paths += [request.path for request in claimed.requests]
    assert sorted(paths) == sorted(f"/{n}" for n in range(1000))


@pytest.mark.parametrize("after", [False, True], ids=["instead of the call", "after it"])
def test_whichever_call_the_disk_fails_once_the_same_process_ends_the_request(tmp_path, clock, monkeypatch, after):
    calls = itertools.count()
    number = -1

    def failing(real: Callable[..., object]) -> Callable[..., object]:
        def call(*values: object) -> object:
            fails = next(calls) == number
            if fails and not after:
                raise OSError(errno.EIO, "failed here")
            result = real(*values)
            if fails:
                raise OSError(errno.EIO, "failed here")
            return result

        return call

    for name in ("rename", "write", "read", "stat", "list"):
        monkeypatch.setattr(Root, name, failing(getattr(Root, name)))
    while True:
        place = tmp_path / str(number)
        requests = Requests(place, clock, home=HOME)
        (place / "x").write_text("/a")
        calls = itertools.count()
        for _ in range(5):
            clock.now += 120
            with suppress(OSError):
                claimed = requests.claim()
                if claimed:
                    requests.finish(claimed, {})
        requests.close()
        files = sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())
        assert files == ["done/x", "done/x.result.json"], number
        number += 1
        if number > next(calls):
            break
    assert number > 15


def test_a_request_that_cannot_be_moved_stops_no_other(box, folder, clock, monkeypatch, caplog):
    real = Root.rename
    stuck = True

    def rename(self: Root, old: str, new: str) -> None:
        if stuck and old.endswith("stuck"):
            raise OSError(errno.EPERM, "not this one")
        real(self, old, new)

    monkeypatch.setattr(Root, "rename", rename)
    (folder / "running" / "1.stuck").write_text("/a")
    (folder / "stuck").write_text("/b")
    (folder / "other").write_text("/c")
    requests = again(folder, clock)
    claimed = requests.claim()
    assert claimed is not None
    assert claimed.name == "other"
    requests.finish(claimed, {})
    for _ in range(3):
        assert requests.claim() is None
    assert len(caplog.records) == 2  # told once each
    stuck = False
    clock.now += 61
    names = []
    while claimed := requests.claim():
        names.append((claimed.name, claimed.attempt))
        requests.finish(claimed, {})
    assert sorted(names) == [("stuck", 2), ("stuck-2", 1)]
    assert not requests.pending()
    requests.close()


def test_a_request_is_tried_three_times_after_crashes_then_fails(box, folder, clock):
    (folder / "a").write_text("/a")
    assert box.claim().attempt == 1
    for attempt in (2, 3):
        requests = again(folder, clock)
        assert requests.pending()
        assert requests.claim().attempt == attempt
        requests.close()
    requests = again(folder, clock)
    assert requests.claim() is None
    requests.close()
    assert "was started 3 times and never ended" in result(folder / "failed", "a")["error"]["message"]
    assert list((folder / "running").iterdir()) == []


def test_a_released_request_comes_again_and_its_attempt_does_not_count(box, folder, clock):
    (folder / "a").write_text("/a")
    for _ in range(5):
        claimed = box.claim()
        assert (claimed.name, claimed.attempt) == ("a", 1)
        box.release(claimed)
    requests = again(folder, clock)
    assert requests.claim().attempt == 1
    requests.close()


def test_a_released_request_does_not_hold_up_new_ones(box, folder):
    (folder / "a").write_text("/a")
    box.release(box.claim())
    (folder / "b").write_text("/b")
    assert box.pending()
    assert [box.claim().name for _ in range(2)] == ["b", "a"]


def test_junk_in_running_and_half_results_do_not_stop_the_start(box, folder, clock):
    (folder / "running/junk").write_text("/a")
    (folder / "running/2.").write_text("/a")
    (folder / "done/.123.abc.tmp").write_text("half")
    (folder / "a").write_text("/a")
    requests = again(folder, clock)
    assert requests.claim().name == "a"
    assert not (folder / "done/.123.abc.tmp").exists()
    assert "not put there by us" in result(folder / "failed", "junk")["error"]["message"]
    requests.close()
