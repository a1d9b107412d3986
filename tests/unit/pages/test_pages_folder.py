"""The front page of a folder, made from its facts alone."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.files.history import LOST_FOLDER
from daemon.model import FileEdit, Operation
from daemon.reconstitute.facts import Facts
from daemon.reconstitute.facts.session_values import Call, CallStatus, Citation, Ending, Reply, TestRun
from daemon.reconstitute.facts.values import (
    Command,
    OpenKind,
    OpenPoint,
    Purpose,
    Rule,
    Script,
    Setback,
    SetbackKind,
    Standing,
    key,
)
from daemon.reconstitute.pages import Renderer, plan
from daemon.reconstitute.pages.folder import MOST_BYTES
from daemon.reconstitute.pages.folder.overview import known, unlisted
from daemon.reconstitute.pages.folder.timeline import PromptQuotes, Superseded, picture
from daemon.reconstitute.pages.layout import Transcripts
from daemon.reconstitute.pages.material import Material
from daemon.reconstitute.pages.statements import Footnotes
from daemon.reconstitute.recover import State
from tests.support.pages.markup import PAYLOADS, kinds, parse
from tests.support.pages.page_material import AT, DAY, ROOT, file, material, pages, record, source, statement
from tests.support.pages.rich_facts import (
    OPEN,
    RULE,
    Numbered,
    cite,
    facts,
    files,
    many,
    rich,
    session_facts,
    sessions,
    turn,
)


@pytest.fixture(autouse=True)
def _session_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "Transcripts", Numbered)


def front(made: Material) -> str:
    return pages(made)["README.md"]


def section(page: str, heading: str) -> list[str]:
    return (
        page.split(f"\n## {heading}\n")[1]
        .split("\n## ", maxsplit=1)[0]
        .split("\n\n[^", maxsplit=1)[0]
        .strip()
        .splitlines()
    )


def test_the_sections_stand_in_the_order_in_which_a_person_asks():
    assert re.findall(r"^## (.*)$", front(rich()), re.MULTILINE) == [
        "What happened", "How to run it", "Taken back, failed, refused", "Left open", "Rules and decisions", "Files",
    ]  # fmt: skip


def test_a_section_of_which_nothing_is_known_is_left_out():
    top = front(material(facts=Facts()))
    assert "##" not in top
    assert "**Run it**" not in top
    assert "**Left open**" not in top


def test_the_first_screen_says_what_it_is_where_it_stands_and_what_to_do():
    assert front(rich()).split("## What happened")[0].strip().splitlines()[2:] == [
        "> Ein kleiner Laden für Becher, ohne Datenbank. (README.md)[^1]",
        ">",
        "> A mug shop. (pyproject.toml)",
        "",
        (
            "**Where it stands**: Last activity 2026-11-23 12:02 in [Deploy](sessions/ses_5.md). All 7 files are known exactly "
            "(as of 2026-11-22 12:00). 2 of its 7 files are not on this disk; all can be brought back exactly: "
            "`reconstitute restore ~/shop --to NEW`. [README.md](README.md.md) differs on this disk. "
            "What came after may have changed files: one command of unknown effect ran: `make dist`[^2]."
        ),
        "",
        "**Run it**: `make run` ([Makefile](Makefile.md)); it was not run in these sessions.",
        "",
        "**Left open**: 3 points, the first: Failed when it last ran: `npm test`: expected 2, got 3 (2026-11-23 12:00; exit status 1)[^3].",
        "",
        "`/home/dev/shop`, times in UTC.",
    ]


P, COMMAND = (f"{ROOT}/a", f"{ROOT}/b", f"{ROOT}/c"), "reconstitute restore /p --to DIR"


@pytest.mark.parametrize(
    ("standing", "said"),
    [
        (Standing(absent=P, missing=P, restore=COMMAND),
         f"None of its 3 files is on this disk; all can be brought back exactly: `{COMMAND}`."),
        (Standing(absent=P, missing=P[:1], likely=P[1:], restore=COMMAND),
         f"exactly: `{COMMAND}`, 2 more as last known with `--grade stale`."),
        (Standing(absent=P[:2], missing=P[:1], restore=COMMAND),
         f"2 of its 3 files are not on this disk; 1 can be brought back exactly: `{COMMAND}`."),
        (Standing(absent=P[:2], likely=P[:2], restore=COMMAND),
         f"all can be brought back as last known, perhaps changed since: `{COMMAND} --grade stale`."),
        (Standing(absent=P[:1]), "1 of its 3 files is not on this disk; what it held is not known whole."),
        (Standing(absent=P), "None of its 3 files is on this disk; of none of these a whole content is known."),
        (Standing(absent=P[:1], missing=P[:1], differing=P[1:], restore=COMMAND),
         f"1 of its 3 files is not on this disk; it can be brought back exactly: `{COMMAND}`. [b](b.md), [c](c.md) differ on this disk."),
        (Standing(differing=P[1:2], restore=COMMAND),
         f"[b](b.md) differs on this disk; the recorded state comes back with `{COMMAND}`."),
        (Standing(), "All 3 files are known exactly."),
    ],
)  # fmt: skip
def test_what_the_disk_lacks_is_told_with_what_comes_back(standing: Standing, said: str):
    page = front(replace(material([file("a"), file("b"), file("c")]), facts=Facts(standing=standing)))
    assert page.split("**Where it stands**: ")[1].partition("\n")[0].endswith(said)


def test_nothing_open_is_only_said_of_the_records():
    assert "**Left open**: the records name no open todo, question or failure." in front(material([file("a.py")]))


CITED = Citation("ses_1", "msg_1", 1)


def run(command: str, last: CallStatus, **fields: Any) -> Command:
    return Command("run", command, "", 1, last=last, succeeded=CITED if last is CallStatus.OK else None, **fields)


STARTED = run("./start", CallStatus.OK)
MAKE = Script("run", "make run", "./start --all", f"{ROOT}/Makefile", "run")


@pytest.mark.parametrize(
    ("commands", "scripts", "said"),
    [
        ([run("./serve", CallStatus.STOPPED), run("./old", CallStatus.UNKNOWN), STARTED], [], "`./start`: succeeded"),
        ([STARTED, run("./app", CallStatus.OK, named=True)], [MAKE], "`./app`: succeeded"),
        ([run("./serve", CallStatus.FAILED), run("./x", CallStatus.UNKNOWN)], [MAKE], "`make run` ("),
        ([run("./app", CallStatus.FAILED, named=True)], [MAKE], "`./app`: **failed**"),
        ([run("./serve", CallStatus.STOPPED), run("./x", CallStatus.UNKNOWN)], [], "`./x`: how its last run ended"),
        ([run("./serve", CallStatus.STOPPED)], [], "`./serve`: its last run was stopped"),
        ([replace(run("make a", CallStatus.UNKNOWN), group="build"), replace(STARTED, group="test")], [],
         "to test it: `./start`: succeeded"),
        ([replace(run("./up", CallStatus.FAILED), group="deploy"), replace(STARTED, group="build")], [],
         "to build it: `./start`: succeeded"),
        ([run("./up", CallStatus.FAILED), replace(STARTED, group="build")], [], "to build it: `./start`: succeeded"),
        ([replace(STARTED, group="install"), replace(run("./t", CallStatus.OK), group="test")], [],
         "to test it: `./t`: succeeded"),
        ([replace(STARTED, failed=CITED, exit=3, times=4)], [], "`./start`: succeeded 1970-01-01 00:00[^1].\n"),
        ([run("./x", CallStatus.UNKNOWN, line_exit=2)], [],
         "`./x`: how its last run ended is not recorded; the line it was in ended with exit status 2."),
        ([replace(STARTED, group="other"), replace(run("make", CallStatus.FAILED), group="build")], [],
         "to build it: `make`: **failed**"),
    ],
)  # fmt: skip
def test_what_succeeded_or_is_named_is_the_way_to_run_it(commands: list[Command], scripts: list[Script], said: str):
    given = Facts(commands=tuple(commands), scripts=tuple(scripts))
    assert f"**Run it**: {said}" in front(material([file("a.py")], facts=given))


@pytest.mark.parametrize(
    ("times", "is_least", "said"),
    [(3, False, "; run 3 times"), (3, True, "; run at least 3 times"), (1, True, "; perhaps run more than once")],
)
def test_how_often_a_command_ran_is_said_as_far_as_it_is_known(times: int, is_least: bool, said: str):
    shown = front(material([file("a.py")], facts=Facts(commands=(replace(STARTED, times=times, is_least=is_least),))))
    assert f"`./start`: succeeded 1970-01-01 00:00[^1]{said}\n" in shown


NOT_RUN = "it was not run in these sessions"
TEST = Script("test", "npm test", "node t.js", f"{ROOT}/package.json", "run")
BIN = Script("x", "bin/x", "", f"{ROOT}/x.toml", "run")
WEB = Script("run", "cd web && make run", "", f"{ROOT}/web/Makefile", "run")


@pytest.mark.parametrize(
    ("script", "command", "folder"),
    [
        (MAKE, "make run", ""),
        (MAKE, "make run PORT=80", ""),
        (replace(MAKE, is_default=True), "make", ""),
        (TEST, "npm run test", ""),
        (TEST, "npm --silent t", ""),
        (TEST, "pnpm test", ""),
        (BIN, "./bin/x", ""),
        (BIN, "sh bin/x --now", ""),
        (WEB, "make run", "web"),
        (WEB, "make -C web run", ""),
    ],
)  # fmt: skip
def test_a_named_script_that_was_run_in_other_words_shows_how_it_ended(script: Script, command: str, folder: str):
    ran = replace(run(command, CallStatus.OK), group="build", folder=folder)
    page = front(material([file("a.py")], facts=Facts(commands=(ran,), scripts=(script,))))
    assert f"**Run it**: `{command}`{f' in `{folder}`' if folder else ''}: succeeded" in page
    assert NOT_RUN not in page


@pytest.mark.parametrize(
    ("command", "is_run"),
    [
        ("make -s run | tail", True),
        ('bash -c "cd . && make run"', True),
        ("make build", False),
        ("echo run", False),
    ],
)  # fmt: skip
def test_a_named_script_that_a_command_may_have_run_is_not_called_unused(command: str, is_run: bool):
    called = Call("bash", command, CallStatus.OK, "msg_1", "prt_1", AT, AT, command=command)
    given = Facts((session_facts(1, "One", turn(1, "Do it.", calls=(called,))),), scripts=(MAKE,))
    assert (NOT_RUN in front(material([file("a.py")], facts=given))) is not is_run


def test_a_command_of_a_moved_script_says_how_it_ran():
    moved = replace(run("python3 b.py", CallStatus.OK), ran_as="python3 a.py")
    page = front(material([file("b.py")], facts=Facts(commands=(moved,))))
    assert "`python3 b.py` (ran as `python3 a.py`, which was moved): succeeded" in page


def test_tests_of_another_folder_say_where_they_ran():
    runs = (TestRun("npm test", True, "", CITED, f"{ROOT}/web"), TestRun("make test", True, "", CITED, ROOT))
    page = front(
        material([file("a.py")], facts=Facts((replace(session_facts(1, "One", turn(1, "Do it.")), tests=runs),)))
    )
    assert "tests passed: `npm test` in `web`[" in page
    assert "tests passed: `make test`[" in page


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Facts(scripts=(Script("run", "make run", "", f"{ROOT}/Makefile", "run"),)), "`make run` (`Makefile`); it was not run"),
        (Facts(commands=facts().commands[:1]), "to install it: `pip install"),
    ],
)  # fmt: skip
def test_what_nobody_ran_is_said_to_be_only_named(given: Facts, said: str):
    assert f"**Run it**: {said}" in front(material([file("a.py")], facts=given))


# -- what happened ---------------------------------------------------------------------------------------------------


def test_sessions_stand_newest_first_with_prompts_results_and_ends():
    listed = section(front(rich()), "What happened")
    assert [line for line in listed if line.startswith("- ")] == [
        "- 2026-11-23 12:01, [without title](sessions/ses_6.md), **still open**, only in part about this folder, deleted in OpenCode",
        "- 2026-11-23 12:00, [Deploy](sessions/ses_5.md), **failed**: “AI_APICallError: quota exceeded”",
        "- 2026-11-22 12:03, [Switch the port (fork #1)](sessions/ses_4.md), **stopped**, forked from [Switch the port](sessions/ses_3.md)",
        "- 2026-11-21 12:00 to 2026-11-22, [Switch the port](sessions/ses_3.md), answered, **in part taken back**, the revert can still be undone",
        "- 2026-11-21 12:00, [Warenkorb bauen](sessions/ses_1.md), answered",
    ]
    assert (
        "  - Asked: “Bitte baue einen Warenkorb für den Laden, zuerst mit einem Plan.”; “Und schreibe Tests dazu, auch für leere Körbe.”"
        in listed
    )
    assert (
        "  - Result: [cart.py](cart.py.md) +48, [tests/test_cart.py](tests/test_cart.py.md) +30; tests passed: `pytest -q` "
        "(5 passed in 0.03s)[^5]; committed “Add the cart”" in listed
    )


def test_a_sub_agent_stands_under_the_session_that_started_it():
    listed = section(front(rich()), "What happened")
    place = listed.index("  - Sub-agent: 2026-11-21 12:00, [Review the cart](sessions/ses_2.md), answered")
    assert listed[place + 1 :] == [
        "    - Asked: “Review cart.py and write docs/review.md.”",
        "    - Result: [docs/review.md](docs/review.md.md) +12",
    ]


def test_a_fork_tells_only_its_own_turns():
    listed = section(front(rich()), "What happened")
    place = next(n for n, line in enumerate(listed) if "(fork #1)" in line)
    assert listed[place + 1] == "  - Asked: “Keep DEBUG on here.”"


def test_what_was_taken_back_is_marked_where_it_is_told():
    top = front(rich())
    assert "“Turn DEBUG off and add a SECRET.” (**taken back**); “Rather set PORT to 8000.”" in top
    assert "`extra.py` +9 (taken back)" in top
    assert "`old.py` −20 (deleted), [new/name.py](new/name.py.md) (moved from `name.py`)" in top


def test_a_turn_that_was_taken_back_says_how_far_and_what_was_left():
    one = session_facts(1, "One", turn(1, "Change both.", taken_back=True, in_part=True, kept=(f"{ROOT}/a.py",)))
    made = rich(Facts((one,)), [])
    assert "“Change both.” (**taken back in part**; its files were left as they were)" in front(made)
    (logged,) = Renderer(made, 10).entry("home/dev/shop").log
    assert logged.came == "in part taken back (its files were left as they were)"


def test_a_session_that_names_itself_as_its_parent_is_told_once():
    one, two = session_facts(1, "One", turn(1, "x"), parent=1), session_facts(2, "Two", turn(2, "y"), parent=1)
    top = front(rich(Facts((one, two)), []))
    assert top.count("sessions/ses_1.md") == 1
    assert "  - Sub-agent: 2026-11-21 12:00, [Two](sessions/ses_2.md)" in top


def test_sessions_that_name_each_other_as_parents_are_told():
    one, two = session_facts(1, "One", turn(1, "x"), parent=2), session_facts(2, "Two", turn(2, "y"), parent=1)
    made = rich(Facts((one, two)), [])
    assert [each.title for each in Renderer(made, 10).entry("shop").log] == ["One", "Two"]
    top = front(made)
    assert "[One]" in top
    assert "[Two]" in top


def test_a_long_history_is_folded_by_month_and_drawn():
    made = [
        session_facts(n, f"S{n}", turn(n, "x", Ending.ANSWERED, AT - n * 10 * DAY), at=AT - n * 10 * DAY)
        for n in range(14)
    ]
    top = front(rich(Facts(tuple(reversed(made))), []))
    assert "<details><summary>2026-10: 3 sessions</summary>\n\n- 2026-10-" in top
    assert top.index("S0") < top.index("<details>")
    assert top.count("</details>") == top.count("<details>") == 4
    assert "2026-11 ████████████████████ 3\n2026-10" in top
    assert picture(made[:12]) is None
    assert "<details>" not in front(rich(Facts(tuple(made[:12])), []))


def test_the_end_of_the_last_answer_stands_with_its_footnote():
    reply = Reply("msg_2", AT, "The parser is strict now. Two callers still pass None. Shall I mend them?")
    call = Call("edit", "edit a.py", CallStatus.OK, "msg_1", "prt_1", AT, AT)
    one = replace(turn(1, "Make it strict."), message_ids=("msg_1", "msg_2"), calls=(call,), replies=(reply,))
    listed = section(front(rich(Facts((session_facts(1, "Strict", one),)), [])), "What happened")
    assert listed[2] == "  - Answer: “The parser is strict now. Two callers still pass None.”[^1]"
    given = Facts((session_facts(1, "Strict", one),))
    summary = record(summaries={"ses_1": statement("It became strict.")})
    assert "Answer:" not in front(rich(given, [], found=summary)), "one of both is enough"


LONG = "Please change the limit, which the harbour master asked for yesterday evening, because the lower quay floods. "


@pytest.mark.parametrize(
    ("prompts", "shown"),
    [
        ([LONG * 3], [LONG * 3]),
        ([LONG * 9], [f"{LONG * 4}…"]),
        ([LONG * 9] * 3, [f"{LONG}…"] * 3),
        (["Yes.", "No.", LONG * 3], ["Yes.", "No.", LONG * 3]),
        (["word " * 300], ["word " * 95 + "word…"]),
        (["言葉" * 400], ["言葉" * 239 + "言…"]),
        (["これは長い文です。" * 100], ["これは長い文です。" * 53 + " …"]),
    ],
)
def test_prompts_share_a_budget_and_are_cut_where_a_sentence_or_word_ends(prompts: list[str], shown: list[str]):
    made = PromptQuotes(Superseded(), 8, 160).text([turn(number, prompt) for number, prompt in enumerate(prompts)])
    assert made == "; ".join(f"“{one.strip()}”" for one in shown)
    task = PromptQuotes(Superseded(), 8, 160).text([turn(1, LONG * 9)], is_task=True)
    assert task == f"“{LONG}…”", "the task of a sub-agent was written by the agent"


@pytest.mark.parametrize(
    ("prompt", "rule", "standing", "mark"),
    [
        ("Die Grenze ist 420.", "Die Grenze ist 420.", "replaced later: “390”", " (**replaced later**)"),
        ("Bau ihn. Die Grenze ist 420.", "Die Grenze ist 420.", "replaced later: “390”", " (**replaced later, in part**)"),
        ("上限は四百二十にします。", "上限は四百二十にします。", "taken back by the next prompt: “三百九十”",
         " (**taken back by the next prompt**)"),
        ("Die Grenze ist 420.", "Die Grenze ist 420.", "", ""),
        (f"{LONG * 9} Die Grenze ist 420.", "Die Grenze ist 420.", "replaced later: “390”", ""),
    ],
)  # fmt: skip
def test_a_prompt_whose_rule_no_longer_holds_says_so(prompt: str, rule: str, standing: str, mark: str):
    """But not where the sentence is cut off: then it would be said of what is shown."""
    given = [Rule(rule, "user", "decision", AT, Citation("ses_1", "msg_1", AT), invalid_because=standing)]
    given.append(replace(given[0], who="agent", invalid_because="replaced later"))
    made = PromptQuotes(Superseded(given), 8, 160).text([turn(1, prompt), turn(2, "Danke.")])
    assert made.removesuffix("; “Danke.”").endswith(f"”{mark}")


def test_a_prompt_that_stands_for_a_file_says_so_too():
    path, said = f"{ROOT}/a", "Die Grenze ist 420."
    over = Rule(said, "user", "decision", AT, cite(1, 1), invalid_because="replaced later: “390”")
    given = Facts(rules=(over,), file_purposes={path: Purpose(said, "prompt", cite(1, 1))})
    assert f"“{said}” (**replaced later**) |" in front(material([file("a")], facts=given))


# -- entries ---------------------------------------------------------------------------------------------------------


def test_a_command_says_when_it_last_succeeded_and_failed():
    listed = section(front(rich()), "How to run it")
    assert listed[3] == (
        "  - `npm test` in `web`: **failed** 2026-11-23 12:00 with exit status 1[^7] (expected 2, got 3); before that it "
        "succeeded 2026-11-21 12:00[^8]; run 4 times"
    )
    assert listed[-1] == "- In [Makefile](Makefile.md): `make run` (`python3 app.py`); `make test`"


def test_a_rule_says_what_it_replaced_and_why_it_no_longer_holds():
    listed = section(front(rich()), "Rules and decisions")
    assert listed[1].endswith("; because es gibt nur einen Prozess; in place of SQLite")
    assert listed[2].endswith("(decision, said by the agent, 2026-11-22)[^17]. **No longer**: taken back with its turn")


def test_more_than_twelve_rules_are_folded_and_one_of_a_file_says_which():
    base = facts()
    many = [replace(RULE, text=f"Never touch part {number}.", who="file", origin="AGENTS.md") for number in range(15)]
    listed = section(front(rich(replace(base, rules=tuple(many)), [])), "Rules and decisions")
    assert "(rule, from AGENTS.md, 2026-" in listed[0]
    folded = listed.index("<details><summary>3 more</summary>")
    assert [len([line for line in part if line.startswith("- ")]) for part in (listed[:folded], listed[folded:])] == [
        12,
        3,
    ]


def test_what_a_model_struck_out_stays_with_its_reason():
    struck = {
        key(RULE): statement("It was an example.", "", source("only as an example")),
        key(OPEN): statement("Fixed."),
    }
    first = replace(facts().purpose[0])
    struck[key(first)] = statement("That is another project.")
    top = front(rich(found=record(struck=struck)))
    rule = section(top, "Rules and decisions")[0]
    assert rule.startswith(
        "- ~~Never write to generated/, it is overwritten by the build.~~ Struck out by the model: It was an example.[^"
    )
    assert "“only as an example”" in top
    assert "**Left open**: 2 points, the first: Todo: Versandkosten berechnen" in top
    assert (
        "> ~~Ein kleiner Laden für Becher, ohne Datenbank.~~ Struck out by the model: That is another project." in top
    )


def test_a_script_and_a_files_own_words_can_be_struck_out():
    script, (path, own) = facts().scripts[0], next(iter(facts().file_purposes.items()))
    found = record(struck={key(script): statement("It moved."), key(own): statement("It does more now.")})
    made = pages(rich(found=found))
    assert f"~~{script.invocation}~~ Struck out by the model: It moved.[^" in made["README.md"]
    struck = f"~~{own.text}~~ Struck out by the model: It does more now.[^"
    assert struck in made["README.md"]
    assert f"> {struck}1]" in made[f"{path.removeprefix(f'{ROOT}/')}.md"]


def failed(number: int, resolved: bool, at: int = AT) -> Setback:
    return Setback(
        SetbackKind.COMMAND_FAILED,
        f"./c{number}",
        at + number,
        cite(1, number),
        resolved=cite(1, 99) if resolved else None,
    )


@pytest.mark.parametrize(("mended", "is_folded"), [(3, False), (4, True)])
def test_what_was_overcome_comes_last_and_many_fold(mended: int, is_folded: bool):
    made = [failed(number, number < mended) for number in range(mended + 2)]
    listed = section(front(material([file("a")], facts=Facts(setbacks=tuple(made)))), "Taken back, failed, refused")
    order = [int(found[1]) for line in listed if (found := re.search(r"`\./c(\d)`", line))]
    assert order == [mended + 1, mended, *reversed(range(mended))]
    assert (f"<details><summary>Overcome since: {mended} entries</summary>" in listed) is is_folded


STOPPED = Setback(SetbackKind.STOPPED, "Send an SMS.", AT, cite(1, 3), outcome="followed by “x”")
UNANSWERED = OpenPoint(OpenKind.UNANSWERED, "Send an SMS.", AT, cite(1, 1), "the answer was stopped")
FAILING = OpenPoint(OpenKind.FAILING, "./c2", AT, cite(1, 2), "exit 1")


@pytest.mark.parametrize(
    ("points", "left"),
    [
        ([], ["Send an SMS.", "`./c2`"]), ([UNANSWERED], ["`./c2`"]), ([FAILING], ["Send an SMS."]),
        ([UNANSWERED, FAILING], []), ([replace(UNANSWERED, citation=cite(2))], ["Send an SMS.", "`./c2`"]),
        ([replace(FAILING, citation=cite(1, 3))], ["Send an SMS.", "`./c2`"]),
    ],
)  # fmt: skip
def test_what_is_left_open_is_told_there_and_not_as_a_failure_too(points: list[OpenPoint], left: list[str]):
    top = front(
        material([file("a")], facts=Facts(open=tuple(points), setbacks=(STOPPED, failed(2, resolved=False, at=0))))
    )
    assert ("\n## Taken back, failed, refused\n" in top) is bool(left)
    listed = section(top, "Taken back, failed, refused") if left else []
    assert [text for text in ("Send an SMS.", "`./c2`") if any(text in line for line in listed)] == left


# -- footnotes -------------------------------------------------------------------------------------------------------


def source_of(made: Material) -> list[str]:
    """The lines of the front page as they are written, with the footnotes' own labels."""
    return next(page.text for page in Renderer(made, 5000).pages() if page.path == "README.md").splitlines()


