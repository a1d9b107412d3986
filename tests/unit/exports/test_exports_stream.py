"""Which sessions are exported, in which order, how they are handed out, and that no secret goes with them."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import records
from daemon.archive import Archive
from daemon.errors import BadRequest
from daemon.exports import Export
from daemon.exports.formats import export
from daemon.model import Session
from daemon.recall.catalog import Catalog
from daemon.recall.query import RecallFiles
from daemon.recall.query.arguments import read
from daemon.recall.sessions_by_path import sessions_by_path
from tests.support.secrets.canaries import SECRETS
from tests.support.stores.recorded_sessions import MINUTE, START, Recorded, call, recorded

DAY = 86_400_000
FORMATS = pytest.mark.parametrize("format_", ["jsonl", "messages", "markdown"])


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Recorded]:
    with recorded(tmp_path) as made:
        yield made


def add(house: Recorded, sid: str, created: int = START, *said: int, **facts: Any) -> str:
    """A session with one prompt at each of the moments `said`."""
    values = {"project_id": "prj", "directory": "/w", "title": sid, "updated": created} | facts
    batch = house.archive.batch()
    batch.session(Session(id=sid, created=created, raw=b"{}", **values), "test", 2)
    house.archive.commit(batch)
    for number, moment in enumerate(said):
        house.clock = moment
        house.put(sid, f"{sid}_{number}", "user", ())
    return sid


def exported(house: Recorded, now: int = START, **asked: Any) -> list[str]:
    """The ids of the sessions, in order."""
    taken: list[str] = []
    export(house.archive, Export(**asked), taken.append, lambda _: None, clock=lambda: now)
    return [json.loads(line)["session_id"] for line in "".join(taken).splitlines()]


# -- which -----------------------------------------------------------------------------------------------------------------


def test_sessions_come_by_time_and_then_id_also_where_ids_have_wrapped(house: Recorded) -> None:
    wrap = 1_786_706_395_000
    for sid, created in [("ses_ff1", wrap + 5), ("ses_001", wrap - 5), ("ses_b", wrap), ("ses_a", wrap), ("ses_x", 0)]:
        add(house, sid, created)
    assert exported(house) == ["ses_x", "ses_001", "ses_a", "ses_b", "ses_ff1"]


def test_messages_come_by_time_where_ids_have_wrapped(house: Recorded) -> None:
    sid = add(house, "ses_a")
    for mid, created in [("msg_0001", START + 9), ("msg_ffff", START + 1), ("msg_8000", START + 5)]:
        house.clock = created
        house.put(sid, mid, "user", ())
    taken: list[str] = []
    export(house.archive, Export(), taken.append, lambda _: None)
    assert [entry["id"] for entry in json.loads("".join(taken))["messages"]] == ["msg_ffff", "msg_8000", "msg_0001"]


def test_everything_is_exported_whatever_state_it_is_in(house: Recorded) -> None:
    add(house, "ses_plain", START)
    add(house, "ses_projectless", START + 1, project_id="", directory="")
    add(house, "ses_archived", START + 2, archived=START + 3)
    add(house, "ses_child", START + 4, parent_id="ses_plain")
    house.clock = START + 5
    house.put("ses_recordless", "msg_r", "assistant", (), path={"cwd": "/w/lost"})
    taken: list[str] = []
    answer = export(house.archive, Export(), taken.append, lambda _: None)
    found = [json.loads(line) for line in "".join(taken).splitlines()]
    assert [one["session_id"] for one in found] == [
        "ses_plain", "ses_projectless", "ses_archived", "ses_child", "ses_recordless",
    ]  # fmt: skip
    assert found[2]["archived"] == "2026-11-18T11:06:40.003Z"
    assert found[3]["parent_id"] == "ses_plain"
    assert (found[4]["directory"], found[4]["start_time"]) == ("/w/lost", "2026-11-18T11:06:40.005Z")
    assert (answer["sessions"], answer["messages"]) == (5, 1)
    (warning,) = answer["warnings"]
    assert warning.startswith("session ses_recordless: its own record is missing")
    assert exported(house, session="ses_recordless") == ["ses_recordless"]


SPANS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["long", "old", "new"]),
    ({"since": START}, ["long", "new"]),
    ({"since": "10d"}, ["long", "new"]),
    ({"since": str(START - 40 * DAY)}, ["long", "old", "new"]),
    ({"until": START - 20 * DAY}, ["long", "old"]),
    ({"until": "60d ago"}, ["long"]),
    ({"since": "40d", "until": "20d"}, ["old"]),
    ({"since": "55d", "until": "45d"}, []),
    ({"since": "2026-11-18", "until": "2026-11-18"}, ["new"]),
    ({"since": "2026-11-19"}, ["long"]),
]


@pytest.mark.parametrize(("asked", "found"), SPANS, ids=[str(asked) for asked, _ in SPANS])
def test_a_span_of_time_finds_sessions_in_which_something_happened(
    house: Recorded, asked: dict[str, Any], found: list[str]
) -> None:
    add(house, "long", START - 90 * DAY, START - 90 * DAY, START - 60 * DAY, START + DAY)
    add(house, "old", START - 30 * DAY, START - 30 * DAY)
    add(house, "new", START, START, START + MINUTE)
    assert exported(house, **asked) == found


def test_a_session_that_was_only_changed_since_is_found(house: Recorded) -> None:
    add(house, "renamed", START - 90 * DAY, START - 90 * DAY, updated=START)
    assert exported(house, since="1d") == ["renamed"]


PROJECTS = [
    ("aaa", ["root", "inner", "clone"]),
    ("global", ["loose", "other"]),
    ("/w/shop", ["root", "inner", "clone"]),
    ("/w/shop/", ["root", "inner", "clone"]),
    ("/w/shop/docs", ["root", "inner", "clone"]),
    ("/w/loose", ["loose"]),
    ("/w/loose/../shop", ["root", "inner", "clone"]),
    ("/w", ["root", "inner", "loose", "shopping"]),
    ("/w/sho", []),
    ("bbb", ["shopping"]),
    ("ccc", []),
]


@pytest.mark.parametrize(("project", "found"), PROJECTS)
def test_a_project_is_its_id_or_a_folder_with_what_ran_in_it(house: Recorded, project: str, found: list[str]) -> None:
    places = [("root", "aaa", "/w/shop"), ("inner", "aaa", "/w/shop/docs"), ("clone", "aaa", "/v/clone")]
    places += [("loose", "global", "/w/loose"), ("other", "global", "/u"), ("shopping", "bbb", "/w/shopping")]
    for number, (sid, project_id, directory) in enumerate(places):
        add(house, sid, START + number, project_id=project_id, directory=directory)
    assert exported(house, project=project) == found


def test_a_path_finds_the_sessions_that_touched_it_or_anything_beneath(house: Recorded) -> None:
    for sid, path in [("ses_a", "/w/shop/cart.py"), ("ses_b", "/w/shop/docs/a.md"), ("ses_c", "/w/shopping/x")]:
        house.session(sid, "/w")
        house.say(sid, "assistant", call("write", filePath=path, content="x"))
    house.session("ses_d", "/w/shop")
    house.say("ses_d", "user", "/w/shop/cart.py is mentioned")
    assert exported(house, path="/w/shop") == ["ses_a", "ses_b"]
    assert exported(house, path="/w/shop/cart.py") == ["ses_a"]
    assert exported(house, path="/") == ["ses_a", "ses_b", "ses_c"]
    assert exported(house, path="/w/none") == []
    assert exported(house, path="/w/shop", session="ses_b") == ["ses_b"]


def test_a_folder_that_was_renamed_is_found_under_its_new_name(house: Recorded) -> None:
    house.session("ses_a", "/old/shop")
    house.say("ses_a", "assistant", call("write", filePath="/old/shop/cart.py", content="x"))
    batch = house.archive.batch()
    house.archive.files.set_alias(batch, "/old", "/new")
    house.archive.files.set_alias(batch, "/new", "/old/new")  # nonsense, which must end all the same
    house.archive.commit(batch)
    assert exported(house, path="/new/shop/cart.py") == ["ses_a"]
    assert exported(house, path="/new") == ["ses_a"]
    assert exported(house, project="/new/shop") == ["ses_a"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"session": "ses_none"}, "session 'ses_none': not in the archive"),
        ({"path": "src/a.py"}, "`path` 'src/a.py': not an absolute path"),
        ({"project": "src/shop"}, "`project` 'src/shop': not an absolute path"),
        ({"since": "yesteryear"}, "`since` 'yesteryear'"),
        ({"until": -1}, "`until` '-1'"),
        ({"since": "1d", "until": "2d"}, "`since` '1d' is later than `until` '2d'"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_handed_out(
    house: Recorded, asked: dict[str, Any], message: str
) -> None:
    add(house, "ses_a")
    with pytest.raises(BadRequest) as caught:
        exported(house, **asked)
    assert message in str(caught.value)


@FORMATS
def test_nothing_is_handed_out_when_nothing_matches(house: Recorded, format_: Any) -> None:
    add(house, "ses_a")
    taken: list[str] = []
    answer = export(house.archive, Export(format=format_, project="none"), taken.append, lambda _: None)
    assert (answer, taken) == ({"sessions": 0, "messages": 0, "warnings": []}, [])


# -- how -------------------------------------------------------------------------------------------------------------------


@FORMATS
def test_the_first_session_is_handed_out_before_the_last_is_read(house: Recorded, format_: Any) -> None:
    add(house, "ses_a", START, START)
    add(house, "ses_b", START + 1)
    taken: list[str] = []

    def take(text: str) -> None:
        if not taken:
            house.say("ses_b", "user", "said while the first one was handed out")
        taken.append(text)

    steps: list[Any] = []
    export(house.archive, Export(format=format_), take, steps.append)
    assert "said while the first one was handed out" in taken[-1]
    assert [(step["phase"], step["done"], step["total"]) for step in steps] == [("export", n, 2) for n in range(3)]


@FORMATS
def test_a_reader_that_goes_away_ends_the_export(house: Recorded, format_: Any) -> None:
    add(house, "ses_a")
    add(house, "ses_b")

    def take(_: str) -> None:
        raise BrokenPipeError

    steps: list[Any] = []
    with pytest.raises(BrokenPipeError):
        export(house.archive, Export(format=format_), take, steps.append)
    assert len(steps) == 1


@FORMATS
def test_a_long_session_needs_the_memory_of_a_message(house: Recorded, format_: Any) -> None:
    size = 1 << 18
    for sid, count in (("ses_short", 3), ("ses_long", 30)):
        add(house, sid)
        for number in range(count):
            house.say(sid, "assistant", call("read", filePath="/w/a", output=f"{number} lines. " * (size // 10)))

    def measured(sid: str) -> tuple[int, int]:
        """Characters handed out, and the most memory that was taken meanwhile."""
        taken = [0]

        def take(text: str) -> None:
            taken[0] += len(text)

        tracemalloc.start()
        export(house.archive, Export(format=format_, session=sid, results="full"), take, lambda _: None)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return taken[0], peak

    (little, low), (much, high) = measured("ses_short"), measured("ses_long")
    assert much > 8 * little > 16 * size
    assert high < 2 * low  # slipcover, which measures coverage, takes a megabyte now and then


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


# -- no secret -------------------------------------------------------------------------------------------------------------


@FORMATS
@pytest.mark.parametrize("results", ["summary", "full", "none"])
def test_no_secret_leaves_the_archive_unless_it_is_asked_for(tmp_path: Path, format_: Any, results: Any) -> None:
    with Archive(tmp_path / "archive") as archive:
        batch = archive.batch()
        for number, (_, secret, text) in enumerate(SECRETS):
            said = text.replace("{}", secret)
            sid = f"ses_{number}"
            batch.session(Session(sid, "p", f"/w/{said}", said, START + number, START, b"{}"), "test", 2)
            given = {"command": said}
            state = {"status": "completed", "input": given, "output": said, "title": said, "metadata": {"x": said}}
            parts = [{"type": "text", "text": said}, {"type": "tool", "tool": "bash", "state": state}]
            parts += [{"type": "reasoning", "text": said, "metadata": {"subject": said}}, {"type": "x", "y": [said]}]
            parts += [{"type": "tool", "tool": "t", "state": {"status": "error", "input": {"x": said}, "error": said}}]
            made = [
                records.part(records.dumps(part | {"id": f"{sid}_{k}"}), f"msg_{number}", sid)
                for k, part in enumerate(parts)
            ]
            head = {"id": f"msg_{number}", "role": "assistant", "time": {"created": START}, "system": said}
            message = records.message(records.dumps(head | {"error": {"name": "E", "data": said}}), tuple(made), sid)
            batch.message(message, source="test", generation=2, hash_="h", edits=[])
        archive.commit(batch)
        hidden, shown = list[str](), list[str]()
        asked = {"format": format_, "results": results}
        export(archive, Export(**asked), hidden.append, lambda _: None)
        export(archive, Export(**asked, raw=True), shown.append, lambda _: None)
    whole = "".join(hidden)
    assert [secret for _, secret, _ in SECRETS if secret in whole or _json(secret) in whole] == []
    assert whole.count("[REDACTED:") >= len(SECRETS)
    flat = [secret for _, secret, _ in SECRETS if "\n" not in secret]
    assert [secret for secret in flat if _json(secret) not in "".join(shown)] == []
    assert "[REDACTED:" not in "".join(shown)


def test_snapshots_do_not_count_as_touches_and_moves_are_followed(house: Recorded) -> None:
    house.session("ses_wrote", "/w")
    house.say("ses_wrote", "assistant", call("write", filePath="/w/old/a.py", content="x"))
    house.session("ses_ran", "/w")
    house.snapshot("ses_ran", "/w", {"old/a.py": b"x"})
    house.session("ses_moved", "/w")
    house.say("ses_moved", "assistant", call("bash", command="mv old new", metadata={"exit": 0}))
    assert "ses_ran" in {edit.session_id for edit in house.archive.files.edits("/w")}
    assert exported(house, path="/w/new/a.py") == ["ses_wrote"]
    assert exported(house, path="/w/new") == ["ses_wrote", "ses_moved"]
    for path in ("/w", "/w/new", "/w/old", "/w/new/a.py"):
        told = sessions_by_path(house.archive, house.lexical, Catalog(house.archive), RecallFiles(path=path))
        assert {one["sessionID"] for one in told["sessions"]} == set(exported(house, path=path))
    assert exported(house, path="/w") == ["ses_wrote", "ses_moved"]


@pytest.mark.parametrize("asked", [{"sesion": "ses_x"}, {"format": "jsonl", "sesion": "ses_x", "projekt": ""}])
def test_an_unknown_argument_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(BadRequest, match=r"'sesion': there is no such argument; did you mean session\?"):
        read("export", asked, {"export": Export})
