"""A tool part becomes a call as a person reads it: its input in one line, how it ended, the end of its output."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from daemon import records
from daemon.files.trees import is_beneath
from daemon.model import Json, Message, Part, Session
from daemon.reconstitute.facts.session_values import Call, CallStatus
from daemon.reconstitute.facts.shell import failures
from daemon.redact import redact_value
from daemon.transcript import patch_text
from daemon.transcript.document import redacted_end
from daemon.transcript.evidence import call_results
from daemon.transcript.evidence.call_results import files, listed
from daemon.transcript.own_calls import is_own_call, shows_own_answer
from daemon.transcript.tool_calls import Call as Record
from daemon.transcript.tool_calls import absolute, call, first_text, partial_output, valid_text

Hide: TypeAlias = Callable[[str], str]
"""Redacts a text. Each session has its own, so that a text that its calls repeat is redacted once."""

SHELLS = frozenset({"bash", "shell"})
LONGEST_TITLE = 160
"""Characters of a title."""
MOST_OUTPUT = 2048
"""Characters of an output's end, and of an error's beginning."""
_MOST_SEARCHED = 16_384
"""Characters of a failed command's output that are searched for the line with the cause."""
_MARGIN = 4096
"""Characters around these that are searched for secrets, too: no key that a tool prints is longer."""

_CHANGING = frozenset({"write", "edit", "multiedit"})
_PATCHES = frozenset({"apply_patch", "patch"})
_MOST_NAMED = 3
_UNKNOWN_TOOL = "invalid"
"""OpenCode calls this instead of a tool that it does not have, or whose input it cannot read."""
_TITLE_FIELD = {"webfetch": "url", "websearch": "query", "codesearch": "query", "skill": "name", _UNKNOWN_TOOL: "tool"}
_DISMISSED = re.compile(r"(?:Error: )?The user dismissed this question\b")
_STOPPED_SHELL = re.compile(
    r"User aborted the command|(?:bash tool|shell tool) terminated command after exceeding timeout|"
    r"\(Command timed out after \d+ ms\)|\(Command was aborted\)"
)
_METADATA = re.compile(r"\n*<(bash_metadata|shell_metadata|metadata)>.*?</\1>\s*\Z", re.DOTALL)


def of(part: Part, message: Message, session: Session, hide: Hide, *, is_over: bool) -> Call:
    """The call of a tool part. `is_over`: something followed it, so a call without an end was cut off."""
    record = call(part, message, session)
    is_shell = record.tool.lower() in SHELLS
    status = _status(record, is_shell=is_shell, is_over=is_over)
    failed = status in {CallStatus.FAILED, CallStatus.REFUSED, CallStatus.STOPPED}
    return Call(
        tool=hide(valid_text(record.tool)),
        title=_title(record, session.directory, hide),
        status=status,
        message_id=message.id,
        part_id=part.id,
        started=record.start,
        ended=record.end,
        command=hide(_command(record)) if is_shell else "",
        folder=hide(_folder(record)) if is_shell else "",
        exit=_exit(record) if is_shell else None,
        output=_output(record, hide) if is_shell and not shows_own_answer(part) else "",
        error=(_wrong(record, hide) if is_shell and not shows_own_answer(part) else _head(record, hide))
        if failed
        else "",
        changed=tuple(map(hide, _changed_paths(record))) if status is CallStatus.OK else (),
        child=first_text(record.metadata, ("sessionId", "sessionID")) if record.tool == "task" else "",
    )


def _status(record: Record, *, is_shell: bool, is_over: bool) -> CallStatus:
    if record.status == "completed":
        if record.tool == _UNKNOWN_TOOL:
            return CallStatus.FAILED
        return _shell_status(record) if is_shell else CallStatus.OK
    if record.status != "error":
        return CallStatus.STOPPED if is_over else CallStatus.UNKNOWN
    if call_results.is_by_user(record) or _DISMISSED.match(_error(record)):
        return CallStatus.REFUSED
    return CallStatus.STOPPED if record.is_aborted else CallStatus.FAILED


def _shell_status(record: Record) -> CallStatus:
    """A shell command is "completed" whatever its exit status; in OpenCode 1.18 even if it was stopped."""
    code = _exit(record)
    if code is not None:
        return CallStatus.FAILED if code else CallStatus.OK
    return CallStatus.STOPPED if _STOPPED_SHELL.search(_printed(record)[-MOST_OUTPUT:]) else CallStatus.UNKNOWN


def _exit(record: Record) -> int | None:
    code = record.metadata.get("exit")
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def _command(record: Record) -> str:
    return valid_text(records.text(record.input.get("command"))).strip()


def _folder(record: Record) -> str:
    return absolute(records.text(record.input.get("workdir")), record.base) or record.base