def test_each_footnote_is_defined_once_and_the_oldest_stands_first():
    lines = source_of(rich())
    marks = re.findall(r"\[\^([a-z0-9-]+)\](?!: )", "\n".join(lines))
    defined = [line[2 : line.index("]")] for line in lines if line.startswith("[^")]
    assert set(marks) == set(defined)
    assert len(marks) > len(set(marks)), "the same citation is defined once"
    places = [tuple(map(int, label.split("-")[:2])) for label in defined]
    assert places == sorted(places)
    assert len(defined) == len(set(defined))


def without(made: Facts, name: str, place: int) -> Facts:
    """The facts but one; None of that kind where it has no such place."""
    kept = getattr(made, name)
    return replace(made, **{name: kept[:place] + kept[place + 1 :]})


@pytest.mark.parametrize("name", ["purpose", "commands", "setbacks", "open", "rules", "sessions"])
def test_a_fact_less_changes_the_lines_of_no_other(name: str):
    """Of the lines of a page all others stay as they are, in their order; those that count what is told change."""
    counting = re.compile(r"\*\*(?:Left open|Run it|Where it stands)\*\*|> |- \*\*\w+\*\*$")
    said = facts()
    for place in range(len(getattr(said, name))):
        if name == "sessions" and place < len(said.sessions) - 1:
            continue  # only the newest session of all comes or goes without changing numbers
        before, after = source_of(rich(said)), source_of(rich(without(said, name, place)))
        new = [line for line in after if line not in before and not counting.match(line)]
        assert new == []
        kept = [line for line in before if line in after and line]
        assert kept == [line for line in after if line in before and line]


