"""The facts of a folder with everything in it: German prompts, sub-agents, forks, reverts, failures, many sessions."""

from __future__ import annotations

from dataclasses import replace

from daemon.markdown import Href
from daemon.model import Session
from daemon.reconstitute.facts import Facts
from daemon.reconstitute.facts.session_values import (
    CallStatus,
    Citation,
    Ending,
    FileChange,
    SessionFacts,
    TakenBack,
    TestRun,
    Turn,
)
from daemon.reconstitute.facts.values import (
    Aftermath,
    Command,
    OpenKind,
    OpenPoint,
    Purpose,
    Rule,
    Script,
    Setback,
    SetbackKind,
    Standing,
)
from daemon.reconstitute.pages.layout import Transcripts
from daemon.reconstitute.pages.material import Material
from tests.support.pages.page_material import AT, DAY, MINUTE, ROOT, file, material


class Numbered(Transcripts):
    """Session pages named after the session's id."""

    def href(self, page: str, session_id: str, message_id: str = "") -> Href:
        return Href.to(f"sessions/{session_id}.md")

    def place(self, session_id: str, message_id: str) -> tuple[int, int]:
        return int(session_id.rpartition("_")[2]), int(message_id.rpartition("_")[2])


def cite(session: int, message: int = 1, quote: str = "", path: str = "", time: int = AT) -> Citation:
    return Citation(f"ses_{session}", f"msg_{session}_{message}", time, quote, path)


def turn(number: int, prompt: str, ending: Ending = Ending.ANSWERED, at: int = AT, **more) -> Turn:
    return Turn(f"msg_{number}", at, at + MINUTE, prompt, ending, (f"msg_{number}",), **more)


def session_facts(
    number: int, title: str, *turns: Turn, at: int = AT, parent: int | None = None, **more
) -> SessionFacts:
    session = Session(
        f"ses_{number}", "prj", ROOT, title, at, at, b"{}", parent_id=f"ses_{parent}" if parent is not None else None
    )
    return SessionFacts(session, title, turns, (f"msg_{number}",), **more)


def changed(
    name: str, added: int | None = None, removed: int | None = None, what: str = "changed", **more
) -> FileChange:
    return FileChange(f"{ROOT}/{name}", what, added, removed, **more)


def sessions() -> tuple[SessionFacts, ...]:
    return (
        session_facts(
            1, "Warenkorb bauen", turn(1, "Bitte baue einen Warenkorb für den Laden, zuerst mit einem Plan."),
            turn(2, "Und schreibe Tests dazu, auch für leere Körbe.", at=AT + MINUTE),
            changes=(changed("cart.py", 48, what="added"), changed("tests/test_cart.py", 30, what="added")),
            tests=(TestRun("pytest -q", True, "5 passed in 0.03s", cite(1, 2)),),
            commits=("Add the cart",),
        ),
        session_facts(2, "Review the cart", turn(3, "Review cart.py and write docs/review.md.", is_command=True), at=AT + 2 * MINUTE,
             parent=1, changes=(changed("docs/review.md", 12, what="added"),)),
        session_facts(
            3, "Switch the port", turn(4, "Turn DEBUG off and add a SECRET.", taken_back=True),
            turn(5, "Rather set PORT to 8000.", at=AT + DAY), at=AT + DAY,
            reverts=(TakenBack(AT + DAY, "msg_4", pending=True, prompts=("Turn DEBUG off and add a SECRET.",)),),
            changes=(changed("settings.py", 1, 1), changed("extra.py", 9, what="added", undone=True)),
        ),
        session_facts(4, "Switch the port (fork #1)", turn(4, "Turn DEBUG off and add a SECRET."),
             turn(6, "Keep DEBUG on here.", Ending.STOPPED, at=AT + DAY + 3 * MINUTE), at=AT + DAY, forked_from="ses_3", copied=1),
        session_facts(5, "Deploy", turn(7, "Deploy it to the staging server.", Ending.FAILED, AT + 2 * DAY, error="AI_APICallError: quota exceeded"),
             at=AT + 2 * DAY, tests=(TestRun("npm test", False, "1 failed", cite(5)),),
             changes=(changed("old.py", None, 20, "deleted"), changed("new/name.py", 0, 0, "moved", moved_from=f"{ROOT}/name.py"))),
        session_facts(6, "", turn(8, "What is left to do?", Ending.OPEN, AT + 2 * DAY + MINUTE), at=AT + 2 * DAY + MINUTE, is_whole=False, deleted=True),
    )  # fmt: skip


RULE = Rule(
    "Never write to generated/, it is overwritten by the build.",
    "user",
    "rule",
    AT,
    cite(1, 1, "Never write to generated/, it is overwritten by the build."),
)
OPEN = OpenPoint(
    OpenKind.FAILING, "`npm test`: expected 2, got 3", AT + 2 * DAY, cite(5, 1, "1 failed"), "exit status 1"
)


