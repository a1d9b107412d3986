"""Whether a rule or decision still holds: what took it back, took its place, undid what it changed, or disregarded it.

Guarantees: a statement says that it no longer holds only where a record shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from daemon.reconstitute.facts.decisions import turn_changes
from daemon.reconstitute.facts.decisions.turn_changes import Written
from daemon.reconstitute.facts.language import cues, sentences, subjects
from daemon.reconstitute.facts.session_values import CallStatus, Ending, SessionFacts, Turn
from daemon.reconstitute.facts.values import Rule

_PATH = re.compile(r"[\w.-]*(?:/[\w.-]+)+/?|[\w-]+/|[\w-]+\.\w{1,5}\b")
_NUMBER = re.compile(r"v?\d+(?:\.\d+)*")
_SHORT_NAME = re.compile(r"\b(?=\w*\d)[^\W_]{2,}")
"""A name or value with a figure, such as "B2", which is shorter than other words."""
_OPENING = 60
"""Characters of a prompt in which it says that the one before no longer holds."""
_ALIKE = 0.6
_SHORT_STEM = 3
_UNANSWERED = {
    Ending.STOPPED: "the answer to it was stopped",
    Ending.REFUSED: "a permission for it was refused",
    Ending.FAILED: "the answer to it failed",
    Ending.OPEN: "no answer to it is recorded",
}


@dataclass(frozen=True, slots=True)
class Said:
    """A statement with the turn and session in which it was said."""

    rule: Rule
    turn: Turn
    session: SessionFacts
    forbids: bool
    reconsiders: bool = False
    values: tuple[turn_changes.Value, ...] = ()  # that it names and its turn set


def judged(said: Sequence[Said], sessions: Sequence[SessionFacts], written: Written) -> list[Rule]:
    """What was said, oldest first, without repetitions; `written` tells what became of what it changed."""
    changes = [change for facts in sessions for change in _changes(facts)]
    kept_apart = _without_repetitions([_with_standing(one, changes) for one in said])
    rules = _with_later_ones(kept_apart, written)
    return [_as_of_now(one, rule, written) for one, rule in zip(kept_apart, rules, strict=True)]


def did_something(turn: Turn) -> bool:
    """Whether a call of the turn changed a file, ran a command or started a sub-agent."""
    return any(call.status is CallStatus.OK and (call.changed or call.child or call.command) for call in turn.calls)


def _changes(facts: SessionFacts) -> Iterator[tuple[int, str]]:
    """When its turns that stand changed which files."""
    for turn in facts.turns:
        if not turn.taken_back:
            yield from ((call.started, path) for call in turn.calls for path in call.changed)


def _with_standing(one: Said, changes: Sequence[tuple[int, str]]) -> Said:
    standing = _taken_back(one) or _retracted(one) or _disregarded(one, changes)
    note = one.rule.note or ("" if standing else _what_came_of_it(one))
    return replace(one, rule=replace(one.rule, standing=standing, note=note))


def _what_came_of_it(one: Said) -> str:
    """That nothing was done in the session of a decision that asks for something; another one may have done it."""
    if one.rule.kind != "decision" or one.rule.who != "user" or _keeps(one):
        return ""
    turns = [turn for turn in one.session.turns if turn.time >= one.turn.time and not turn.taken_back]
    if any(map(did_something, turns)):
        return ""
    return _UNANSWERED.get(one.turn.ending, "its session changed nothing after it")


def _keeps(one: Said) -> bool:
    """Whether it decides against something or for what is there already, which changes no file."""
    return any(language.find("keeps", one.rule.text) for language in cues.of(one.rule.text, one.turn.prompt))


def _taken_back(one: Said) -> str:
    if one.turn.taken_back:
        return "probably taken back with its turn" if one.turn.in_doubt else "taken back with its turn"
    changed = {path for call in one.turn.calls for path in call.changed}
    undone = {change.path for change in one.session.changes if change.undone}
    return "what it changed was undone" if changed and changed <= undone and one.rule.kind == "decision" else ""


def _retracted(one: Said) -> str:
    """What a later prompt of the session says that begins by taking something back: the next one, or one about it."""
    later = [turn for turn in one.session.turns if turn.time > one.turn.time and turn.prompt]
    about = subjects.of(one.rule.text)
    for number, turn in enumerate(later if one.rule.who == "user" else ()):
        if (
            not turn.taken_back
            and (number == 0 or about & subjects.of(turn.prompt))
            and retracts(turn.prompt, one.turn.prompt)
        ):
            which = "the next" if number == 0 else "a later"
            return f"taken back by {which} prompt: “{sentences.shorten(turn.prompt, 120)}”"
    return ""


def retracts(prompt: str, context: str = "") -> bool:
    """Whether a prompt begins by taking back what was said before it; a question only asks whether to."""
    first = next(iter(sentences.split(prompt[: 2 * _OPENING])), None)
    if first is None or first.is_question:
        return False
    return any(language.find("retract", prompt[:_OPENING]) for language in cues.of(prompt, context))


def _as_of_now(one: Said, rule: Rule, written: Written) -> Rule:
    """A decision whose changes are gone from the files, though nobody said in so many words what replaces it."""
    is_changed = not rule.standing and rule.kind == "decision" and turn_changes.since(one.turn, written)
    return replace(rule, standing="what it changed was changed again later") if is_changed else rule


def _disregarded(one: Said, changes: Sequence[tuple[int, str]]) -> str:
    """Whether a file that it forbids to touch was changed after its turn."""
    named = {name.strip("./") for name in _PATH.findall(one.rule.text)} - {""} if one.forbids else set()
    if not named:
        return ""
    later = (f"{path}/" for time, path in changes if time > one.turn.ended)
    return "changed later all the same" if any(f"/{name}/" in path for path in later for name in named) else ""


def _with_later_ones(said: list[Said], written: Written) -> list[Rule]:
    """A decision that a later one takes the place of says so, and the later one what it replaces."""
    rules = [one.rule for one in said]
    for place, one in enumerate(said):
        if one.turn.taken_back or one.rule.kind != "decision":
            continue
        for before in range(place):
            earlier, later = rules[before], rules[place]
            is_replaced = (
                _replaces(later, earlier)
                or returns_to(sentences.whole(later.text), one.turn.prompt, earlier)
                or _sets_again(one, said[before])
                or _thinks_better(one, said[before], written)
            )
            if earlier.standing or not is_replaced:
                if not (earlier.standing or earlier.note) and _goes_over(one, said[before], written):
                    note = f"a later decision changed the same file: “{sentences.shorten(later.text, 120)}”"
                    rules[before] = replace(earlier, note=note)
                continue
            rules[before] = replace(
                earlier, note="", standing=f"replaced later: “{sentences.shorten(later.text, 120)}”"
            )
            if not later.replaces or one.values:
                rules[place] = replace(later, replaces=quoted(earlier))
    return rules


def _goes_over(later: Said, earlier: Said, written: Written) -> bool:
    """Whether a decision is the next one or about the same, and was carried out in a file in which the earlier was."""
    if earlier.turn is later.turn or earlier.rule.kind != "decision":
        return False
    changed = [{path for call in one.turn.calls for path in call.changed} for one in (earlier, later)]
    about = [{stem for stem in subjects.of(one.turn.prompt) if len(stem) > _SHORT_STEM} for one in (earlier, later)]
    turns = [turn for turn in later.session.turns if not turn.taken_back]
    is_next = any(one is earlier.turn and two is later.turn for one, two in pairwise(turns))
    is_about_it = bool(changed[0] & changed[1]) and (is_next or bool(about[0] & about[1]))
    return is_about_it and turn_changes.goes_over(later.turn, earlier.turn, written)


def _sets_again(later: Said, earlier: Said) -> bool:
    """Whether it set a number anew that the earlier one named, in a file that the earlier one's turn changed."""
    if earlier.turn is later.turn:
        return False
    paths = {path for call in earlier.turn.calls for path in call.changed} | {one.path for one in earlier.values}
    named = set(_NUMBER.findall(earlier.rule.text))
    return any(one.path in paths and one.old in named for one in later.values)