@pytest.mark.parametrize("newer", [1, 3])
def test_newer_sessions_change_no_label(newer: int):
    """Nor does what they say: their own come after all others."""
    first = [Citation("ses_1", f"m{n}", AT, quote) for n in range(3) for quote in ("", "one", "two")]
    old = session_facts(1, "Old", turn(1, "x"), at=AT)
    old = replace(old, message_ids=("m0", "m1", "m2"))
    others = [session_facts(n + 2, "New", turn(n + 2, "y"), at=AT + DAY) for n in range(newer)]
    labels = [str(Footnotes("README.md", Transcripts(given), {}).mark(*first)) for given in ([old], [*others, old])]
    assert labels[0] == labels[1]
    assert len(set(re.findall(r"\[\^([a-z0-9-]+)\]", labels[0]))) == len(first)


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from(["", "/p/a.py", "/q/a.py", "/p/ü"]), st.text(max_size=3)),
        unique=True,
    )
)  # fmt: skip
def test_what_differs_has_another_label_that_every_renderer_reads(cited: list[tuple[str, str, str, str]]):
    notes = Footnotes("README.md", Transcripts([]), {})
    marks = [str(notes.mark(Citation(session, message, AT, quote, path))) for session, message, path, quote in cited]
    given_quotes = {(session, message, path, quote if quote.strip() else "") for session, message, path, quote in cited}
    assert all(re.fullmatch(r"\[\^[a-z0-9-]+\]", mark) for mark in marks)
    assert len(set(marks)) == len(notes.definitions) >= len({one[:3] for one in given_quotes})


