"""Messages as clients see them: as items with all their parts, or as a `messages[]` array for a model.

Field names are those of OpenCode's recall plugin. Every text is redacted before it is cut, so that no half of a secret
remains. A tool's output comes from the archive, even if OpenCode has pruned it. No form of a record raises an error.

In an array for a model nothing is repeated, not even copies by a fork. Sessions are in order of time, and messages are
whole. The budget is never exceeded: we drop the least relevant results first, then the farthest neighbours.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeAlias

from daemon import records
from daemon.archive import Archive
from daemon.model import Hit, Json, Message, OllamaMessage, Part
from daemon.records import table, text
from daemon.redact import redact, redact_value
from daemon.transcript.document import readable
from daemon.transcript.replay import clean_replay

TRUNCATED = "[truncated by recall expansion]"
"""The end of every text that was cut, in the plugin's words."""

_IDS = frozenset({"id", "sessionID", "messageID", "type"})
_ALL = 1 << 60


def item(
    message: Message, *, max_chars: int = 0, center: bool = False, deleted: bool = False, gone: Collection[str] = ()
) -> Json:
    """``{message: {id, role, time (epoch ms), agent?, model?, error?, deleted?, orphan?}, parts: [...], center?}``.

    A part is ``{id, type, pruned, deleted?, content?, toolName?, title?, status?, input?, output?, error?}``. `pruned`:
    OpenCode no longer shows the output to the model. `deleted`: OpenCode no longer has the part (its id is in `gone`),
    or the message. `max_chars` above 0: at most so many characters of each part, without the mark of a cut and a call's
    title. `center`: it is the requested message.
    """
    head: Json = {"id": message.id, "role": message.role, "time": message.created}
    model = message.data.get("model")
    named = {
        "agent": text(message.data.get("agent")),
        "model": text(message.data.get("modelID")) or text(table(model).get("modelID")) or text(model),
        "error": _failure(message.data.get("error")),
    }
    head |= {name: _cut(redact(value), max_chars or _ALL) for name, value in named.items() if value}
    if deleted:
        head["deleted"] = True
    if message.data.get("orphan") is True:  # a substitute for a message that OpenCode removed without its parts
        head["orphan"] = True
    parts = [_part(part, max_chars or _ALL) | ({"deleted": True} if part.id in gone else {}) for part in message.parts]
    rendered: Json = {"message": head, "parts": parts}
    return rendered | ({"center": True} if center else {})


def _cut(content: str, most: int) -> str:
    return content if len(content) <= most else content[: max(most, 0)] + TRUNCATED


def _failure(error: object) -> str:
    """An error as ``name: message``."""
    fields = table(error)
    words = [error, fields.get("name"), table(fields.get("data")).get("message") or fields.get("message")]
    return ": ".join(word for word in map(text, words) if word) or readable(redact_value(error))


def _part(part: Part, most: int) -> Json:
    rendered: Json = {"id": part.id, "type": part.type, "pruned": False}
    if part.type == "tool":
        return rendered | _called(part, most)
    content = redact(_TEXT_OF.get(part.type, _any_part)(part.data))
    if content:
        rendered["content"] = _cut(content, most)
    if part.type == "retry" and (error := redact(_failure(part.data.get("error")))):
        rendered["error"] = _cut(error, most - len(content))
    return rendered


