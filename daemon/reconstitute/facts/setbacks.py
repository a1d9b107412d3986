"""What was taken back, failed, refused or stopped, and what came of it.

One thing is one entry, however often it failed: a command, the edits of a file in a session, a prompt; what failed
after the last success is another one. A search that found nothing is none (`looks`). Guarantees: `resolved` is later
than the failure and was not taken back itself; what was never overcome comes first, then the newest; at most MOST.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import NamedTuple

from daemon.reconstitute.facts.content.text import cut
from daemon.reconstitute.facts.language import mentions
from daemon.reconstitute.facts.language.sentences import shorten
from daemon.reconstitute.facts.session import kept_changes
from daemon.reconstitute.facts.session.calls import LONGEST_TITLE
from daemon.reconstitute.facts.session_values import Call, CallStatus, Citation, Ending, SessionFacts, TakenBack, Turn
from daemon.reconstitute.facts.shell import error_line, outcomes, runs
from daemon.reconstitute.facts.shell.read_only import only_looks
from daemon.reconstitute.facts.shell.runs import Run
from daemon.reconstitute.facts.usage import commands
from daemon.reconstitute.facts.values import Script, Setback, SetbackKind
from daemon.transcript.tool_calls import absolute

MOST = 60
"""Setbacks of one folder."""

_EDITS = frozenset({"write", "edit", "multiedit", "apply_patch", "patch"})
_MERE_LOOKS = frozenset("read glob grep list ls lsp todoread todowrite invalid batch codesearch websearch".split())  # noqa: SIM905
_INLINE = re.compile(r"\s-[ce]\s")
_FEWEST_WORDS = 4
_WORDS_OF_A_TARGET = 2
"""Of a single word more words make another thing, as of make ``make clean``."""
_NO_TEXT = "a request"
_SAY_NOTHING = {"exit", "return", "false"}  # they only pass on that something before them failed
_TURNED_BACK = "its turn was taken back"
_NOT_TOLD = "was run again later; how that ended is not recorded"
_OF_AGENT = re.compile(r" \(@\S+ subagent\)$")  # OpenCode adds it to the title of a sub-agent's session
_ENDED = {CallStatus.OK, CallStatus.FAILED}
_BAD = {CallStatus.FAILED, CallStatus.REFUSED, CallStatus.STOPPED}


@dataclass(frozen=True, slots=True)
class _Made:
    """A call in its turn; `key` is the same for whatever is the same thing.

    Of a shell call `blamed` are the commands in it that failed, or of one that did not fail all that it `ran`.
    """

    facts: SessionFacts
    turn: Turn
    call: Call
    key: tuple[str, ...]
    blamed: tuple[Run, ...] = ()
    ran: tuple[Run, ...] = ()

    @property
    def place(self) -> tuple[int, str]:
        return self.call.started, self.call.part_id

    @property
    def text(self) -> str:
        """The command that failed, where it is known which one; else the title of the call."""
        told = [one for one in self.blamed if not one.is_inline and one.program.name not in _SAY_NOTHING]
        return cut(told[0].text, LONGEST_TITLE) if told and len(self.blamed) == 1 else self.call.title


class _Later(NamedTuple):
    """What overcame a failure, in the words of a command or of an edit."""

    made: _Made
    text: str


def find(
    sessions: Sequence[SessionFacts], more: Sequence[Setback] = (), scripts: Sequence[Script] = ()
) -> tuple[Setback, ...]:
    """All of them, and `more`: first what was never overcome, then the newest. `scripts` tell what a target runs."""
    found = [*_of_calls(sessions, outcomes.recipes(scripts)), *_of_turns(sessions), *more]
    for facts in sessions:
        found.extend(_of_reverts(facts))
    return tuple(sorted(found, key=lambda one: (not is_unsettled(one), -one.time, one.citation.message_id))[:MOST])


def is_unsettled(setback: Setback) -> bool:
    """Whether something failed that mattered and that nothing overcame."""
    matters = setback.kind in {
        SetbackKind.EDIT_FAILED, SetbackKind.COMMAND_FAILED, SetbackKind.CALL_FAILED, SetbackKind.FAILED,
    }  # fmt: skip
    went_on = setback.kind is SetbackKind.FAILED and setback.outcome
    return matters and setback.resolved is None and setback.outcome not in (_TURNED_BACK, _NOT_TOLD) and not went_on


def own_turns(facts: SessionFacts) -> tuple[Turn, ...]:
    """The turns of a session without those that it only copied from another one."""
    return facts.turns[facts.copied :]


# -- calls -------------------------------------------------------------------------------------------------------


def _of_calls(sessions: Sequence[SessionFacts], recipes: Mapping[runs.Key, frozenset[runs.Key]]) -> Iterator[Setback]:
    made = sorted(
        (_made(facts, turn, call) for facts in sessions for turn in own_turns(facts) for call in turn.calls),
        key=lambda one: one.place,
    )
    failures: defaultdict[tuple[str, ...], list[_Made]] = defaultdict(list)
    for one in made:
        if one.call.status in _BAD and not _is_noise(one):
            failures[one.key].append(one)
    good = [one for one in made if one.call.status is CallStatus.OK and not one.turn.taken_back]
    edits: defaultdict[str, list[_Made]] = defaultdict(list)
    same: defaultdict[tuple[str, ...], list[_Made]] = defaultdict(list)
    for one in good:
        same[one.key].append(one)
        for path in one.call.changed:
            edits[path].append(one)
    passed = _Passed([one for one in made if one.call.status in _ENDED and not one.turn.taken_back], recipes)
    for failed in failures.values():
        overcome: list[tuple[_Made, _Later | None]] = []
        left: list[tuple[_Made, _Later | None]] = []
        for one in failed:
            paths = _paths(one.facts, one.call) if one.call.tool in _EDITS else ()
            others = [*same[one.key], *(other for path in paths for other in edits[path])]
            later = passed.overcame(one) if one.blamed else _first_after(one, others)
            (left if later is None else overcome).append((one, later))
        yield from (_of_failures(pairs, passed) for pairs in (overcome, left) if pairs)


def _first_after(failed: _Made, others: Sequence[_Made]) -> _Later | None:
    later = (one for one in others if one.place > failed.place)
    return next((_Later(one, one.text) for one in sorted(later, key=lambda one: one.place)), None)


def _made(facts: SessionFacts, turn: Turn, call: Call) -> _Made:
    if call.command:
        ran = outcomes.of_call(call)
        blamed = ran if call.status is CallStatus.OK else runs.culprits(call, ran)
        is_read = blamed and not any(run.is_inline for run in blamed)
        key = tuple(word for run in blamed for word in run.key) if is_read else (" ".join(call.command.split()),)
        return _Made(facts, turn, call, ("command", call.folder, *key), blamed if is_read else (), ran)
    if call.tool in _EDITS:
        return _Made(facts, turn, call, ("edit", facts.id, *_paths(facts, call)))
    return _Made(facts, turn, call, ("call", call.tool, call.title))


class _Passed:
    """All that surely succeeded, found by what may be the same command; `recipes` are what targets run."""

    def __init__(self, ran: Sequence[_Made], recipes: Mapping[runs.Key, frozenset[runs.Key]]) -> None:
        self._recipes = recipes
        self._by_key = defaultdict[runs.Key, list[tuple[_Made, Run]]](list)
        self._by_program = defaultdict[tuple[str, str], list[tuple[_Made, Run]]](list)
        self._untold = defaultdict[runs.Key, list[_Made]](list)
        for one in ran:
            for run in one.ran:
                if run.status is CallStatus.OK:
                    self._by_key[run.key].append((one, run))
                    self._by_program[run.folder, run.program.name].append((one, run))
                elif run.status is CallStatus.UNKNOWN:
                    self._untold[run.key].append(one)

    def overcame(self, failed: _Made) -> _Later | None:
        """What first succeeded after a failure: each command that may have failed, by itself or in a target."""
        wanted, done, keys = list(failed.blamed), set[runs.Key](), [run.key for run in failed.blamed]
        for one, run in self._later(failed):
            done |= {run.key, *self._recipes.get(run.key, ())}
            wanted = [each for each in wanted if not (self._is_done(each, done) or _does_more(one, run, failed, each))]
            if not wanted:
                is_part = any(run.key in self._recipes.get(each.key, ()) for each in failed.blamed)
                is_line = len(failed.blamed) > 1 and all(each in [run.key for run in one.ran] for each in keys)
                return _Later(one, one.call.title if is_part or is_line else cut(run.text, LONGEST_TITLE))
        return None

    def _later(self, failed: _Made) -> Iterator[tuple[_Made, Run]]:
        """The successes after a failure that may have to do with it, in order."""
        keys = {run.key for run in failed.blamed}
        keys |= {key for run in failed.blamed for key in self._recipes.get(run.key, ())}
        keys |= {target for target, recipe in self._recipes.items() if recipe & keys}
        found = [self._by_program[run.folder, run.program.name] for run in failed.blamed]
        found += [self._by_key[key] for key in sorted(keys)]
        return merge(*(_after(pairs, failed) for pairs in found), key=lambda pair: pair[0].place)

    def _is_done(self, run: Run, done: AbstractSet[runs.Key]) -> bool:
        recipe = self._recipes.get(run.key)
        return run.key in done or (recipe is not None and recipe <= done)

    def was_run_again(self, failed: _Made) -> bool:
        """Whether its command ran again later, nobody knows how that ended, and it did not print the same cause."""
        cause = error_line.of(failed.call)
        again = (one for run in failed.blamed for one in self._untold[run.key] if one.place > failed.place)
        return any(not (cause and cause in one.call.output) for one in again)


def _after(pairs: Sequence[tuple[_Made, Run]], failed: _Made) -> Iterator[tuple[_Made, Run]]:
    first = bisect_right(pairs, failed.place, key=lambda pair: pair[0].place)
    return islice(pairs, first, None)


def _paths(facts: SessionFacts, call: Call) -> tuple[str, ...]:
    """The files of an edit; of one that failed, those that its title names."""
    if call.changed:
        return call.changed
    named = call.title.removeprefix(call.tool).strip().split(", ")
    return tuple(path for name in named if name and (path := absolute(name, facts.session.directory)))


def _does_more(later: _Made, ran: Run, failed: _Made, wanted: Run) -> bool:
    """Whether a later command does all that a failed one did, and more: more files, or more code in its line."""
    if (ran.folder, ran.program.name) != (wanted.folder, wanted.program.name):
        return False
    if _INLINE.search(failed.call.command):
        told, done = set(re.findall(r"\w+", wanted.text)), set(re.findall(r"\w+", ran.text))
        is_again = failed.facts.id == later.facts.id and commands.repeats(wanted.text, ran.text)
        return is_again or (len(told) >= _FEWEST_WORDS and told <= done)
    is_more = len(wanted.words) >= _WORDS_OF_A_TARGET and set(wanted.words) <= set(ran.words)
    return is_more and runs.ASKS.isdisjoint(ran.words)


def _is_noise(one: _Made) -> bool:
    call = one.call
    if call.tool in _EDITS and call.title == call.tool:
        return True  # a call that names no file was never whole
    if call.status is CallStatus.FAILED:
        is_look = call.tool in _MERE_LOOKS and not _is_all_of_a_sub_agent(one)
        return is_look or (bool(call.command) and only_looks(call.command, call.exit))
    if call.status is CallStatus.REFUSED:
        return False
    is_last = call == one.turn.calls[-1]
    return call.tool in _MERE_LOOKS or (is_last and one.turn.ending is not Ending.ANSWERED)


def _is_all_of_a_sub_agent(one: _Made) -> bool:
    """Whether a sub-agent's look failed and none of its kind came through: its answer may rest on nothing."""
    calls = (call for turn in own_turns(one.facts) for call in turn.calls)
    return bool(one.facts.session.parent_id) and not any(
        call.tool == one.call.tool and call.status is CallStatus.OK for call in calls
    )