def test_a_footnote_is_never_taken_for_a_link_definition():
    top = front(rich())
    defined = "\n\n".join(line for line in top.splitlines() if line.startswith("[^"))
    paragraphs = [token for token in parse(defined) if token.type == "paragraph_open"]
    assert len(paragraphs) == defined.count("\n\n") + 1


def test_ids_stand_in_links_only():
    assert not re.search(r"(?:ses|msg)_\d", re.sub(r"\]\([^)]*\)", "]()", front(rich())))


def test_a_quote_that_the_page_shows_is_not_repeated():
    assert front(rich()).count("it is overwritten by the build") == 1


# -- bounds ----------------------------------------------------------------------------------------------------------


def test_three_hundred_sessions_stay_below_sixty_kilobytes():
    made = rich(many(300), [file(f"src/part_{number}.py") for number in range(12)])
    top = front(made)
    assert MOST_BYTES * 0.8 < len(top.encode()) <= MOST_BYTES
    for heading in (
        "Rules and decisions",
        "Left open",
        "Taken back, failed, refused",
        "How to run it",
        "What happened",
    ):
        assert any("Not listed: " in line for line in section(top, heading)), heading


def test_a_long_history_lists_as_many_sessions_as_fit_and_counts_the_rest():
    plain = replace(many(300), rules=(), open=(), setbacks=(), commands=())
    top = front(rich(plain, []))
    listed = set(re.findall(r"\]\(sessions/ses_(\d+)\.md\), ", top))
    assert len(listed) > 150
    assert f"Not listed: {300 - len(listed)} older sessions." in top
    assert len(top.encode()) <= MOST_BYTES


