"""Where the redirections of a command send its output, and where its input comes from."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from daemon.transcript.shell import words
from daemon.transcript.shell.heredocs import MARK, STRING_MARK
from daemon.transcript.shell.parse import Redirect
from daemon.transcript.shell.state import Execution, is_system
from daemon.transcript.shell.words import Field


@dataclass(slots=True)
class Streams:
    """Where a command's streams go: files its output replaces or extends, others that may change, its input's text."""

    written: list[tuple[str, bool]] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)
    hides: bool = False
    takes_output: bool = False
    has_stdin: bool = False
    stdin: str | None = None
    source: str | None = None


def redirected(runner: Execution, redirects: tuple[Redirect, ...]) -> Streams:
    """The redirections of one command."""
    streams = Streams()
    for redirect in redirects:
        if redirect.operator in ("<", "<<<"):
            if redirect.descriptor in ("", "0"):
                streams.has_stdin, streams.stdin = True, _input(runner, redirect.target)
                streams.source = _source(runner, redirect.target)
        elif redirect.operator.startswith(">&"):
            _duplicate(runner, redirect, streams)
        else:
            _to_file(runner, redirect, streams)
    if len(streams.written) + len(streams.unclear) > 1 and len(streams.written) > 0:
        streams.unclear += [path for path, _ in streams.written]
        streams.written = []
    return streams


def _input(runner: Execution, target: str) -> str | None:
    scope = runner.state.scope
    if target.startswith(STRING_MARK):
        known = words.value(target.removeprefix(STRING_MARK), scope)
        return None if known is None else known + "\n"
    if target.startswith(MARK):
        body = runner.script.bodies[int(target.removeprefix(MARK))]
        return body.text if body.literal else words.body(body.text, scope)
    return "" if target == "/dev/null" else None


def _source(runner: Execution, target: str) -> str | None:
    """The file that standard input is read from."""
    if target.startswith((STRING_MARK, MARK)):
        return None
    fields = words.fields(target, runner.state.scope)
    return runner.state.place.exact(fields[0]) if len(fields) == 1 else None


def _duplicate(runner: Execution, redirect: Redirect, streams: Streams) -> None:
    """``2>&1`` shows errors where the output goes; anything else may lose them."""
    target = redirect.target
    if redirect.operator == ">&-" or not re.fullmatch(r"\d|-", target):
        streams.hides = True
        if target and target != "-":
            streams.unclear += [
                path for field in words.fields(target, runner.state.scope) for path in runner.state.place.around(field)
            ]
            streams.takes_output = True
    elif redirect.descriptor == "2":
        streams.hides = streams.hides or target != "1" or streams.takes_output
    else:
        streams.takes_output = True  # the text goes to standard error
        streams.hides = streams.hides or redirect.descriptor not in ("", "1")


def _to_file(runner: Execution, redirect: Redirect, streams: Streams) -> None:
    place = runner.state.place
    fields = words.fields(redirect.target, runner.state.scope)
    path = place.exact(fields[0]) if len(fields) == 1 else None
    if redirect.operator.startswith("&") or redirect.descriptor not in ("", "1"):
        streams.hides = streams.hides or redirect.operator.startswith("&") or redirect.descriptor == "2"
        streams.takes_output = streams.takes_output or redirect.operator.startswith("&")
        streams.unclear += [
            target for f in fields or [Field("", exact=False)] for target in place.around(f) if not is_system(target)
        ]
        return
    streams.takes_output = True
    if path is not None and is_system(path):
        return
    if path is None or redirect.target.endswith("/"):
        streams.unclear += [target for f in fields or [Field("", exact=False)] for target in place.around(f)]
    else:
        streams.written.append((path, redirect.operator == ">>"))
