"""Whether a rule or decision still holds: what took it back, replaced it, undid what it changed, or disregarded it.

A statement is only marked as no longer valid if a record shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from daemon.reconstitute.facts.decisions.turn_changes import NumberChange, TurnFiles
from daemon.reconstitute.facts.language import cues, sentences, subjects
from daemon.reconstitute.facts.session_values import CallStatus, Ending, SessionFacts, Turn
from daemon.reconstitute.facts.values import Rule

_PATH = re.compile(r"[\w.-]*(?:/[\w.-]+)+/?|[\w-]+/|[\w-]+\.\w{1,5}\b")
_NUMBER = re.compile(r"v?\d+(?:\.\d+)*")
_SHORT_NAME = re.compile(r"\b(?=\w*\d)[^\W_]{2,}")
"""A name or value with a digit, such as "B2", which is shorter than other words."""
_OPENING = 60
"""A prompt takes back the one before it within these first characters."""
_ALIKE = 0.6
_SHORT_STEM = 3
_UNANSWERED = {
    Ending.STOPPED: "the answer to it was stopped",
    Ending.REFUSED: "a permission for it was refused",
    Ending.FAILED: "the answer to it failed",
    Ending.OPEN: "no answer to it is recorded",
}


@dataclass(frozen=True, slots=True)
class StatedRule:
    """A rule with the turn and session in which it was stated; `changes` are the numbers in it that its turn set."""

    rule: Rule
    turn: Turn
    session: SessionFacts
    forbids: bool
    reconsiders: bool = False
    changes: tuple[NumberChange, ...] = ()


def judged(statements: Sequence[StatedRule], sessions: Sequence[SessionFacts], turn_files: TurnFiles) -> list[Rule]:
    """The rules stated, oldest first and without repetitions, each with why it no longer holds, if it does not."""
    changes = [change for facts in sessions for change in _changes(facts)]
    distinct = _without_repetitions([_with_validity(statement, changes) for statement in statements])
    rules = _with_later_ones(distinct, turn_files)
    return [_as_of_now(statement, rule, turn_files) for statement, rule in zip(distinct, rules, strict=True)]


def did_something(turn: Turn) -> bool:
    """Whether a call of the turn changed a file, ran a command or started a sub-agent."""
    return any(call.status is CallStatus.OK and (call.changed or call.child or call.command) for call in turn.calls)


def _changes(facts: SessionFacts) -> Iterator[tuple[int, str]]:
    """The files that its valid turns changed, with the times."""
    for turn in facts.turns:
        if not turn.taken_back:
            yield from ((call.started, path) for call in turn.calls for path in call.changed)


def _with_validity(statement: StatedRule, changes: Sequence[tuple[int, str]]) -> StatedRule:
    reason = _taken_back(statement) or _retracted(statement) or _disregarded(statement, changes)
    note = statement.rule.note or ("" if reason else _what_came_of_it(statement))
    return replace(statement, rule=replace(statement.rule, invalid_because=reason, note=note))


def _what_came_of_it(statement: StatedRule) -> str:
    """That the session of a decision did nothing after it; another session may have done it."""
    if statement.rule.kind != "decision" or statement.rule.who != "user" or _is_still_valid(statement):
        return ""
    turns = [turn for turn in statement.session.turns if turn.time >= statement.turn.time and not turn.taken_back]
    if any(map(did_something, turns)):
        return ""
    return _UNANSWERED.get(statement.turn.ending, "its session changed nothing after it")


def _is_still_valid(statement: StatedRule) -> bool:
    """Whether it decides against something, or for what is there already: that changes no file."""
    return any(
        language.find("keeps", statement.rule.text) for language in cues.of(statement.rule.text, statement.turn.prompt)
    )


def _taken_back(statement: StatedRule) -> str:
    if statement.turn.taken_back:
        return "probably taken back with its turn" if statement.turn.in_doubt else "taken back with its turn"
    paths = {path for call in statement.turn.calls for path in call.changed}
    undone = {change.path for change in statement.session.changes if change.undone}
    return "what it changed was undone" if paths and paths <= undone and statement.rule.kind == "decision" else ""


def _retracted(statement: StatedRule) -> str:
    """The later prompt of the session that takes it back: the next one, or one on its subject."""
    later = [turn for turn in statement.session.turns if turn.time > statement.turn.time and turn.prompt]
    about = subjects.of(statement.rule.text)
    for number, turn in enumerate(later if statement.rule.who == "user" else ()):
        if (
            not turn.taken_back
            and (number == 0 or about & subjects.of(turn.prompt))
            and retracts(turn.prompt, statement.turn.prompt)
        ):
            position = "the next" if number == 0 else "a later"
            return f"taken back by {position} prompt: “{sentences.shorten(turn.prompt, 120)}”"
    return ""


def retracts(prompt: str, context: str = "") -> bool:
    """Whether a prompt begins by taking back what was said before it; a question does not."""
    first = next(iter(sentences.split(prompt[: 2 * _OPENING])), None)
    if first is None or first.is_question:
        return False
    return any(language.find("retract", prompt[:_OPENING]) for language in cues.of(prompt, context))


def _as_of_now(statement: StatedRule, rule: Rule, turn_files: TurnFiles) -> Rule:
    """The rule; of a decision whose changes are gone from the files, with that as the reason why it no longer holds."""
    is_changed = not rule.invalid_because and rule.kind == "decision" and turn_files.is_undone(statement.turn)
    return replace(rule, invalid_because="what it changed was changed again later") if is_changed else rule


def _disregarded(statement: StatedRule, changes: Sequence[tuple[int, str]]) -> str:
    """Whether a file that it forbids to touch was changed after its turn, in words."""
    paths = {name.strip("./") for name in _PATH.findall(statement.rule.text)} - {""} if statement.forbids else set()
    if not paths:
        return ""
    later = (f"{path}/" for time, path in changes if time > statement.turn.ended)
    return "changed later all the same" if any(f"/{name}/" in path for path in later for name in paths) else ""


def _with_later_ones(statements: list[StatedRule], turn_files: TurnFiles) -> list[Rule]:
    """The rules; a replaced decision names the later one, and the later one what it replaces."""
    rules = [statement.rule for statement in statements]
    for place, later in enumerate(statements):
        if later.turn.taken_back or later.rule.kind != "decision":
            continue
        for before, earlier in enumerate(statements[:place]):
            old, new = rules[before], rules[place]
            is_replaced = (
                _replaces(new, old)
                or returns_to(sentences.whole(new.text), later.turn.prompt, old)
                or _sets_again(later, earlier)
                or _changes_mind(later, earlier, turn_files)
            )
            quote = sentences.shorten(new.text, 120)
            if is_replaced and not old.invalid_because:
                rules[before] = replace(old, note="", invalid_because=f"replaced later: “{quote}”")
                if not new.replaces or later.changes:
                    rules[place] = replace(new, replaces=quoted(old))
            elif not (old.invalid_because or old.note) and _goes_over(later, earlier, turn_files):
                rules[before] = replace(old, note=f"a later decision changed the same file: “{quote}”")
    return rules


def _goes_over(later: StatedRule, earlier: StatedRule, turn_files: TurnFiles) -> bool:
    """Whether a decision is the next one or on the same subject, and was carried out in a file of the earlier one."""
    if earlier.turn is later.turn or earlier.rule.kind != "decision":
        return False
    pair = (earlier.turn, later.turn)
    changed_paths = [{path for call in turn.calls for path in call.changed} for turn in pair]
    about = [{stem for stem in subjects.of(turn.prompt) if len(stem) > _SHORT_STEM} for turn in pair]
    turns = [turn for turn in later.session.turns if not turn.taken_back]
    is_next = any(turn is earlier.turn and following is later.turn for turn, following in pairwise(turns))
    is_about_it = bool(changed_paths[0] & changed_paths[1]) and (is_next or bool(about[0] & about[1]))
    return is_about_it and turn_files.overwrites(later.turn, earlier.turn)


def _sets_again(later: StatedRule, earlier: StatedRule) -> bool:
    """Whether it set a number again that the earlier one named, in a file that the earlier one's turn changed."""
    if earlier.turn is later.turn:
        return False
    paths = {path for call in earlier.turn.calls for path in call.changed} | {change.path for change in earlier.changes}
    numbers = set(_NUMBER.findall(earlier.rule.text))
    return any(change.path in paths and change.old in numbers for change in later.changes)