def test_two_thousand_files_are_folded_by_folder():
    made = rich(facts(), [file(f"src/part{number % 20}/f{number}.py") for number in range(2000)])
    top = front(made)
    assert len(section(top, "Files")) < 40
    assert "[src/part0/](src/part0/README.md) | 100 files | exactly |" in top


def test_the_same_facts_in_any_order_of_files_give_the_same_bytes():
    assert front(rich(some_files=files()[::-1])) == front(rich())


# -- hostile text (T1) -----------------------------------------------------------------------------------------------


def hostile(text: str) -> Facts:
    """The rich facts with `text` in every place that takes one."""
    base = facts()
    cited = cite(1, 1, text)
    made = tuple(
        replace(
            one,
            title=text,
            turns=tuple(replace(each, prompt=text, error=text if each.error else "") for each in one.turns),
            tests=tuple(replace(run, command=text, summary=text, citation=cited) for run in one.tests),
            commits=(text,),
        )
        for one in sessions()
    )
    return replace(
        base,
        sessions=made,
        purpose=(Purpose(text, text, cited),),
        standing=replace(base.standing, aftermath=(replace(base.standing.aftermath[0], text=text, command=text),), restore=text),
        commands=tuple(replace(one, command=text, folder=text, error=text, group=f"x{text}") for one in base.commands[1:2]),
        scripts=(Script("x", text, f"{text} x", f"{ROOT}/Makefile", "y"),),
        setbacks=tuple(replace(one, text=text, detail=text, outcome=text) for one in base.setbacks),
        open=tuple(replace(one, text=text, detail=text) for one in base.open),
        rules=tuple(replace(one, text=text, reason=f"{text} x", replaces=text, invalid_because=text, who=f"x{text}", kind=f"x{text}") for one in base.rules),
        file_purposes={path: replace(one, text=text) for path, one in base.file_purposes.items()},
    )  # fmt: skip


