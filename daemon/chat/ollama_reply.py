"""What an Ollama server sent becomes a Reply, or the BadReply that tells the model what was wrong with it.

Nothing here is trusted: a model makes calls of every shape, and a server passes on what it could not parse. Accepted
beside the right form are arguments that are a string holding a JSON object, and none at all where a tool needs none
(docs/reliability.md, O7). Thinking never stays in the content, whichever way it came there (O8).
"""

from __future__ import annotations

import json
import re
from bisect import bisect
from dataclasses import dataclass, field
from typing import Any, NoReturn

from daemon.chat import BadReply, OnText, Reply, ToolCall
from daemon.model import Json
from daemon.records import clean

_NAME = re.compile(r"[\w.:/-]{1,128}")
_MOST_CALLS = 32
_MOST_CHARS = 4_000_000
_MAX_QUOTED_CHARS = 200

_LEADING = re.compile(r"\s*<think(?:ing)?>(.*?)(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
# The end of a thought whose beginning the template swallowed. It stands alone on its line, or ends one, or the answer's
# JSON or fence follows at once; a tag that a sentence or a program talks about does not.
_STRAY = re.compile(
    r"(?<![`'\"\\])</think(?:ing)?>(?=[ \t]*(?:\n|\Z|\{|```|<tool_call>))|^[ \t]*</think(?:ing)?>",
    re.IGNORECASE | re.MULTILINE,
)
_FENCE = re.compile(r"^[ \t]*```", re.MULTILINE)
_CALL_AS_TEXT = re.compile(r"\s*(?:<tool_call>|<function[=_]|\[TOOL_CALLS\]|<\|python_tag\|>)")


@dataclass(slots=True)
class StreamedReply:
    """One streamed reply while it comes."""

    content: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)
    wrong: str = ""
    """The first thing about the stream's shape that rules it out."""
    done_reason: str = ""
    prompt_tokens: int | None = None
    reply_tokens: int | None = None
    _chars: int = 0

    def feed(self, line: Json, on_text: OnText | None) -> None:
        """One line of the stream; `on_text` gets its text, and for thinking an empty one as a sign of life.

        Raises:
            BadReply: the reply is longer than any reply is.
        """
        message = line.get("message")
        if isinstance(message, dict):
            self._add(message, on_text)
        elif message is not None:
            self.wrong = self.wrong or "the message is no object"
        if line.get("done") is True:
            self.done_reason = str(line.get("done_reason") or "")
            self.prompt_tokens = _count(line.get("prompt_eval_count"))
            self.reply_tokens = _count(line.get("eval_count"))

    def reply(self, *, with_tools: bool) -> Reply:
        """The reply, checked.

        Raises:
            BadReply: saying what was wrong, to the model.
        """
        if self.wrong:
            _bad(f"your reply cannot be read: {self.wrong}")
        if self.done_reason == "length":
            _bad(f"your reply was cut off after {self.reply_tokens or 'too many'} tokens; answer in fewer words")
        content, thinking = without_thinking(clean("".join(self.content)))
        thinking = "\n".join(text for text in (clean("".join(self.thinking)).strip(), thinking) if text)
        if len(self.calls) > _MOST_CALLS:
            _bad(f"your reply has {len(self.calls)} tool calls; make at most {_MOST_CALLS} at once")
        calls = tuple(_call(raw) for raw in self.calls)
        if not calls and with_tools and _CALL_AS_TEXT.match(content):
            _bad("you wrote a tool call into the text of your reply, where nobody reads it; call the tool itself")
        if not calls and not content.strip():
            if thinking:
                _bad("you thought, but gave no answer and called no tool; say your answer after thinking")
            _bad("your reply is empty; answer, or call a tool")
        return Reply(content, calls, thinking, self.prompt_tokens, self.reply_tokens)

    def _add(self, message: Json, on_text: OnText | None) -> None:
        for key, pieces in (("content", self.content), ("thinking", self.thinking)):
            text = message.get(key)
            if isinstance(text, str):
                pieces.append(text)
                self._chars += len(text)
                if text and on_text is not None:
                    on_text(text if key == "content" else "")
            elif text is not None:
                self.wrong = self.wrong or f"its {key} is no text"
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            self.calls += calls
        elif calls is not None:
            self.wrong = self.wrong or "its tool calls are no list"
        if self._chars > _MOST_CHARS:
            _bad(f"your reply has no end: more than {_MOST_CHARS} characters; answer in a few sentences")


def without_thinking(content: str) -> tuple[str, str]:
    """What a model said, and what of it was thinking that leaked into it: <think> at its start, or a stray </think>."""
    thoughts: list[str] = []
    at = 0
    while match := _LEADING.match(content, at):
        thoughts.append(match[1].strip())
        at = match.end()
    content = content[at:]
    stray = None if content.lstrip().startswith(("{", "[")) else _last_stray(content)
    if stray is not None:
        thoughts.append(_STRAY.sub("", content[: stray.start()]).strip())
        content = content[stray.end() :]
    return content.strip() if thoughts else content, "\n".join(thought for thought in thoughts if thought)


def _last_stray(content: str) -> re.Match[str] | None:
    """The last end of a thought outside code fences; an odd number of fences before it means inside."""
    fences = [match.start() for match in _FENCE.finditer(content)]
    outside = (match for match in _STRAY.finditer(content) if bisect(fences, match.start()) % 2 == 0)
    return max(outside, key=lambda match: match.start(), default=None)


def _call(raw: object) -> ToolCall:
    function = raw.get("function") if isinstance(raw, dict) else None
    if not isinstance(function, dict):
        _bad(f"a tool call has no function: {_short(raw)}")
    name = function.get("name")
    if not isinstance(name, str) or not name.strip():
        _bad(f"a tool call names no tool: {_short(raw)}")
    name = name.strip()
    if not _NAME.fullmatch(name):
        _bad(f"{_short(name)} is not the name of a tool; give the name alone, and everything else as arguments")
    return ToolCall(name, _arguments(name, function.get("arguments")))


def _arguments(name: str, arguments: object) -> Json:
    if isinstance(arguments, str):
        arguments = _parsed(name, arguments) if arguments.strip() else None
    if arguments is None:
        return {}
    if not isinstance(arguments, dict):
        kind = {list: "an array", str: "a text", bool: "a truth value"}.get(type(arguments), "a number")
        _bad(f"the arguments of {name} are {kind}; they must be one JSON object: {_short(arguments)}")
    try:
        # Numbers that JSON does not have, and nesting that nobody means, are found by writing them.
        json.dumps(arguments, allow_nan=False)
        return dict(clean(arguments))
    except (ValueError, RecursionError):
        _bad(f"the arguments of {name} are not JSON: they hold NaN or Infinity, or are nested too deep")


def _parsed(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        _bad(f"the arguments of {name} are not JSON ({type(error).__name__}: {error}): {_short(text)}")


def _bad(message: str) -> NoReturn:
    raise BadReply(message)


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = clean(text)
    return text if len(text) <= _MAX_QUOTED_CHARS else f"{text[:_MAX_QUOTED_CHARS]}…"


def _count(value: object) -> int | None:
    """A server's count; 0 is what some say for a prompt that they had in their cache."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
