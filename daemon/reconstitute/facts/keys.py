"""The stable name of one entry of the facts, by which it can be struck out. Pure."""

from __future__ import annotations

from daemon.reconstitute.facts.values import Citation, Command, OpenPoint, Purpose, Rule, Script, Setback
from daemon.records import digest, dumps

Entry = Purpose | Command | Script | Setback | OpenPoint | Rule

_KEY = 16


def key(value: Entry) -> str:
    """The same for the same kind, text and citation, in every process; later outcomes of an entry do not change it."""
    match value:
        case Command():
            text, cited = f"{value.folder}\n{value.command}", None
        case Script():
            text, cited = f"{value.path}\n{value.name}", None
        case _:
            text, cited = value.text, value.citation
    kind = str(getattr(value, "kind", ""))
    return digest(dumps([type(value).__name__, kind, text, _place(cited)]))[:_KEY]


def _place(cited: Citation | None) -> list[str]:
    return [] if cited is None else [cited.session_id, cited.message_id, cited.path, cited.quote]
