"""What the tests of the pages share: material of a target, and answers of a model about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from daemon.files import Disk, Grade, Revision
from daemon.files.content import Content
from daemon.model import Kind, Operation, Page, Session, Target
from daemon.reconstitute import questions
from daemon.reconstitute.answer import Answer, Record, Source, Statement
from daemon.reconstitute.facts.session_values import SessionFacts
from daemon.reconstitute.facts.values import Facts
from daemon.reconstitute.pages import Renderer
from daemon.reconstitute.pages.material import Material
from daemon.reconstitute.passages import NOTHING_RECORDED, Findings, Passage
from daemon.reconstitute.recover import Recovered, State
from daemon.reconstitute.scope import Scope

AT = 1_795_262_400_000
MINUTE, DAY = 60_000, 86_400_000
ROOT = "/home/dev/shop"
SECRET = "ghp_" + "a1B2" * 9


def revision(content: bytes | None, grade: Grade = Grade.PROVEN, **more) -> Revision:
    """A revision that a write made, unless `more` says otherwise."""
    fields = {
        "time": AT, "session_id": "ses_1", "message_id": "msg_1", "part_id": "prt_1", "tool": "write",
        "operation": Operation.WRITE,
    }  # fmt: skip
    return Revision(grade=grade, whole=None if content is None else Content(content), **(fields | more))


def file(
    relative: str, content: bytes | None = b"x = 1\n", state: State = State.PROVEN, *, reason: str = "", **more
) -> Recovered:
    """A file of one revision, which has `more` of its fields."""
    one = revision(content, Grade(state.value), **more)
    certain = one if one.proven else None
    return Recovered(
        f"{ROOT}/{relative}", relative, state, Disk.MISSING, (one,), certain, None if certain else one, reason
    )


def source(
    quote: str = "That is so, as it stands.",
    title: str = "A session",
    created: int = AT,
    message_id: str = "msg_1",
    path: str = "",
) -> Source:
    return Source(message_id, "ses_1", title, created, quote, path)


def statement(text: str, reason: str = "", *sources: Source, paths: tuple[str, ...] = ()) -> Statement:
    return Statement(text, reason, sources or (source(),), paths)


def answer(question_id: str, *statements: Statement, **more) -> Answer:
    return Answer(question_id, statements, **({"model": "wise:4b"} | more))


def record(*answers: Answer, **more) -> Record:
    return Record({one.question_id: one for one in answers}, more.pop("descriptions", {}), **more)


def session(number: int, title: str = "A session", created: int = AT) -> SessionFacts:
    made = Session(f"ses_{number}", "prj", ROOT, title, created, created, b"{}")
    return SessionFacts(made, title, (), (f"msg_{number}",))


def passage(text: str) -> Passage:
    return Passage(text, Kind.ANSWER, "msg_q", "ses_1", "A session", AT)


def material(
    files=(), found: Record | None = None, said=(), own: tuple[str, ...] = (), *, facts: Facts | None = None, **more
) -> Material:
    """The `files`, a model's answers, quotations for every question, and `facts`: one session, unless told otherwise."""
    made = Facts((session(1),)) if facts is None else facts
    scope = Scope(ROOT, made.sessions, more.pop("touched", {}), "print")
    asked = questions.of_target(Target(ROOT, own), [one.relative for one in files])
    findings = tuple(Findings(q, tuple(said), "" if said else NOTHING_RECORDED) for q in asked)
    return Material(scope, tuple(files), findings, record=found or Record({}, {}), facts=made, **more)


class Pages(Mapping[str, str]):
    """The text of each page by its path, made when it is read first, its footnotes numbered as a renderer does."""

    def __init__(self, made: Sequence[Page]) -> None:
        self._made = {page.path: page for page in made}
        self._texts: dict[str, str] = {}

    def __getitem__(self, path: str) -> str:
        if path not in self._texts:
            self._texts[path] = numbered(self._made[path].text)
        return self._texts[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


def pages(made: Material, most: int = 5000) -> Pages:
    """Every page of `made`."""
    return Pages(Renderer(made, most).pages())


def numbered(text: str) -> str:
    """`text` with its footnotes' labels as numbers, in the order in which they are first cited."""
    numbers: dict[str, int] = {}
    return re.sub(
        r"(?<!\\)\[\^([^\]\s]+)\]", lambda found: f"[^{numbers.setdefault(found[1], len(numbers) + 1)}]", text
    )


def hostile(payload: str, **more):
    """Material with `payload` in every place a text can stand, twice where places differ by their neighbours."""
    said = statement(
        payload,
        payload,
        source(payload, payload),
        source(payload, payload, AT + DAY, path=f"{ROOT}/{payload}"),
        paths=(payload, f"{ROOT}/{payload}", f"{ROOT}/a.py"),
    )
    found = record(
        *(answer(q, said, said, note=payload, model=payload) for q in ("purpose", "decisions")),
        answer("run", note=payload, model=payload),
        answer("purpose:src", said, note=payload),
        answer("path:named", said),
        descriptions={f"{ROOT}/a.py": said, f"{ROOT}/src/b.py": said},
        recorded=((f"{ROOT}/named", source(payload, payload)), (f"~{payload}", source(payload, payload))),
        notes=(said, said),
        summaries={"ses_1": said},
    )
    facts = Facts((session(1, payload), session(2, payload, AT + DAY)))
    return material([file("a.py"), file("src/b.py"), file("src/c.py")], found, own=(payload,), facts=facts, **more)