def _changes_mind(later: StatedRule, earlier: StatedRule, turn_files: TurnFiles) -> bool:
    """Whether it begins by changing its mind, is on the same subject, and was carried out where the earlier one was."""
    about = subjects.of(later.rule.text) & subjects.of(earlier.rule.text)
    return later.reconsiders and bool(about) and _goes_over(later, earlier, turn_files)


def _replaces(later: Rule, earlier: Rule) -> bool:
    """Whether it says that it replaces what the earlier one chose, or says the same with another number."""
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
    """Whether a sentence goes back to, or stays with, what an earlier decision replaced, and not with its choice."""
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
        names = _names(sentence.text[start + match.start("y") : start + match.end("y")])
        return bool(names & dropped) and not names & chosen
    return False


def quoted(decision: Rule) -> str:
    """A whole decision as what another one replaced."""
    return f"“{sentences.shorten(decision.text, 120)}”"


def _is_limited(language: cues.Cues, bare: str) -> bool:
    """Whether it holds for the moment only, or under a condition anywhere in it."""
    clauses = (bare[word.start() :] for word in re.finditer(r"\w+", bare))
    return bool(language.find("moment", bare)) or any(language.find("condition", clause) for clause in clauses)


def _names(text: str) -> frozenset[str]:
    return subjects.of(text) | {name.casefold() for name in _SHORT_NAME.findall(text)}


def _without_repetitions(statements: list[StatedRule]) -> list[StatedRule]:
    """Of statements in the same words only the first that holds, else the last."""
    chosen: dict[str, StatedRule] = {}
    for statement in statements:
        key = " ".join(re.findall(r"\w+", statement.rule.text.casefold()))
        if key not in chosen or chosen[key].rule.invalid_because:
            chosen[key] = statement
    return sorted(chosen.values(), key=lambda statement: (statement.rule.time, statement.rule.citation.message_id))
