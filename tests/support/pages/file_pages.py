"""What the tests of file pages share: revisions of a file in time, and the pages made of them."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.files import FileHistory, Grade, Revision
from daemon.model import Operation, Page, Session
from daemon.reconstitute.facts.session_values import Call, Ending, SessionFacts, Turn
from daemon.reconstitute.facts.values import Facts, Purpose
from daemon.reconstitute.pages.file import FilePages
from daemon.reconstitute.pages.index import environment
from daemon.reconstitute.pages.material import Material, MaterialIndex
from daemon.reconstitute.pages.plan import Plan
from daemon.reconstitute.recover import Recovered, recover
from tests.support.pages import page_material as found_out
from tests.support.pages.page_material import AT, MINUTE, ROOT, material

PATH = f"{ROOT}/a.py"


def revision(number: int, content: bytes | None, operation: Operation = Operation.WRITE, **more) -> Revision:
    """The state after minute `number`, certain unless told otherwise."""
    fields = {
        "time": AT + number * MINUTE, "message_id": f"msg_{number}", "part_id": f"prt_{number}",
        "tool": operation.value, "operation": operation, "evidence": (operation.value,),
    }  # fmt: skip
    return found_out.revision(content, **(fields | more))


def doubt(number: int, content: bytes | None, command: str = "make dist", **more) -> Revision:
    told = {"grade": Grade.STALE, "evidence": (), "note": f"shell: {command}", "tool": "bash"} | more
    return revision(number, content, Operation.RUN, **told)


def seen(number: int, content: bytes | None, **more) -> Revision:
    operation = more.pop("operation", Operation.SNAPSHOT)
    return revision(number, content, operation, **({"tool": "snapshot", "evidence": ("a tree",)} | more))


def gone(number: int, **more) -> Revision:
    operation = more.pop("operation", Operation.DELETE)
    return revision(number, None, operation, deleted=True, evidence=("deletion",), **more)


def recovered(*revisions: Revision, path: str = PATH) -> Recovered:
    return next(iter(recover([FileHistory(path, revisions)], ROOT)))


def session(
    turns: Sequence[tuple[str, Sequence[int]]], title: str = "A session", calls: Sequence[Call] = ()
) -> SessionFacts:
    """A session whose turns have a prompt and the messages with these numbers."""
    made = tuple(
        Turn(f"ask_{n}", AT, AT, prompt, Ending.ANSWERED, (f"ask_{n}", *(f"msg_{m}" for m in numbers)), tuple(calls))
        for n, (prompt, numbers) in enumerate(turns)
    )
    ids = tuple(message for turn in made for message in turn.message_ids)
    return SessionFacts(Session("ses_1", "prj", ROOT, title, AT, AT, b"{}"), title, made, ids)


def made(given: Material, most: int = 100) -> list[Page]:
    known = MaterialIndex(given)
    plan = Plan(dict.fromkeys(known.files, 0), lambda _: True, most, given.facts.sessions)
    files = FilePages(known, plan, environment())
    return [page for relative in plan.files for page in files.pages(known.files[relative])]


def hostile_pages(payload: str) -> list[Page]:
    """Pages with `payload` in every place where a text of others can stand."""
    name = payload.replace("/", "_").replace("\0", "_")
    content = payload.encode("utf-8", "replace")
    revisions = [
        revision(1, content), doubt(2, content, payload), revision(3, content + b"\n" + content, Operation.EDIT, note=payload),
        revision(4, content * 2, Operation.MOVE, moved_from=f"{ROOT}/{name}", outside_change=True),
        revision(5, b"", Operation.EDIT, grade=Grade.STALE, note=payload), doubt(6, b"", payload, tool=payload),
        gone(7, operation=Operation.MOVE, moved_to=f"/x/{name}", grade=Grade.PROVEN),
    ]  # fmt: skip
    asked = session([(payload, range(1, 4)), (payload, range(4, 8))], payload)
    purposes = {PATH: Purpose(payload, "docstring"), f"{ROOT}/d/{name}": Purpose(payload, "docstring")}
    files = [recovered(*revisions), recovered(*revisions[:6], path=f"{ROOT}/d/{name}")]
    return made(material(files, facts=Facts(sessions=(asked,), file_purposes=purposes)))