@cache
def form(text: str) -> list[str]:
    kept = (
        "heading",
        "bullet",
        "ordered",
        "list_item",
        "table",
        "tr",
        "td",
        "blockquote",
        "fence",
        "strong",
        "hr",
        "html",
    )
    return [token.type for token in parse(front(rich(hostile(text)))) if token.type.startswith(kept)]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_facts_change_nothing_about_the_form_of_the_page(payload: str):
    assert form(payload) == form("plain words")
    assert not kinds(front(rich(hostile(payload)))) & {"image", "code_block", "em_open", "s_open"}


def _lost_folder(name: str) -> Any:
    return file(name, None, State.LOST, note=f"{LOST_FOLDER} that snapshot tree 5d322bda116a names")


def test_a_folder_of_which_nothing_is_kept_is_no_file():
    page = front(material([_lost_folder("packages/shared")]))
    [row] = [line for line in section(page, "Files") if "shared" in line]
    assert "| a folder, its files unknown |" in row


GONE = replace(file("gone"), state=State.DELETED)
A, B, LOST = file("a"), file("b"), file("lost", None, State.LOST)
ONE, TWO = _lost_folder("one"), _lost_folder("two")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([A], "Its only file is known exactly"),
        ([A, B], "Both of its files are known exactly"),
        ([A, LOST, GONE], "1 of 2 files is known exactly, 1 was deleted"),
        ([GONE], "No file is left, 1 was deleted"),
        ([], "It is not certain that it has any file"),
        # Folders of which no file is known are never counted in.
        ([A, ONE], "1 file is known exactly; the files in 1 folder are unknown"),
        ([A, B, ONE, TWO], "2 files are known exactly; the files in 2 folders are unknown"),
        ([A, LOST, ONE], "1 of 2 files is known exactly; the files in 1 folder are unknown"),
        ([ONE, TWO], "The files in 2 folders are unknown"),
        ([GONE, ONE], "1 file was deleted; the files in 1 folder are unknown"),
    ],
)  # fmt: skip
def test_folders_whose_files_are_unknown_are_told_beside_every_count(files: list[Any], said: str):
    assert known(files) == said