def _thinks_better(later: Said, earlier: Said, written: Written) -> bool:
    """Whether it begins by reconsidering, is about the same, and was carried out where the earlier one was."""
    about = subjects.of(later.rule.text) & subjects.of(earlier.rule.text)
    return later.reconsiders and bool(about) and _goes_over(later, earlier, written)


def _replaces(later: Rule, earlier: Rule) -> bool:
    """Whether it names what the earlier one chose as what it replaces, or says the same of another number."""
    old, new = sentences.words(earlier.text), sentences.words(later.text)
    dropped = sentences.words(later.replaces)
    chosen = old - sentences.words(earlier.replaces)
    if not earlier.kind == later.kind == "decision":
        return False
    if dropped and dropped <= chosen:
        return True
    is_other_value = bool(old - new and new - old) and all(map(_NUMBER.fullmatch, old ^ new))
    return is_other_value and len(old & new) >= max(1, _ALIKE * min(len(old), len(new)))


def returns_to(sentence: sentences.Sentence, context: str, earlier: Rule) -> bool:
    """Whether a sentence goes back to, or stays with, what an earlier decision replaced, and not what it chose."""
    if sentence.is_question or earlier.kind != "decision" or not earlier.replaces:
        return False
    chosen = _names(earlier.text.replace(earlier.replaces, " "))
    dropped = _names(earlier.replaces) - chosen
    for language in cues.of(sentence.bare, context) if dropped & _names(sentence.text) else ():
        bare = language.without_lead(sentence.bare)
        match = language.find("back", bare)
        if match is None or _is_limited(language, bare):
            continue
        start = len(sentence.bare) - len(bare)
        named = _names(sentence.text[start + match.start("y") : start + match.end("y")])
        return bool(named & dropped) and not named & chosen
    return False


def quoted(decision: Rule) -> str:
    """A whole decision as what another one replaced."""
    return f"“{sentences.shorten(decision.text, 120)}”"


def _is_limited(language: cues.Cues, bare: str) -> bool:
    """Whether it holds for the moment only, or under a condition, wherever that stands."""
    clauses = (bare[word.start() :] for word in re.finditer(r"\w+", bare))
    return bool(language.find("moment", bare)) or any(language.find("condition", one) for one in clauses)


def _names(text: str) -> frozenset[str]:
    return subjects.of(text) | {name.casefold() for name in _SHORT_NAME.findall(text)}


def _without_repetitions(said: list[Said]) -> list[Said]:
    """Of the same words only the first that holds, or else the last."""
    chosen: dict[str, Said] = {}
    for one in said:
        key = " ".join(re.findall(r"\w+", one.rule.text.casefold()))
        if key not in chosen or chosen[key].rule.standing:
            chosen[key] = one
    return sorted(chosen.values(), key=lambda one: (one.rule.time, one.rule.citation.message_id))
