"""One message on a session page: its place, who said it when, and what was said and done, as inert Markdown.

Guarantees: text of others stands only in blocks, code and fences (T1); what is too long is cut, with the command that
shows all of it; the place of a message is there even where the page has no room for more. Pure.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from daemon import markdown, records
from daemon.display import counted
from daemon.exports.content import Item, MessageContent, Other, Text, Thought, ToolCall, pretty
from daemon.markdown import Markdown, code, fence, inline
from daemon.markdown.blocks import blocks, quote
from daemon.model import Json
from daemon.reconstitute.facts.session import MOST_FOLDED, MOST_TEXT
from daemon.reconstitute.facts.session_values import Call, CallStatus
from daemon.reconstitute.pages.layout import anchor
from daemon.transcript.tool_calls import PATH_KEYS, first_text, partial_output, patches

_MOST_TITLE = 160
_MOST_NAME = 60
_WORDS = {CallStatus.OK: "ok", CallStatus.UNKNOWN: "how it ended is not recorded"}
_STATUS = {"completed": "ok", "error": "failed"}
_EDITS = frozenset({"edit", "multiedit", "apply_patch", "patch"})
_NOISE = ("Index: ", "=====")
_SECOND, _MINUTE = 1000, 60_000
MAX_CHAPTER_BYTES = 300_000
"""Bytes of a page after which calls are no longer shown in full, and texts are cut short."""
_MAX_PAGE_BYTES = 400_000
"""Bytes of a page after which messages have nothing but their places."""
_MOST_SHORT = 2_000
_NAMES = {"user": "User", "assistant": "Agent", "system": "System"}


def _call_line(item: ToolCall, call: Call | None) -> str:
    """What was called, how it ended and how long it took: ``bash`` ``pytest -q`` · failed, exit 1 · 2.1 s."""
    tool, about = code(markdown.cut(item.tool, _MOST_NAME)), _call_title(item, call)
    ended = [_ending(item, call), duration(item.end - item.start if item.end else 0)]
    return " · ".join([f"{tool} {code(about)}" if about else str(tool), *filter(None, ended)])


def _call_title(item: ToolCall, call: Call | None) -> str:
    """What a call was about, on one line, cut."""
    title = (call.title if call is not None else "") or item.summary
    return markdown.cut(title, _MOST_TITLE).removeprefix(f"{markdown.cut(item.tool, _MOST_NAME)} ")


def duration(milliseconds: int) -> str:
    """``0.4 s``, ``12 s``, ``3 min 20 s``; empty where it is not known."""
    if milliseconds <= 0:
        return ""
    if milliseconds < 10 * _SECOND:
        return f"{max(0.1, milliseconds / _SECOND):.1f} s"
    minutes, remainder = divmod(milliseconds, _MINUTE)
    return f"{minutes} min {remainder // _SECOND} s" if minutes else f"{remainder // _SECOND} s"


def _call_details(item: ToolCall, call: Call | None, message_id: str) -> str:
    """What went in and came out, as one fold; empty where there is nothing that the line does not say."""
    state = item.state or {}
    tool_input, parts = _input(item, state, _call_title(item, call), message_id), _results(item, state, message_id)
    if not tool_input and not parts:
        return ""
    output = state.get("output")
    lines = f", {counted(len(output.splitlines()), 'line')}" if parts and isinstance(output, str) and output else ""
    kind = "Change" if item.tool in {*_EDITS, "write"} and tool_input else "Input" if tool_input else ""
    label = " and ".join(filter(None, [kind, f"{'output' if kind else 'Output'}{lines}" if parts else ""]))
    return _folded(label, "\n\n".join([*tool_input, *parts]))


def _folded(summary: str, body: str) -> str:
    """`body` beneath a line of ours that opens it."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def _shortened(text: str, limit: int, message_id: str) -> tuple[str, str]:
    """The beginning and the end of a text that is too long, and a note with the command that shows all of it."""
    if len(text) <= limit:
        return text, ""
    head, tail = text[: limit * 3 // 4], text[-(limit // 4) :]
    head, tail = head.rpartition("\n")[0] or head, tail.partition("\n")[2] or tail
    omitted = len(text) - len(head) - len(tail)
    return (
        f"{head}\n[… {omitted} characters …]\n{tail}",
        f"{omitted} characters are left out. {_how_to_read_all(message_id)}",
    )


def _how_to_read_all(message_id: str) -> str:
    """Where to read a message that is cut."""
    return f"All of it: {code(f'reconstitute recall-get {shlex.quote(message_id)}')}"


def _fenced(text: str, info: str, message_id: str, limit: int = MOST_FOLDED) -> str:
    """A text in a fence, cut."""
    shortened, note = _shortened(text, limit, message_id)
    return f"{fence(shortened, info)}\n\n{note}" if note else str(fence(shortened, info))


def _ending(item: ToolCall, call: Call | None) -> str:
    metadata = records.table((item.state or {}).get("metadata"))
    exit_status = call.exit if call is not None else metadata.get("exit")
    word = _STATUS.get(item.status, "did not end") if call is None else _WORDS.get(call.status, call.status.value)
    return f"{word}, exit {exit_status}" if isinstance(exit_status, int) and exit_status else word


def _input(item: ToolCall, state: Json, about: str, message_id: str) -> list[str]:
    tool_input = records.table(state.get("input"))
    if item.tool in _EDITS and (change := _change(state, tool_input)):
        return [_fenced(change, "diff", message_id)]
    if item.tool == "write" and isinstance(tool_input.get("content"), str):
        return [_fenced(tool_input["content"], markdown.language(first_text(tool_input, PATH_KEYS)), message_id)]
    if item.tool in {"bash", "shell"}:
        command = records.text(tool_input.get("command"))
        return [_fenced(command, "sh", message_id)] if "\n" in command.strip() or len(command) > _MOST_TITLE else []
    if item.tool == "task" and isinstance(tool_input.get("prompt"), str):
        text, note = _shortened(tool_input["prompt"], MOST_FOLDED, message_id)
        return [*filter(None, [str(blocks(text)), note])]
    if item.tool == "todowrite":
        return [str(fence(_todos(tool_input.get("todos"))))]
    is_redundant = tool_input.keys() <= set(PATH_KEYS) or all(
        isinstance(value, str) and value in about for value in tool_input.values()
    )
    return [_fenced(pretty(tool_input), "json", message_id)] if tool_input and not is_redundant else []


def _change(state: Json, tool_input: Json) -> str:
    """A diff of what an edit did, as far as it is recorded."""
    metadata = records.table(state.get("metadata"))
    recorded = records.text(metadata.get("diff")) or "\n".join(patch for _, patch in patches(state))
    if recorded:
        is_single_change = sum(line.startswith("@@") for line in recorded.splitlines()) and recorded.count("\n+++ ") < 2
        noise = (_NOISE, "--- ", "+++ ") if is_single_change else (_NOISE,)
        return "\n".join(_without_head(recorded.splitlines(), noise))
    old, new = records.text(tool_input.get("oldString")), records.text(tool_input.get("newString"))
    if old or new:
        before, after = old[:MOST_FOLDED].splitlines(), new[:MOST_FOLDED].splitlines()
        return "\n".join(list(difflib.unified_diff(before, after, lineterm="", n=3))[2:])
    return records.text(tool_input.get("patchText"))


def _without_head(lines: Sequence[str], noise: tuple[str | tuple[str, ...], ...]) -> Iterator[str]:
    """A diff without the lines before its hunks that say nothing a reader does not know."""
    is_head = True
    for line in lines:
        is_head = line.startswith("Index: ") or (is_head and not line.startswith("@@"))
        if not (is_head and any(line.startswith(mark) for mark in noise)):
            yield line


def _todos(items: object) -> str:
    entries = [records.table(item) for item in items] if isinstance(items, list) else []
    return "\n".join(f"{first_text(todo, ('status',)) or '?'}: {first_text(todo, ('content',))}" for todo in entries)


def _results(item: ToolCall, state: Json, message_id: str) -> list[str]:
    """What a call printed or answered; what only confirms an edit or repeats a todo list says nothing."""
    results = []
    output = state.get("output")
    is_echo = item.status == "completed" and item.tool in {*_EDITS, "write", "todowrite"}
    if output and not is_echo:
        text, info = (output, "text") if isinstance(output, str) else (pretty(output), "json")
        results.append(_fenced(text, info, message_id))
    if state.get("error"):
        error = state["error"]
        results.append(_fenced(error if isinstance(error, str) else pretty(error), "text", message_id))
    if partial := partial_output(state):
        results.append(f"Printed until then:\n\n{_fenced(partial, 'text', message_id)}")
    attached = state.get("attachments")
    results += [
        _attachment(records.table(attachment)) for attachment in (attached if isinstance(attached, list) else [])
    ]
    return results


def _attachment(data: Json) -> str:
    """A file that a message has with it, by name and kind; its content is not shown."""
    source = records.text(records.table(data.get("source")).get("path"))
    name = source or records.text(data.get("filename")) or "without a name"
    kind = records.text(data.get("mime"))
    return f"Attached: {code(markdown.cut(name, _MOST_TITLE))}{f' ({markdown.inline(kind, 60)})' if kind else ''}"


@dataclass(frozen=True, slots=True)
class Links:
    """What a message on one page leads to: the pages of files by absolute paths, and of a session by its id."""

    files: Callable[[Sequence[str]], Sequence[Markdown]]
    session: Callable[[str], Markdown]


class Messages:
    """The messages of one page, one after the other. `calls` are the calls of the session by their parts' ids."""

    def __init__(self, calls: Mapping[str, Call], links: Links) -> None:
        self._calls = calls
        self._links = links
        self._size = 0
        self._speaker: tuple[str, ...] = ()
        self._day = ""
        self._is_full = False

    def write(self, message: MessageContent, number: int, *, is_quoted: bool, is_taken_back: bool) -> str:
        """A message with its place. `is_quoted`: the prompt has quotation marks around it that nobody wrote.

        What a revert took back is gone from OpenCode; that is said once, above.
        """
        pieces = [f"###### {anchor(number)}"]
        for piece in self._pieces(message, is_quoted=is_quoted, is_taken_back=is_taken_back):
            if self._size >= _MAX_PAGE_BYTES:
                if not self._is_full:
                    pieces.append(
                        f"What follows is not shown, for this page is too long. {_how_to_read_all(message.id)}"
                    )
                self._is_full = True
                break
            if piece:
                pieces.append(piece)
                self._size += len(piece.encode("utf-8", "replace"))
        return "".join(f"{piece}\n\n" for piece in pieces)

    def _pieces(self, message: MessageContent, *, is_quoted: bool, is_taken_back: bool) -> Iterator[str]:
        yield self._head(message, is_taken_back=is_taken_back)
        is_empty = True
        for item in message.items:
            yield (piece := self._item(message, item, is_quoted=is_quoted))
            is_empty = is_empty and not piece
        if message.error:
            yield _error(message.error, message.id)
        elif is_empty and not message.gone and self._size <= MAX_CHAPTER_BYTES:
            yield "(nothing recorded)"
        if message.gone and not is_taken_back:
            yield f"Deleted in OpenCode: {counted(len(message.gone), 'part')} of this message."

    def _head(self, message: MessageContent, *, is_taken_back: bool) -> str:
        """Who speaks and when, where that is not as in the message before."""
        day, _, clock = markdown.moment(message.created).partition(" ")
        about = [message.agent, message.model] if message.role == "assistant" else []
        is_gone = message.deleted is not None and not is_taken_back
        speaker = (
            message.role,
            *(inline(name, 60) for name in about if name),
            *(["deleted in OpenCode"] if is_gone else []),
        )
        if speaker == self._speaker and day == self._day:
            return ""
        when = clock if day == self._day else f"{day} {clock}"
        self._speaker, self._day = speaker, day
        return f"**{_NAMES.get(message.role) or inline(message.role, 40)}** · {' · '.join([when, *speaker[1:]])}"

    def _item(self, message: MessageContent, item: Item, *, is_quoted: bool) -> str:
        is_short = self._size > MAX_CHAPTER_BYTES
        if isinstance(item, Text):
            return self._text(message, item, is_quoted=is_quoted, is_short=is_short)
        if isinstance(item, Thought):
            has_text = not is_short and bool(item.text.strip())
            return _folded("Reasoning", quote(_blocks(item.text, message.id, MOST_TEXT // 4))) if has_text else ""
        if isinstance(item, ToolCall):
            return self._call(message, item, is_short=is_short)
        return _other_part(item, message.id)

    def _text(self, message: MessageContent, item: Text, *, is_quoted: bool, is_short: bool) -> str:
        text = item.text.strip("\n")
        if not text.strip():
            return ""
        if item.is_synthetic:
            return "" if is_short else _folded("Added by OpenCode", _fenced(text, "text", message.id))
        bare = text.strip()
        if is_quoted and len(bare) > 2 and bare[0] == bare[-1] == '"':
            text = bare[1:-1]
        limit = _MOST_SHORT if is_short else MOST_TEXT
        while (
            size := len((blocks := _blocks(text, message.id, limit)).encode("utf-8", "replace"))
        ) > _MAX_PAGE_BYTES - self._size:
            limit = min(limit // 2, limit * (_MAX_PAGE_BYTES - self._size) // size)
        return quote(blocks) if message.role == "user" else blocks

    def _call(self, message: MessageContent, item: ToolCall, *, is_short: bool) -> str:
        call = self._calls.get(item.part_id)
        line = _call_line(item, call)
        if call is not None and call.changed and (files := self._links.files(call.changed)):
            line += f" · {', '.join(files)}"
        if call is not None and call.child and (child := self._links.session(call.child)):
            line += f" · {child}"
        details = "" if is_short else _call_details(item, call, message.id)
        return f"{line}\n\n{details}" if details else line


def _blocks(text: str, message_id: str, limit: int) -> str:
    shortened, note = _shortened(text, limit, message_id)
    return f"{blocks(shortened)}\n\n{note}" if note else blocks(shortened)


def _other_part(item: Other, message_id: str) -> str:
    data = item.data
    if item.type == "file":
        return _attachment(data)
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
    return _folded("Another record", f"{code(item.type)}\n\n{_fenced(pretty(data), 'json', message_id)}")


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
    details = _fenced(words, "text", message_id) if words else _fenced(pretty(error), "json", message_id)
    return f"**Failed**{f': {code(name)}' if name else ''}\n\n{details}"
