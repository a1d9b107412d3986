"""A tool call on a session page: a line with what it did and how it ended, and folded what it took and gave. Pure."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator, Sequence

from daemon import markdown, records
from daemon.display import counted
from daemon.exports.content import ToolCall
from daemon.exports.form import pretty
from daemon.markdown import code, fence
from daemon.markdown.blocks import blocks
from daemon.model import Json
from daemon.reconstitute.facts.session.sizes import MOST_FOLDED
from daemon.reconstitute.facts.session_values import Call, CallStatus
from daemon.transcript.tool_calls import PATH_KEYS, first_text, partial_output, patches

_MOST_TITLE = 160
_MOST_NAME = 60
_WORDS = {CallStatus.OK: "ok", CallStatus.UNKNOWN: "how it ended is not recorded"}
_STATUS = {"completed": "ok", "error": "failed"}
_EDITS = frozenset({"edit", "multiedit", "apply_patch", "patch"})
_NOISE = ("Index: ", "=====")
_SECOND, _MINUTE = 1000, 60_000


def line(item: ToolCall, call: Call | None) -> str:
    """What was called, how it ended and how long it took: ``bash`` ``pytest -q`` · failed, exit 1 · 2.1 s."""
    tool, about = code(markdown.cut(item.tool, _MOST_NAME)), title(item, call)
    ended = [_ending(item, call), duration(item.end - item.start if item.end else 0)]
    return " · ".join([f"{tool} {code(about)}" if about else str(tool), *filter(None, ended)])


def title(item: ToolCall, call: Call | None) -> str:
    """What a call was about, on one line, cut."""
    told = (call.title if call is not None else "") or item.summary
    return markdown.cut(told, _MOST_TITLE).removeprefix(f"{markdown.cut(item.tool, _MOST_NAME)} ")


def duration(milliseconds: int) -> str:
    """``0.4 s``, ``12 s``, ``3 min 20 s``; empty where it is not known."""
    if milliseconds <= 0:
        return ""
    if milliseconds < 10 * _SECOND:
        return f"{max(0.1, milliseconds / _SECOND):.1f} s"
    minutes, rest = divmod(milliseconds, _MINUTE)
    return f"{minutes} min {rest // _SECOND} s" if minutes else f"{rest // _SECOND} s"


def folded(item: ToolCall, call: Call | None, message_id: str) -> str:
    """What went in and came out, as one fold; empty where there is nothing that the line does not say."""
    state = item.state or {}
    given, parts = _input(item, state, title(item, call), message_id), _results(item, state, message_id)
    if not given and not parts:
        return ""
    output = state.get("output")
    lines = f", {counted(len(output.splitlines()), 'line')}" if parts and isinstance(output, str) and output else ""
    kind = "Change" if item.tool in {*_EDITS, "write"} and given else "Input" if given else ""
    named = " and ".join(filter(None, [kind, f"{'output' if kind else 'Output'}{lines}" if parts else ""]))
    return fold(named, "\n\n".join([*given, *parts]))


def fold(summary: str, body: str) -> str:
    """`body` beneath a line of ours that opens it."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def cut(text: str, most: int, message_id: str) -> tuple[str, str]:
    """The beginning and the end of a text that is too long, and a note with the command that shows all of it."""
    if len(text) <= most:
        return text, ""
    head, tail = text[: most * 3 // 4], text[-(most // 4) :]
    head, tail = head.rpartition("\n")[0] or head, tail.partition("\n")[2] or tail
    left = len(text) - len(head) - len(tail)
    return f"{head}\n[… {left} characters …]\n{tail}", f"{left} characters are left out. {whole(message_id)}"


def whole(message_id: str) -> str:
    """Where to read a message that is cut."""
    return f"All of it: {code(f'reconstitute recall-get {shlex.quote(message_id)}')}"


def boxed(text: str, info: str, message_id: str, most: int = MOST_FOLDED) -> str:
    """A text in a fence, cut."""
    shown, note = cut(text, most, message_id)
    return f"{fence(shown, info)}\n\n{note}" if note else str(fence(shown, info))


def _ending(item: ToolCall, call: Call | None) -> str:
    metadata = records.table((item.state or {}).get("metadata"))
    exit_ = call.exit if call is not None else metadata.get("exit")
    word = _STATUS.get(item.status, "did not end") if call is None else _WORDS.get(call.status, call.status.value)
    return f"{word}, exit {exit_}" if isinstance(exit_, int) and exit_ else word


def _input(item: ToolCall, state: Json, about: str, message_id: str) -> list[str]:
    given = records.table(state.get("input"))
    if item.tool in _EDITS and (change := _change(state, given)):
        return [boxed(change, "diff", message_id)]
    if item.tool == "write" and isinstance(given.get("content"), str):
        return [boxed(given["content"], markdown.language(first_text(given, PATH_KEYS)), message_id)]
    if item.tool in {"bash", "shell"}:
        command = records.text(given.get("command"))
        return [boxed(command, "sh", message_id)] if "\n" in command.strip() or len(command) > _MOST_TITLE else []
    if item.tool == "task" and isinstance(given.get("prompt"), str):
        text, note = cut(given["prompt"], MOST_FOLDED, message_id)
        return [*filter(None, [str(blocks(text)), note])]
    if item.tool == "todowrite":
        return [str(fence(_todos(given.get("todos"))))]
    is_said = given.keys() <= set(PATH_KEYS) or all(isinstance(one, str) and one in about for one in given.values())
    return [boxed(pretty(given), "json", message_id)] if given and not is_said else []


def _change(state: Json, given: Json) -> str:
    """A diff of what an edit did, as far as it is recorded."""
    metadata = records.table(state.get("metadata"))
    recorded = records.text(metadata.get("diff")) or "\n".join(patch for _, patch in patches(state))
    if recorded:
        is_of_one = sum(line.startswith("@@") for line in recorded.splitlines()) and recorded.count("\n+++ ") < 2
        noise = (_NOISE, "--- ", "+++ ") if is_of_one else (_NOISE,)
        return "\n".join(_without_head(recorded.splitlines(), noise))
    old, new = records.text(given.get("oldString")), records.text(given.get("newString"))
    if old or new:
        before, after = old[:MOST_FOLDED].splitlines(), new[:MOST_FOLDED].splitlines()
        return "\n".join(list(difflib.unified_diff(before, after, lineterm="", n=3))[2:])
    return records.text(given.get("patchText"))


def _without_head(lines: Sequence[str], noise: tuple[str | tuple[str, ...], ...]) -> Iterator[str]:
    """A diff without the lines before its hunks that say nothing a reader does not know."""
    is_head = True
    for one in lines:
        is_head = one.startswith("Index: ") or (is_head and not one.startswith("@@"))
        if not (is_head and any(one.startswith(mark) for mark in noise)):
            yield one


def _todos(items: object) -> str:
    entries = [records.table(item) for item in items] if isinstance(items, list) else []
    return "\n".join(f"{first_text(one, ('status',)) or '?'}: {first_text(one, ('content',))}" for one in entries)


def _results(item: ToolCall, state: Json, message_id: str) -> list[str]:
    """What a call printed or answered; what only confirms an edit or repeats a todo list says nothing."""
    made = []
    output = state.get("output")
    is_echo = item.status == "completed" and item.tool in {*_EDITS, "write", "todowrite"}
    if output and not is_echo:
        text, info = (output, "text") if isinstance(output, str) else (pretty(output), "json")
        made.append(boxed(text, info, message_id))
    if state.get("error"):
        error = state["error"]
        made.append(boxed(error if isinstance(error, str) else pretty(error), "text", message_id))
    if partial := partial_output(state):
        made.append(f"Printed until then:\n\n{boxed(partial, 'text', message_id)}")
    attached = state.get("attachments")
    made += [attachment(records.table(one)) for one in (attached if isinstance(attached, list) else [])]
    return made


def attachment(data: Json) -> str:
    """A file that a message has with it, by name and kind; its content is not shown."""
    source = records.text(records.table(data.get("source")).get("path"))
    name = source or records.text(data.get("filename")) or "without a name"
    kind = records.text(data.get("mime"))
    return f"Attached: {code(markdown.cut(name, _MOST_TITLE))}{f' ({markdown.inline(kind, 60)})' if kind else ''}"
