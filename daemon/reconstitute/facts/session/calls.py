"""A tool part becomes a call as a person reads it: its input in one line, how it ended, the end of what it printed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from daemon import records
from daemon.files.trees import is_beneath
from daemon.model import Json, Message, Part, Session
from daemon.reconstitute.facts.session_values import Call, CallStatus
from daemon.reconstitute.facts.shell import error_line
from daemon.redact import redact_value
from daemon.transcript import patch_text
from daemon.transcript.document import redacted_end
from daemon.transcript.evidence import call_results
from daemon.transcript.evidence.call_results import files, listed
from daemon.transcript.own_calls import is_own_call, shows_own_answer
from daemon.transcript.tool_calls import Call as Record
from daemon.transcript.tool_calls import absolute, call, first_text, partial_output, valid_text

Hide: TypeAlias = Callable[[str], str]
"""Takes the secrets out of a text; one for each session, so that what its calls repeat is looked at once."""

SHELLS = frozenset({"bash", "shell"})
LONGEST_TITLE = 160
"""Characters of a title."""
MOST_OUTPUT = 2048
"""Characters of an output's end, and of an error's beginning."""
_LOOKED_AT = 16_384
"""Characters of a failed command's output in which the line is looked for that says what went wrong."""
_MARGIN = 4096
"""Characters around these that are looked at for secrets, too: no key that a tool prints is longer."""

_CHANGING = frozenset({"write", "edit", "multiedit"})
_PATCHES = frozenset({"apply_patch", "patch"})
_MOST_NAMED = 3
_UNKNOWN_TOOL = "invalid"
"""What OpenCode calls instead of a tool that it does not have, or whose input it cannot read."""
_ONE_FIELD = {"webfetch": "url", "websearch": "query", "codesearch": "query", "skill": "name", _UNKNOWN_TOOL: "tool"}
_DISMISSED = re.compile(r"(?:Error: )?The user dismissed this question\b")
_STOPPED_SHELL = re.compile(
    r"User aborted the command|(?:bash tool|shell tool) terminated command after exceeding timeout|"
    r"\(Command timed out after \d+ ms\)|\(Command was aborted\)"
)
_METADATA = re.compile(r"\n*<(bash_metadata|shell_metadata|metadata)>.*?</\1>\s*\Z", re.DOTALL)


def of(part: Part, message: Message, session: Session, hide: Hide, *, is_over: bool) -> Call:
    """The call of a tool part. `is_over`: something came after it, so that a call without an end was cut off."""
    made = call(part, message, session)
    is_shell = made.tool.lower() in SHELLS
    status = _status(made, is_shell=is_shell, is_over=is_over)
    failed = status in {CallStatus.FAILED, CallStatus.REFUSED, CallStatus.STOPPED}
    return Call(
        tool=hide(valid_text(made.tool)),
        title=_title(made, session.directory, hide),
        status=status,
        message_id=message.id,
        part_id=part.id,
        started=made.start,
        ended=made.end,
        command=hide(_command(made)) if is_shell else "",
        folder=hide(_folder(made)) if is_shell else "",
        exit=_exit(made) if is_shell else None,
        output=_output(made, hide) if is_shell and not shows_own_answer(part) else "",
        error=(_wrong(made, hide) if is_shell and not shows_own_answer(part) else _head(made, hide)) if failed else "",
        changed=tuple(map(hide, _changed(made))) if status is CallStatus.OK else (),
        child=first_text(made.metadata, ("sessionId", "sessionID")) if made.tool == "task" else "",
    )


def _status(made: Record, *, is_shell: bool, is_over: bool) -> CallStatus:
    if made.status == "completed":
        if made.tool == _UNKNOWN_TOOL:
            return CallStatus.FAILED
        return _shell_status(made) if is_shell else CallStatus.OK
    if made.status != "error":
        return CallStatus.STOPPED if is_over else CallStatus.UNKNOWN
    if call_results.is_by_user(made) or _DISMISSED.match(_error(made)):
        return CallStatus.REFUSED
    return CallStatus.STOPPED if made.is_aborted else CallStatus.FAILED


def _shell_status(made: Record) -> CallStatus:
    """A shell command is completed whatever its exit status, and in 1.18 when it was stopped, too."""
    code = _exit(made)
    if code is not None:
        return CallStatus.FAILED if code else CallStatus.OK
    return CallStatus.STOPPED if _STOPPED_SHELL.search(_printed(made)[-MOST_OUTPUT:]) else CallStatus.UNKNOWN


def _exit(made: Record) -> int | None:
    code = made.metadata.get("exit")
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def _command(made: Record) -> str:
    return valid_text(records.text(made.input.get("command"))).strip()


