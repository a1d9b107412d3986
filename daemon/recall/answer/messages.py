"""A message as callers of recall see it: what it is, and each of its parts, whatever kind a part is of.

Field names are those that agents know from OpenCode's recall plugin. Guarantees: every text is redacted before it is
cut, so that no half of a secret is left; a tool's output is the archive's, also where OpenCode has pruned it; no shape
of record raises.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from daemon import records
from daemon.model import Json, Message, Part
from daemon.records import table, text
from daemon.redact import redact, redact_value
from daemon.transcript.document import readable

TRUNCATED = "[truncated by recall expansion]"
"""The end of every text that was cut, in the plugin's words."""

_IDS = frozenset({"id", "sessionID", "messageID", "type"})
_ALL = 1 << 60


def item(
    message: Message, *, max_chars: int = 0, center: bool = False, deleted: bool = False, gone: Collection[str] = ()
) -> Json:
    """``{message: {id, role, time (epoch ms), agent?, model?, error?, deleted?, orphan?}, parts: [...], center?}``.

    A part is ``{id, type, pruned, deleted?, content?, toolName?, title?, status?, input?, output?, error?}``; `pruned`
    says that OpenCode no longer shows the output to the model, `deleted` that it has the part no more (`gone`: the ids
    of those). `max_chars` above 0: at most so many characters of each part, the
    mark of the cut and a call's title not counted. `center`: it is the one that was asked for. `deleted`: no source
    has it any more.
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
    if message.data.get("orphan") is True:  # made up for parts whose message OpenCode had removed
        head["orphan"] = True
    parts = [_part(part, max_chars or _ALL) | ({"deleted": True} if part.id in gone else {}) for part in message.parts]
    shown: Json = {"message": head, "parts": parts}
    return shown | ({"center": True} if center else {})


def _cut(shown: str, room: int) -> str:
    return shown if len(shown) <= room else shown[: max(room, 0)] + TRUNCATED


def _failure(error: Any) -> str:
    """An error as ``name: message``."""
    fields = table(error)
    words = [error, fields.get("name"), table(fields.get("data")).get("message") or fields.get("message")]
    return ": ".join(word for word in map(text, words) if word) or readable(redact_value(error))


def _part(part: Part, room: int) -> Json:
    shown: Json = {"id": part.id, "type": part.type, "pruned": False}
    if part.type == "tool":
        return shown | _called(part, room)
    said = redact(_SAID.get(part.type, _other)(part.data))
    if said:
        shown["content"] = _cut(said, room)
    if part.type == "retry" and (error := redact(_failure(part.data.get("error")))):
        shown["error"] = _cut(error, room - len(said))
    return shown


def _called(part: Part, room: int) -> Json:
    """A tool call. Of what it was given at most half the room is shown where its answer needs the other half."""
    state = table(part.data.get("state"))
    shown: Json = {"pruned": table(state.get("time")).get("compacted") is not None}
    for name, value in (
        ("toolName", part.data.get("tool")),
        ("title", state.get("title")),
        ("status", state.get("status")),
    ):
        if text(value):
            shown[name] = redact(text(value))
    answered = {"output": redact(_output(state)), "error": redact(readable(redact_value(state.get("error"))))}
    if state.get("input") is not None:
        given = redact_value(state["input"])
        most = max(room // 2, room - sum(map(len, answered.values())))
        shown["input"] = _cut_input(given, most)
        room -= min(most, _size(given))
    for name, value in answered.items():
        if value or (name == "output" and state.get("status") == "completed"):
            shown[name] = _cut(value, room)
            room = max(0, room - len(value))
    files = state.get("attachments")
    if isinstance(files, list) and files:
        shown["content"] = _cut(redact("\n".join(_file(table(file)) for file in files)), room)
    return shown


def _output(state: Json) -> str:
    """What the tool printed; of a call that was stopped or failed, what it had printed until then."""
    return readable(redact_value(state.get("output"))) or text(table(state.get("metadata")).get("output"))


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str) else len(records.dumps(value).decode())


def _cut_input(given: Any, room: int) -> Any:
    """What a tool was given, its longest fields cut: a path beside a long content is shown whole."""
    if _size(given) <= room:
        return given
    if not isinstance(given, dict):
        return _cut(readable(given), room)
    kept: Json = {}
    for key in sorted(given, key=lambda key: _size(given[key])):
        size = _size(given[key])
        kept[key] = given[key] if size <= room else _cut(readable(given[key]), room)
        room -= size + len(key)
        if room <= 0:
            break
    shown = {key: kept[key] for key in given if key in kept}
    return shown if len(shown) == len(given) else shown | {"": TRUNCATED}


# -- parts that are no calls: what each says, in a line where it is no text of its own ------------------------------


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


def _other(data: Json) -> str:
    rest = readable(redact_value({key: value for key, value in data.items() if key not in _IDS}))
    return _line(text(data.get("type")), rest)


def _line(kind: str, *words: str) -> str:
    return " ".join([f"[{kind}]", *(word for word in words if word)])


_SAID: dict[str, Callable[[Json], str]] = {
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
