"""The rules and decisions that the user, the agent or a file for contributors states in so many words.

A rule is the user's or stands in a file. A decision of the agent counts only if its answer was whole and changed
something. `Rule.text` and `reason` are stretches of what was said. `replaces` is one too, or the number that stood
there before, or a decision in quotes. A statement that no longer holds says so in `invalid_because`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise, zip_longest

from daemon.reconstitute.facts.decisions import rule_files, validity
from daemon.reconstitute.facts.decisions.statements import Choice, choice, stated, with_number
from daemon.reconstitute.facts.decisions.turn_changes import NumberChange, TurnFiles
from daemon.reconstitute.facts.decisions.validity import StatedRule
from daemon.reconstitute.facts.language import cues, sentences, subjects
from daemon.reconstitute.facts.language.sentences import Sentence
from daemon.reconstitute.facts.session_values import Citation, Ending, Reply, SessionFacts, Turn
from daemon.reconstitute.facts.values import Rule
from daemon.reconstitute.recover import Recovered

MOST = 40
"""Statements of one folder."""

_LONGEST_ANSWER = 80
"""Characters of an answer that names a number; a longer one states something of its own."""
_FEW_WORDS = 2
_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_RANK = {"file": 1}
"""What the user said comes before what a file says."""


def find(sessions: Sequence[SessionFacts], files: Sequence[Recovered] = ()) -> tuple[Rule, ...]:
    """The statements that are beyond doubt; `files` show what became of what they changed.

    Rules come before decisions, valid ones before those that no longer hold, and newer ones before older ones.
    """
    turn_files = TurnFiles(files)
    turns = [(facts, turn) for facts in sessions for turn in facts.own_turns]
    statements = list(chain.from_iterable(_of_turn(facts, turn, turn_files) for facts, turn in turns))
    statements += _answers(turns, turn_files)
    statements += _returns(statements)
    statements.sort(key=lambda statement: (statement.rule.time, statement.rule.citation.message_id))
    rules = _with_files(validity.judged(statements, sessions, turn_files), rule_files.find(files))
    rules.sort(
        key=lambda rule: (bool(rule.invalid_because), _RANK.get(rule.who, 0) if rule.kind == "rule" else 2, -rule.time)
    )
    return tuple(rules[:MOST])


def _with_files(stated_rules: list[Rule], from_files: Iterable[Rule]) -> list[Rule]:
    """The rules of files beside those of prompts; one that stands in both is shown once."""
    rules = list(stated_rules)
    for rule in from_files:
        place = next((place for place, earlier in enumerate(rules) if _is_the_same(earlier, rule)), None)
        if place is None:
            rules.append(rule)
        elif rules[place].who != "file":
            also = f"also in {rule.origin}"
            rules[place] = replace(rules[place], note=", ".join(filter(None, (rules[place].note, also))))
    return rules


def _is_the_same(rule: Rule, from_file: Rule) -> bool:
    """Whether most subjects of the shorter one are in the other, and both forbid something, or neither does."""
    if rule.invalid_because or rule.kind != "rule":
        return False
    about, file_subjects = subjects.of(rule.text), subjects.of(from_file.text)
    shared = about & file_subjects
    forbids = [any(cue.find("never", rule_.text) for cue in cues.of(rule_.text)) for rule_ in (rule, from_file)]
    return len(shared) > 1 and 2 * len(shared) >= min(len(about), len(file_subjects)) and forbids[0] == forbids[1]


# -- statements of a turn ----------------------------------------------------------------------------------------


def _of_turn(facts: SessionFacts, turn: Turn, turn_files: TurnFiles) -> list[StatedRule]:
    """What the user states in a turn, and what the agent states besides."""
    if turn.is_compaction:
        return []
    statements: list[StatedRule] = []
    if _is_of_user(facts, turn):
        changes = turn_files.number_changes(turn) if _NUMBER.search(turn.prompt) else ()
        prompt = Reply(turn.prompt_id, turn.time, turn.prompt)
        statements += _in_text(facts, turn, "user", prompt, changes)
    if turn.ending is Ending.ANSWERED and validity.did_something(turn):
        for reply in turn.replies:
            for statement in _in_text(facts, turn, "agent", reply):
                _add(statements, statement)
    return statements


def _is_of_user(facts: SessionFacts, turn: Turn) -> bool:
    return bool(turn.prompt) and not turn.is_command and not facts.session.parent_id


def _add(statements: list[StatedRule], new: StatedRule) -> None:
    """Add a decision of the agent; one that repeats a decision of the user only adds what that one replaces."""
    about = subjects.of(new.rule.text) - subjects.of(new.rule.replaces)
    for place, earlier in enumerate(statements):
        if earlier.rule.kind == "decision" and about & subjects.of(earlier.rule.text):
            is_complete = earlier.rule.replaces or earlier.rule.who != "user"
            rule = earlier.rule if is_complete else replace(earlier.rule, replaces=new.rule.replaces)
            statements[place] = replace(earlier, rule=rule)
            return
    statements.append(new)


def _in_text(
    facts: SessionFacts, turn: Turn, who: str, message: Reply, changes: Sequence[NumberChange] = ()
) -> Iterator[StatedRule]:
    """What the sentences of a prompt or reply state; `changes` are the numbers that the turn set in files."""
    pieces = sentences.split(message.text)
    for sentence, following in zip_longest(pieces, pieces[1:]):
        places = _named_in(sentence, changes)
        statement = stated(sentence, who, message.text)
        if statement is None and not places:
            continue
        reason_after = _reason_in(following, message.text) if following else ""
        if statement is None:
            statement = with_number(sentence, message.text, is_explained=bool(reason_after))
            if statement and {change.new for change in places} & set(_NUMBER.findall(statement.replaces)):
                continue  # the number that was set is the one that was missing: this corrects a mistake
        if statement is None or (statement.if_done and not _was_carried_out(turn)):
            continue
        if statement.is_plain and _is_momentary(pieces, message.text):
            continue
        replaced = statement.replaces or (places[0].old if places and statement.kind == "decision" else "")
        citation = Citation(facts.id, message.message_id, message.time, sentence.text)
        reason = statement.reason or reason_after
        rule = Rule(sentence.text, who, statement.kind, message.time, citation, reason, replaced)
        yield StatedRule(rule, turn, facts, statement.forbids, statement.reconsiders, places)


def _is_momentary(pieces: Sequence[Sentence], context: str) -> bool:
    """Whether any sentence says that it holds for this once."""
    return any(language.find("moment", piece.bare) for piece in pieces for language in cues.of(piece.bare, context))


def _named_in(sentence: Sentence, changes: Sequence[NumberChange]) -> tuple[NumberChange, ...]:
    """The changes whose new number the sentence names; beside a single digit it must name the old number, too."""
    numbers = set(_NUMBER.findall(sentence.bare))
    return tuple(
        change for change in changes if change.new in numbers and (len(change.new) > 1 or change.old in numbers)
    )


def _reason_in(following: Sentence, context: str) -> str:
    """The next sentence if it is the reason: it begins with one ("Because …") or is one as a whole."""
    for language in cues.of(following.bare, context):
        match = language.find("reason", following.bare)
        if language.find("because", following.bare) or (match and match.start() <= 10):
            return following.text.strip(" .。")
    return ""


def _was_carried_out(turn: Turn) -> bool:
    return turn.ending is Ending.ANSWERED and any(call.changed for call in turn.calls)


# -- answers that decide -----------------------------------------------------------------------------------------


def _answers(turns: Sequence[tuple[SessionFacts, Turn]], turn_files: TurnFiles) -> Iterator[StatedRule]:
    """The user's answers that choose one of two things, or name the number that the reply before asked for."""
    ordered = sorted((pair for pair in turns if not pair[0].session.parent_id), key=lambda pair: pair[1].time)
    for (_, before), (facts, turn) in pairwise(ordered):
        answer = next(iter(sentences.split(turn.prompt)), None)
        if answer is None or before.is_compaction or not _is_of_user(facts, turn):
            continue
        reply = next((reply.text for reply in reversed(before.replies) if reply.text.strip()), "")
        choices = (choice(question, answer) for question in (reply, before.prompt))
        chosen = next(filter(None, choices), None) or _of_number(reply, answer, turn, turn_files)
        if chosen:
            citation = Citation(facts.id, turn.prompt_id, turn.time, answer.text)
            note = f"the answer to “{sentences.shorten(chosen.question, 120)}”"
            rule = Rule(answer.text, "user", "decision", turn.time, citation, replaces=chosen.other, note=note)
            yield StatedRule(rule, turn, facts, forbids=False)


