"""The work that the real OpenCode is given: turns in which every kind of text carries a word found nowhere else.

A turn has four sub-steps with reasoning, text and the tools write, read, edit and bash. Its tokens tell, afterwards and
through any tool, which message holds what: `steps` maps a token to the number of the answer that holds it.
"""

from __future__ import annotations

import random
import string
from dataclasses import dataclass
from pathlib import Path

from tests.live.scripted_model import Call, ScriptedModel, Step

PROMPT = -1
"""The step number of the person's own message."""

WORDS = (
    "garden harvest bucket lantern meadow copper ladder willow market river window basket orchard pepper "
    "quarry saddle timber velvet walnut anchor barley candle donkey engine falcon glacier hammer island"
)


@dataclass(frozen=True)
class Turn:
    """One prompt, the file it writes, and its tokens: token -> step number (PROMPT for the prompt)."""

    prompt: str
    written: Path
    content: str
    steps: dict[str, int]
    kinds: dict[str, str]


class Scenario:
    """Makes turns for one model. Tokens are lower-case letters of one length, so none is part of another."""

    def __init__(self, model: ScriptedModel, seed: int) -> None:
        self._model = model
        self._random = random.Random(seed)
        self._used: set[str] = set()

    def token(self) -> str:
        while True:
            word = "zq" + "".join(self._random.choices(string.ascii_lowercase, k=10))
            if word not in self._used:
                self._used.add(word)
                return word

    def sentence(self, token: str = "") -> str:
        words = self._random.sample(WORDS.split(), k=8)
        return " ".join(["The", *words[:4], *([token] if token else []), *words[4:]]) + "."

    def turn(self, project: Path, name: str, filler_bytes: int = 0) -> Turn:
        """Script a turn in `project`, whose files it prepares; `filler_bytes` of plain words make the file larger."""
        kinds = (
            "prompt",
            "reasoning",
            "answer",
            "write input",
            "read output",
            "edit input",
            "bash input",
            "bash output",
        )
        word = {kind: self.token() for kind in (*kinds, "last answer")}
        written, draft, seed = (project / f"{stem}-{name}.md" for stem in ("notes", "draft", "seed"))
        seed.write_text(f"# Seed\n\n{self.sentence(word['read output'])}\n")
        draft.write_text("# Draft\n\nstatus: open\n")
        content = f"# Notes {name}\n\n{self.sentence(word['write input'])}\n{self._filler(filler_bytes)}"
        half = len(word["bash output"]) // 2
        # The shell joins the halves: the whole word stands in the output alone.
        command = f"printf '%s' {word['bash output'][:half]} {word['bash output'][half:]} # {word['bash input']}"
        steps = [
            Step(
                reasoning=self.sentence(word["reasoning"]),
                text=self.sentence(word["answer"]),
                calls=(Call("write", {"filePath": str(written), "content": content}),),
            ),
            Step(calls=(Call("read", {"filePath": str(seed)}), Call("read", {"filePath": str(draft)}))),
            Step(
                text="Now the draft.",
                calls=(
                    Call(
                        "edit",
                        {
                            "filePath": str(draft),
                            "oldString": "status: open",
                            "newString": f"status: {word['edit input']}",
                        },
                    ),
                    Call("bash", {"command": command, "description": "Join two halves"}),
                ),
            ),
            Step(text=self.sentence(word["last answer"])),
        ]
        prompt = f"Write the notes {name}. {self.sentence(word['prompt'])}"
        self._model.add(prompt, steps)
        numbers = dict(zip(word, (PROMPT, 0, 0, 0, 1, 2, 2, 2, 3), strict=True))
        return Turn(prompt, written, content, {word[k]: n for k, n in numbers.items()}, {word[k]: k for k in word})

    def _filler(self, size: int) -> str:
        lines: list[str] = []
        while sum(map(len, lines)) < size:
            lines.append(self.sentence() + "\n")
        return "".join(lines)


def expected(turn: Turn, messages: list[dict]) -> dict[str, str]:
    """Token -> id of the message that must hold it, from what OpenCode answers for the session."""
    prompt = next(m["info"] for m in messages if m["parts"] and turn.prompt in m["parts"][0].get("text", ""))
    answers = [m["info"]["id"] for m in messages if m["info"].get("parentID") == prompt["id"]]
    ids = {PROMPT: prompt["id"], **dict(enumerate(answers))}
    return {token: ids[number] for token, number in turn.steps.items()}
