"""Which sessions are forks, and how many of their turns are copies: these have new ids, and the times they had."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from daemon.reconstitute.facts.session_values import SessionFacts, Turn


def marked(sessions: Sequence[SessionFacts]) -> list[SessionFacts]:
    """The same sessions in the same order, each fork with the session it shares most turns with.

    Only what is older than its own session can have been copied. A fork may begin with any turn of its origin: those
    that a revert had removed before were not copied.
    """
    by_turn: dict[Hashable, dict[str, SessionFacts]] = defaultdict(dict)
    for one in sessions:
        for turn in one.turns:
            by_turn[_said(turn)][one.id] = one
    return [_marked(one, by_turn[_said(one.turns[0])].values()) if _may_be_fork(one) else one for one in sessions]


def _may_be_fork(one: SessionFacts) -> bool:
    return bool(one.turns) and one.session.parent_id is None and one.turns[0].time < one.session.created


def _marked(fork: SessionFacts, alike: Iterable[SessionFacts]) -> SessionFacts:
    older = [one for one in alike if one.id != fork.id and one.session.created < fork.session.created]
    if not older:
        return fork
    origin = min(older, key=lambda one: (-_shared(fork, one), one.session.created, one.id))
    return replace(fork, forked_from=origin.id, copied=_shared(fork, origin))


def _shared(fork: SessionFacts, origin: SessionFacts) -> int:
    """How many turns at the beginning are copies. Those that a revert has removed from the origin were not copied."""
    said = {_said(turn) for turn in origin.turns}
    own = [_said(turn) in said and turn.time < fork.session.created for turn in fork.turns]
    return own.index(False) if False in own else len(own)


def _said(turn: Turn) -> Hashable:
    return turn.time, turn.prompt, tuple((reply.time, reply.text) for reply in turn.replies), len(turn.calls)