def _of_failures(pairs: Sequence[tuple[_Made, _Later | None]], passed: _Passed) -> Setback:
    """Failures of one thing that were all overcome, or of which none was: the last one, and how many there were."""
    last, later = pairs[-1]
    call, kind = last.call, _kind(last)
    resolved = None
    outcome = _TURNED_BACK if last.turn.taken_back else _without_success(kind)
    if later is not None:
        by = later.made
        resolved = Citation(by.facts.id, by.call.message_id, by.call.started)
        outcome = _with_success(kind, later, same=later.text == last.text)
    elif not last.turn.taken_back and passed.was_run_again(last):
        outcome = _NOT_TOLD
    errors = {error_line.of(one.call) for one, _ in pairs}
    times = f"{len(pairs)} times" + (", the last one:" if len(errors) > 1 else "") if len(pairs) > 1 else ""
    parent = last.facts.session.parent_id
    who = f"by the sub-agent “{_OF_AGENT.sub('', last.facts.title)}”" if parent else ""
    detail = "; ".join(filter(None, (times, _told(call), _where(last), who))).replace(":;", ":")
    citation = Citation(last.facts.id, call.message_id, call.started)
    paths = _paths(last.facts, call) if call.tool in _EDITS else ()
    return Setback(kind, last.text, call.started, citation, detail, outcome, resolved, paths)


