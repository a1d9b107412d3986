"""Session pages: what a person reads there, and when they are made anew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from daemon.publish import publish
from daemon.publish.edits import CLOSE
from daemon.reconstitute.answer import Source, Statement
from daemon.reconstitute.facts.session_values import Citation, FileChange, TakenBack, TestRun
from daemon.reconstitute.pages.session.messages import Messages
from tests.support.pages.page_links import broken
from tests.support.pages.page_material import file
from tests.support.pages.session_tree import ROOT, facts, session_pages, tree
from tests.support.secrets.canaries import SECRETS
from tests.support.stores.recorded_sessions import Recorded, call, recorded


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Recorded]:
    with recorded(tmp_path) as made:
        yield made


def page(house: Recorded, told, **more) -> str:
    (text,) = session_pages(house, told, **more).values()
    return text


def talk(house: Recorded, sid: str = "ses_1", title: str = "Build it", turns: int = 1) -> str:
    house.session(sid, ROOT, title)
    for number in range(turns):
        house.say(sid, "user", f"Do {number}")
        house.say(sid, "assistant", f"Did {number}")
    return sid


def anchors(text: str) -> list[str]:
    return re.findall(r"^###### (\S+)$", text, re.MULTILINE)


def test_prompts_are_quoted_and_answers_stand_as_they_are(house: Recorded) -> None:
    sid = house.session("ses_1", ROOT, "Build it")
    house.say(sid, "user", "Build the API.\nPlan first.")
    house.say(sid, "assistant", {"type": "reasoning", "text": "Hm."}, "I did:\n- **one**\n\n```py\nx = 1\n```")
    text = page(house, facts(house, sid))
    assert text.startswith("# Build it\n\n[shop](../README.md)\n\n- When: ")
    assert "\n## 1. Build the API. Plan first.\n\n###### msg-01\n\n**User** · " in text
    assert "\n> Build the API.\\\n> Plan first.\n\n###### msg-02\n\n**Agent** · " in text
    assert (
        "<details><summary>Reasoning</summary>\n\n> Hm.\n\n</details>\n\nI did:\n\n- **one**\n\n```py\nx = 1\n```\n"
        in text
    )


def test_what_a_model_says_of_it_stands_in_its_head_with_its_source(house: Recorded) -> None:
    sid = talk(house, turns=2)
    message = house.archive.message_ids(sid)[3]
    said = Statement("Two things were done.", "", (Source(message, sid, "Build it", 0, "Did 1"),))
    told = facts(house, sid)
    text = page(house, told, summaries={sid: said})
    assert re.search(r"\n\n> Two things were done\.\[\^1-4-[a-z]{2}\] \(by the model\)\n\n- When: ", text)
    assert text.endswith(", [Build it](#msg-04): “Did 1”\n")
    assert broken({one.path: one.text for one in tree(house, told, summaries={sid: said})}) == []
    (without,), (with_it,) = (
        [one for one in tree(house, told, summaries=found) if one.path.startswith("sessions/")]
        for found in ({}, {sid: said})
    )
    assert without.basis != with_it.basis


@pytest.mark.parametrize(
    ("part", "line", "folded"),
    [
        (call("bash", output="1 passed\n", command="pytest", metadata={"exit": 0}), "`bash` `pytest` · ok", "<details><summary>Output, 1 line</summary>\n\n```text\n1 passed\n```"),
        (call("bash", command="false", metadata={"exit": 1}), "`bash` `false` · failed, exit 1", ""),
        (call("bash", command="a\nb", metadata={"exit": 0}), "`bash` `a …` · ok", "<details><summary>Input</summary>\n\n```sh\na\nb\n```"),
        (call("edit", "error", filePath="/x/a.py", oldString="a", newString="b"), "· failed", "```diff\n@@ -1 +1 @@\n-a\n+b\n```"),
        (call("write", output="Wrote it.", filePath="/x/a.py", content="x = 1\n"), "`write` `/x/a.py` · ok", "<details><summary>Change</summary>\n\n```python\nx = 1\n```\n\n</details>"),
        (call("glob", output="/a\n/b", pattern="**/*"), "`glob` `**/*` · ok", "<details><summary>Output, 2 lines</summary>"),
        (call("odd", output="yes", deep={"a": [1]}), "`odd`", '"deep": {\n'),
    ],
)  # fmt: skip
def test_a_call_is_a_line_and_a_fold(house: Recorded, part: dict, line: str, folded: str) -> None:
    sid = house.session("ses_1", ROOT)
    house.say(sid, "user", "Go")
    house.say(sid, "assistant", part)
    text = page(house, facts(house, sid))
    assert line in text
    assert folded in text
    assert folded or "<details>" not in text


def test_what_opencode_added_and_attached_is_told_apart(house: Recorded) -> None:
    sid = house.session("ses_1", ROOT)
    image = {"type": "file", "mime": "image/png", "filename": "shot.png", "url": "data:image/png;base64,QUJD"}
    house.say(sid, "user", "Look", {"type": "text", "text": "Called the Read tool", "synthetic": True}, image)
    text = page(house, facts(house, sid))
    assert "<details><summary>Added by OpenCode</summary>\n\n```text\nCalled the Read tool\n```" in text
    assert "Attached: `shot.png` (image/png)" in text
    assert "QUJD" not in text


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({}, "The conversation so far was summarised here."),
        ({"auto": True}, "The conversation so far was summarised here, to make room."),
        (
            {"auto": True, "overflow": True},
            "The request was too large; OpenCode summarised the conversation so far here, to go on.",
        ),
    ],
)
def test_a_summary_of_the_conversation_says_why_it_was_made(house: Recorded, part: dict, said: str) -> None:
    sid = house.session("ses_1", ROOT)
    house.say(sid, "user", "Go on")
    house.say(sid, "user", {"type": "compaction"} | part)
    assert f"\n{said}\n" in page(house, facts(house, sid))


def test_an_answer_without_anything_in_it_says_so(house: Recorded) -> None:
    sid = house.session("ses_1", ROOT)
    house.say(sid, "user", "Go on")
    house.say(sid, "assistant", {"type": "step-start"})
    house.say(sid, "assistant")
    house.say(sid, "assistant", "Done.")
    text = page(house, facts(house, sid))
    assert re.search(
        r"###### msg-02\n\n\*\*Agent.*\n\n\(nothing recorded\)\n\n###### msg-03\n\n\(nothing recorded\)\n\n", text
    )
    assert text.count("(nothing recorded)") == 2


def test_changed_files_and_sub_agents_are_linked(house: Recorded) -> None:
    parent, child = house.session("ses_p", ROOT, "Parent"), house.session("ses_c", ROOT, "Child")
    house.say(parent, "user", "Go")
    house.say(
        parent, "assistant", call("write", filePath=f"{ROOT}/a.py", content="x"),
        call("task", prompt="Look", description="look", metadata={"sessionId": child}),
    )  # fmt: skip
    house.say(child, "user", "Look")
    inner = facts(house, child)
    inner = replace(inner, session=replace(inner.session, parent_id=parent))
    change = FileChange(f"{ROOT}/a.py", "added", 1, 0)
    made = session_pages(house, facts(house, parent, changes=(change,)), inner, files=[file("a.py")])
    above, below = made["sessions/2026-11-18-parent.md"], made["sessions/2026-11-18-child.md"]
    assert "- Files: [a.py](../a.py.md) +1 (added)\n" in above
    assert re.search(r"`write` .* · \[a.py\]\(../a.py.md\)\n", above)
    assert re.search(r"`task` .* · \[Child\]\(2026-11-18-child.md\)\n", above)
    assert "- Sub-agents: [Child](2026-11-18-child.md)\n" in above
    assert "- Sub-agent of: [Parent](2026-11-18-parent.md)\n" in below


def test_a_revert_is_marked_where_it_was_and_at_the_top(house: Recorded) -> None:
    told = facts(house, talk(house, turns=2))
    revert = TakenBack(house.clock, told.message_ids[2], pending=True, prompts=("Do 1",))
    turns = (told.turns[0], replace(told.turns[1], taken_back=True))
    text = page(house, replace(told, turns=turns, reverts=(revert,)))
    assert "- Taken back: “Do 1”, from [here](#msg-03) on, " in text
    assert re.search(r"## 2. Do 1\n\n\*\*Taken back\*\* on .*; OpenCode can still undo that\.\n\n###### msg-03", text)
    partly = replace(turns[1], in_part=True, in_doubt=True, kept=(f"{ROOT}/a_b.py",))
    text = page(house, replace(told, turns=(told.turns[0], partly), reverts=(revert,)))
    assert "**Taken back in part**, as it seems: " in text
    assert " In the folder, its files were left as they were.\n" in text
    undone = page(house, replace(told, reverts=(replace(revert, pending=False, undone=house.clock),)))
    assert "; undone " in undone
    assert "**Taken back**" not in undone


def test_an_error_and_how_the_session_ended_are_said(house: Recorded) -> None:
    sid = talk(house)
    house.say(sid, "user", "More")
    house.put(sid, "msg_x", "assistant", (), error={"name": "APIError", "data": {"message": "Overloaded."}})
    text = page(house, facts(house, sid))
    assert "**Failed**: `APIError`\n\n```text\nOverloaded.\n```" in text
    assert "- Ended: the last answer failed: APIError: Overloaded." in text


def test_tests_say_in_which_folder_they_ran(house: Recorded) -> None:
    told = facts(house, talk(house))
    cited = Citation(told.id, told.message_ids[-1], 1)
    runs = (TestRun("npm test", True, "", cited, f"{ROOT}/web"), TestRun("make test", False, "", cited, ROOT))
    assert "- Tests: `npm test` in `web` passed, `make test` failed\n" in page(house, replace(told, tests=runs))


def test_a_partial_session_says_so_and_keeps_its_numbers(house: Recorded) -> None:
    sid = talk(house, turns=3)
    text = page(house, facts(house, sid, house.archive.message_ids(sid)[2:4]))
    assert anchors(text) == ["msg-03", "msg-04"]
    assert "`reconstitute export --format markdown --results full --session ses_1`" in text
    assert "Do 0" not in text


def test_every_message_has_one_place_and_later_ones_move_none(house: Recorded) -> None:
    sid = talk(house, turns=3)
    before = anchors(page(house, facts(house, sid)))
    assert before == [f"msg-{number:02d}" for number in range(1, 7)]
    house.delete(house.archive.message_ids(sid)[2])
    house.say(sid, "user", "More")
    assert anchors(page(house, facts(house, sid))) == [*before, "msg-07"]


def test_a_title_that_looks_like_an_anchor_takes_no_message_s_place(house: Recorded) -> None:
    text = page(house, facts(house, talk(house, title="msg-01")))
    headings = [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")]
    assert len([one for one in headings if re.sub(r"\W+", "-", one.lower()).strip("-") == "msg-01"]) == 1


@pytest.mark.parametrize(
    ("times", "parts"),
    [
        (6, ["*" * 99_000, ""]),
        (2, ["*" * 99_000, "修" * 99_000, "修" * 99_000]),
        (1, ["x\n" * 300_000]),
        (1, [call("bash", output="y" * 20_000, command=f"z {number}") for number in range(60)]),
        (1, [call("bash", output="y", command=f"{'z' * 150} {number}") for number in range(3000)]),
        (2, ["<" * 60_000 for _ in range(9)]),
    ],
    ids=["marks", "wide", "long", "outputs", "calls", "texts"],
)
def test_no_page_is_too_long_for_a_renderer(house: Recorded, times: int, parts: list) -> None:
    sid = house.session("ses_1", ROOT)
    for _ in range(times):
        house.say(sid, "user", "Go")
        house.say(sid, "assistant", *(one if isinstance(one, str) else dict(one) for one in parts))
    made = session_pages(house, facts(house, sid))
    assert sorted(one for text in made.values() for one in anchors(text)) == [
        f"msg-{n:02d}" for n in range(1, 2 * times + 1)
    ]
    assert max(len(text.encode()) for text in made.values()) < 512_000
    assert ("reconstitute recall-get msg_" in "".join(made.values())) == (times < 6)


def test_pages_of_one_session_lead_to_one_another(house: Recorded) -> None:
    sid = house.session("ses_1", ROOT, "Long")
    for _ in range(8):
        house.say(sid, "user", "Go")
        house.say(sid, "assistant", "word " * 19_000)
    made = session_pages(house, facts(house, sid))
    assert list(made) == ["sessions/2026-11-18-long-page-2.md", "sessions/2026-11-18-long-page-3.md", "sessions/2026-11-18-long-page-4.md", "sessions/2026-11-18-long.md"]  # fmt: skip
    assert (
        "Page 2 of 4: [1](2026-11-18-long.md) 2 [3](2026-11-18-long-page-3.md) "
        in made["sessions/2026-11-18-long-page-2.md"]
    )


@pytest.mark.parametrize(("kind", "secret", "text"), SECRETS, ids=range(len(SECRETS)))
def test_no_secret_reaches_a_page(house: Recorded, kind: str, secret: str, text: str) -> None:
    told = text.replace("{}", secret)
    sid = house.session("ses_1", f"{ROOT}/x", told)
    house.say(sid, "user", told, {"type": "text", "text": told, "synthetic": True})
    house.say(
        sid, "assistant", told, {"type": "reasoning", "text": told}, call("bash", output=told, command=told),
        call("edit", filePath=f"{ROOT}/a", oldString=told, newString=f"{told}\n"),
        call("write", filePath=f"{ROOT}/a", content=told), call("odd", output=told, argument=told),
    )  # fmt: skip
    for name, shown in session_pages(house, facts(house, sid)).items():
        assert secret not in shown, kind
        assert secret.lower() not in name


def test_a_secret_known_from_one_message_is_hidden_in_all(house: Recorded) -> None:
    sid, secret = house.session("ses_1", ROOT), "k7Qm2xW9pL4vT8nB"
    house.say(sid, "user", f"Use {secret} there.")
    house.archive.secrets.add(sid, {secret: "token"})
    other = house.session("ses_2", ROOT)
    house.say(other, "user", f"Use {secret} here.")
    made = session_pages(house, facts(house, sid), facts(house, other))
    assert not [name for name, text in made.items() if secret in text]


def test_only_what_changed_is_made_again(house: Recorded) -> None:
    """Of many sessions one is added to: the basis of its page alone is another, and all others have the same bytes."""
    ids = [talk(house, f"ses_{number:03}", f"Session {number}", turns=2) for number in range(30)]

    def bases() -> dict[str, str]:
        return {page.path: page.basis for page in tree(house, *(facts(house, one) for one in ids)) if page.basis}

    before = bases()
    assert bases() == before
    assert len(before) == 30
    house.say("ses_007", "user", "One more")
    after = bases()
    assert [path for path in after if after[path] != before[path]] == ["sessions/2026-11-18-session-7.md"]


def test_a_page_is_made_only_when_it_is_asked_for(house: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    told = facts(house, talk(house))
    written: list[str] = []
    write = Messages.write
    monkeypatch.setattr(
        Messages, "write", lambda self, said, *args, **more: written.append(said.id) or write(self, said, *args, **more)
    )
    (page,) = [one for one in tree(house, told) if one.basis]
    assert not written
    assert page.text == page.text
    assert len(written) == 4


@pytest.mark.parametrize("change", [{"title": "Other"}, {"deleted": True}, {"forked_from": "ses_9"}])
def test_what_a_page_says_is_in_its_basis(house: Recorded, change: dict) -> None:
    told = facts(house, talk(house))
    (before,), (after,) = ([one for one in tree(house, made) if one.basis] for made in (told, replace(told, **change)))
    assert before.text != after.text
    assert before.basis != after.basis


def test_with_too_few_pages_no_link_leads_to_one_that_is_left_out(house: Recorded) -> None:
    told = [facts(house, talk(house, f"ses_{number}", f"Session {number}")) for number in range(4)]
    inner = replace(told[0], session=replace(told[0].session, parent_id="ses_3"))
    made = {page.path: page.text for page in tree(house, inner, *told[1:], most=3)}
    assert sorted(made) == ["README.md", "sessions/2026-11-18-session-2.md", "sessions/2026-11-18-session-3.md"]
    assert broken(made) == []
    assert "Sub-agents" not in made["sessions/2026-11-18-session-3.md"]


def test_touching_a_record_changes_no_basis(house: Recorded) -> None:
    told = facts(house, talk(house))
    touched = replace(told, session=replace(told.session, updated=house.clock + 5, raw=b'{"touched": true}'))
    assert {one.basis for one in tree(house, told)} == {one.basis for one in tree(house, touched)}


def test_notes_on_a_session_page_move_with_the_session_when_it_is_renamed(house: Recorded, tmp_path: Path) -> None:
    root = tmp_path / "pages"
    publish(root, "shop", tree(house, facts(house, talk(house, title="First steps"))), spare_bytes=0)
    written = root / "shop/sessions/2026-11-18-first-steps.md"
    written.write_bytes(written.read_bytes().replace(CLOSE, b"mine\n" + CLOSE))
    house.session("ses_1", ROOT, "Second thoughts")
    publish(root, "shop", tree(house, facts(house, "ses_1")), spare_bytes=0)
    assert not written.exists()
    assert b"mine\n" in (root / "shop/sessions/2026-11-18-second-thoughts.md").read_bytes()