def facts() -> Facts:
    return Facts(
        sessions=sessions(),
        purpose=(
            Purpose("Ein kleiner Laden für Becher, ohne Datenbank.", "README.md", cite(1, 2, "Ein kleiner Laden für Becher, ohne Datenbank.", f"{ROOT}/README.md")),
            Purpose("A mug shop.", "pyproject.toml"),
        ),
        standing=Standing(
            AT + 2 * DAY + MINUTE, "ses_5", AT + DAY, {"proven": 5, "stale": 1},
            (Aftermath("one command of unknown effect ran", "make dist", AT + 2 * DAY, cite(5, 3)),),
            (f"{ROOT}/cart.py", f"{ROOT}/settings.py"), (f"{ROOT}/cart.py", f"{ROOT}/settings.py"), (),
            (f"{ROOT}/README.md",), "reconstitute restore ~/shop --to NEW",
        ),
        commands=(
            Command("install", "pip install -r requirements.txt", "", 1, cite(1, 3), last=CallStatus.OK),
            Command("test", "npm test", "web", 4, cite(3, 3), cite(5, 4, time=AT + 2 * DAY), 1, "expected 2, got 3", CallStatus.FAILED),
            Command("test", "pytest -q", "", 2, cite(1, 5, time=AT + MINUTE), cite(1, 4), 1, "AttributeError: remove", CallStatus.OK),
            Command("run", "python3 app.py --port 8000", "", 1, None, None, None, "", CallStatus.STOPPED),
        ),
        scripts=(Script("run", "make run", "python3 app.py", f"{ROOT}/Makefile", "run"), Script("test", "make test", "", f"{ROOT}/Makefile", "test")),
        setbacks=(
            Setback(SetbackKind.COMMAND_FAILED, "`npm test`", AT + 2 * DAY, cite(5, 4, time=AT + 2 * DAY), "exit status 1: expected 2, got 3"),
            Setback(SetbackKind.REVERTED, "Turn DEBUG off and add a SECRET.", AT + DAY, cite(3), "the revert can still be undone", paths=(f"{ROOT}/settings.py", f"{ROOT}/extra.py")),
            Setback(SetbackKind.EDIT_FAILED, "edit of cart.py: oldString not found", AT, cite(1, 6), outcome="a later edit of the file succeeded", resolved=cite(1, 7), paths=(f"{ROOT}/cart.py",)),
        ),
        open=(OPEN, OpenPoint(OpenKind.TODO, "Versandkosten berechnen", AT, cite(1, 8)), OpenPoint(OpenKind.QUESTION, "Which currency shall it use?", AT, cite(1, 9))),
        rules=(
            RULE,
            Rule("Wir nehmen Dateien statt SQLite.", "user", "decision", AT, cite(1, 1, "Wir nehmen Dateien statt SQLite."), replaces="SQLite", reason="es gibt nur einen Prozess"),
            Rule("I will keep DEBUG off.", "agent", "decision", AT + DAY, cite(3, 2), invalid_because="taken back with its turn"),
        ),
        file_purposes={
            f"{ROOT}/cart.py": Purpose("The cart: lines, sums and discounts.", "docstring"),
            f"{ROOT}/settings.py": Purpose("Rather set PORT to 8000.", "prompt"),
        },
    )  # fmt: skip


def files() -> list:
    return [
        file(name)
        for name in (
            "README.md",
            "cart.py",
            "settings.py",
            "Makefile",
            "tests/test_cart.py",
            "docs/review.md",
            "new/name.py",
        )
    ]


def rich(made: Facts | None = None, some_files=None, **more) -> Material:
    """Material with these facts, and sessions to match."""
    return material(files() if some_files is None else some_files, facts=facts() if made is None else made, **more)


def many(number: int) -> Facts:
    """A long history: sessions two days apart, each with several prompts and files."""
    long = (
        "Please change the way in which orders are stored, and keep the old files readable for one more release. " * 3
    )
    made = tuple(
        session_facts(
            n, f"Session {n} about the orders and their storage",
            *(turn(n * 10 + m, f"{m}. {long}", at=AT - (number - n) * 2 * DAY + m * MINUTE) for m in range(5)),
            at=AT - (number - n) * 2 * DAY,
            changes=tuple(changed(f"src/part_{m}.py", n, m) for m in range(12)),
            tests=(TestRun("python -m pytest -q tests", True, "12 passed", cite(n)),),
        )
        for n in range(number)
    )  # fmt: skip
    base = facts()
    return replace(
        base,
        sessions=made,
        rules=tuple(replace(RULE, text=f"Rule {n}: {long}", citation=cite(n % number, n, f"Rule {n} reads: {long}")) for n in range(300)),
        open=tuple(replace(OPEN, text=f"Point {n}: {long}", citation=cite(n % number, n, long)) for n in range(300)),
        setbacks=tuple(replace(base.setbacks[0], text=f"Failure {n}: {long}", citation=cite(n % number, 99, long)) for n in range(300)),
        commands=tuple(replace(base.commands[2], command=f"pytest -q tests/test_{n}.py") for n in range(300)),
    )  # fmt: skip
