"""All prompts of a folder's sessions in order as text for a model: a line each, with session, time and message id.

The oldest and the newest are kept. Where there is no room for all of them, each is shortened first; then those in the
middle are left out, and the text says how many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from daemon.chat.tokens import of_text
from daemon.display import counted, one_line
from daemon.reconstitute.agent.context.blocks import clean, fenced, name, utc
from daemon.reconstitute.agent.pieces import Pieces
from daemon.reconstitute.facts.session_values import SessionFacts, Turn

_WIDTHS = (4000, 1500, 600, 250)
"""Characters of a prompt, tried in this order."""
_HEADING = "every prompt, oldest first, under its session: message id | time | text on one line"


@dataclass(frozen=True, slots=True)
class _Prompt:
    session: str
    before: str
    said: str
    message_id: str

    @property
    def line(self) -> str:
        return f"{self.before}{self.said}"


def prompts_block(sessions: Sequence[SessionFacts], pieces: Pieces, most: int) -> str:
    """A block of at most `most` tokens; empty where nothing fits. The ledger knows what it shows."""
    prompts: list[_Prompt] = []
    for width in _WIDTHS:
        prompts = [_prompt(one, turn, width) for one in sessions for turn in one.turns if turn.prompt.strip()]
        if _tokens(_body(prompts, [])) <= most:
            return _noted(prompts, [], pieces)
    first, last = _ends(prompts, most)
    return _noted(first, last, pieces, len(prompts) - len(first) - len(last)) if first or last else ""


def _ends(prompts: Sequence[_Prompt], most: int) -> tuple[list[_Prompt], list[_Prompt]]:
    """As many from both ends as fit, by turns, the newest first."""
    sizes = [int(of_text(f"{prompt.session}\n{prompt.line}").most) + 2 for prompt in prompts]
    left = most - _tokens(_gap(len(prompts)))
    start, end = 0, len(prompts)
    while start < end:
        is_new = len(prompts) - end <= start
        size = sizes[end - 1] if is_new else sizes[start]
        if size > left:
            break
        left -= size
        start, end = (start, end - 1) if is_new else (start + 1, end)
    return list(prompts[:start]), list(prompts[end:])


def _noted(first: Sequence[_Prompt], last: Sequence[_Prompt], pieces: Pieces, missing: int = 0) -> str:
    if not first and not last:
        return ""
    for prompt in (*first, *last):
        pieces.note(prompt.message_id, [prompt.said.rstrip("…")])
    return fenced(_HEADING, _body(first, last, missing))


def _tokens(body: str) -> int:
    return int(of_text(fenced(_HEADING, body)).most)


def _body(first: Sequence[_Prompt], last: Sequence[_Prompt], missing: int = 0) -> str:
    lines = _under_sessions(first)
    if missing:
        lines.append(_gap(missing))
    return "\n".join([*lines, *_under_sessions(last)])


def _gap(missing: int) -> str:
    return f"[… {counted(missing, 'prompt')} left out here: list_sessions and read_session show them …]"


def _under_sessions(prompts: Sequence[_Prompt]) -> list[str]:
    lines, session = list[str](), ""
    for prompt in prompts:
        if prompt.session != session:
            session = prompt.session
            lines.append(session)
        lines.append(prompt.line)
    return lines


def _prompt(one: SessionFacts, turn: Turn, width: int) -> _Prompt:
    said = one_line(clean(turn.prompt))
    said = said if len(said) <= width else said[: width - 1] + "…"
    marks = ["taken back"] if turn.taken_back else []
    marks += ["by a command or another agent"] if turn.is_command else []
    mark = f" | {', '.join(marks)}" if marks else ""
    session = f'session {name(one.id)} "{name(one.title, 160)}"'
    return _Prompt(session, f"message {name(turn.prompt_id)} | {utc(turn.time)}{mark} | ", said, turn.prompt_id)
