"""How often a question about long conversations leads to the right session: LoCoMo's evidence, one index a dialogue.

    python bench/quality_locomo.py PATH [--dialogues N] [--keep DIR]

PATH is the data, which the user supplies (github.com/snap-research/locomo; its licence is non-commercial, so none of it
is here): the official `locomo10.json`, one dialogue's file, or a folder of such files. A session of a dialogue becomes
a recorded session without a title, as the data has none, a turn a message. A question is right at k if a session that
holds its evidence is among the first k. The figures of the first and of the second half of the dialogues stand beside
those of all: both were looked at when it was chosen what recall does, so neither is untouched.
Built-in model, no network.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import quality_house as quality
from daemon.embed.builtin import Builtin

_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D:?(\d+):\d+")


@dataclass(frozen=True)
class Dialogue:
    """One index of its own."""

    talks: list[quality.Talk]
    questions: list[quality.Question]


def load(path: Path) -> list[Dialogue]:
    """The dialogues of a file or of a folder's files, in order of the files' names."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    found: list[Dialogue] = []
    for file in files:
        data = json.loads(file.read_text(encoding="utf-8"))
        found += [_dialogue(one) for one in (data if isinstance(data, list) else [data])]
    if not found:
        raise SystemExit(f"{path}: no dialogues; name locomo10.json or a folder with a JSON file for each dialogue")
    return found


def _dialogue(data: dict[str, Any]) -> Dialogue:
    spoken = data.get("conversation", data)
    if "qa" not in data or "speaker_a" not in spoken:
        raise SystemExit("no LoCoMo dialogue: it has no qa or no speaker_a; use github.com/snap-research/locomo's data")
    talks = []
    for number in sorted(int(found[1]) for key in spoken if (found := _SESSION.fullmatch(key))):
        turns = spoken[f"session_{number}"]
        if turns:
            created = _moment(spoken[f"session_{number}_date_time"])
            talks.append(quality.Talk(f"ses_{number}", "", created, tuple(_text(turn) for turn in turns)))
    questions = [
        quality.Question(str(one["question"]), frozenset(_sessions(one["evidence"])))
        for one in data["qa"]
        if one.get("evidence")
    ]
    return Dialogue(talks, questions)


def _sessions(evidence: list[Any]) -> list[str]:
    """D3:12 is in session 3; some entries name several turns, one is malformed beyond reading and never found."""
    return [f"ses_{number}" for entry in evidence for number in _EVIDENCE.findall(str(entry))]


def _text(turn: dict[str, Any]) -> str:
    text = f"{turn['speaker']}: {turn['text']}"
    return f"{text}\n[shares {turn['blip_caption']}]" if turn.get("blip_caption") else text


def _moment(text: str) -> int:
    """``1:56 pm on 8 May, 2023`` as epoch ms."""
    return int(datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).timestamp() * 1000)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Session retrieval on LoCoMo's evidence")
    parser.add_argument("path", type=Path)
    parser.add_argument("--dialogues", type=int, default=0, help="only the first so many")
    parser.add_argument("--keep", type=Path, help="leave the archives here, and use what an earlier run left")
    options = parser.parse_args(arguments)
    dialogues = load(options.path)[: options.dialogues or None]
    embedder = Builtin()
    found: dict[str, list[list[int]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for number, dialogue in enumerate(dialogues):
            place = (options.keep or Path(scratch)) / f"dialogue{number}"
            with quality.house(place, dialogue.talks, embedder) as made:
                for name, answers in made.ways().items():
                    halves = found.setdefault(name, [[], []])
                    halves[2 * number >= len(dialogues)] += quality.places(answers, dialogue.questions)
            print(f"dialogue {number}: {len(dialogue.questions)} questions", file=sys.stderr, flush=True)
    asked = sum(len(dialogue.questions) for dialogue in dialogues)
    quality.head(f"LoCoMo, {len(dialogues)} dialogues, {asked} questions", ("first half", "second half"))
    for name, halves in found.items():
        quality.show(name, halves)


if __name__ == "__main__":
    main(sys.argv[1:])
