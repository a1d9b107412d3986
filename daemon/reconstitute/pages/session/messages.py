"""One message on a session page: its place, who said it when, and what was said and done, as inert Markdown.

Guarantees: text of others stands only in blocks, code and fences (T1); what is too long is cut, with the command that
shows all of it; the place of a message is there even where the page has no room for more. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from daemon import markdown, records
from daemon.display import counted
from daemon.exports.content import Item, Other, Said, Text, Thought, ToolCall
from daemon.exports.form import pretty
from daemon.markdown import Markdown, code, inline
from daemon.markdown.blocks import blocks, quote
from daemon.reconstitute.facts.session.sizes import MOST_TEXT
from daemon.reconstitute.facts.session_values import Call
from daemon.reconstitute.pages.session import calls
from daemon.reconstitute.pages.transcripts import anchor

ROOM = 300_000
"""Bytes of a page after which calls are no longer shown in full, and texts are cut short."""
_MOST = 400_000
"""Bytes of a page after which messages have nothing but their places."""
_MOST_SHORT = 2_000
_NAMES = {"user": "User", "assistant": "Agent", "system": "System"}


@dataclass(frozen=True, slots=True)
class Links:
    """What a message on one page leads to: the pages of files by absolute paths, and of a session by its id."""

    files: Callable[[Sequence[str]], Sequence[Markdown]]
    session: Callable[[str], Markdown]


class Messages:
    """The messages of one page, one after the other. `known` are the calls of the session by their parts' ids."""

    def __init__(self, known: Mapping[str, Call], links: Links) -> None:
        self._calls = known
        self._links = links
        self._size = 0
        self._speaker: tuple[str, ...] = ()
        self._day = ""
        self._is_full = False

    def write(self, said: Said, number: int, *, is_quoted: bool, is_taken_back: bool) -> str:
        """A message with its place. `is_quoted`: the prompt has quotation marks around it that nobody wrote.

        What a revert took back is gone from OpenCode; that is said once, above.
        """
        pieces = [f"###### {anchor(number)}"]
        for piece in self._pieces(said, is_quoted=is_quoted, is_taken_back=is_taken_back):
            if self._size >= _MOST:
                if not self._is_full:
                    pieces.append(f"What follows is not shown, for this page is too long. {calls.whole(said.id)}")
                self._is_full = True
                break
            if piece:
                pieces.append(piece)
                self._size += len(piece.encode("utf-8", "replace"))
        return "".join(f"{piece}\n\n" for piece in pieces)

    def _pieces(self, said: Said, *, is_quoted: bool, is_taken_back: bool) -> Iterator[str]:
        yield self._head(said, is_taken_back=is_taken_back)
        is_empty = True
        for item in said.items:
            yield (piece := self._item(said, item, is_quoted=is_quoted))
            is_empty = is_empty and not piece
        if said.error:
            yield _error(said.error, said.id)
        elif is_empty and not said.gone and self._size <= ROOM:
            yield "(nothing recorded)"
        if said.gone and not is_taken_back:
            yield f"Deleted in OpenCode: {counted(len(said.gone), 'part')} of this message."

    def _head(self, said: Said, *, is_taken_back: bool) -> str:
        """Who speaks and when, where that is not as in the message before."""
        day, _, clock = markdown.moment(said.created).partition(" ")
        about = [said.agent, said.model] if said.role == "assistant" else []
        is_gone = said.deleted is not None and not is_taken_back
        speaker = (said.role, *(inline(one, 60) for one in about if one), *(["deleted in OpenCode"] if is_gone else []))
        if speaker == self._speaker and day == self._day:
            return ""
        when = clock if day == self._day else f"{day} {clock}"
        self._speaker, self._day = speaker, day
        return f"**{_NAMES.get(said.role) or inline(said.role, 40)}** · {' · '.join([when, *speaker[1:]])}"

    def _item(self, said: Said, item: Item, *, is_quoted: bool) -> str:
        is_short = self._size > ROOM
        if isinstance(item, Text):
            return self._text(said, item, is_quoted=is_quoted, is_short=is_short)
        if isinstance(item, Thought):
            is_told = not is_short and bool(item.text.strip())
            return calls.fold("Reasoning", quote(_blocks(item.text, said.id, MOST_TEXT // 4))) if is_told else ""
        if isinstance(item, ToolCall):
            return self._call(said, item, is_short=is_short)
        return _other(item, said.id)

    def _text(self, said: Said, item: Text, *, is_quoted: bool, is_short: bool) -> str:
        text = item.text.strip("\n")
        if not text.strip():
            return ""
        if item.is_synthetic:
            return "" if is_short else calls.fold("Added by OpenCode", calls.boxed(text, "text", said.id))
        bare = text.strip()
        if is_quoted and len(bare) > 2 and bare[0] == bare[-1] == '"':
            text = bare[1:-1]
        most = _MOST_SHORT if is_short else MOST_TEXT
        while (size := len((made := _blocks(text, said.id, most)).encode("utf-8", "replace"))) > _MOST - self._size:
            most = min(most // 2, most * (_MOST - self._size) // size)
        return quote(made) if said.role == "user" else made

    def _call(self, said: Said, item: ToolCall, *, is_short: bool) -> str:
        call = self._calls.get(item.part_id)
        line = calls.line(item, call)
        if call is not None and call.changed and (files := self._links.files(call.changed)):
            line += f" · {', '.join(files)}"
        if call is not None and call.child and (child := self._links.session(call.child)):
            line += f" · {child}"
        folded = "" if is_short else calls.folded(item, call, said.id)
        return f"{line}\n\n{folded}" if folded else line


def _blocks(text: str, message_id: str, most: int) -> str:
    shown, note = calls.cut(text, most, message_id)
    return f"{blocks(shown)}\n\n{note}" if note else blocks(shown)


def _other(item: Other, message_id: str) -> str:
    data = item.data
    if item.type == "file":
        return calls.attachment(data)
    if item.type == "agent":
        return f"Agent: {code(records.text(data.get('name')) or 'without a name')}"
    if item.type == "compaction":
        if data.get("overflow"):
            return "The request was too large; OpenCode summarised the conversation so far here, to go on."
        return (
            "The conversation so far was summarised here, to make room."
            if data.get("auto")
            else "The conversation so far was summarised here."
        )
    if item.type == "subtask":
        about = code(records.text(data.get("description")) or records.text(data.get("command")) or "task")
        return f"For a sub-agent: {about}\n\n{quote(_blocks(records.text(data.get('prompt')), message_id, MOST_TEXT))}"
    return calls.fold("Another record", f"{code(item.type)}\n\n{calls.boxed(pretty(data), 'json', message_id)}")


def _error(error: object, message_id: str) -> str:
    """Why an answer ended early: the error's own words, where it has some."""
    table = records.table(error)
    name = records.text(table.get("name")) or records.text(table.get("type"))
    if name == "MessageAbortedError":
        return "**Stopped** by the user."
    words = (
        records.text(error)
        or records.text(records.table(table.get("data")).get("message"))
        or records.text(table.get("message"))
    )
    shown = calls.boxed(words, "text", message_id) if words else calls.boxed(pretty(error), "json", message_id)
    return f"**Failed**{f': {code(name)}' if name else ''}\n\n{shown}"
