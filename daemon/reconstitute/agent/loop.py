"""The agent loop: ask a model one question, step by step, until it answers or a limit ends the question.

A step is a request and the tool calls in its reply. If a reply cannot be used, the model is told why, three times in a
row at most. What ends the question is an exception (the shape is mini-swe-agent's). The trajectory is saved after every
step. Nothing here knows what a tool does.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from daemon.chat import BadReply, ChatModel, ContextLost, ModelUnavailable, OnText, Reply, ToolCall
from daemon.model import Json, OllamaMessage
from daemon.reconstitute.agent.limits import Ended, Limits, Meter, QuestionOver, count_tokens, fit_into, sendable_tokens
from daemon.reconstitute.agent.trajectory import Trajectory

_BAD_REPLIES = 3
_LOST_CONTEXTS = 3
_MAX_LOGGED_CHARS = 2000
"""Characters of an unusable reply that the model sees again."""
_SMALLER = 0.6
"""What is sent after the server had dropped a part: this much of it."""
ANSWER = "answer_question"
MOST_CALLS = 16
"""Of one reply; each may take seconds, and a model that runs wild asks for hundreds."""
NOT_DONE = f"not done: at most {MOST_CALLS} calls a turn"


class Tools(Protocol):
    """What the loop needs of a toolbox."""

    def schemas(self) -> list[Json]:
        """JSON-schema functions."""

    def call(self, name: str, arguments: Json) -> str:
        """The observation; raises nothing for what a model gets wrong."""

    @property
    def is_done(self) -> Ended | None:
        """How the question ended, by what was called last; None: it goes on."""


class Loop:
    """One run; `pulse` is told of every piece of text, and, with an empty one, of every step and call that is done: a
    sign of life. It may raise to break off; the trajectory is saved then too.
    """

    def __init__(
        self,
        model: ChatModel,
        tools: Tools,
        limits: Limits,
        trajectory: Trajectory,
        *,
        pulse: OnText = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model, self._tools, self._trajectory, self._pulse = model, tools, trajectory, pulse
        self._meter = Meter(limits, clock)
        self._schemas = tools.schemas()
        self._most_tokens = sendable_tokens(model.context_tokens)
        self._bad = 0
        self._lost_steps = 0
        self.messages: list[OllamaMessage] = []

    def run(self, opening: Sequence[OllamaMessage]) -> Ended:
        """How it ended; the answer is in the toolbox.

        Raises:
            ModelUnavailable: the question is to be asked again later; the trajectory waits for that.
        """
        self.messages = list(opening)
        try:
            while True:
                self._step()
                self._pulse("")
        except ModelUnavailable as error:
            self._trajectory.wait(str(error))
            raise
        except QuestionOver as over:
            self._save()
            self._trajectory.end(over.why.value)
            return over.why

    def _step(self) -> None:
        try:
            self._act(self._query())
            self._bad = 0
        except BadReply as error:
            self._report(error)
        except ContextLost:
            self._shrink()
        finally:
            self._save()

    def _query(self) -> Reply:
        """Send the conversation, and add the reply to it."""
        self._meter.step()
        fitting = fit_into(self.messages, self._schemas, self._most_tokens)
        request_tokens = count_tokens(fitting, self._schemas)
        try:
            reply = self._model.chat(fitting, self._schemas, self._pulse)
        except (BadReply, ContextLost):
            self._meter.spend(request_tokens)
            raise
        entry = reply.message()
        self._meter.spend((reply.prompt_tokens or request_tokens) + (reply.reply_tokens or count_tokens([entry])))
        if reply.thinking:
            self._trajectory.thoughts[len(self.messages)] = reply.thinking
        self.messages.append(entry)
        return reply

    def _act(self, reply: Reply) -> None:
        """Do the calls of a reply, and add their results."""
        calls = reply.calls or _answer_in(reply.content)
        if not calls:
            raise BadReply(
                f"it is plain text, which nobody reads. Call a tool; to answer, call {ANSWER} with your statements and "
                "the ids of the messages each one stands on"
            )
        for number, call in enumerate(calls):
            observation = self._call_tool(call) if number < MOST_CALLS else NOT_DONE
            if reply.calls:
                self.messages.append({"role": "tool", "tool_name": call.name, "content": observation})
            else:  # no call to go with it: a result without one is no valid conversation
                self.messages.append({"role": "user", "content": observation})
            if self._tools.is_done is not None:
                raise QuestionOver(self._tools.is_done)
            if number < MOST_CALLS:
                self._pulse("")

    def _call_tool(self, call: ToolCall) -> str:
        """The observation of one call that is carried out."""
        self._meter.check_time()
        self._meter.repeat((call.name, json.dumps(call.arguments, sort_keys=True)))
        return self._tools.call(call.name, call.arguments)

    def _report(self, error: BadReply) -> None:
        self._bad += 1
        if self._bad >= _BAD_REPLIES:
            raise QuestionOver(Ended.FORMAT)
        if error.reply:
            self.messages.append({"role": "assistant", "content": error.reply[:_MAX_LOGGED_CHARS]})
        self.messages.append({"role": "user", "content": f"Your last reply could not be used: {error}."})

    def _shrink(self) -> None:
        self._lost_steps += 1
        if self._lost_steps >= _LOST_CONTEXTS:
            raise QuestionOver(Ended.CONTEXT)
        self._most_tokens = int(self._most_tokens * _SMALLER)

    def _save(self) -> None:
        meter = self._meter
        self._trajectory.save(self.messages, steps=meter.steps, tokens=meter.tokens, seconds=meter.seconds)


def _answer_in(content: str) -> tuple[ToolCall, ...]:
    """The answer that a model wrote as JSON into its text instead of calling the tool."""
    arguments = written_call(content, "statements")
    return () if arguments is None else (ToolCall(ANSWER, arguments),)


def written_call(content: str, has: str) -> Json | None:
    """The object with a member `has` that stands as JSON in a text."""
    start, end = content.find("{"), content.rfind("}")
    if start < 0 or end < start:
        return None
    try:
        value = json.loads(content[start : end + 1])
    except ValueError:
        return None
    return value if isinstance(value, dict) and has in value else None