def _where(one: _Made) -> str:
    """The folder that the command changed to itself."""
    folders = {run.folder for run in one.blamed}
    folder = folders.pop() if len(folders) == 1 else ""
    return f"in {posixpath.relpath(folder, one.call.folder)}" if folder and folder != one.call.folder != "" else ""


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
    if missing := error_line.missing_program(call):
        return f"{status}; could not run: `{missing}` is not {'there' if '/' in missing else 'installed'}"
    return "; ".join(filter(None, (status, shorten(error_line.of(call)))))


def _with_success(kind: SetbackKind, later: _Later, *, same: bool) -> str:
    if kind is SetbackKind.REFUSED:
        return "was allowed later"
    if kind is SetbackKind.EDIT_FAILED:
        return f"a later {later.made.call.tool} of the file succeeded"
    return "succeeded later" if same else f"succeeded later as `{shorten(later.text, 80)}`"


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
    history = mentions.History(sessions)
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
    history: mentions.History,
) -> Setback:
    facts, turn = broken[-1]
    kind = SetbackKind.STOPPED if turn.ending is Ending.STOPPED else SetbackKind.FAILED
    resolved, outcome = None, _TURNED_BACK if turn.taken_back else ""
    if answered:
        again, by = answered[0]
        resolved, outcome = Citation(again.id, by.prompt_id or by.message_ids[0], by.time), "asked again and answered"
    elif not turn.taken_back and (following := _next(facts, turn)) is not None:
        outcome = f"followed by “{shorten(following.prompt, 80)}”"
    elif not turn.taken_back and not facts.session.parent_id and (later := mentions.again(turn, history)) is not None:
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
        is_part = not last.prompts and (turn is None or turn.prompt != "")
        text = shorten(last.prompts[0]) if last.prompts else shorten(turn.prompt if turn else facts.title) or _NO_TEXT
        more = len(last.prompts) - 1
        details = (
            "part of the answer" if is_part else "",
            f"and {more} more {'prompt' if more == 1 else 'prompts'}" if more > 0 else "",
            f"{len(reverts)} times" if len(reverts) > 1 else "",
            "" if last.is_certain else "its messages are gone",
        )
        citation = Citation(facts.id, last.message_id, last.time)
        resolved = Citation(facts.id, last.message_id, last.undone) if last.undone is not None else None
        pending = "pending: OpenCode can still undo it" if last.pending else ""
        gone = [one for one in facts.turns if one is turn or (one.taken_back and one.prompt in last.prompts)]
        outcome = "undone again" if resolved else "; ".join(filter(None, (kept_changes.words(gone), pending)))
        paths = tuple(path for path in last.paths if not any(path in one.kept for one in gone))
        detail = "; ".join(filter(None, details))
        yield Setback(SetbackKind.REVERTED, text, last.time, citation, detail, outcome, resolved, paths)
