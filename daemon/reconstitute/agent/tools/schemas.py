"""What a model may call, with which arguments, and the JSON schemas of that, as Ollama takes them.

VERSION changes with any of these words or with what a call shows: answers given under others are asked for again.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from daemon.model import Json
from daemon.records import built

VERSION = "5"

_IDS = "Ids of the messages it stands on, from those you were shown."
_QUOTE = "A few words copied exactly from one of these messages, or from a file as one of them left it."
_OFFSET = "Where to read on, as the last result said."
_PATH = "Absolute, or relative to the folder in question."


def _a(description: str, **bounds: int) -> Meta:
    return Meta(description=description, extra_json_schema=bounds or None)


class SearchSessions(Struct, frozen=True):
    """Search what was said, done and printed in the sessions of this folder. Gives excerpts with message ids."""

    query: Annotated[str, _a("Words, a question, an identifier or an error message.")]
    limit: Annotated[int, _a("At most so many results.", minimum=1, maximum=20)] = 8
    kinds: Annotated[
        list[Literal["prompt", "answer", "reasoning", "tool_input", "tool_output", "task"]],
        _a("Only these kinds of text; empty: all."),
    ] = []
    path: Annotated[str, _a("Only messages that touched or name this path. " + _PATH)] = ""
    everywhere: Annotated[bool, _a("Search all recorded sessions, not only those of this folder.")] = False


class ReadMessage(Struct, frozen=True):
    """Read one message in full, a page at a time."""

    message_id: Annotated[str, _a("The message.")]
    offset: Annotated[int, _a(_OFFSET, minimum=0)] = 0


class ReadContext(Struct, frozen=True):
    """Read a message with those before and after it, each shortened."""

    message_id: Annotated[str, _a("The message in the middle.")]
    before: Annotated[int, _a("Messages before it.", minimum=0, maximum=10)] = 2
    after: Annotated[int, _a("Messages after it.", minimum=0, maximum=10)] = 2


class ListSessions(Struct, frozen=True):
    """List the sessions of the folder, newest first: id, title, time, and what came of each."""

    offset: Annotated[int, _a(_OFFSET, minimum=0)] = 0


class ReadSession(Struct, frozen=True):
    """Read a session from its start, each message shortened."""

    session_id: Annotated[str, _a("The session.")]
    offset: Annotated[int, _a(_OFFSET, minimum=0)] = 0


class ListCalls(Struct, frozen=True):
    """List the tool calls of the folder's sessions, newest first, with message ids and how each ended."""

    only: Annotated[Literal["failed", "commands", "all"], _a("Which of them.")] = "failed"
    offset: Annotated[int, _a(_OFFSET, minimum=0)] = 0


class ListFiles(Struct, frozen=True):
    """List the recorded files of the folder, with how well each is known and when it last changed."""

    folder: Annotated[str, _a("Only what is in this folder. " + _PATH)] = ""
    offset: Annotated[int, _a(_OFFSET, minimum=0)] = 0


class ReadFile(Struct, frozen=True):
    """Read a file as it was recovered from the records."""

    path: Annotated[str, _a(_PATH)]
    at: Annotated[str, _a("As it was at this time: a date like 2026-01-31, or 2026-01-31T14:30:00Z.")] = ""
    offset: Annotated[int, _a(_OFFSET, minimum=0)] = 0


class FileHistory(Struct, frozen=True):
    """List the recorded changes of a file, newest first: when, by which message, how well known."""

    path: Annotated[str, _a(_PATH)]
    offset: Annotated[int, _a(_OFFSET, minimum=0)] = 0


class SearchNotes(Struct, frozen=True):
    """Search by meaning what was found out before, about this folder or any other. These are conclusions, no records:
    to cite one, first read the messages it names, with read_message.
    """

    query: Annotated[str, _a("What you want to know, in a few words.")]


class RecordPath(Struct, frozen=True):
    """Take up a path beneath the folder that messages speak of and list_files lacks; it will be asked about."""

    path: Annotated[str, _a(_PATH)]
    message_id: Annotated[str, _a("A message you were shown that names it.")] = ""


class DescribePath(Struct, frozen=True):
    """Say in one or two sentences what a file or folder is for."""

    path: Annotated[str, _a(_PATH)]
    text: Annotated[str, _a("What it is for.")]
    message_ids: Annotated[list[str], _a(_IDS)]
    quote: Annotated[str, _a(_QUOTE)]


class Said(Struct, frozen=True):
    """One statement."""

    text: Annotated[str, _a("One to three sentences of plain text.")]
    message_ids: Annotated[list[str], _a(_IDS)]
    quote: Annotated[str, _a(_QUOTE)]
    reason: Annotated[str, _a("Why it was decided or failed, if that is recorded.")] = ""
    paths: Annotated[list[str], _a("The recorded files it speaks of.")] = []


class AnswerQuestion(Struct, frozen=True):
    """Answer the question; this ends it. Without statements when the records do not tell; then `note` says so."""

    statements: Annotated[list[Said], _a("Most important first.")]
    note: Annotated[str, _a("What is not recorded or not certain.")] = ""


class AddNote(Struct, frozen=True):
    """Keep a remark that answers no question but is worth knowing."""

    text: Annotated[str, _a("The remark.")]
    message_ids: Annotated[list[str], _a(_IDS)]
    quote: Annotated[str, _a(_QUOTE)]


class StrikeOut(Struct, frozen=True):
    """Say that an entry of the facts is wrong or does not hold any more. It stays on the page, struck through."""

    key: Annotated[str, _a("The entry's key, as it stands in brackets before it.")]
    reason: Annotated[str, _a("What is wrong with it, in one sentence.")]
    message_ids: Annotated[list[str], _a(_IDS)]
    quote: Annotated[str, _a(_QUOTE)]


class Finish(Struct, frozen=True):
    """End without an answer."""

    reason: Annotated[str, _a("Why there is nothing to answer.")]


TOOLS: dict[str, type[Struct]] = {
    "search_sessions": SearchSessions,
    "read_message": ReadMessage,
    "read_context": ReadContext,
    "list_sessions": ListSessions,
    "read_session": ReadSession,
    "list_calls": ListCalls,
    "list_files": ListFiles,
    "read_file": ReadFile,
    "file_history": FileHistory,
    "search_notes": SearchNotes,
    "record_path": RecordPath,
    "describe_path": DescribePath,
    "answer_question": AnswerQuestion,
    "add_note": AddNote,
    "strike_out": StrikeOut,
    "finish": Finish,
}


@cache
def _described() -> tuple[Json, ...]:
    _, components = msgspec.json.schema_components([built(schema) for schema in TOOLS.values()], ref_template="{name}")
    return tuple(_function(name, components[schema.__name__], components) for name, schema in TOOLS.items())


def schemas() -> list[Json]:
    """One function a tool: ``{type: function, function: {name, description, parameters}}``."""
    return list(_described())


def _function(name: str, described: Json, components: Json) -> Json:
    parameters: Json = {"type": "object", "properties": _inlined(described["properties"], components)}
    parameters["required"] = described.get("required", [])
    description = " ".join(described["description"].split())
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _inlined(value: object, components: Json) -> Any:
    """Without references, which some models' templates leave out."""
    if isinstance(value, list):
        return [_inlined(item, components) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        component = components[value["$ref"]]
        return {key: _inlined(component[key], components) for key in ("type", "properties", "required")}
    typed = {"type": "string"} if "enum" in value else {}
    return typed | {key: _inlined(item, components) for key, item in value.items()}
