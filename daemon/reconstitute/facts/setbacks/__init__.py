"""What was reverted, undone, failed, refused or stopped, and what came of it.

`Setback.resolved` is later than the failure and was not taken back itself. What was never overcome comes first, then
the newest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from daemon.files import Disk, FileHistory
from daemon.files.history import DOUBTS, OBSERVATIONS, Change, Revision
from daemon.reconstitute.facts.language.sentences import shorten
from daemon.reconstitute.facts.language.subjects import History, again
from daemon.reconstitute.facts.session.reverts import kept_words
from daemon.reconstitute.facts.session_values import CallStatus, Citation, Ending, SessionFacts, TakenBack, Turn
from daemon.reconstitute.facts.setbacks import calls
from daemon.reconstitute.facts.setbacks.calls import END_UNKNOWN, LOOKING_TOOLS, TURN_TAKEN_BACK
from daemon.reconstitute.facts.values import Script, Setback, SetbackKind
from daemon.reconstitute.recover import CERTAIN, Recovered
from daemon.redact import redact

MOST = 60
"""Setbacks of one folder."""
_MOST_FILES = 3
_NO_TEXT = "a request"

TurnInSession: TypeAlias = tuple[SessionFacts, Turn]


def find(
    sessions: Sequence[SessionFacts], files: Iterable[Recovered] = (), scripts: Sequence[Script] = ()
) -> tuple[Setback, ...]:
    """At most MOST setbacks; `scripts` are the targets that may have overcome a command by running it."""
    setbacks = [*calls.find(sessions, scripts), *_of_turns(sessions), *undone(sessions, files)]
    for facts in sessions:
        setbacks.extend(_of_reverts(facts))
    setbacks.sort(key=lambda setback: (not is_unsettled(setback), -setback.time, setback.citation.message_id))
    return tuple(setbacks[:MOST])


def is_unsettled(setback: Setback) -> bool:
    """Whether something failed that mattered and that nothing overcame."""
    matters = setback.kind in {
        SetbackKind.EDIT_FAILED, SetbackKind.COMMAND_FAILED, SetbackKind.CALL_FAILED, SetbackKind.FAILED,
    }  # fmt: skip
    went_on = setback.kind is SetbackKind.FAILED and setback.outcome
    return (
        matters and setback.resolved is None and setback.outcome not in (TURN_TAKEN_BACK, END_UNKNOWN) and not went_on
    )


# -- answers -----------------------------------------------------------------------------------------------------


def prompt_key(turn: Turn) -> str:
    """The same for prompts in the same words."""
    return " ".join(turn.prompt.casefold().split())


def _of_turns(sessions: Sequence[SessionFacts]) -> Iterator[Setback]:
    """Answers that were stopped or failed; those to the same prompt are one setback."""
    by_prompt: defaultdict[str, list[TurnInSession]] = defaultdict(list)
    history = History(sessions)
    for facts in sessions:
        for turn in facts.exchanges:
            if not (facts.session.parent_id and turn.ending is Ending.STOPPED):
                by_prompt[prompt_key(turn) or turn.prompt_id].append((facts, turn))
    for turns in by_prompt.values():
        turns.sort(key=lambda pair: pair[1].time)
        broken = [pair for pair in turns if pair[1].ending in {Ending.STOPPED, Ending.FAILED}]
        if broken:
            answered = [pair for pair in turns if pair[1].ending is Ending.ANSWERED and not pair[1].taken_back]
            yield _of_broken(broken, [pair for pair in answered if pair[1].time > broken[-1][1].time], history)


def _of_broken(broken: list[TurnInSession], answered: list[TurnInSession], history: History) -> Setback:
    facts, turn = broken[-1]
    kind = SetbackKind.STOPPED if turn.ending is Ending.STOPPED else SetbackKind.FAILED
    resolved, outcome = None, TURN_TAKEN_BACK if turn.taken_back else ""
    if answered:
        replacement, by = answered[0]
        resolved, outcome = (
            Citation(replacement.id, by.prompt_id or by.message_ids[0], by.time),
            "asked again and answered",
        )
    elif not turn.taken_back and (following := _next(facts, turn)) is not None:
        outcome = f"followed by “{shorten(following.prompt, 80)}”"
    elif not turn.taken_back and not facts.session.parent_id and (later := again(turn, history)) is not None:
        outcome = f"spoken of again in {shorten(later[0].title, 60)}: “{shorten(later[1].prompt, 80)}”"
    cut_off = turn.calls[-1] if turn.calls and turn.calls[-1].status is CallStatus.STOPPED else None
    times = f"{len(broken)} times" if len(broken) > 1 else ""
    during = f"during {shorten(cut_off.title, 80)}" if cut_off and cut_off.tool not in LOOKING_TOOLS else ""
    detail = "; ".join(filter(None, (times, shorten(turn.error), during)))
    message = turn.message_ids[-1] if turn.message_ids else turn.prompt_id
    text = shorten(turn.prompt) or facts.title
    return Setback(kind, text, turn.time, Citation(facts.id, message, turn.time), detail, outcome, resolved)


def _next(facts: SessionFacts, turn: Turn) -> Turn | None:
    later = (
        candidate
        for candidate in facts.turns
        if candidate.time > turn.time and candidate.prompt and not candidate.taken_back
    )
    return min(later, key=lambda candidate: candidate.time, default=None)


# -- reverts of OpenCode -----------------------------------------------------------------------------------------


def _of_reverts(facts: SessionFacts) -> Iterator[Setback]:
    """The reverts of a session; those of the same messages are one, in the state that the last of them left."""
    groups: defaultdict[tuple[str, str], list[TakenBack]] = defaultdict(list)
    for revert in facts.reverts:
        groups[revert.message_id, revert.part_id].append(revert)
    for reverts in groups.values():
        last = max(reverts, key=lambda revert: revert.time)
        turn = next((turn for turn in facts.turns if last.message_id in turn.message_ids), None)
        is_part = not last.prompts and (turn is None or turn.prompt != "")
        text = shorten(last.prompts[0]) if last.prompts else shorten(turn.prompt if turn else facts.title) or _NO_TEXT
        prompts_after = len(last.prompts) - 1
        details = (
            "part of the answer" if is_part else "",
            f"and {prompts_after} more {'prompt' if prompts_after == 1 else 'prompts'}" if prompts_after > 0 else "",
            f"{len(reverts)} times" if len(reverts) > 1 else "",
            "" if last.is_certain else "its messages are gone",
        )
        citation = Citation(facts.id, last.message_id, last.time)
        resolved = Citation(facts.id, last.message_id, last.undone) if last.undone is not None else None
        pending = "pending: OpenCode can still undo it" if last.pending else ""
        reverted = [
            candidate
            for candidate in facts.turns
            if candidate is turn or (candidate.taken_back and candidate.prompt in last.prompts)
        ]
        outcome = "undone again" if resolved else "; ".join(filter(None, (kept_words(reverted), pending)))
        paths = tuple(path for path in last.paths if not any(path in reverted_turn.kept for reverted_turn in reverted))
        detail = "; ".join(filter(None, details))
        yield Setback(SetbackKind.REVERTED, text, last.time, citation, detail, outcome, resolved, paths)


# -- what the agent undid ----------------------------------------------------------------------------------------


def undone(sessions: Sequence[SessionFacts], files: Iterable[Recovered]) -> tuple[Setback, ...]:
    """What the agent undid in a later turn: a file is byte by byte what it was before an earlier turn, and still is.

    Each pair of turns is one setback, oldest first. Only certain states are compared. Only files are named, because
    what the turn did to other files may remain.
    """
    turns = {
        message: (facts, turn)
        for facts in sessions
        for turn in facts.own_turns
        if turn.prompt and not turn.taken_back
        for message in turn.message_ids
    }
    pairs: dict[tuple[str, str], tuple[TurnInSession, TurnInSession, list[Recovered]]] = {}
    for file in files:
        if file.state not in CERTAIN or file.disk is Disk.DIFFERS:
            continue  # something else may have changed it since
        for maker, undoer in _undone_in(FileHistory(file.path, file.revisions).changes, turns):
            key = maker[1].prompt_id, undoer[1].prompt_id
            pairs.setdefault(key, (maker, undoer, []))[2].append(file)
    setbacks = [_undone_setback(*pair) for pair in pairs.values()]
    return tuple(sorted(setbacks, key=lambda setback: (setback.time, setback.citation.message_id)))


def _undone_setback(maker: TurnInSession, undoer: TurnInSession, files: Sequence[Recovered]) -> Setback:
    (facts, turn), (later, by) = maker, undoer
    names = ", ".join(f"`{redact(file.relative)}`" for file in files[:_MOST_FILES])
    files_text = names if len(files) <= _MOST_FILES else f"{len(files)} files"
    verb = "is" if len(files) == 1 else "are"
    return Setback(
        SetbackKind.UNDONE,
        f"{files_text} {verb} again as before “{shorten(turn.prompt)}”",
        turn.time,
        Citation(facts.id, turn.prompt_id, turn.time),
        "",
        f"undone after “{shorten(by.prompt, 80)}”",
        Citation(later.id, by.prompt_id, by.time),
        tuple(file.path for file in files),
    )


def _undone_in(
    changes: Sequence[Change], turns: dict[str, TurnInSession]
) -> Iterator[tuple[TurnInSession, TurnInSession]]:
    """Pairs of a turn that changed a file and the turn whose last change made the file as it was before."""
    last = changes[-1] if changes else None
    undoer = _maker(last, turns) if last is not None and last.revision.proven and not last.is_revert else None
    if last is None or undoer is None:
        return
    seen: set[str] = set()
    for change in changes[:-1]:
        maker, before = _maker(change, turns), change.before
        turn = maker or turns.get(change.revision.message_id)
        if turn is None or turn[1].prompt_id in seen:
            continue
        seen.add(turn[1].prompt_id)  # a state in the middle of a turn is not the one before it
        if maker is None or maker[1] is undoer[1] or before is None or not before.proven or change.is_revert:
            continue
        if _is_same(before, last.revision):
            yield maker, undoer


def _maker(change: Change, turns: dict[str, TurnInSession]) -> TurnInSession | None:
    """The turn that made a change. If the change was only seen afterwards, the only turn that may have made it."""
    if change.revision.operation not in OBSERVATIONS:
        is_unsure = change.doubts or change.revision.is_from_outside  # something else may have changed it before
        return None if is_unsure else turns.get(change.revision.message_id)
    makers = {doubt.message_id for doubt in change.doubts if doubt.operation in DOUBTS}
    return turns.get(makers.pop()) if len(makers) == 1 else None


def _is_same(revision: Revision, later: Revision) -> bool:
    if revision.deleted or later.deleted:
        return revision.deleted and later.deleted
    return revision.whole is not None and later.whole is not None and revision.whole.is_same(later.whole)
