"""Trees of every kind of page with one text in every place that a text of others can stand.

The kinds: the front page of a target, the page of an inner folder, of a session and of a file, and the two pages at the
root of the output directory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from daemon.model import FileEdit, Operation, Session
from daemon.reconstitute.answer import Record
from daemon.reconstitute.facts.session_values import Citation, Todo
from daemon.reconstitute.facts.values import Entry, Facts, Need, Purpose, key
from daemon.reconstitute.pages import Renderer, changes
from daemon.reconstitute.pages.index import index
from daemon.reconstitute.scope import Conversations, Scope
from tests.support.pages import rich_facts
from tests.support.pages.page_material import AT, ROOT, file, hostile, source, statement
from tests.support.pages.session_tree import hostile_session
from tests.support.stores.recorded_sessions import Recorded

HOME = "home/dev/shop"
_IDS = {"session_id", "message_id", "message_ids", "prompt_id", "part_id", "last_session", "forked_from", "child"}
_PATHS = {"path", "paths", "moved_from", "missing", "differing"}
_WORDS = {"what", "group", "kind", "who", "origin"}
"""Fields of which the words are ours."""
_TWICE = {"reason", "prompt", "runs", "quote"}
"""Fields that a page leaves out where they repeat another."""


def poisoned(value: Any, text: str, name: str = "") -> Any:
    """A fact, or facts, with `text` in every field that is a text of others; ids, times and our own words stay."""
    if isinstance(value, (Enum, Session)) or name in _IDS:
        return value
    if isinstance(value, str):
        if name in _WORDS or (name == "standing" and not value):
            return value
        if name in _PATHS:
            return f"{ROOT}/{text.replace(chr(0), '')}"
        return f"{text}\n{text}" if name in _TWICE else text
    if isinstance(value, tuple):
        return tuple(poisoned(one, text, name) for one in value)
    if isinstance(value, dict):
        return {each: poisoned(one, text, str(each)) for each, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: poisoned(getattr(value, one.name), text, one.name) for one in fields(value)})
    return value


def facts(text: str) -> Facts:
    """Facts of every kind, with `text` in all of them."""
    base = rich_facts.facts()
    todo = (Todo(text, "pending"),)
    base = replace(
        base,
        sessions=tuple(replace(one, todos=todo) for one in base.sessions),
        setbacks=tuple(replace(base.setbacks[0], kind=kind) for kind in type(base.setbacks[0].kind)),
        open=tuple(replace(base.open[0], kind=kind) for kind in type(base.open[0].kind)),
        needs=(Need("flask", f"{ROOT}/a.py"),),
    )
    purposes = {f"{ROOT}/{name}": Purpose(text, "docstring") for name in ("a.py", "src/b.py")}
    return replace(poisoned(base, text), file_purposes=purposes)


def entries(made: Facts) -> list[Entry]:
    """All that a model may strike out."""
    return [
        *made.purpose,
        *made.commands,
        *made.scripts,
        *made.setbacks,
        *made.open,
        *made.rules,
        *made.file_purposes.values(),
    ]


def struck(text: str) -> str:
    """A front page on which a model struck out every entry, with `text` as its reason."""
    made = facts(text)
    reason = statement(text, text, source(text, text))
    record = Record({}, {}, struck={key(one): reason for one in entries(made)})
    material = replace(hostile(text), facts=made, record=record, findings=())
    return next(page.text for page in Renderer(material, 10).pages() if page.path == "README.md")


def trees(text: str, house: Recorded, number: int) -> dict[str, str]:
    """All pages by path: a tree that a model told of, one of a recorded session, and the pages at their root."""
    name = text.replace("/", "_").replace("\0", "")
    told = hostile_session(house, f"ses_told_{number}", text)
    base = hostile(text)
    base = replace(base, files=(*base.files, file(f"odd/{name}"), file(f"odd/{name}!", b"x\n")))
    made = facts(text)
    ran = FileEdit(ROOT, AT - 1, "ses_1", "msg_1", "prt_1", "bash", Operation.RUN, note=f"shell: {text}")
    answered = replace(base, programs=(ran,), facts=made, scope=replace(base.scope, sessions=made.sessions))
    told = replace(
        told, changes=made.sessions[0].changes, reverts=made.sessions[2].reverts, todos=made.sessions[0].todos
    )
    cited = Citation(told.id, told.message_ids[-1], told.last, text)
    said = Facts(
        (told,),
        open=tuple(replace(one, citation=cited) for one in made.open),
        rules=tuple(replace(one, citation=cited) for one in made.rules),
        purpose=tuple(replace(one, citation=cited) for one in made.purpose),
    )
    recorded = replace(
        base,
        facts=said,
        scope=Scope(ROOT, said.sessions, {}, "print"),
        conversation=Conversations(house.archive, said.sessions),
    )
    found, listed = dict[str, str](), []
    for place, material in ((HOME, answered), (f"{HOME}-told", recorded)):
        renderer = Renderer(material, 5000)
        pages = {page.path: page.text for page in renderer.pages()}
        found |= {f"{place}/{path}": page for path, page in pages.items()}
        edited = tuple(path for path in sorted(pages) if path.startswith("odd/"))
        listed.append(replace(renderer.entry(place), title=text, summary=text, edited=edited))
    listed[1] = replace(listed[1], is_quoted=True)
    found["README.md"] = index(listed).text
    found["CHANGES.md"] = changes.page([(one.folder, one.title, one.log) for one in listed]).text
    return found


KINDS: dict[str, Callable[[str], bool]] = {
    "front": lambda path: path == f"{HOME}/README.md",
    "inner folder": lambda path: path == f"{HOME}/src/README.md",
    "session": lambda path: path.startswith(f"{HOME}-told/sessions/"),
    "file": lambda path: path == f"{HOME}/a.py.md",
    "root": lambda path: path == "README.md",
    "changes": lambda path: path == "CHANGES.md",
}
"""Every kind of page, and how its paths look."""