def _folder(made: Record) -> str:
    return absolute(records.text(made.input.get("workdir")), made.base) or made.base


def _printed(made: Record) -> str:
    return valid_text(records.text(made.state.get("output"))) or partial_output(made.state)


def _output(made: Record, hide: Hide) -> str:
    """The end of what it printed, without the lines that OpenCode adds for the model."""
    return _bounded(_METADATA.sub("", _printed(made)), -1, hide).strip("\n")


def _head(made: Record, hide: Hide) -> str:
    return _bounded(_error(made), 1, hide)


def _wrong(made: Record, hide: Hide) -> str:
    """The line of what it printed that says what went wrong; where it printed nothing, what the tool says."""
    said = error_line.line(_bounded(_METADATA.sub("", _printed(made)), -1, hide, _LOOKED_AT))
    return said or _head(made, hide)


def _bounded(text: str, end: int, hide: Hide, most: int = MOST_OUTPUT) -> str:
    return hide(text) if len(text) <= most else redacted_end(text, most, end, _MARGIN)


def _error(made: Record) -> str:
    error = made.input if made.tool == _UNKNOWN_TOOL else made.state
    return valid_text(records.text(error.get("error"))).strip()


def _changed(made: Record) -> list[str]:
    """The paths that a completed call's record says it changed; what a shell command changed, no record says."""
    if made.tool in _PATCHES:
        named: list[str | None] = [file["path"] for file in files(made)]
        moved = (absolute(records.text(file.get("movePath")), made.base) for file in files(made))
        return _distinct([*named, *moved]) or _distinct(_of_patch(made))
    return _distinct([made.path()]) if made.tool in _CHANGING else []


def _of_patch(made: Record) -> Iterator[str | None]:
    for file in patch_text.parse(records.text(made.input.get("patchText"))):
        yield absolute(file.path, made.base)
        yield absolute(file.move_to, made.base)


def _distinct(paths: list[str | None] | Iterator[str | None]) -> list[str]:
    return list(dict.fromkeys(path for path in paths if path))


# -- titles ------------------------------------------------------------------------------------------------------


def _title(made: Record, directory: str, hide: Hide) -> str:
    """What a person would want to see of it, in one line: the command itself, else the tool and what it was given."""
    tool = valid_text(made.tool)
    if is_own_call(made.part):
        return hide(tool)
    if tool.lower() in SHELLS:
        return _line(hide(_command(made))) or tool
    said = _given(made, directory)
    return _line(f"{hide(tool)} {hide(said)}") if said else hide(tool)


def _given(made: Record, directory: str) -> str:
    """The part of a call's input that tells it from others."""
    given = made.input
    match made.tool:
        case "apply_patch" | "patch":
            said = _several([_short(path, directory) for path in _distinct(_of_patch(made)) or _changed(made)])
        case "grep" | "glob":
            pattern, where = records.text(given.get("pattern")), absolute(records.text(given.get("path")), made.base)
            shown = f'"{pattern}"' if made.tool == "grep" else pattern
            said = shown if where is None or where == directory else f"{shown} in {_short(where, directory)}"
        case "task":
            said = first_text(given, ("description", "prompt"))
        case "todowrite":
            count = len(listed(given.get("todos")))
            said = f"{count} {'entry' if count == 1 else 'entries'}"
        case "batch":
            said = _texts(given.get("tool_calls"), "tool", ", ")
        case "question":
            said = _texts(given.get("questions"), "question", " ")
        case tool if tool in _ONE_FIELD:
            said = records.text(given.get(_ONE_FIELD[tool]))
        case _:
            path = made.path()
            said = _short(path, directory) if path else _fields(given)
    return valid_text(said)


def _texts(items: Any, name: str, between: str) -> str:
    return between.join(text for item in listed(items) if (text := records.text(records.table(item).get(name))))


def _fields(given: Json) -> str:
    """The short values of a tool that is not OpenCode's own; a field's name may be what makes it a secret."""
    short: Json = {key: value for key, value in given.items() if isinstance(value, str) and len(value) <= LONGEST_TITLE}
    shown: dict[str, Any] = redact_value(short)
    return ", ".join(valid_text(f"{key}={value}") for key, value in shown.items() if value)


def _several(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _short(path: str, directory: str) -> str:
    """A path relative to the session's directory where that holds it."""
    return posixpath.relpath(path, directory) if directory not in {"", "/"} and is_beneath(path, directory) else path


def _line(text: str) -> str:
    """The first line of a text that says something; that there is more is shown."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    first = lines[0] if lines else ""
    if len(first) > LONGEST_TITLE:
        return first[: LONGEST_TITLE - 1].rstrip() + "…"
    return f"{first} …" if len(lines) > 1 else first