@pytest.mark.parametrize(
    ("files", "absent", "said"),
    [
        ([A, ONE], P[:1], "Its only known file is not on this disk"),
        ([A, B, ONE], P[:2], "None of its 2 known files is on this disk"),
        ([A, B, ONE], P[:1], "1 of its 2 known files is not on this disk"),
    ],
)  # fmt: skip
def test_what_the_disk_lacks_is_only_said_of_known_files(files: list[Any], absent: tuple[str, ...], said: str):
    assert f"unknown. {said};" in front(replace(material(files), facts=Facts(standing=Standing(absent=absent))))


def test_the_row_of_a_folder_counts_no_folder_as_a_file():
    files = [file(f"in/{n}") for n in range(80)] + [_lost_folder("in/lost"), file("a")]
    row = next(line for line in section(front(material(files)), "Files") if "[in/]" in line)
    assert "80 files; the files in 1 folder are unknown | exactly" in row


@pytest.mark.parametrize(
    ("status", "said"), [(1, "`./gen` (it failed with exit status 1) may"), (0, "`./gen` may"), (127, "")]
)
def test_a_program_that_may_have_written_files_is_named_with_how_it_ended(status: int, said: str):
    ran = FileEdit(ROOT, AT, "ses_1", "msg_1", "prt_1", "bash", Operation.RUN, note="shell: ./gen")
    call = Call("bash", "./gen", CallStatus.OK, "msg_1", "prt_1", AT, AT, "./gen", ROOT, status)
    found = unlisted([ran], [session_facts(1, "Generate", turn(1, "Go on.", calls=(call,)))], Marks())
    assert found == ([f"{said} have written files that are not listed here[^1]."] if said else [])


class Marks:
    def mark(self, *cited):
        return "[^1]"
