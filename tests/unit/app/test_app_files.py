"""What the engine says of recorded files: lists, histories, contents, restores, aliases; from real records in a store."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon import config
from daemon.app import OneShot
from daemon.app.calls.files import _diffs
from daemon.control.calls import FileContent
from daemon.errors import BadRequest
from daemon.files import Revision
from daemon.files.content import Content
from daemon.files.history import Grade
from daemon.model import Operation
from tests.e2e.talk import Talk
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import T0, JsonStore

SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0" + "K1l2M3n4O5p6Q7r8"


class Workshop:
    """A session that works in a folder that really is on the disk, and the engine that reads its records."""

    def __init__(self, root: Path, engine: PlainService, talk: Talk) -> None:
        self.root, self.engine, self.talk = root, engine, talk

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def write(self, name: str, content: str) -> int:
        """Recorded, not on the disk; the answer is a moment at which it was so."""
        return self._done(self.talk.write(self.path(name), content))

    def edit(self, name: str, old: str, new: str) -> int:
        return self._done(
            self.talk.call("edit", {"filePath": self.path(name), "oldString": old, "newString": new}, "ok")
        )

    def delete(self, *names: str) -> int:
        """By a patch."""
        lines = ["*** Begin Patch", *(f"*** Delete File: {self.path(name)}" for name in names), "*** End Patch"]
        return self._done(self.talk.call("apply_patch", {"patchText": "\n".join(lines)}, "Done"))

    def unclear(self, name: str) -> int:
        """Something that may have changed a file."""
        command = f"sed -i s/never/ever/ {self.path(name)}"
        return self._done(self.talk.call("bash", {"command": command, "description": "work"}, ""))

    def read(self, name: str, first: int, *lines: str) -> int:
        shown = "\n".join(f"{number:05d}| {line}" for number, line in enumerate(lines, start=first))
        given = {"filePath": self.path(name), "offset": first - 1, "limit": len(lines)}
        output = (
            f"<file>\n{shown}\n\n(File has more lines. Use 'offset' parameter to read beyond line {first})\n</file>"
        )
        return self._done(self.talk.call("read", given, output))

    def _done(self, message: str) -> int:
        return T0 + int(message[-5:]) * 1000 + 500

    def on_disk(self, name: str, content: bytes) -> None:
        place = Path(self.path(name))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)

    def files(self, **more: Any) -> dict[str, dict[str, Any]]:
        found = self.engine.files(str(self.root), **more)["files"]
        return {file["path"].removeprefix(f"{self.root}/"): file for file in found}

    def content(self, name: str, **more: Any) -> tuple[bytes | None, dict[str, Any]]:
        answer = self.engine.content(self.path(name), **more)
        encoded = answer.pop("contentBase64")
        return None if encoded is None else base64.b64decode(encoded), answer

    def restore(self, path: str = "", **more: Any) -> tuple[dict[str, FileContent], dict[str, str]]:
        taken: list[FileContent] = []
        answer = self.engine.restore(path or str(self.root), on_part=taken.append, **more)
        assert answer["files"] == len(taken)
        skipped = {entry["path"].removeprefix(f"{self.root}/"): entry["reason"] for entry in answer["skipped"]}
        return {content.relative: content for content in taken}, skipped


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    root = tmp_path / "garden"
    talk = Talk(JsonStore(tmp_path / "oc"), directory=str(root))
    tables = {"opencode": {"data_dir": str(tmp_path / "oc")}, "archive": {"dir": str(tmp_path / "a")}}
    with PlainService(OneShot(msgspec.convert(tables, config.Config))) as engine:
        yield Workshop(root, engine, talk)


# -- files ---------------------------------------------------------------------------------------------------------------


def test_each_file_is_compared_with_the_disk(workshop: Workshop) -> None:
    for name in ("same", "other", "longer", "gone", "doubtful", "link"):
        workshop.write(name, "text\n")
    workshop.on_disk("same", b"text\n")
    workshop.on_disk("other", b"TEXT\n")
    workshop.on_disk("longer", b"text\nmore\n")
    (workshop.root / "link").symlink_to("same")
    workshop.on_disk("seen", b"anything")
    workshop.read("seen", 3, "one line")
    found = workshop.files()
    assert {name: file["disk"] for name, file in found.items()} == {
        "same": "identical", "other": "differs", "longer": "differs", "gone": "missing", "doubtful": "missing",
        "link": "differs", "seen": "present",
    }  # fmt: skip
    assert found["same"]["sha256"] == hashlib.sha256(b"text\n").hexdigest()
    assert (found["same"]["size"], found["same"]["grade"], found["same"]["deleted"]) == (5, "proven", False)
    assert found["same"]["lastChange"] == {
        "time": T0 + 1010, "sessionID": "ses_a", "messageID": "msg_a00001", "tool": "write",
    }  # fmt: skip
    assert (found["seen"]["grade"], found["seen"]["sha256"], found["seen"]["size"]) == ("partial", None, None)


def test_a_deleted_file_is_absent_where_nothing_stands(workshop: Workshop) -> None:
    workshop.write("a", "text\n")
    workshop.write("b", "text\n")
    workshop.delete("a", "b")
    workshop.on_disk("b", b"text\n")
    found = workshop.files()
    assert {name: (file["deleted"], file["disk"]) for name, file in found.items()} == {
        "a": (True, "absent"), "b": (True, "differs"),
    }  # fmt: skip
    assert found["a"]["sha256"] == hashlib.sha256(b"text\n").hexdigest()


def test_a_deleted_file_has_no_better_grade_than_what_it_held(workshop: Workshop) -> None:
    workshop.write("a", "text\n")
    workshop.unclear("a")
    workshop.delete("a")
    assert (workshop.files()["a"]["deleted"], workshop.files()["a"]["grade"]) == (True, "stale")


def test_lost_lists_what_is_missing_or_differs_most_recoverable_first(workshop: Workshop) -> None:
    for name in ("older", "same", "stale", "newer", "removed"):
        workshop.write(name, "text\n")
    workshop.on_disk("same", b"text\n")
    workshop.unclear("stale")
    workshop.read("partial", 3, "one line")
    workshop.on_disk("present", b"x")
    workshop.read("present", 3, "one line")
    workshop.delete("removed")
    assert list(workshop.files(lost=True)) == ["removed", "newer", "older", "stale", "partial"]


def test_files_at_a_moment_are_as_they_were(workshop: Workshop) -> None:
    first = workshop.write("a", "one\n")
    second = workshop.write("b", "two\n")
    workshop.write("a", "three\n")
    workshop.delete("b")
    assert {name: file["size"] for name, file in workshop.files(at=str(first)).items()} == {"a": 4}
    assert {name: file["deleted"] for name, file in workshop.files(at=str(second)).items()} == {"a": False, "b": False}
    assert {name: file["deleted"] for name, file in workshop.files().items()} == {"a": False, "b": True}


def test_a_file_of_another_folder_that_begins_alike_is_not_listed(workshop: Workshop) -> None:
    workshop.write("a", "x")
    workshop.talk.write(f"{workshop.root}-2/b", "x")
    assert list(workshop.files()) == ["a"]
    assert [file["path"] for file in workshop.engine.files(workshop.path("a"))["files"]] == [workshop.path("a")]


@pytest.mark.parametrize("path", ["", "relative", "~/x", "/x\0y"])
def test_a_path_that_is_not_absolute_is_refused_by_every_call(workshop: Workshop, path: str) -> None:
    for call in (workshop.engine.files, workshop.engine.history, workshop.engine.content):
        with pytest.raises(BadRequest, match="not an absolute path"):
            call(path)
    with pytest.raises(BadRequest, match="not an absolute path"):
        workshop.restore(path or "x")


def test_a_time_or_grade_that_is_none_is_refused(workshop: Workshop) -> None:
    for call in (workshop.engine.files, workshop.engine.content):
        with pytest.raises(BadRequest, match="not a date or time"):
            call("/x", at="someday")
    with pytest.raises(BadRequest, match="not a date or time"):
        workshop.restore(at="someday")
    with pytest.raises(BadRequest, match="use verified, proven, stale, partial"):
        workshop.restore(grade="lost")


def test_secrets_are_hidden_everywhere_but_where_bytes_are_asked_for(workshop: Workshop) -> None:
    text = f"token = '{SECRET}'\n"
    workshop.write(f"{SECRET}.txt", text)
    workshop.write("b", text)
    workshop.edit("b", "token", f"# {SECRET}\ntoken")
    said = [
        workshop.engine.files("/"),
        workshop.engine.files("/", lost=True),
        workshop.engine.history(workshop.path("b"), diff=True, lines=True),
    ]
    assert SECRET not in str(said)
    assert "REDACTED" in str(said[2]["revisions"])
    assert "REDACTED" in str(said[2]["lines"])
    shown, answer = workshop.content("b")
    assert (SECRET.encode() in (shown or b""), answer["redacted"]) == (False, True)
    raw, answer = workshop.content("b", raw=True)
    assert (raw, answer["redacted"]) == (f"# {SECRET}\n{text}".encode(), False)
    assert hashlib.sha256(raw or b"").hexdigest() == answer["sha256"]
    assert workshop.restore()[0][f"{SECRET}.txt"].data == text.encode()


# -- history -------------------------------------------------------------------------------------------------------------


def test_a_history_names_the_origin_grade_and_evidence_of_each_revision(workshop: Workshop) -> None:
    workshop.write("a", "one\ntwo\n")
    workshop.edit("a", "two", "2")
    workshop.unclear("a")
    workshop.delete("a")
    answer = workshop.engine.history(workshop.path("a"))
    assert (answer["path"], answer["deleted"]) == (workshop.path("a"), True)
    revisions = answer["revisions"]
    assert set(revisions[0]) == {
        "time", "sessionID", "sessionTitle", "messageID", "tool", "operation", "grade", "evidence", "note",
        "outsideChange", "deleted", "size", "sha256", "movedFrom",
    }  # fmt: skip
    told = [(r["messageID"], r["tool"], r["grade"], r["size"], r["deleted"]) for r in revisions]
    assert told == [
        ("msg_a00001", "write", "proven", 8, False),
        ("msg_a00002", "edit", "proven", 6, False),
        ("msg_a00003", "bash", "stale", 6, False),
        ("msg_a00004", "apply_patch", "proven", None, True),
    ]
    assert {revision["sessionTitle"] for revision in revisions} == {"Garden"}
    assert revisions[0]["evidence"]
    assert workshop.engine.history(workshop.path("nothing"))["revisions"] == []


def test_a_history_with_diffs_and_lines(workshop: Workshop) -> None:
    workshop.write("a", "one\ntwo\nthree\n")
    workshop.edit("a", "two", "2")
    answer = workshop.engine.history(workshop.path("a"), diff=True, lines=True)
    assert answer["revisions"][0]["diff"] == "@@ -0,0 +1,3 @@\n+one\n+two\n+three\n"
    assert answer["revisions"][1]["diff"] == "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    assert [(line["text"], line["messageID"]) for line in answer["lines"]] == [
        ("one", "msg_a00001"), ("2", "msg_a00002"), ("three", "msg_a00001"),
    ]  # fmt: skip


def test_a_secret_over_several_lines_is_hidden_in_each_of_them(workshop: Workshop) -> None:
    body = "\n".join("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIB" + "AbCd" * 4 for _ in range(6))
    workshop.write("key", f"before\n-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\nafter\n")
    lines = workshop.engine.history(workshop.path("key"), lines=True)["lines"]
    assert "MIIE" not in str(lines)
    assert [lines[0]["text"], lines[-1]["text"]] == ["before", "after"]


# -- content -------------------------------------------------------------------------------------------------------------


def test_content_is_the_exact_bytes_at_a_moment(workshop: Workshop) -> None:
    first = workshop.write("a", "one\r\ntwo")
    workshop.write("a", "three\n")
    data, answer = workshop.content("a", at=str(first))
    assert (data, answer["proven"], answer["grade"], answer["at"]) == (b"one\r\ntwo", True, "proven", first)
    assert workshop.content("a")[0] == b"three\n"
    data, answer = workshop.content("a", at=str(T0))
    assert (data, answer["known"], answer["proven"]) == (None, False, False)


def test_content_of_a_deleted_file_says_where_its_last_content_is(workshop: Workshop) -> None:
    workshop.write("a", "text\n")
    workshop.delete("a")
    data, answer = workshop.content("a")
    assert (data, answer["deleted"], answer["proven"]) == (None, True, False)
    assert workshop.content("a", at=str(answer["last"]["time"]))[0] == b"text\n"


def test_content_that_may_have_changed_is_not_proven_with_a_reason(workshop: Workshop) -> None:
    workshop.write("a", "text\n")
    workshop.unclear("a")
    data, answer = workshop.content("a")
    assert (data, answer["proven"], answer["grade"]) == (b"text\n", False, "stale")
    assert "sed -i" in answer["note"]


def test_content_of_which_some_lines_are_known_has_its_gaps_marked(workshop: Workshop) -> None:
    workshop.read("a", 3, "third", "fourth")
    data, answer = workshop.content("a")
    assert data is not None
    assert data.startswith(b"<<< lines 1 to 2 are not known >>>\nthird\nfourth\n<<<")
    assert (answer["partial"], answer["proven"], answer["grade"]) == (True, False, "partial")


# -- restore -------------------------------------------------------------------------------------------------------------


def test_restore_hands_out_what_is_proven_and_says_why_not_of_the_rest(workshop: Workshop) -> None:
    workshop.write("src/a", "a\r\n")
    workshop.write("doubtful", "text\n")
    workshop.unclear("doubtful")
    workshop.read("seen", 3, "third")
    workshop.write("removed", "r")
    workshop.delete("removed")
    taken, skipped = workshop.restore()
    assert {name: (c.data, c.grade) for name, c in taken.items()} == {"src/a": (b"a\r\n", "proven")}
    assert taken["src/a"].sha256 == hashlib.sha256(b"a\r\n").hexdigest()
    assert skipped["removed"] == "deleted; use `deleted` to restore its last content"
    for name, grade, why in (("doubtful", "stale", "may have changed after `sed"), ("seen", "partial", "partly known")):
        assert skipped[name].startswith(why)
        assert skipped[name].endswith(f"; use `grade={grade}` to restore it anyway")

    taken, skipped = workshop.restore(deleted=True, grade="stale")
    assert ({name: c.data for name, c in taken.items()}, set(skipped)) == (
        {"src/a": b"a\r\n", "doubtful": b"text\n", "removed": b"r"}, {"seen"},
    )  # fmt: skip
    assert taken["removed"].deleted

    taken, skipped = workshop.restore(grade="partial")
    assert (set(taken), set(skipped)) == ({"src/a", "doubtful", "seen.partial"}, {"removed"})
    partial = taken["seen.partial"]
    assert (partial.partial, partial.grade, partial.path) == (True, "partial", workshop.path("seen"))
    assert b"<<< lines 1 to 2 are not known >>>" in partial.data
    assert hashlib.sha256(partial.data).hexdigest() == partial.sha256
    assert set(workshop.restore(grade="verified")[0]) == set()


def test_lines_that_may_have_changed_since_are_restored_only_as_such(workshop: Workshop) -> None:
    workshop.read("seen", 3, "third")
    workshop.unclear("seen")
    for grade in ("proven", "stale"):
        taken, skipped = workshop.restore(grade=grade)
        assert not taken
        assert skipped["seen"].startswith("may have changed after `sed")
        assert skipped["seen"].endswith("use `grade=partial` to restore it anyway")
    taken, _ = workshop.restore(grade="partial")
    assert taken["seen.partial"].grade == "stale"
    assert taken["seen.partial"].data.startswith(b"<<< so it was once: any of these lines may have changed since >>>")
    assert workshop.content("seen")[1]["grade"] == "stale"


def test_what_was_doubtful_when_it_was_deleted_is_not_restored_as_proven(workshop: Workshop) -> None:
    workshop.write("a", "text\n")
    workshop.unclear("a")
    workshop.delete("a")
    assert workshop.restore(deleted=True)[0] == {}
    assert set(workshop.restore(deleted=True, grade="stale")[0]) == {"a"}


def test_restore_at_a_moment_of_one_file_or_a_folder(workshop: Workshop) -> None:
    first = workshop.write("src/a", "one")
    workshop.write("src/a", "two")
    workshop.write("b", "b")
    assert {name: c.data for name, c in workshop.restore(workshop.path("src/a"))[0].items()} == {"a": b"two"}
    assert {name: c.data for name, c in workshop.restore(workshop.path("src"))[0].items()} == {"a": b"two"}
    assert {name: c.data for name, c in workshop.restore(at=str(first))[0].items()} == {"src/a": b"one"}
    whole = workshop.restore("/")[0]
    assert {c.data for c in whole.values()} == {b"two", b"b"}
    assert all(not name.startswith("/") for name in whole)


def test_where_names_clash_what_is_there_now_comes_first(workshop: Workshop) -> None:
    workshop.write("a", "a file once")
    workshop.delete("a")
    workshop.write("a/b", "beneath a folder now")
    taken, _ = workshop.restore(deleted=True)
    assert list(taken) == ["a/b", "a"]


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        ([], [], {"a.one", "src/b.one", "src/deep/c.one", "src/d.txt", "docs/src/e.one"}),
        (["*.one"], [], {"a.one", "src/b.one", "src/deep/c.one", "docs/src/e.one"}),
        (["src/"], [], {"src/b.one", "src/deep/c.one", "src/d.txt", "docs/src/e.one"}),
        (["/src/"], [], {"src/b.one", "src/deep/c.one", "src/d.txt"}),
        (["/src/*.one"], [], {"src/b.one"}),
        (["/src/**/*.one"], [], {"src/b.one", "src/deep/c.one"}),
        (["/src/", "!*.txt"], [], {"src/b.one", "src/deep/c.one"}),
        (["*.one"], ["/src/deep", "docs"], {"a.one", "src/b.one"}),
        ([], ["*"], set()),
        (["src/d.txt", "a.one"], ["a.*"], {"src/d.txt"}),
    ],
)
def test_restore_of_selected_files(
    workshop: Workshop, include: list[str], exclude: list[str], expected: set[str]
) -> None:
    for name in ("a.one", "src/b.one", "src/deep/c.one", "src/d.txt", "docs/src/e.one"):
        workshop.write(name, name)
    taken, skipped = workshop.restore(include=include, exclude=exclude)
    assert (set(taken), skipped) == (expected, {})


def test_of_files_that_are_not_selected_nothing_is_said(workshop: Workshop) -> None:
    workshop.write("a", "one")
    workshop.write("b", "two")
    workshop.delete("b")
    assert workshop.restore(include=["a"])[1] == {}
    assert "b" in workshop.restore(include=["b"])[1]
    answer = workshop.engine.restore(str(workshop.root), include=["c"], on_part=lambda _: None)
    assert answer["warnings"] == [f"{workshop.root}: none of 2 recorded files matches `include` and not `exclude`"]


@pytest.mark.parametrize("pattern", ["", "  ", "# not a pattern", "a\0b", "!"])
def test_what_is_no_pattern_is_refused(workshop: Workshop, pattern: str) -> None:
    workshop.write("a", "one")
    with pytest.raises(BadRequest, match=r"gitignore"):
        workshop.restore(exclude=[pattern])


def test_a_restore_that_its_taker_breaks_off_raises_what_that_raised(workshop: Workshop) -> None:
    workshop.write("a", "x")
    with pytest.raises(OSError, match="full"):
        workshop.engine.restore("/", on_part=lambda _: (_ for _ in ()).throw(OSError("full")))


# -- alias ---------------------------------------------------------------------------------------------------------------


def test_an_alias_joins_two_folder_histories_until_it_is_removed(workshop: Workshop) -> None:
    workshop.write("old/a", "text\n")
    old, new = workshop.path("old"), workshop.path("new")
    assert workshop.engine.files(new)["files"] == []
    assert workshop.engine.alias(old, new) == {"aliases": [{"old": old, "new": new}], "warnings": []}
    assert workshop.engine.alias() == {"aliases": [{"old": old, "new": new}], "warnings": []}
    found = workshop.engine.files(new)["files"]
    assert [(file["path"], file["size"]) for file in found] == [(f"{new}/a", 5)]
    assert workshop.content("new/a")[0] == b"text\n"
    assert workshop.engine.alias(old, remove=True) == {"aliases": [], "warnings": []}
    assert workshop.engine.files(new)["files"] == []


def test_an_alias_that_makes_no_sense_is_refused(workshop: Workshop) -> None:
    workshop.engine.alias("/a", "/b")
    workshop.engine.alias("/b", "/c")
    for old, new in (("/a", "/a"), ("/", "/x"), ("/x", "/"), ("/c", "/a"), ("a", "/b"), ("/a", "")):
        with pytest.raises(BadRequest):
            workshop.engine.alias(old, new)
    with pytest.raises(BadRequest, match="is no alias"):
        workshop.engine.alias("/zz", remove=True)
    with pytest.raises(BadRequest, match="name the old folder alone"):
        workshop.engine.alias("/a", "/b", remove=True)
    assert len(workshop.engine.alias()["aliases"]) == 2


# -- changes -------------------------------------------------------------------------------------------------------------


def revision(data: bytes | None) -> Revision:
    whole = None if data is None else Content(data)
    return Revision(1, Grade.PROVEN, whole, "s", "m", "p", "write", Operation.WRITE)


def test_binary_and_long_content_is_labelled_and_newest_changes_come_first() -> None:
    revisions = [revision(b"a"), revision(b"\xff"), revision(b"\0"), revision(None), revision(b"b")]
    made = _diffs(revisions, lambda _: None)
    assert [bool(diff) for diff, _ in made] == [True, False, False, False, False]
    assert "not text" in made[1][1]
    assert made[3] == (None, "")
    big = [revision(f"{n}\n".encode() * 500_000) for n in range(5)]
    made = _diffs(big, lambda _: None)
    assert [note.split(":")[0] for _, note in made[1:]] == ["the change is left out"] * 2 + [""] * 2
    assert str(made[4][0]).startswith("@@ -1,500000 +1,500000 @@\n-3\n")


def test_a_thousand_revisions_are_compared_in_seconds() -> None:
    lines = [f"line {n}\n" for n in range(300)]
    revisions = []
    for n in range(1000):
        lines[n % 300] = f"line {n} again\n"
        revisions.append(revision("".join(lines).encode()))
    begun = time.process_time()
    made = _diffs(revisions, lambda _: None)
    assert time.process_time() - begun < 6
    assert str(made[-1][0]).count("\n") == 9
