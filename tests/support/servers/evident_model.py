"""A chat model for tests and examples that answers from the evidence it is shown, and from nothing else.

It speaks through `fake_ollama`: give it as `chat_script`. For each question it has a script of statements, each with a
phrase that some message is known to contain. It looks for the phrase in the blocks that it was shown; where it is not,
it calls search_sessions for it, then only among what was said; what it never sees it does not state. An entry of the
facts is struck out in the same way, before the answer. A file or session is summarised by the first of its sentences
whose phrase it was shown. A question without a script is answered with the first sentences of the blocks it was shown
first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.servers.fake_ollama import call

_BLOCK = re.compile(
    r"^<<<reconstitute:recall (?P<tag>[0-9a-f]+)[^\n]*\nmessage (?P<id>\S+)[^\n]*\n(?P<body>.*?)\n(?P=tag) ",
    re.DOTALL | re.MULTILINE,
)
_PROMPT = re.compile(r"^message (?P<id>\S+) \| (?P<body>[^\n]*)$", re.MULTILINE)
"""A line of the list of all prompts."""
_SENTENCE = re.compile(r"[A-Z][^\n.!?]{25,200}[.!?]")


@dataclass(frozen=True)
class Said:
    """A statement; `phrase` is what its source contains, word for word.

    With `strikes`, a piece of the line of an entry of the facts, it is the reason why that entry does not hold.
    """

    text: str
    phrase: str
    reason: str = ""
    paths: tuple[str, ...] = ()
    strikes: str = ""


@dataclass
class EvidentModel:
    """`scripts` maps a piece of a question's text to its statements; `sentences` are for files and sessions."""

    scripts: Mapping[str, Sequence[Said]] = field(default_factory=dict)
    invents: bool = True
    """Whether what it has no script for is answered with sentences that it was shown, or not at all."""
    sentences: Sequence[Said] = ()

    def __call__(self, body: Any) -> Any:
        messages = body["messages"]
        if [tool["function"]["name"] for tool in body.get("tools", ())] == ["summarize"]:
            return self._summary(messages[1]["content"])
        blocks = list(self._blocks(messages))
        script = self._script(messages[1]["content"])
        if script is None and not self.invents:
            return call("answer_question", statements=[], note="The records do not tell.")
        if script is None:
            return self._first_sentences(blocks)
        searched = [
            call_["function"]["arguments"].get("query", "")
            for message in messages
            for call_ in message.get("tool_calls", ())
            if call_["function"]["name"] == "search_sessions"
        ]
        unseen = [
            said.phrase for said in script if not _holding(blocks, said.phrase) and searched.count(said.phrase) < 2
        ]
        if unseen:
            spoken = {"kinds": ["prompt", "answer"]} if unseen[0] in searched else {}
            return call("search_sessions", query=unseen[0], limit=20, **spoken)
        strike = self._strike(script, blocks, messages)
        if strike is not None:
            return strike
        script = [said for said in script if not said.strikes]
        statements = [
            {
                "text": said.text, "reason": said.reason, "paths": list(said.paths),
                "message_ids": [_holding(blocks, said.phrase)], "quote": said.phrase,
            }
            for said in script
            if _holding(blocks, said.phrase)
        ]  # fmt: skip
        note = "" if len(statements) == len(script) else "Not everything that was looked for is recorded."
        return call("answer_question", statements=statements, note=note)

    def _script(self, asked: str) -> Sequence[Said] | None:
        question = asked.rsplit("answer_question in the end:", 1)[-1]
        return next((script for piece, script in self.scripts.items() if piece in question), None)

    def _blocks(self, messages: Sequence[Any]) -> Iterator[tuple[str, str]]:
        for message in messages:
            for found in _BLOCK.finditer(str(message.get("content", ""))):
                yield found["id"], found["body"]
            for found in _PROMPT.finditer(str(message.get("content", ""))):
                if " | session " not in found["body"]:  # the heading of a block
                    yield found["id"], found["body"].rsplit(" | ", 1)[-1]

    def _summary(self, content: str) -> Any:
        """A sentence that fits, else the first line of three words, of a file or of what a message says."""
        shown = " ".join(content.split())
        fitting = next((said for said in self.sentences if " ".join(said.phrase.split()) in shown), None)
        if fitting is not None:
            return call("summarize", text=fitting.text, quote=fitting.phrase)
        if not self.invents:
            return call("summarize", text="", quote="")
        recorded = [line for line in content.split("\n") if len(re.findall(r"\w+", line)) > 2]
        line = next((line for line in recorded if not re.match(r"<<<|message |file |What |[0-9a-f]{12} ", line)), "")
        return call("summarize", text=f"It says: {line[:200]}", quote=line)

    def _strike(self, script: Sequence[Said], blocks: Sequence[tuple[str, str]], messages: Sequence[Any]) -> Any | None:
        """The next entry to be struck out, if one is left whose proof it was shown."""
        called = [call_["function"] for message in messages for call_ in message.get("tool_calls", ())]
        done = {each["arguments"]["key"] for each in called if each["name"] == "strike_out"}
        for said in script:
            line = re.search(rf"^- \[([0-9a-f]+)\] .*{re.escape(said.strikes)}", messages[1]["content"], re.MULTILINE)
            message_id = _holding(blocks, said.phrase)
            if said.strikes and line and message_id and line[1] not in done:
                proof = {"message_ids": [message_id], "quote": said.phrase}
                return call("strike_out", key=line[1], reason=said.text, **proof)
        return None

    def _first_sentences(self, blocks: Sequence[tuple[str, str]]) -> Any:
        statements: list[dict[str, Any]] = []
        for message_id, text in blocks:
            sentence = _SENTENCE.search(text)
            if sentence and all(sentence[0] != said["quote"] for said in statements):
                statements.append({
                    "text": f"It was said: {sentence[0]}", "message_ids": [message_id], "quote": sentence[0],
                })  # fmt: skip
        note = "" if statements else "Nothing is recorded about it."
        return call("answer_question", statements=statements[:3], note=note)


def _holding(blocks: Sequence[tuple[str, str]], phrase: str) -> str:
    """The id of the first message that was shown with the phrase; empty without one."""
    wanted = " ".join(phrase.split())
    return next((message_id for message_id, text in blocks if wanted in " ".join(text.split())), "")


def scripted(script: Mapping[str, Any]) -> EvidentModel:
    """The model of a script as it stands in a TOML file; what that has no words for it does not answer."""
    answers = {answer["question"]: _said(answer["statements"]) for answer in script["answers"]}
    return EvidentModel(answers, invents=False, sentences=_said(script.get("sentences", ())))


def _said(statements: Sequence[Mapping[str, Any]]) -> list[Said]:
    return [Said(**{**one, "paths": tuple(one.get("paths", ()))}) for one in statements]
