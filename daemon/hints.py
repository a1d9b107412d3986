"""Hints in answers and errors name calls and arguments once; each door renders them in its own words.

In a text a call stands in backquotes with its arguments as JSON, as in `` `files(path="/home/ada")` ``, an argument as
`` `at` `` or `` `grade=stale` ``. The socket sends them so; the command line makes commands and options of them, MCP
tools. Pure functions.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from typing import Any

from daemon.model import Json

OPTIONS = {
    "sessionID": "--session",
    "projectID": "--project",
    "toolName": "--tool",
    "kinds": "--kind",
    "questions": "--question",
}
"""Options of commands that are not called as their argument is."""

ARGUMENTS = frozenset({
    "after", "anchor", "archived", "at", "before", "budgetTokens", "changeAfter", "children", "confirmed", "count",
    "deleted", "depth_after", "depth_before", "diff", "directory", "exclude", "expand", "expandBudgetChars",
    "expandBudgetMessages", "expandBudgetTokens", "expandResults", "explain", "fallback", "format", "from", "full",
    "grade", "group", "have", "include", "kinds", "last", "limit", "lines", "list", "lost", "match", "maxChars",
    "mentions", "messageID", "mostChars", "name", "new", "offset", "old", "output", "path", "project", "projectID",
    "query", "questions", "raw", "remove", "results", "resume", "reverse", "role", "scope", "search", "session",
    "sessionID", "sessions", "since", "sort", "start", "started", "threshold", "title", "to", "toolName", "type",
    "until", "wait", "where", "width", "window", "within",
})  # fmt: skip
"""The arguments of all calls."""

_COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "recall": ("recall", ("query",)),
    "recall_get": ("recall-get", ("messageID",)),
    "recall_context": ("recall-context", ("messageID",)),
    "recall_messages": ("recall-messages", ("sessionID",)),
    "recall_sessions": ("recall-sessions", ("search",)),
    "recall_timeline": ("recall-timeline", ("anchor",)),
    "recall_files": ("recall-files", ("path",)),
    "files": ("files", ("path",)),
    "history": ("history", ("path",)),
    "content": ("show", ("path",)),
    "restore": ("restore", ("path",)),
    "reconstitute": ("", ("path",)),
    "trajectories": ("trajectory", ("path",)),
    "alias": ("alias", ("old", "new")),
    "index": ("index", ()),
    "forget": ("forget", ("name",)),
    "pause": ("pause", ()),
    "status": ("status", ()),
    "doctor": ("doctor", ()),
    "web": ("web", ()),
}
"""Each call's command, and the arguments that it takes as words."""

_TOOLS = {"history": "file_history", "content": "read_file", "reconstitute": "reconstitute"}
"""Calls that are tools of MCP, beside those of recall, which have the same names."""

_HINTED = frozenset({"warnings", "hints", "action", "reason", "message", "fix"})
"""Keys of answers whose texts are ours and may hold hints."""

_RECORDED = frozenset({"input", "arguments", "metadata"})
"""Keys of answers beneath which everything is as it was recorded."""

_VALUE = r'"(?:[^"\\]|\\.)*"|[^\s,()`"]+'
_CALL = re.compile(rf"`(\w+)\(((?:\w+=(?:{_VALUE})(?:, )?)*)\)`")
_ARGUMENT = re.compile(rf"`({'|'.join(sorted(ARGUMENTS))})(?:=({_VALUE}))?`")
_ASSIGNMENT = re.compile(rf"(\w+)=({_VALUE})")
_RECALL = re.compile(r"(?<![\w`/.-])recall_(?:get|context|messages|sessions|timeline|files)(?![\w(])")


def hint(call: str, **arguments: str | bool) -> str:
    """A call as it stands in a text.

    >>> hint("files", path="/home/ada")
    '`files(path="/home/ada")`'
    """
    fields = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    return f"`{call}({fields})`"


def not_searchable(words: int = 0, meaning: int = 0, tools: int = 0, *, is_served: bool | None = None) -> str:
    """The one sentence about what waits to be indexed; empty if nothing does.

    So many messages are not indexed by words, by meaning, and by meaning without their tool calls. `is_served`: the
    service answers and works on it; None: that is not known, and nothing is advised.

    >>> not_searchable(meaning=1200, is_served=False)
    '1,200 messages are not searchable by meaning yet; run `index(wait=true)` once, or keep the service running'
    >>> not_searchable(words=1, meaning=3, tools=8)
    '1 message is not searchable by words, 3 messages and the tool calls of 8 not by meaning yet'
    """
    by_meaning = [_messages(meaning)] if meaning else []
    by_meaning += [f"the tool calls of {f'{tools:,}' if meaning else _messages(tools)}"] if tools else []
    subject = " and ".join(by_meaning)
    if words:
        sentence = f"{_messages(words)} {'is' if words == 1 else 'are'} not searchable by words"
        sentence += f", {subject} not by meaning" if subject else ""
    elif subject:
        sentence = f"{subject} {'is' if (meaning, tools) == (1, 0) else 'are'} not searchable by meaning"
    else:
        return ""
    fix = "run `index(wait=true)` once, or keep the service running" if subject else "run `index()`"
    advice = {None: "", True: "; the service works on it", False: f"; {fix}"}[is_served]
    return f"{sentence} yet{advice}"


