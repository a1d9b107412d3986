"""What was taken back, failed, refused or stopped, and what came of it.

One thing is one entry, however often it failed: a command, the edits of a file in a session, a prompt. A search that
found nothing is none (`looks`). Guarantees: `resolved` is later than the failure and was not taken back itself; what
was never overcome comes first, then the newest; at most MOST.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from daemon.reconstitute.facts import commands, kept_changes, spoken_of, telling
from daemon.reconstitute.facts.looks import ASKS, essence, only_looks
from daemon.reconstitute.facts.sentences import shorten
from daemon.reconstitute.facts.values import (
    Call,
    CallStatus,
    Citation,
    Ending,
    SessionFacts,
    Setback,
    SetbackKind,
    TakenBack,
    Turn,
)
from daemon.transcript.shapes import absolute

MOST = 60
"""Setbacks of one folder."""

_EDITS = frozenset({"write", "edit", "multiedit", "apply_patch", "patch"})
_MERE_LOOKS = frozenset("read glob grep list ls lsp todoread todowrite invalid batch codesearch websearch".split())  # noqa: SIM905
_INLINE = re.compile(r"\s-[ce]\s")
_FEWEST_WORDS = 4
_WORDS_OF_A_TARGET = 3
"""A key is "command", a folder and words. Of a single word more words make another thing, as of make ``make clean``."""
_TURNED_BACK = "its turn was taken back"
_BAD = {CallStatus.FAILED, CallStatus.REFUSED, CallStatus.STOPPED}


@dataclass(frozen=True, slots=True)
class _Made:
    """A call in its turn; `key` is the same for whatever is the same thing."""

    facts: SessionFacts
    turn: Turn
    call: Call
    key: tuple[str, ...]

    @property
    def place(self) -> tuple[int, str]:
        return self.call.started, self.call.part_id


@dataclass(slots=True)
class _Group:
    failures: list[_Made] = field(default_factory=list)
    successes: list[_Made] = field(default_factory=list)


def find(sessions: Sequence[SessionFacts], more: Sequence[Setback] = ()) -> tuple[Setback, ...]:
    """All of them, and `more`: first what was never overcome, then the newest."""
    found = [*_of_calls(sessions), *_of_turns(sessions), *more]
    for facts in sessions:
        found.extend(_of_reverts(facts))
    return tuple(sorted(found, key=lambda one: (not is_unsettled(one), -one.time, one.citation.message_id))[:MOST])


def is_unsettled(setback: Setback) -> bool:
    """Whether something failed that mattered and that nothing overcame."""
    matters = setback.kind in {
        SetbackKind.EDIT_FAILED, SetbackKind.COMMAND_FAILED, SetbackKind.CALL_FAILED, SetbackKind.FAILED,
    }  # fmt: skip
    went_on = setback.kind is SetbackKind.FAILED and setback.outcome
    return matters and setback.resolved is None and setback.outcome != _TURNED_BACK and not went_on


def own_turns(facts: SessionFacts) -> tuple[Turn, ...]:
    """The turns of a session without those that it only copied from another one."""
    return facts.turns[facts.copied :]


# -- calls -------------------------------------------------------------------------------------------------------


def _of_calls(sessions: Sequence[SessionFacts]) -> Iterator[Setback]:
    made = sorted(
        (_made(facts, turn, call) for facts in sessions for turn in own_turns(facts) for call in turn.calls),
        key=lambda one: one.place,
    )
    groups: defaultdict[tuple[str, ...], _Group] = defaultdict(_Group)
    edited: defaultdict[str, list[_Made]] = defaultdict(list)
    for one in made:
        if one.call.status is CallStatus.OK and not one.turn.taken_back:
            groups[one.key].successes.append(one)
            for path in one.call.changed:
                edited[path].append(one)
        elif one.call.status in _BAD and not _is_noise(one):
            groups[one.key].failures.append(one)
    ran = [one for one in made if one.call.command and one.call.status is CallStatus.OK and not one.turn.taken_back]
    for group in groups.values():
        if group.failures:
            last = group.failures[-1]
            group.successes += [one for one in ran if one.call.folder == last.call.folder and _does_more(one, last)]
            yield _of_group(group, edited)


def _made(facts: SessionFacts, turn: Turn, call: Call) -> _Made:
    if call.command:
        words = essence(call.command) or (" ".join(call.command.split()),)
        return _Made(facts, turn, call, ("command", call.folder, *words))
    if call.tool in _EDITS:
        return _Made(facts, turn, call, ("edit", facts.id, *_paths(facts, call)))
    return _Made(facts, turn, call, ("call", call.tool, call.title))


def _paths(facts: SessionFacts, call: Call) -> tuple[str, ...]:
    """The files of an edit; of one that failed, those that its title names."""
    if call.changed:
        return call.changed
    named = call.title.removeprefix(call.tool).strip().split(", ")
    return tuple(path for name in named if name and (path := absolute(name, facts.session.directory)))


def _does_more(later: _Made, failed: _Made) -> bool:
    """Whether a later command does all that a failed one did, and more: more files, or more code in its line."""
    if later.place <= failed.place or not failed.call.command or later.key[2] != failed.key[2]:
        return False
    if _INLINE.search(failed.call.command):
        wanted, done = set(re.findall(r"\w+", failed.call.command)), set(re.findall(r"\w+", later.call.command))
        is_again = failed.facts.id == later.facts.id and commands.repeats(failed.call.command, later.call.command)
        return is_again or (len(wanted) >= _FEWEST_WORDS and wanted <= done)
    return len(failed.key) > _WORDS_OF_A_TARGET and set(failed.key) <= set(later.key) and ASKS.isdisjoint(later.key)


def _is_noise(one: _Made) -> bool:
    call = one.call
    if call.tool in _EDITS and call.title == call.tool:
        return True  # a call that names no file was never whole
    if call.status is CallStatus.FAILED:
        return call.tool in _MERE_LOOKS or (bool(call.command) and only_looks(call.command, call.exit))
    if call.status is CallStatus.REFUSED:
        return False
    is_last = call == one.turn.calls[-1]
    return call.tool in _MERE_LOOKS or (is_last and one.turn.ending is not Ending.ANSWERED)


def _of_group(group: _Group, edited: dict[str, list[_Made]]) -> Setback:
    last = group.failures[-1]
    call, kind = last.call, _kind(last)
    paths = _paths(last.facts, call) if call.tool in _EDITS else ()
    later = [*group.successes, *(one for path in paths for one in edited.get(path, ()))]
    overcame = min((one for one in later if one.place > last.place), key=lambda one: one.place, default=None)
    resolved = None
    outcome = _TURNED_BACK if last.turn.taken_back else _without_success(kind)
    if overcame is not None:
        resolved = Citation(overcame.facts.id, overcame.call.message_id, overcame.call.started)
        outcome = _with_success(kind, overcame, same=overcame.call.title == call.title)
    times = f"{len(group.failures)} times" if len(group.failures) > 1 else ""
    detail = "; ".join(filter(None, (times, _told(call))))
    citation = Citation(last.facts.id, call.message_id, call.started)
    return Setback(kind, call.title, call.started, citation, detail, outcome, resolved, paths)


def _kind(one: _Made) -> SetbackKind:
    if one.call.status is CallStatus.REFUSED:
        return SetbackKind.REFUSED
    if one.call.status is CallStatus.STOPPED:
        return SetbackKind.STOPPED
    if one.call.command:
        return SetbackKind.COMMAND_FAILED
    return SetbackKind.EDIT_FAILED if one.call.tool in _EDITS else SetbackKind.CALL_FAILED


def _told(call: Call) -> str:
    """How it ended, and the line that says what went wrong."""
    seconds = round((call.ended - call.started) / 1000)
    if call.status is CallStatus.STOPPED:
        return f"stopped after {seconds} s" if call.ended > call.started else "stopped"
    status = f"exit {call.exit}" if call.exit is not None else ""
    if missing := telling.missing_program(call):
        return f"{status}; could not run: `{missing}` is not {'there' if '/' in missing else 'installed'}"
    return "; ".join(filter(None, (status, shorten(telling.of(call)))))


def _with_success(kind: SetbackKind, overcame: _Made, *, same: bool) -> str:
    if kind is SetbackKind.REFUSED:
        return "was allowed later"
    if kind is SetbackKind.EDIT_FAILED:
        return f"a later {overcame.call.tool} of the file succeeded"
    return "succeeded later" if same else f"succeeded later as `{shorten(overcame.call.title, 80)}`"


def _without_success(kind: SetbackKind) -> str:
    return {
        SetbackKind.EDIT_FAILED: "no later edit of the file succeeded",
        SetbackKind.COMMAND_FAILED: "did not succeed later",
        SetbackKind.CALL_FAILED: "did not succeed later",
    }.get(kind, "")


# -- answers and reverts -----------------------------------------------------------------------------------------


def _of_turns(sessions: Sequence[SessionFacts]) -> Iterator[Setback]:
    """Answers that were stopped or failed, those to the same prompt as one."""
    asked: defaultdict[str, list[tuple[SessionFacts, Turn]]] = defaultdict(list)
    history = spoken_of.History(sessions)
    for facts in sessions:
        for turn in own_turns(facts):
            if not turn.is_compaction and not (facts.session.parent_id and turn.ending is Ending.STOPPED):
                asked[prompt_key(turn) or turn.prompt_id].append((facts, turn))
    for turns in asked.values():
        turns.sort(key=lambda pair: pair[1].time)
        broken = [pair for pair in turns if pair[1].ending in {Ending.STOPPED, Ending.FAILED}]
        if broken:
            answered = [pair for pair in turns if pair[1].ending is Ending.ANSWERED and not pair[1].taken_back]
            yield _of_broken(broken, [pair for pair in answered if pair[1].time > broken[-1][1].time], history)


def prompt_key(turn: Turn) -> str:
    """The same for prompts in the same words."""
    return " ".join(turn.prompt.casefold().split())


def _of_broken(
    broken: list[tuple[SessionFacts, Turn]],
    answered: list[tuple[SessionFacts, Turn]],
    history: spoken_of.History,
) -> Setback:
    facts, turn = broken[-1]
    kind = SetbackKind.STOPPED if turn.ending is Ending.STOPPED else SetbackKind.FAILED
    resolved, outcome = None, _TURNED_BACK if turn.taken_back else ""
    if answered:
        again, by = answered[0]
        resolved, outcome = Citation(again.id, by.prompt_id or by.message_ids[0], by.time), "asked again and answered"
    elif not turn.taken_back and (following := _next(facts, turn)) is not None:
        outcome = f"followed by “{shorten(following.prompt, 80)}”"
    elif not turn.taken_back and not facts.session.parent_id and (later := spoken_of.again(turn, history)) is not None:
        outcome = f"spoken of again in {shorten(later[0].title, 60)}: “{shorten(later[1].prompt, 80)}”"
    cut = turn.calls[-1] if turn.calls and turn.calls[-1].status is CallStatus.STOPPED else None
    times = f"{len(broken)} times" if len(broken) > 1 else ""
    during = f"during {shorten(cut.title, 80)}" if cut and cut.tool not in _MERE_LOOKS else ""
    detail = "; ".join(filter(None, (times, shorten(turn.error), during)))
    message = turn.message_ids[-1] if turn.message_ids else turn.prompt_id
    text = shorten(turn.prompt) or facts.title
    return Setback(kind, text, turn.time, Citation(facts.id, message, turn.time), detail, outcome, resolved)


def _next(facts: SessionFacts, turn: Turn) -> Turn | None:
    later = (one for one in facts.turns if one.time > turn.time and one.prompt and not one.taken_back)
    return min(later, key=lambda one: one.time, default=None)


def _of_reverts(facts: SessionFacts) -> Iterator[Setback]:
    """Those of the same messages as one, in the state that the last of them left."""
    groups: defaultdict[tuple[str, str], list[TakenBack]] = defaultdict(list)
    for revert in facts.reverts:
        groups[revert.message_id, revert.part_id].append(revert)
    for reverts in groups.values():
        last = max(reverts, key=lambda one: one.time)
        turn = next((turn for turn in facts.turns if last.message_id in turn.message_ids), None)
        is_part = not last.prompts
        text = shorten(last.prompts[0]) if last.prompts else shorten(turn.prompt if turn else facts.title)
        more = len(last.prompts) - 1
        details = (
            "part of the answer" if is_part else "",
            f"and {more} more {'prompt' if more == 1 else 'prompts'}" if more > 0 else "",
            f"{len(reverts)} times" if len(reverts) > 1 else "",
            "" if last.is_certain else "only missing messages tell of it",
        )
        citation = Citation(facts.id, last.message_id, last.time)
        resolved = Citation(facts.id, last.message_id, last.undone) if last.undone is not None else None
        pending = "pending: OpenCode can still undo it" if last.pending else ""
        gone = [one for one in facts.turns if one is turn or (one.taken_back and one.prompt in last.prompts)]
        outcome = "undone again" if resolved else "; ".join(filter(None, (kept_changes.words(gone), pending)))
        paths = tuple(path for path in last.paths if not any(path in one.kept for one in gone))
        detail = "; ".join(filter(None, details))
        yield Setback(SetbackKind.REVERTED, text, last.time, citation, detail, outcome, resolved, paths)