def _printed(record: Record) -> str:
    return valid_text(records.text(record.state.get("output"))) or partial_output(record.state)


def _output(record: Record, hide: Hide) -> str:
    """The end of its output, without the lines that OpenCode adds for the model."""
    return _bounded(_METADATA.sub("", _printed(record)), -1, hide).strip("\n")


def _head(record: Record, hide: Hide) -> str:
    return _bounded(_error(record), 1, hide)


def _wrong(record: Record, hide: Hide) -> str:
    """The line of its output that says what went wrong; without output, what the tool says."""
    line = failures.error_line(_bounded(_METADATA.sub("", _printed(record)), -1, hide, _MOST_SEARCHED))
    return line or _head(record, hide)


def _bounded(text: str, end: int, hide: Hide, limit: int = MOST_OUTPUT) -> str:
    return hide(text) if len(text) <= limit else redacted_end(text, limit, end, _MARGIN)


def _error(record: Record) -> str:
    error = record.input if record.tool == _UNKNOWN_TOOL else record.state
    return valid_text(records.text(error.get("error"))).strip()


def _changed_paths(record: Record) -> list[str]:
    """The paths that a completed call changed according to its record. No record says what a shell command changed."""
    if record.tool in _PATCHES:
        paths: list[str | None] = [file["path"] for file in files(record)]
        moved = (absolute(records.text(file.get("movePath")), record.base) for file in files(record))
        return _distinct([*paths, *moved]) or _distinct(_of_patch(record))
    return _distinct([record.path()]) if record.tool in _CHANGING else []


def _of_patch(record: Record) -> Iterator[str | None]:
    for file in patch_text.parse(records.text(record.input.get("patchText"))):
        yield absolute(file.path, record.base)
        yield absolute(file.move_to, record.base)


def _distinct(paths: list[str | None] | Iterator[str | None]) -> list[str]:
    return list(dict.fromkeys(path for path in paths if path))


# -- titles ------------------------------------------------------------------------------------------------------


def _title(record: Record, directory: str, hide: Hide) -> str:
    """The call in one line: the command itself, else the tool and the part of its input that matters."""
    tool = valid_text(record.tool)
    if is_own_call(record.part):
        return hide(tool)
    if tool.lower() in SHELLS:
        return _line(hide(_command(record))) or tool
    title = _input_title(record, directory)
    return _line(f"{hide(tool)} {hide(title)}") if title else hide(tool)


def _input_title(record: Record, directory: str) -> str:
    """The part of a call's input that distinguishes it."""
    arguments = record.input
    match record.tool:
        case "apply_patch" | "patch":
            text = _joined_names(
                [_short(path, directory) for path in _distinct(_of_patch(record)) or _changed_paths(record)]
            )
        case "grep" | "glob":
            pattern, where = (
                records.text(arguments.get("pattern")),
                absolute(records.text(arguments.get("path")), record.base),
            )
            term = f'"{pattern}"' if record.tool == "grep" else pattern
            text = term if where is None or where == directory else f"{term} in {_short(where, directory)}"
        case "task":
            text = first_text(arguments, ("description", "prompt"))
        case "todowrite":
            count = len(listed(arguments.get("todos")))
            text = f"{count} {'entry' if count == 1 else 'entries'}"
        case "batch":
            text = _texts(arguments.get("tool_calls"), "tool", ", ")
        case "question":
            text = _texts(arguments.get("questions"), "question", " ")
        case tool if tool in _TITLE_FIELD:
            text = records.text(arguments.get(_TITLE_FIELD[tool]))
        case _:
            path = record.path()
            text = _short(path, directory) if path else _fields(arguments)
    return valid_text(text)


def _texts(items: object, name: str, between: str) -> str:
    return between.join(text for item in listed(items) if (text := records.text(records.table(item).get(name))))


def _fields(arguments: Json) -> str:
    """The short values of a tool that is not OpenCode's own; redacted with their names, which may mark secrets."""
    short: Json = {
        key: value for key, value in arguments.items() if isinstance(value, str) and len(value) <= LONGEST_TITLE
    }
    redacted: dict[str, str] = redact_value(short)
    return ", ".join(valid_text(f"{key}={value}") for key, value in redacted.items() if value)


def _joined_names(names: list[str]) -> str:
    omitted = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {omitted} more" if omitted > 0 else "")


def _short(path: str, directory: str) -> str:
    """A path, relative to the session's directory if it is beneath it."""
    return posixpath.relpath(path, directory) if directory not in {"", "/"} and is_beneath(path, directory) else path


def _line(text: str) -> str:
    """The first line of a text that is not blank, marked if there are more."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    line = lines[0] if lines else ""
    if len(line) > LONGEST_TITLE:
        return line[: LONGEST_TITLE - 1].rstrip() + "…"
    return f"{line} …" if len(lines) > 1 else line