def _of_number(reply: str, answer: Sentence, turn: Turn, turn_files: TurnFiles) -> Choice | None:
    """The question of a reply, if the answer is hardly more than a number, or takes up words of the question.

    The number must then have been written into a file: another short prompt may have nothing to do with the question.
    """
    question = next(reversed(sentences.split(reply)), None)
    numbers = [number for number in _NUMBER.findall(answer.bare) if len(number) > 1]
    if question is None or not question.is_question or answer.is_question or len(answer.text) > _LONGEST_ANSWER:
        return None
    is_short = len(answer.text.split(",")[0].split()) <= _FEW_WORDS
    is_answer = is_short or subjects.of(question.text) & subjects.of(answer.text)
    is_written = any(turn_files.wrote(turn, number) for number in numbers)
    if not is_answer or not is_written or with_number(answer, turn.prompt, is_explained=True) is None:
        return None
    return Choice(question.text)


# -- prompts that go back to something ---------------------------------------------------------------------------


def _returns(statements: Sequence[StatedRule]) -> list[StatedRule]:
    """The sentences by which a later prompt of its session goes back to what a decision had replaced."""
    seen = {(statement.turn.prompt_id, statement.rule.text) for statement in statements}
    returns: list[StatedRule] = []
    waiting = [statement for statement in statements if statement.rule.replaces and statement.rule.kind == "decision"]
    while waiting:
        later = _return(waiting.pop())
        if later and (later.turn.prompt_id, later.rule.text) not in seen:
            seen.add((later.turn.prompt_id, later.rule.text))
            returns.append(later)
            waiting.append(later)  # it may be taken back in its turn
    return returns


def _return(decision: StatedRule) -> StatedRule | None:
    facts = decision.session
    for turn in facts.turns:
        if turn.time <= decision.turn.time or turn.taken_back or turn.is_compaction or not _is_of_user(facts, turn):
            continue
        pieces = sentences.split(turn.prompt)
        for sentence, following in zip_longest(pieces, pieces[1:]):
            if validity.returns_to(sentence, turn.prompt, decision.rule):
                citation = Citation(facts.id, turn.prompt_id, turn.time, sentence.text)
                reason = _reason_in(following, turn.prompt) if following else ""
                replaced = validity.quoted(decision.rule)
                rule = Rule(sentence.text, "user", "decision", turn.time, citation, reason, replaced)
                return StatedRule(rule, turn, facts, forbids=False)
    return None
