"""One request on its way to an answer: the turn itself, one correction, and the fallbacks when it fails.

With tools, a turn is one JSON object (chat.action_text); a tool that the client does not have becomes a call named
``unknown``, which the client handles. When a turn fails, each of these is tried only when the one before it failed: an
answer in plain words from the latest tool result, a tool that the user plainly named, plain chat, an error. Whatever
happens, and also when the client hangs up, the session is kept for its next turn or deleted.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from daemon import log
from daemon.adapter import prompts
from daemon.adapter.model_request import ModelRequest
from daemon.adapter.prompts import ENGLISH, language_of
from daemon.adapter.sessions import (
    Lease,
    Sessions,
    awaits_answer,
    continuing,
    digests,
    images_of,
    opening,
    system_of,
    turns_of,
    user_texts,
)
from daemon.chat import OnText, Reply, ToolCall
from daemon.chat.action_text import parse, prose_of, without_thinking
from daemon.chat.actions import names_of
from daemon.chat.opencode.server import OpenCodeServer, SessionGone
from daemon.errors import BadReply, ModelUnavailable, ReconstituteError, Retry

_LOG = log.get("adapter")
_LEAST_S = 1.0
"""With less time left no prompt is sent."""

UNKNOWN = ToolCall("unknown", {})
_Turn = tuple[str, tuple[ToolCall, ...]]
"""The text of an answer, or its calls."""
_THOUGHT = re.compile(r"\s*<(think|thinking|thought|reasoning)>.*?</\1>", re.DOTALL)
_OPENINGS = ("<think", "<thought", "<reasoning")


class HungUp(ReconstituteError):
    """The client is gone; nobody waits for the rest."""


class Unanswered(Retry):
    """Everything failed, `cause` last; `apology` says so in the user's language."""

    def __init__(self, cause: ReconstituteError, apology: str) -> None:
        super().__init__(f"{apology} ({cause})")
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one answer: nanoseconds and tokens; None where it is not known. The names are Ollama's."""

    total_duration: int
    load_duration: int | None = None
    prompt_eval_count: int | None = None
    prompt_eval_duration: int | None = None
    eval_count: int | None = None
    eval_duration: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. `unsent` is the part of `content` that was not sent piece by piece."""

    content: str
    calls: tuple[ToolCall, ...]
    unsent: str
    figures: Figures


@dataclass(slots=True)
class _Meter:
    """What the figures of an answer are made from."""

    started: int = field(default_factory=time.monotonic_ns)
    loaded: int | None = None
    first_text: int | None = None
    read: int | None = None
    written: int | None = None

    def add(self, reply: Reply) -> None:
        if reply.prompt_tokens is not None:
            self.read = (self.read or 0) + reply.prompt_tokens
        if reply.reply_tokens is not None:
            self.written = (self.written or 0) + reply.reply_tokens

    def figures(self) -> Figures:
        now, loaded = time.monotonic_ns(), self.loaded or self.started
        first = self.first_text or now
        return Figures(
            now - self.started, loaded - self.started, self.read, first - loaded, self.written, max(1, now - first)
        )


class Exchange:
    """One request. `run` it in a thread; `call_off` from any other."""

    def __init__(
        self,
        request: ModelRequest,
        client: str,
        *,
        server: OpenCodeServer,
        sessions: Sessions,
        seconds: float,
        on_text: OnText | None = None,
    ) -> None:
        """`client` is who asks: nobody is given a session that another's conversation made."""
        self._request, self._server, self._sessions = request, server, sessions
        self._turns = turns_of(request.messages)
        self._setup = [
            client, request.model, system_of(request.messages), list(request.tools), request.form, request.must_call,
        ]  # fmt: skip
        self._language = language_of(user_texts(self._turns))
        self._seconds, self._deadline = seconds, time.monotonic() + seconds
        self._visible = VisibleText(on_text, request.stop)
        self._prose = ""  # what the model said in plain words where an object was asked for
        self._meter = _Meter()
        self._lock = threading.Lock()
        self._session_id = ""
        self._is_off = False
        self._is_cut = False  # the session has more of the answer than the client

    def run(self) -> Answer:
        """The answer.

        Raises:
            Unanswered: the model, and every fallback, failed.
            ContextLost: the conversation is longer than the model can read.
            BadRequest: an image is broken.
            Retry: the adapter is stopping.
            HungUp: it was called off.
        """
        try:
            content, calls = self._answer()
        except (BadReply, ModelUnavailable) as error:
            content, calls = self._fall_back(error)
        return Answer(content, calls, self._visible.unsent(content), self._meter.figures())

    def call_off(self) -> None:
        """Nobody waits for it any more: stop the model. Harmless when it is over."""
        with self._lock:
            self._is_off, session_id = True, self._session_id
        if session_id:
            self._server.abort(session_id)

    def _answer(self) -> _Turn:
        """Answer in an idle session that has the conversation, or in a new one."""
        chain = digests(self._setup, self._turns)
        kinds = [turn["role"] in ("user", "tool") for turn in self._turns]
        reusable = [all(kinds[count:]) for count in range(len(chain))]
        lease = self._sessions.lease(self._request.model, chain, reusable)
        self._meter.loaded = time.monotonic_ns()
        if lease.known:
            try:
                return self._in_session(lease)
            except SessionGone:  # the server was restarted, or somebody deleted it
                lease = self._sessions.new(self._request.model)
        return self._in_session(lease)

    def _in_session(self, lease: Lease) -> _Turn:
        """Take the turn in this session, then keep or delete the session."""
        digest = ""
        try:
            content, calls = self._turn(lease)
            message = Reply(self._visible.received(content), calls).message()
            digest = digests(self._setup, [*self._turns, message])[-1]
            return content, calls
        finally:
            if digest and self._request.keeps and not (self._is_off or self._is_cut):
                self._sessions.keep(lease, digest)
            else:
                self._sessions.drop(lease)

    def _turn(self, lease: Lease) -> _Turn:
        """The turn as it should be, with one correction."""
        tools, new = self._request.tools, self._turns[lease.known :]
        text = continuing(new) if lease.known else opening(self._turns, in_actions=bool(tools))
        reply = self._prompt(lease, text, images_of(new), streams=not tools)
        try:
            return self._read(reply)
        except BadReply as error:
            self._prose = prose_of(reply.content) if tools else ""
            is_answer = self._prose and awaits_answer(self._turns) and not self._request.must_call
            if self._visible.sent or is_answer:
                raise  # plain words after a result are the answer
            reply = self._prompt(lease, prompts.correction(error))
        return self._read(reply)

    def _read(self, reply: Reply) -> _Turn:
        """What a reply says, in the form that was asked for; raises BadReply."""
        if not self._request.tools:
            return self._plain_text(reply), ()
        names, must_call = names_of(self._request.tools), self._request.must_call
        action = parse(reply.content, names, only_calls=must_call)
        if must_call and (action.call is None or action.call.name not in names):
            raise BadReply(f"this turn must call one of the tools: {', '.join(names)}")
        if action.call is None:
            return self._content(action.content), ()
        return "", (action.call if action.call.name in names else UNKNOWN,)

    def _plain_text(self, reply: Reply) -> str:
        content = without_thinking(reply.content)
        if not content:
            raise BadReply("the reply ends in thinking; write the answer after it")
        return self._content(content)

    def _content(self, text: str) -> str:
        """The text of an answer in the form that was asked for, up to the first text that ends it; raises BadReply."""
        whole = prompts.formed(text, self._request.form)
        content = before_stop(whole, self._request.stop)
        self._is_cut = content != whole
        return content

    def _fall_back(self, error: ReconstituteError) -> _Turn:
        """What is left when the turn failed with `error`; raises Unanswered."""
        _LOG.info("turn failed, falling back", reason=type(error).__name__)
        ways: list[Callable[[], _Turn]] = [self._named_tool]
        if not self._request.must_call:
            ways.append(partial(self._in_plain_words, after_result=False))
            if awaits_answer(self._turns):
                ways.insert(0, partial(self._in_plain_words, after_result=True))
        for way in ways:
            if self._visible.sent:
                break  # words that were shown cannot be taken back
            try:
                return way()
            except (BadReply, ModelUnavailable) as later:
                error = later
        raise Unanswered(error, (self._language or ENGLISH).failure)

    def _named_tool(self) -> _Turn:
        """A call of the tool that the user named; raises BadReply where there is no such thing."""
        prompt = self._turns[-1]["content"] if self._turns and self._turns[-1]["role"] == "user" else ""
        call = prompts.named_tool(prompt, self._request.tools)
        if call is None:
            raise BadReply("the reply cannot be used, and no tool was named by itself")
        return "", (call,)

    def _in_plain_words(self, *, after_result: bool) -> _Turn:
        """The model's own words where it has spoken some, else what it says when it may use nothing but words."""
        if self._prose:
            prose, self._prose = self._prose, ""
            return self._content(prose), ()
        lease = self._sessions.new(self._request.model)
        try:
            text = opening(self._turns, in_actions=False)
            format_prompt = prompts.plainly(self._request.form, after_result=after_result)
            reply = self._prompt(
                lease, f"{text}\n\n{format_prompt}", images_of(self._turns), streams=True, in_plain_words=True
            )
            return self._plain_text(reply), ()
        finally:
            self._sessions.drop(lease)

    def _prompt(
        self,
        lease: Lease,
        text: str,
        images: Sequence[str] = (),
        *,
        streams: bool = False,
        in_plain_words: bool = False,
    ) -> Reply:
        """Ask the model. `streams`: the client gets the text as it comes, unless its form is still to be checked."""
        request = self._request
        seconds_left = self._deadline - time.monotonic()
        if seconds_left < _LEAST_S:
            raise ModelUnavailable(f"{self._server.url}: no answer within {self._seconds:g} s")
        system = prompts.system(
            system_of(request.messages),
            () if in_plain_words else request.tools,
            request.form,
            self._language,
            must_call=request.must_call,
        )
        streams = streams and not request.form

        def on_piece(piece: str) -> None:
            if self._is_off:
                raise HungUp("the client hung up")
            self._meter.first_text = self._meter.first_text or time.monotonic_ns()
            if streams:
                self._visible.feed(piece)

        self._visible.begin()
        self._enter(lease.session_id)
        try:
            reply = self._server.prompt(
                lease.session_id,
                system,
                text,
                images=images,
                model=request.model,
                timeout_s=seconds_left,
                on_text=on_piece,
            )
        except ReconstituteError:
            if self._is_off:
                raise HungUp("the client hung up") from None
            raise
        finally:
            self._enter("")
        self._meter.add(reply)
        return reply

    def _enter(self, session_id: str) -> None:
        with self._lock:
            if self._is_off and session_id:
                raise HungUp("the client hung up")
            self._session_id = session_id


