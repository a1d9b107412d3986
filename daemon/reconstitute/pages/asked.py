"""What was asked in a session, in a line: its prompts within a common budget, each with what became of it.

Guarantees: a prompt that does not fit is cut after a sentence, else between words; one whose rule or decision no longer
holds says so. It makes Markdown from facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from daemon import markdown
from daemon.reconstitute.facts.session import kept_changes
from daemon.reconstitute.facts.session_values import Turn
from daemon.reconstitute.facts.values import Rule

_ROOM = 3
"""A session with few prompts, and each long one among short ones, may use this many times the characters of one."""
_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s)|[。！？][」』”）]*")


class Superseded:
    """Which sentences of prompts state a rule or a decision that no longer holds; `rules` are those of all sessions."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._rules: dict[str, list[Rule]] = {}
        for rule in rules:
            if rule.standing and rule.who == "user":
                self._rules.setdefault(rule.citation.message_id, []).append(rule)

    def mark(self, message_id: str, text: str, shown: str) -> str:
        """`` (**replaced later**)``, what became of the statements of a prompt as far as they are `shown` of `text`."""
        over = [rule for rule in self._rules.get(message_id, ()) if rule.text in shown]
        heads = dict.fromkeys(rule.standing.partition(":")[0].strip() for rule in over)
        is_all = sum(len(rule.text) for rule in over) >= len(text) - len(over)
        said = "; ".join(markdown.inline(head) for head in heads)
        return f" (**{said}{'' if is_all else ', in part'}**)" if said else ""


class Asked:
    """At most `prompts` of a session are quoted, with `most` characters of each on average."""

    def __init__(self, superseded: Superseded, prompts: int, most: int) -> None:
        self._superseded = superseded
        self._prompts = prompts
        self._most = most

    def text(self, turns: Sequence[Turn], *, is_task: bool = False) -> str:
        """The prompts of the turns; empty where there are none. The `is_task` of a sub-agent gets no more room."""
        prompts = [(turn, markdown.cut(turn.prompt, 0)) for turn in turns if turn.prompt.strip()]
        shown = prompts[: self._prompts]
        most = (1 if is_task else _ROOM) * self._most
        lengths = _shares([len(text) for _, text in shown], max(most, len(shown) * self._most), most)
        said = [self._quoted(turn, text, length) for (turn, text), length in zip(shown, lengths, strict=True)]
        more = len(prompts) - len(shown)
        return "; ".join(said) + (f" and {more} more" if more else "")

    def _quoted(self, turn: Turn, text: str, most: int) -> str:
        shown = clipped(text, most)
        mark = _taken_back(turn) if turn.taken_back else self._superseded.mark(turn.prompt_id, text, shown)
        return f"{markdown.quoted(shown)}{mark}"


def clipped(text: str, most: int) -> str:
    """A text on one line, cut to about `most` characters after a sentence, else between words."""
    if len(text) <= most:
        return text
    ends = [end.end() for end in _END.finditer(text, 0, most - 1) if end.end() >= most // 2]
    return f"{text[: ends[-1]]} …" if ends else markdown.cut(text, most)


def _shares(lengths: Sequence[int], room: int, most: int) -> list[int]:
    """How many characters each may have: what short ones leave goes to long ones, which get at most `most`."""
    made = [0] * len(lengths)
    ordered = sorted(range(len(lengths)), key=lengths.__getitem__)
    for left, place in zip(range(len(lengths), 0, -1), ordered, strict=True):
        made[place] = min(lengths[place], room // left, most)
        room -= made[place]
    return made


def _taken_back(turn: Turn) -> str:
    kept = kept_changes.words([turn])
    return f" (**taken back{' in part' if turn.in_part else ''}**{f'; {markdown.inline(kept)}' if kept else ''})"
