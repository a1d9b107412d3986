"""A session's records as turns, reverts and todo lists, from an archive of our own making."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import records
from daemon.model import Json, Part
from daemon.reconstitute.facts.session import finish, read_session, turns
from daemon.reconstitute.facts.session_values import Ending, SessionFacts, Todo, Turn
from tests.support.stores.recorded_sessions import MINUTE, Recorded, call, recorded

SHOP = "/home/dev/shop"
OTHER = {"type": "text", "text": "Called the Read tool with the following input", "synthetic": True}


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Recorded]:
    with recorded(tmp_path) as made:
        yield made


def facts(house: Recorded, sid: str = "ses_a", **more: Any) -> SessionFacts:
    session = house.archive.session(sid)
    assert session is not None
    until = more.get("until")
    messages = [m for m in house.archive.messages(sid) if until is None or m.created <= until]
    options = {"is_whole": True, "until": None, "newest": house.clock} | more
    return read_session(house.archive, session, messages, (), **options)


def all_facts(house: Recorded) -> tuple[SessionFacts, ...]:
    return finish(facts(house, session.id) for session in house.archive.sessions())


def prompts(found: SessionFacts) -> list[str]:
    return [turn.prompt for turn in found.turns]


def answer(house: Recorded, *parts: dict[str, Any], sid: str = "ses_a", completed: bool = True, **more: Any) -> str:
    """An answer with fields of its record; without `completed` it was never finished."""
    house.count += 1
    house.clock += MINUTE
    mid = f"msg_{house.count:04d}"
    made = tuple(
        records.part(records.dumps(part | {"id": f"prt_{house.count:04d}_{n}"}), mid, sid)
        for n, part in enumerate(parts)
    )
    time = {"created": house.clock} | ({"completed": house.clock + 1} if completed else {})
    return house.put(sid, mid, "assistant", made, **{"time": time, **more})


# -- prompts -----------------------------------------------------------------------------------------------------

PROMPTS: list[tuple[tuple[str | dict[str, Any], ...], str, bool]] = [
    (("Build a shop.",), "Build a shop.", False),
    (('"Build a shop."',), "Build a shop.", False),
    (('"Build" and "sell"',), '"Build" and "sell"', False),
    (("Look at this.", OTHER, {"type": "file", "filename": "a.txt", "url": "file:///a.txt"}), "Look at this.", False),
    (({"type": "file", "filename": "a.png", "url": "data:image/png;base64,AA"},), "", False),
    (({"type": "subtask", "prompt": "Count files.", "description": "Count", "agent": "general"},), "Count files.", True),
    (("First.", "Second."), "First.\n\nSecond.", False),
    (("Please analyze this codebase and create an AGENTS.md file containing:\n1. Build",),
     "Please analyze this codebase and create an AGENTS.md file containing:\n1. Build", True),
    (("<<<reconstitute:recall\nan old message\nreconstitute:recall>>>\nGo on.",), "Go on.", False),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "prompt", "is_command"), PROMPTS)
def test_a_prompt_is_what_the_person_wrote(
    house: Recorded, parts: tuple[str | dict[str, Any], ...], prompt: str, *, is_command: bool
) -> None:
    house.session("ses_a", SHOP)
    house.say("ses_a", "user", *parts)
    (turn,) = facts(house).turns
    assert (turn.prompt, turn.is_command, turn.ending) == (prompt, is_command, Ending.OPEN)


def test_a_long_prompt_is_bounded(house: Recorded) -> None:
    house.session("ses_a", SHOP)
    house.say("ses_a", "user", "many words " * 5000)
    (turn,) = facts(house).turns
    assert len(turn.prompt) <= turns.LONGEST_PROMPT + 2
    assert turn.prompt.endswith(" …")


def test_what_opencode_says_on_its_own_begins_no_turn(house: Recorded) -> None:
    house.session("ses_a", SHOP)
    house.say("ses_a", "assistant", "Hello before any prompt.")
    house.say("ses_a", "user", "Build a shop.")
    house.say("ses_a", "assistant", call("task", description="Count"))
    house.say("ses_a", "user", {"type": "text", "text": "Summarize the task tool output above.", "synthetic": True})
    house.say("ses_a", "assistant", "There are two.")
    house.say("ses_a", "user", "Sell it.")
    found = facts(house)
    assert prompts(found) == ["", "Build a shop.", "Sell it."]
    assert [len(turn.message_ids) for turn in found.turns] == [1, 4, 1]
    assert [reply.text for reply in found.turns[1].replies] == ["There are two."]


def test_a_shell_command_of_the_user_is_a_turn_of_its_own(house: Recorded) -> None:
    house.session("ses_a", SHOP)
    ran = {"type": "text", "text": "The following tool was executed by the user", "synthetic": True}
    house.say("ses_a", "user", ran)
    house.say("ses_a", "assistant", call("bash", command="ls -la", output="total 0", metadata={"exit": 0}))
    house.say("ses_a", "user", call("bash", command="git status", metadata={"exit": 0}))  # as OpenCode 2 keeps it
    found = facts(house)
    assert [(turn.prompt, turn.is_command, turn.ending) for turn in found.turns] == [
        ("!ls -la", True, Ending.ANSWERED), ("!git status", True, Ending.ANSWERED),
    ]  # fmt: skip


def test_a_compaction_is_no_prompt_and_its_summary_no_reply(house: Recorded) -> None:
    house.session("ses_a", SHOP)
    house.say("ses_a", "user", "Build a shop.")
    house.say("ses_a", "assistant", "Built.")
    house.say("ses_a", "user", {"type": "compaction", "auto": False})
    answer(house, {"type": "text", "text": "So far a shop was built."}, summary=True)
    house.say("ses_a", "user", "Sell it.")
    answer(house, {"type": "text", "text": "Half of it."}, finish="tool-calls")
    house.say("ses_a", "user", {"type": "compaction", "auto": True})
    answer(house, {"type": "text", "text": "So far half was sold."}, summary=True)
    house.say("ses_a", "user", {"type": "text", "text": "Continue if you have next steps", "synthetic": True})
    answer(house, {"type": "text", "text": "All sold."}, finish="stop")
    found = facts(house)
    assert [(turn.prompt, turn.is_compaction) for turn in found.turns] == [
        ("Build a shop.", False), ("", True), ("Sell it.", False),
    ]  # fmt: skip
    assert [reply.text for turn in found.turns for reply in turn.replies] == ["Built.", "Half of it.", "All sold."]


def test_prompts_of_a_sub_agent_are_marked(house: Recorded) -> None:
    house.session("ses_a", SHOP, parent_id="ses_parent")
    house.say("ses_a", "user", "Review app.py.")
    assert facts(house).turns[0].is_command


# -- endings -----------------------------------------------------------------------------------------------------

REJECTED = call("bash", status="error", command="rm -r /") | {}
REJECTED["state"] |= {"error": "The user rejected permission to use this specific tool call."}
RUNNING = call("bash", status="running", command="sleep 9")
ENDINGS: list[tuple[tuple[dict[str, Any], ...], dict[str, Any], bool, Ending, str]] = [
    ((), {"finish": "stop"}, False, Ending.ANSWERED, ""),
    ((), {}, False, Ending.ANSWERED, ""),
    ((), {"error": {"name": "MessageAbortedError", "data": {"message": "Aborted"}}}, False, Ending.STOPPED, ""),
    ((), {"error": {"name": "APIError", "data": {"message": "overloaded"}}}, False, Ending.FAILED,
     "APIError: overloaded"),
    ((), {"error": {"type": "unknown", "message": "no model"}}, False, Ending.FAILED, "unknown: no model"),
    ((REJECTED,), {"finish": "tool-calls"}, False, Ending.REFUSED, ""),
    ((), {"finish": "tool-calls"}, False, Ending.OPEN, ""),
    ((), {"finish": "tool-calls"}, True, Ending.STOPPED, ""),
    ((RUNNING,), {"completed": False}, False, Ending.OPEN, ""),
    ((RUNNING,), {"completed": False}, True, Ending.STOPPED, ""),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "record", "goes_on", "ending", "error"), ENDINGS)
def test_how_a_turn_ended(
    house: Recorded,
    parts: tuple[dict[str, Any], ...],
    record: dict[str, Any],
    ending: Ending,
    error: str,
    *,
    goes_on: bool,
) -> None:
    house.session("ses_a", SHOP)
    house.say("ses_a", "user", "Build a shop.")
    answer(house, {"type": "text", "text": "Well."}, *parts, **record)
    if goes_on:
        house.say("ses_a", "user", "Again.")
    turn = facts(house).turns[0]
    assert (turn.ending, turn.error) == (ending, error)


def test_an_answer_without_an_end_was_cut_off_when_others_went_on(house: Recorded) -> None:
    house.session("ses_a", SHOP)
    house.say("ses_a", "user", "Build a shop.")
    answer(house, RUNNING, completed=False)
    assert facts(house).turns[0].ending is Ending.OPEN
    turn = facts(house, newest=house.clock + turns.SILENCE_MS + 1).turns[0]
    assert (turn.ending, [one.status.value for one in turn.calls]) == (Ending.STOPPED, ["stopped"])


def test_a_prompt_written_while_the_agent_worked_cuts_nothing_off(house: Recorded) -> None:
    house.session("ses_a", SHOP)
    house.say("ses_a", "user", "Build a shop.")
    answer(house, finish="tool-calls", time={"created": house.clock, "completed": house.clock + 5 * MINUTE})
    house.say("ses_a", "user", "In blue.")
    assert facts(house).turns[0].ending is Ending.ANSWERED


# -- reverts -----------------------------------------------------------------------------------------------------


def _text(text: str) -> Part:
    data = {"id": "prt_0000", "messageID": "msg_0000", "sessionID": "ses_a", "type": "text", "text": text}
    return records.part(records.dumps(data), "msg_0000", "ses_a")


def _two_turns(house: Recorded) -> list[str]:
    house.session("ses_a", SHOP)
    return [
        house.say("ses_a", "user", "Build a shop."),
        house.say("ses_a", "assistant", "Built.", call("write", filePath=f"{SHOP}/a.py", content="a\n")),
        house.say("ses_a", "user", "Paint it red."),
        house.say("ses_a", "assistant", "Red.", call("write", filePath=f"{SHOP}/b.py", content="b\n")),
    ]


def _standing(found: SessionFacts) -> list[tuple[str, bool, bool]]:
    return [(turn.prompt, turn.taken_back, turn.in_doubt) for turn in found.turns]


def test_messages_that_are_gone_are_a_revert_in_doubt(house: Recorded) -> None:
    ids = _two_turns(house)
    for mid in ids[2:]:
        house.delete(mid)
    house.say("ses_a", "user", "Paint it blue.")
    found = facts(house)
    assert _standing(found) == [
        ("Build a shop.", False, False), ("Paint it red.", True, True), ("Paint it blue.", False, False),
    ]  # fmt: skip
    (revert,) = found.reverts
    assert (revert.prompts, revert.message_id) == (("Paint it red.",), ids[2])
    assert not revert.pending
    assert not revert.is_certain


@pytest.mark.parametrize(
    ("parts", "diffs", "is_taken_back"),
    [((), [{"file": "a.py"}], True), (("Paint it red.",), [{"file": "a.py"}], False), ((), [], False)],
    ids=["only its diff is left", "its text is there", "nothing is known of it"],
)
def test_a_prompt_that_is_only_a_diff_was_taken_back(
    house: Recorded, parts: tuple[str, ...], diffs: list[Json], *, is_taken_back: bool
) -> None:
    house.session("ses_a", SHOP)
    made = [_text(one) for one in parts]
    house.put("ses_a", "msg_0000", "user", tuple(made), summary={"diffs": diffs}, path={"cwd": SHOP, "root": SHOP})
    house.say("ses_a", "user", "Paint it blue.")
    found = facts(house)
    assert found.turns[0].taken_back is is_taken_back
    assert [(one.message_id, one.paths, one.is_certain) for one in found.reverts] == (
        [("msg_0000", (f"{SHOP}/a.py",), False)] if is_taken_back else []
    )


@pytest.mark.parametrize(
    ("part", "prompts", "marked"),
    [("", ("Paint it red.",), [False, True]), ("prt_0004_1", (), [False, True])],
)
def test_a_pending_revert_is_told_by_the_session(
    house: Recorded, part: str, prompts: tuple[str, ...], marked: list[bool]
) -> None:
    ids = _two_turns(house)
    diff = "diff --git a/b.py b/b.py\ndeleted file mode 100644\nindex 1234567..0000000\n"
    first = ids[3] if part else ids[2]
    raw = {"revert": {"messageID": first, "snapshot": "ab" * 20, "diff": diff} | ({"partID": part} if part else {})}
    house.session("ses_a", SHOP, raw=records.dumps(raw))
    found = facts(house)
    assert [turn.taken_back for turn in found.turns] == marked
    (revert,) = found.reverts
    assert (revert.prompts, revert.paths, revert.pending, revert.undone) == (prompts, (f"{SHOP}/b.py",), True, None)


def test_a_revert_that_was_undone_takes_nothing_back(house: Recorded) -> None:
    ids = _two_turns(house)
    mark = {"time": house.clock + 1, "message_id": ids[2], "part_id": "", "snapshot": "ab" * 20, "is_undone": False}
    batch = house.archive.batch()
    batch.session_extra("ses_a", {"reverts": {"test": [mark, mark | {"time": house.clock + 9, "is_undone": True}]}}, [])
    house.archive.commit(batch)
    found = facts(house)
    assert [turn.taken_back for turn in found.turns] == [False, False]
    assert [(one.prompts, one.undone, one.pending) for one in found.reverts] == [
        (("Paint it red.",), house.clock + 9, False)
    ]
    early = facts(house, until=house.clock + 5)
    assert [turn.taken_back for turn in early.turns] == [False, True]
    assert facts(house, until=house.clock).reverts == ()


def test_a_deleted_session_was_not_reverted(house: Recorded) -> None:
    ids = _two_turns(house)
    batch = house.archive.batch()
    for mid in ids:
        batch.forget_message_source(mid, "test", house.clock)
    batch.forget_session_source("ses_a", "test", house.clock)
    house.archive.commit(batch)
    found = facts(house)
    assert found.deleted
    assert found.reverts == ()
    assert not any(turn.taken_back for turn in found.turns)


# -- todo lists --------------------------------------------------------------------------------------------------


def _todo(text: str, status: str = "pending") -> dict[str, str]:
    return {"content": text, "status": status, "priority": "high"}


def test_a_todo_list_is_the_one_kept_beside_the_session(house: Recorded) -> None:
    house.session("ses_a", SHOP)
    house.say("ses_a", "assistant", call("todowrite", todos=[_todo("Build it")]))
    assert facts(house).todos == (Todo("Build it", "pending", "high"),)
    batch = house.archive.batch()
    house.archive.beside.put_todos(batch, "ses_a", "test", [_todo("Build it", "completed"), {"odd": 1}], house.clock)
    house.archive.commit(batch)
    found = facts(house).todos
    assert found == (Todo("Build it", "completed", "high"),)
    assert not found[0].is_open
    assert facts(house, until=house.clock).todos == (Todo("Build it", "pending", "high"),)


def test_a_session_that_is_partly_about_a_folder_shares_no_other_list(house: Recorded) -> None:
    house.session("ses_a", SHOP)
    house.say("ses_a", "user", "Something else.")
    batch = house.archive.batch()
    house.archive.beside.put_todos(batch, "ses_a", "test", [_todo("Elsewhere")], house.clock)
    house.archive.commit(batch)
    assert facts(house, is_whole=False).todos == ()
    assert facts(house).todos == (Todo("Elsewhere", "pending", "high"),)


# -- forks -------------------------------------------------------------------------------------------------------


def test_the_copied_turns_of_a_fork_are_told_as_such(house: Recorded) -> None:
    house.session("ses_a", SHOP)
    run = call("bash", command="pytest -q", output="1 passed in 0.1s", metadata={"exit": 0})
    house.say("ses_a", "user", "Build a shop.")
    house.say("ses_a", "assistant", "Built.", run)
    house.say("ses_a", "user", "Paint it red.")
    originals = list(house.archive.messages("ses_a"))
    house.session("ses_b", SHOP, "A session (fork #1)")
    for number, message in enumerate(originals[:2]):
        parts = [part.data | {"id": f"prt_copy_{number}_{n}"} for n, part in enumerate(message.parts)]
        made = tuple(records.part(records.dumps(part), f"msg_copy_{number}", "ses_b") for part in parts)
        house.put("ses_b", f"msg_copy_{number}", message.role, made, time=message.data["time"])
    house.say("ses_b", "user", "Paint it blue.")
    first, fork = all_facts(house)
    assert (first.forked_from, first.copied, len(first.tests)) == ("", 0, 1)
    assert (fork.forked_from, fork.copied, len(fork.tests)) == ("ses_a", 1, 0)
    assert prompts(fork)[fork.copied :] == ["Paint it blue."]


def test_the_same_prompt_twice_makes_no_fork(house: Recorded) -> None:
    for sid in ("ses_a", "ses_b"):
        house.session(sid, SHOP)
        house.say(sid, "user", "Build a shop.")
    assert [one.forked_from for one in all_facts(house)] == ["", ""]


def test_known_secrets_of_a_session_are_hidden_in_it(house: Recorded) -> None:
    house.session("ses_a", SHOP, "The blue-tulip-94 shop")
    house.say("ses_a", "user", "Use blue-tulip-94 please.")
    house.archive.secrets.add("ses_a", {"blue-tulip-94": "password"})
    found = facts(house)
    assert "blue-tulip" not in found.title + prompts(found)[0]


def test_turns_are_plain_values(house: Recorded) -> None:
    ids = _two_turns(house)
    assert facts(house) == facts(house)
    (one, two) = facts(house).turns
    assert isinstance(one, Turn)
    assert (one.message_ids, two.message_ids) == (tuple(ids[:2]), tuple(ids[2:]))