class VisibleText:
    """Passes on the pieces of one text, without the thinking before it and up to the first of the texts `stop`.

    `sent` is the text passed on so far.
    """

    def __init__(self, on_text: OnText | None, stop: Sequence[str] = ()) -> None:
        """Without `on_text`, nothing is sent before the end."""
        self.sent = ""
        self._on_text, self._stop = on_text, stop
        self._buffer = ""

    def begin(self) -> None:
        """Begin another text, in place of one of which nothing was sent yet."""
        self._buffer = ""

    def feed(self, piece: str) -> None:
        """Add one piece."""
        if self._on_text is None:
            return
        self._buffer += piece
        if not self.sent:
            self._buffer = _after_thinking(self._buffer)
        if _may_be_thinking(self._buffer, is_first=not self.sent):
            return
        piece = _certain(self._buffer, self._stop)
        if piece:
            self.sent += piece
            self._buffer = self._buffer[len(piece) :]  # what ends the answer stays at its beginning
            self._on_text(piece)

    def unsent(self, content: str) -> str:
        """The part of the whole text that is not sent yet."""
        if content.startswith(self.sent):
            return content[len(self.sent) :]
        return ""  # other words were sent: the model called a missing tool in between

    def received(self, content: str) -> str:
        """The text that the client has after the answer."""
        return self.sent + self.unsent(content)


def before_stop(text: str, stop: Sequence[str]) -> str:
    """`text` up to the first of the texts `stop`."""
    return text[: min((place for end in stop if (place := text.find(end)) >= 0), default=len(text))]


def _certain(text: str, stop: Sequence[str]) -> str:
    """As much of a text that goes on as comes before any of the texts `stop`, and before one that may have begun."""
    begun = max((size for end in stop for size in range(1, len(end)) if text.endswith(end[:size])), default=0)
    return min(before_stop(text, stop), text[: len(text) - begun], key=len)


def _after_thinking(text: str) -> str:
    while (thought := _THOUGHT.match(text)) is not None:
        text = text[thought.end() :]
    return text.lstrip()


def _may_be_thinking(text: str, *, is_first: bool) -> bool:
    return is_first and any(opening.startswith(text[: len(opening)]) for opening in _OPENINGS)
