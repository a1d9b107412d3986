"""The calls that read a file line by line: its lines at any moment, who wrote each, and what changed between two."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon import config
from daemon.app import OneShot
from daemon.app.calls import lines as module
from daemon.errors import BadRequest
from tests.e2e.talk import Talk
from tests.support.processes.daemon_process import until
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import T0, JsonStore

SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0" + "K1l2M3n4O5p6Q7r8"
FILE = "/home/dev/garden/beds.lua"
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA7bq3Zk9\n" * 8 + "-----END RSA PRIVATE KEY-----\n"


class Desk:
    def __init__(self, engine: PlainService, talk: Talk) -> None:
        self.engine, self.talk = engine, talk

    def at(self, message_id: str) -> str:
        """A moment at which what the message did was done."""
        return str(T0 + int(message_id[-5:]) * 1000 + 500)

    def lines(self, **more: Any) -> dict[str, Any]:
        return self.engine.lines(FILE, **more)

    def diff(self, **more: Any) -> dict[str, Any]:
        return self.engine.diff(FILE, **more)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    tables = {"opencode": {"data_dir": str(tmp_path / "oc")}, "archive": {"dir": str(tmp_path / "a")}}
    with PlainService(OneShot(msgspec.convert(tables, config.Config))) as engine:
        yield Desk(engine, Talk(JsonStore(tmp_path / "oc")))


# -- lines ---------------------------------------------------------------------------------------------------------------


def test_each_line_names_the_prompt_behind_it(desk: Desk) -> None:
    first = desk.talk.ask("Number the rows.")
    desk.talk.write(FILE, "one\ntwo\nthree\n")
    second = desk.talk.ask("Change the\n second one.")
    edited = desk.talk.call("edit", {"filePath": FILE, "oldString": "two", "newString": "2"}, "ok")
    answer = desk.lines()
    assert answer["lines"] == ["one", "2", "three"]
    by = [answer["authors"][place] for place in answer["by"]]
    assert [(author["promptID"], author["prompt"]) for author in by] == [
        (first, "Number the rows."), (second, "Change the second one."), (first, "Number the rows."),
    ]  # fmt: skip
    assert (by[1]["messageID"], by[1]["tool"], by[1]["sessionTitle"]) == (edited, "edit", "Garden")
    assert answer["state"]["evidence"] == ["edit of a proven text"]


def test_the_lines_are_those_of_the_moment(desk: Desk) -> None:
    first = desk.talk.write(FILE, "one\n")
    desk.talk.write(FILE, "two\n")
    before = str(T0 - 1)
    assert [desk.lines(at=at)["lines"] for at in ("", desk.at(first), before)] == [["two"], ["one"], []]
    assert (desk.lines(at=before)["known"], desk.lines(at=before)["state"]) == (False, None)


def test_windows_of_a_long_file_join_to_the_whole(desk: Desk) -> None:
    texts = [f"line {number}" for number in range(12_345)]
    desk.talk.write(FILE, "\n".join(texts))
    windows = [desk.lines(start=start, count=1000) for start in range(0, 13_000, 1000)]
    assert [line for window in windows for line in window["lines"]] == texts
    assert {window["total"] for window in windows} == {12_345}


def test_a_text_is_made_once_for_all_its_windows(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.talk.write(FILE, "one\ntwo\n")
    desk.lines()
    monkeypatch.setattr(module, "clean_lines", lambda _: pytest.fail("made again"))
    assert desk.lines(start=1)["lines"] == ["two"]


def test_a_kept_text_is_dropped_when_something_is_recorded(desk: Desk) -> None:
    desk.talk.write(FILE, "one\n")
    assert desk.lines()["lines"] == ["one"]
    desk.talk.write(FILE, "two\n")
    assert desk.lines()["lines"] == ["two"]


def test_a_kept_text_is_dropped_after_a_while(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT_S", 0.05)
    desk.talk.write(FILE, "one\n")
    desk.lines()
    kept = desk.engine._last_text
    until(lambda: kept._kept is None, what="the text dropped")
    assert desk.lines()["lines"] == ["one"]


def test_a_later_text_is_not_dropped_with_an_earlier_one(desk: Desk) -> None:
    desk.talk.write(FILE, "one\n")
    desk.lines()
    kept = desk.engine._last_text
    kept._drop()  # as a timer that was cancelled too late
    assert kept._kept is not None


def test_many_moments_in_a_row_keep_one_text_and_one_timer(desk: Desk) -> None:
    others = {thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)}
    desk.talk.write(FILE, "stepped\n")
    for step in range(20):
        assert desk.lines(at=str(T0 + 2000 + step))["lines"] == ["stepped"]
    until(
        lambda: sum(isinstance(thread, threading.Timer) for thread in {*threading.enumerate()} - others) == 1,
        what="one timer",
    )
    until(
        lambda: sum(isinstance(each, module._Text) and each.lines == ["stepped"] for each in gc.get_objects()) == 1,
        what="one text",
    )


def test_a_huge_line_is_cut(desk: Desk) -> None:
    desk.talk.write(FILE, "x" * 1_000_000 + "\nshort\n")
    answer = desk.lines()
    assert (len(answer["lines"][0]) < 2100, answer["lines"][1], answer["cut"]) == (True, "short", 1)
    assert answer["lines"][0].endswith("… [998000 more characters]")


@pytest.mark.parametrize(
    ("content", "note"), [("a\0b", "binary, 3 bytes"), ("", "")], ids=["binary", "empty"]
)  # fmt: skip
def test_what_is_no_text_says_so(desk: Desk, content: str, note: str) -> None:
    desk.talk.write(FILE, content)
    answer = desk.lines()
    assert (answer["lines"], answer["total"], answer["note"], answer["known"]) == ([], 0, note, True)


def test_a_deleted_file_says_when_it_was_last_there(desk: Desk) -> None:
    written = desk.talk.write(FILE, "one\n")
    desk.talk.call("apply_patch", {"patchText": f"*** Begin Patch\n*** Delete File: {FILE}\n*** End Patch"}, "Done")
    answer = desk.lines()
    assert (answer["note"], answer["lines"], answer["state"]["deleted"]) == ("deleted", [], True)
    assert desk.lines(at=str(answer["last"]))["lines"] == ["one"]
    assert answer["last"] <= int(desk.at(written))


def test_a_partly_known_file_has_no_authors(desk: Desk) -> None:
    shown = "<file>\n00003| third\n\n(File has more lines. Use 'offset' parameter to read beyond line 3)\n</file>"
    desk.talk.call("read", {"filePath": FILE, "offset": 2, "limit": 1}, shown)
    answer = desk.lines()
    assert "third" in answer["lines"]
    assert (answer["state"]["grade"], answer["by"], answer["authors"]) == ("partial", [], [])


@pytest.mark.parametrize("given", [{"start": -1}, {"count": 5001}, {"count": -1}, {"at": "never"}], ids=str)
def test_impossible_windows_are_a_mistake_of_the_caller(desk: Desk, given: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        desk.lines(**given)


def test_an_unknown_file_says_so(desk: Desk) -> None:
    desk.talk.write(FILE, "one\n")
    answer = desk.engine.lines("/home/dev/garden/none.lua")
    assert (answer["known"], answer["lines"], len(answer["warnings"])) == (False, [], 1)


# -- secrets -------------------------------------------------------------------------------------------------------------


def test_secrets_are_hidden_also_in_the_second_window(desk: Desk) -> None:
    desk.talk.ask(f"Write {SECRET} to the file.")
    desk.talk.write(FILE, f"one\ntoken = '{SECRET}'\n")
    for start in (0, 1):
        answer = desk.lines(start=start)
        assert SECRET not in str(answer)
        assert "[REDACTED:" in answer["lines"][-1]
        assert "[REDACTED:" in answer["authors"][0]["prompt"]
        assert answer["redacted"]


def test_a_window_inside_a_private_key_shows_none_of_it(desk: Desk) -> None:
    desk.talk.write(FILE, f"before\n{KEY}after\n")
    shown = [line for start in range(12) for line in desk.lines(start=start, count=1)["lines"]]
    assert (shown[0], shown[-1], len(shown)) == ("before", "after", 12)
    assert not any("MIIE" in line for line in shown)


# -- diffs ---------------------------------------------------------------------------------------------------------------


def test_any_two_states_can_be_compared(desk: Desk) -> None:
    moments = [desk.at(desk.talk.write(FILE, f"same\n{word}\n")) for word in ("one", "two", "three")]
    answer = desk.diff(old=moments[0], new=moments[2])
    assert answer["diff"] == "@@ -1,2 +1,2 @@\n same\n-one\n+three\n"
    backwards = desk.diff(old=moments[2], new=moments[0])
    assert backwards["diff"] == "@@ -1,2 +1,2 @@\n same\n-three\n+one\n"
    assert desk.diff(old=moments[1], new=moments[1])["note"] == "no change"


def test_without_moments_everything_is_new(desk: Desk) -> None:
    desk.talk.write(FILE, "one\n")
    assert (desk.diff()["diff"], desk.diff()["old"]) == ("@@ -0,0 +1 @@\n+one\n", None)


def test_a_secret_is_in_neither_side_of_a_diff(desk: Desk) -> None:
    desk.talk.write(FILE, f"token = '{SECRET}'\n")
    desk.talk.write(FILE, "token = none\n")
    first = desk.engine.history(FILE)["revisions"][0]["time"]
    answer = desk.diff(old=str(first))
    assert "-token = '[REDACTED:" in answer["diff"]
    assert SECRET not in str(answer)


def test_of_unknown_content_there_is_no_diff(desk: Desk) -> None:
    desk.talk.call("bash", {"command": f"sed -i s/one/two/ {FILE}", "description": "change"}, "")
    answer = desk.diff()
    assert (answer["diff"], answer["note"]) == ("", "the content of one of the two is not known")


def test_of_an_unknown_file_there_is_nothing_to_compare(desk: Desk) -> None:
    answer = desk.engine.diff("/home/dev/garden/none.lua")
    assert (answer["old"], answer["new"], answer["diff"], len(answer["warnings"])) == (None, None, "", 1)