def _messages(number: int) -> str:
    return f"{number:,} message{'' if number == 1 else 's'}"


def command(call: str, arguments: Json) -> str:
    """The command that makes a call.

    >>> command("recall", {"query": "rate limit", "match": "fuzzy", "toolName": "bash"})
    "reconstitute recall --match fuzzy --tool bash 'rate limit'"
    >>> print(command("recall", {"query": "rate", "where": {"role": "user"}}))
    reconstitute recall --where '{"role": "user"}' rate
    """
    name, words = _COMMANDS[call]
    options: list[str] = []
    for key, value in arguments.items():
        if key not in words:
            options += [text for each in (value if isinstance(value, list) else [value]) for text in _option(key, each)]
    placed = [shlex.quote(str(arguments[key])) for key in words if key in arguments]
    return " ".join(("reconstitute", *([name] if name else []), *options, *placed))


def option_name(argument: str) -> str:
    """An argument's option on the command line.

    >>> option_name("sessionID"), option_name("expandBudgetChars"), option_name("depth_before")
    ('--session', '--expand-budget-chars', '--depth-before')
    """
    hyphened = re.sub(r"[A-Z]+", lambda part: "-" + part[0].lower(), argument).replace("_", "-")
    return OPTIONS.get(argument) or f"--{hyphened}"


def _option(name: str, value: object) -> list[str]:
    dashed = option_name(name)
    if isinstance(value, bool):
        return [dashed if value else f"--no-{dashed[2:]}"]
    return [dashed, shlex.quote(json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value))]


def for_commands(text: str, call: str = "") -> str:
    """A text with its hints as commands and options; `call` is the one that it answers, "" if that is not known.

    >>> for_commands('nothing; `files(path="/w/a b")` lists them, or give `at=2026-05-31`')
    "nothing; `reconstitute files '/w/a b'` lists them, or give --at 2026-05-31"
    >>> for_commands("recall_files: `path` is blank; `limit` stays", "recall_files")
    'PATH is blank; --limit stays'
    """
    words = _COMMANDS.get(call, ("", ("messageID",)))[1]
    text = _CALL.sub(lambda match: _known(match, command), text.removeprefix(f"{call}: "))
    text = _ARGUMENT.sub(lambda match: _placed(match, words), text)
    return _RECALL.sub(lambda match: f"`reconstitute {match[0].replace('_', '-')}`", text)


def for_tools(text: str) -> str:
    """A text with its hints as tools of MCP; calls without a tool are named as commands.

    >>> for_tools('`history(path="/w/a")` tells; `index()` reads what is new')
    '`file_history(path="/w/a")` tells; the command `reconstitute index` reads what is new'
    """
    return _CALL.sub(lambda match: _known(match, _tool), text)


def rendered(answer: object, render: Callable[[str], str], key: str = "") -> Any:
    """JSON data with the hints in it rendered."""
    if isinstance(answer, dict):
        return {name: value if name in _RECORDED else rendered(value, render, name) for name, value in answer.items()}
    if isinstance(answer, list):
        return [rendered(value, render, key) for value in answer]
    return render(answer) if isinstance(answer, str) and key in _HINTED else answer


def _placed(match: re.Match[str], words: tuple[str, ...]) -> str:
    """An argument as an option, or as the word in its place, which helps call as the argument without its "ID"."""
    if match[1] in words and match[2] is None:
        return {"search": "TITLE"}.get(match[1], match[1].removesuffix("ID").upper())
    return " ".join(_option(match[1], _value(match[2])))


def _known(match: re.Match[str], render: Callable[[str, Json], str]) -> str:
    if match[1] not in _COMMANDS:
        return match[0]
    arguments = {name: _value(value) for name, value in _ASSIGNMENT.findall(match[2])}
    call_text = render(match[1], arguments)
    return call_text if render is _tool else f"`{call_text}`"


def _tool(call: str, arguments: Json) -> str:
    name = call if call.startswith("recall") else _TOOLS.get(call, "")
    return hint(name, **arguments) if name else f"the command `{command(call, arguments)}`"


def _value(text: str | None) -> object:
    """An argument's value; True without one, for a switch or the argument itself."""
    if text is None:
        return True
    try:
        return json.loads(text)
    except ValueError:
        return text