def _called(part: Part, most: int) -> Json:
    """A tool call. If its output is long, its input gets at most half of the characters."""
    state = table(part.data.get("state"))
    rendered: Json = {"pruned": table(state.get("time")).get("compacted") is not None}
    for name, value in (
        ("toolName", part.data.get("tool")),
        ("title", state.get("title")),
        ("status", state.get("status")),
    ):
        if text(value):
            rendered[name] = redact(text(value))
    answered = {"output": redact(_output(state)), "error": redact(readable(redact_value(state.get("error"))))}
    if state.get("input") is not None:
        tool_input = redact_value(state["input"])
        for_input = max(most // 2, most - sum(map(len, answered.values())))
        rendered["input"] = _cut_input(tool_input, for_input)
        most -= min(for_input, _size(tool_input))
    for name, value in answered.items():
        if value or (name == "output" and state.get("status") == "completed"):
            rendered[name] = _cut(value, most)
            most = max(0, most - len(value))
    files = state.get("attachments")
    if isinstance(files, list) and files:
        rendered["content"] = _cut(redact("\n".join(_file(table(file)) for file in files)), most)
    return rendered


def _output(state: Json) -> str:
    """The output of a tool; of a stopped or failed call, the output until then."""
    return readable(redact_value(state.get("output"))) or text(table(state.get("metadata")).get("output"))


def _size(value: object) -> int:
    return len(value) if isinstance(value, str) else len(records.dumps(value).decode())


def _cut_input(tool_input: object, most: int) -> Any:
    """The input of a tool with its longest fields cut, so that a path beside a long content stays whole."""
    if _size(tool_input) <= most:
        return tool_input
    if not isinstance(tool_input, dict):
        return _cut(readable(tool_input), most)
    shortened: Json = {}
    for key in sorted(tool_input, key=lambda key: _size(tool_input[key])):
        size = _size(tool_input[key])
        shortened[key] = tool_input[key] if size <= most else _cut(readable(tool_input[key]), most)
        most -= size + len(key)
        if most <= 0:
            break
    ordered = {key: shortened[key] for key in tool_input if key in shortened}
    return ordered if len(ordered) == len(tool_input) else ordered | {"": TRUNCATED}


# -- parts other than calls: their text, or a line that describes them ------------------------------------------------


def _text(data: Json) -> str:
    return readable(data.get("text"))


def _file(data: Json) -> str:
    url = text(data.get("url"))
    inline = f"{len(url)} characters, not shown" if url.startswith("data:") else url
    return _line("file", text(data.get("filename")), text(data.get("mime")), inline)


def _subtask(data: Json) -> str:
    named = _line("subtask", text(data.get("agent")), text(data.get("description")), text(data.get("command")))
    return "\n".join(filter(None, (named, text(data.get("prompt")))))


def _patch(data: Json) -> str:
    files = data.get("files")
    return _line("patch", ", ".join(map(readable, files)) if isinstance(files, list) else "")


def _compaction(data: Json) -> str:
    return _line("compaction boundary", "auto" if data.get("auto") is True else "")


def _retry(data: Json) -> str:
    return _line("retry", f"attempt {records.integer(data.get('attempt'))}")


def _any_part(data: Json) -> str:
    fields = readable(redact_value({key: value for key, value in data.items() if key not in _IDS}))
    return _line(text(data.get("type")), fields)


def _line(kind: str, *words: str) -> str:
    return " ".join([f"[{kind}]", *(word for word in words if word)])


_TEXT_OF: dict[str, Callable[[Json], str]] = {
    "text": _text,
    "reasoning": _text,
    "file": _file,
    "subtask": _subtask,
    "agent": lambda data: _line("agent", text(data.get("name"))),
    "patch": _patch,
    "snapshot": lambda data: _line("snapshot", text(data.get("snapshot"))),
    "step-start": lambda _: _line("step-start"),
    "step-finish": lambda data: _line("step-finish", text(data.get("reason"))),
    "compaction": _compaction,
    "retry": _retry,
}


BUDGET_CHARS = 48_000
"""About 12,000 tokens of English: fits the context length of a small local model beside the question."""

CHARS_PER_TOKEN = 4
IMAGE_TOKENS = 1_000
_LEAST_SHARE = 16
"""If a text would have fewer characters, it is not shown."""
_FRAME_TOKENS = 4
"""Tokens that a chat template adds to a message."""

_AS_THEY_ARE = frozenset({"role", "images"})
_NAMES = frozenset({"role", "name", "tool_name", "tool_call_id", "id", "type"})
_Copy: TypeAlias = tuple[str, int]
"""The key of a message and its copies: role, time and replay as JSON, and how often its session has the same before.

A fork of a session has copies of its messages under new ids.
"""
_NOT_LATIN = re.compile("[^\x00-\u024f]")


def tokens(entry: OllamaMessage) -> int:
    """About how many tokens a model makes of a message; an estimate, since every model cuts text in its own way.

    Four characters of Latin text are one token; each character of any other script is one, as Chinese, Japanese and
    Korean characters mostly are. Tool calls count as their JSON, an image as IMAGE_TOKENS.
    """
    spoken = {key: value for key, value in entry.items() if key not in _AS_THEY_ARE}
    text = "".join(value if isinstance(value, str) else _json(value) for value in spoken.values())
    wide = 0 if text.isascii() else len(_NOT_LATIN.findall(text))
    latin = -(-(len(text) - wide) // CHARS_PER_TOKEN)
    return _FRAME_TOKENS + latin + wide + IMAGE_TOKENS * len(entry.get("images", ()))


def window(
    archive: Archive,
    hits: Sequence[Hit],
    before: int = 2,
    after: int = 2,
    budget_chars: int = BUDGET_CHARS,
    *,
    budget_tokens: int | None = None,
) -> list[OllamaMessage]:
    """The hits' messages with `before` and `after` neighbours each, redacted, as Ollama takes them.

    `hits` come best first. The limits are `budget_chars` characters of JSON and `budget_tokens` estimated tokens, None
    for no limit. If the neighbours of a hit do not fit, it gets fewer or none. A hit that does not fit alone is left
    out.
    """
    orders: dict[str, list[str]] = {}
    selection = _Selection(archive, budget_chars, budget_tokens)
    for hit in hits:
        order = orders.setdefault(hit.session_id, archive.message_ids(hit.session_id))
        if hit.message_id in order:
            selection.grow(order, order.index(hit.message_id), before, after)
    ordered = (message_id for session_id in _by_time(archive, orders) for message_id in orders[session_id])
    return selection.messages(ordered)


def around(
    archive: Archive, message_id: str, before: int, after: int, budget: int
) -> tuple[list[str], list[OllamaMessage]]:
    """A message with its neighbours within `budget` tokens: the ids of the messages that fit, and their array.

    The ids are consecutive in the conversation. Both are empty if the message alone does not fit (see `cut_to_fit`), or
    is not in the archive.
    """
    state = archive.state(message_id)
    order = archive.message_ids(state["session"]) if state is not None else []
    selection = _Selection(archive, None, budget)
    if message_id in order:
        selection.grow(order, order.index(message_id), before, after)
    return [each for each in order if each in selection], selection.messages(order)


def cut_to_fit(archive: Archive, message_id: str, chars: int, budget_tokens: int | None) -> list[OllamaMessage]:
    """The entries of a message that is too long for a budget, with its texts cut and marked; empty if it is gone.

    If they do not fit even with a little of each text, there is one entry that says that it was cut.
    """
    message = archive.message(message_id)
    if message is None:
        return []
    entries = clean_replay(message)

    def fits(entries: Sequence[OllamaMessage]) -> bool:
        within = sum(len(_json(entry)) for entry in entries) <= chars
        return within and (budget_tokens is None or sum(map(tokens, entries)) <= budget_tokens)

    share = min(chars, chars if budget_tokens is None else CHARS_PER_TOKEN * budget_tokens)
    while share >= _LEAST_SHARE:
        shortened = [_cut_entry(entry, share) for entry in entries]
        if fits(shortened):
            return shortened
        share //= 2
    return [{"role": message.role, "content": TRUNCATED}]


def _cut_entry(entry: OllamaMessage, most: int) -> OllamaMessage:
    """An entry with its texts cut to `most` characters, and without its images."""

    def cut(value: object) -> Any:
        if isinstance(value, str):
            return _cut(value, most)
        if isinstance(value, dict):
            return {key: inner if key in _NAMES else cut(inner) for key, inner in value.items()}
        return [cut(inner) for inner in value] if isinstance(value, list) else value

    shortened: OllamaMessage = cut({key: value for key, value in entry.items() if key != "images"})
    return shortened


class _Selection:
    """The selected messages, and the remaining budget; None means no limit."""

    def __init__(self, archive: Archive, chars: int | None, tokens_: int | None) -> None:
        self._archive = archive
        self._chars, self._tokens = chars, tokens_
        self._replays: dict[_Copy, list[OllamaMessage]] = {}
        self._copies: dict[str, _Copy] = {}
        self._repeats: Counter[tuple[str, str]] = Counter()

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._copies

    def grow(self, order: Sequence[str], place: int, before: int, after: int) -> None:
        """Add the message at `place`, then its neighbours, the nearest first, on each side until one does not fit."""
        if not self._add(order[place]):
            return
        preceding = list(reversed(order[max(0, place - before) : place]))
        following = list(order[place + 1 : place + 1 + after])
        while preceding or following:
            for side in (preceding, following):
                if side and not self._add(side.pop(0)):
                    side.clear()

    def _add(self, message_id: str) -> bool:
        if message_id in self._copies:
            return True
        message = self._archive.message(message_id)
        entries = [] if message is None else clean_replay(message)
        content = _json([message.role, message.created, entries]) if message is not None else message_id
        session_id = message.session_id if message is not None else ""
        copy = (content, self._repeats[content, session_id])
        if copy in self._replays:  # a copy is shown once, so its size is counted already
            entries = []
        chars = self._chars if self._chars is None else self._chars - sum(len(_json(entry)) for entry in entries)
        remaining_tokens = self._tokens if self._tokens is None else self._tokens - sum(map(tokens, entries))
        if (chars is not None and chars < 0) or (remaining_tokens is not None and remaining_tokens < 0):
            return False
        self._chars, self._tokens = chars, remaining_tokens
        self._copies[message_id] = copy
        self._repeats[content, session_id] += 1
        self._replays.setdefault(copy, entries)
        return True

    def messages(self, ordered: Iterable[str]) -> list[OllamaMessage]:
        """The entries of the selected messages, in this order; a copy by a fork counts where it comes first."""
        copies = dict.fromkeys(self._copies[message_id] for message_id in ordered if message_id in self._copies)
        return [entry for copy in copies for entry in self._replays[copy]]


def _by_time(archive: Archive, session_ids: Iterable[str]) -> list[str]:
    def started(session_id: str) -> tuple[int, str]:
        session = archive.session(session_id)
        return (session.created if session else 0, session_id)

    return sorted(session_ids, key=started)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
