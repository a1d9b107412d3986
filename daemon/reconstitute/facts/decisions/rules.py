"""Sentences in which the user or the agent states a rule or a decision, in their own words.

Only what somebody said in so many words counts: no question, wish, doubt, hearsay, quotation or code (`sentences`), and
no plain task. By which words a language states one is in `cues.toml`. A rule is the user's; a decision of the agent
counts where its answer was whole and changed something. Guarantees: `Rule.text` and `reason` are
stretches of what was said, `replaces` is one, too, or the number that stood there before, or a decision in quotes; a
statement that no longer holds says so in `standing`; at most MOST.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise, zip_longest

from daemon.reconstitute.facts.decisions import alternatives, rule_files, turn_changes, validity
from daemon.reconstitute.facts.decisions.alternatives import Choice
from daemon.reconstitute.facts.decisions.statements import stated, with_value
from daemon.reconstitute.facts.decisions.turn_changes import Value, Written
from daemon.reconstitute.facts.decisions.validity import Said, did_something
from daemon.reconstitute.facts.language import cues, sentences, subjects
from daemon.reconstitute.facts.language.sentences import Sentence
from daemon.reconstitute.facts.session_values import Citation, Ending, Reply, SessionFacts, Turn
from daemon.reconstitute.facts.values import Rule
from daemon.reconstitute.recover import Recovered

MOST = 40
"""Statements of one folder."""

_LONGEST_ANSWER = 80
"""Characters of an answer that names a number; a longer one says something of its own."""
_FEW_WORDS = 2
_A_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_RANK = {"file": 1}
"""What the user said himself comes before what a file says."""


def find(sessions: Sequence[SessionFacts], files: Sequence[Recovered] = ()) -> tuple[Rule, ...]:
    """Few and right: those that state one beyond doubt; `files` tell what became of what they changed.

    Rules come before decisions, what holds before what no longer does, and newer ones before older ones.
    """
    written = Written(files)
    turns = [(facts, turn) for facts in sessions for turn in facts.turns[facts.copied :]]
    found = [*chain.from_iterable(_of_turn(facts, turn, written) for facts, turn in turns), *_answers(turns, written)]
    found += _returns(found)
    said = sorted(found, key=lambda one: (one.rule.time, one.rule.citation.message_id))
    rules = validity.judged(said, sessions, written)
    rules = _with_files(rules, rule_files.find(files))
    return tuple(
        sorted(
            rules,
            key=lambda rule: (bool(rule.standing), _RANK.get(rule.who, 0) if rule.kind == "rule" else 2, -rule.time),
        )[:MOST]
    )


def _with_files(said: list[Rule], written: Iterable[Rule]) -> list[Rule]:
    """The rules of files besides those of prompts; one that stands in both is told once."""
    rules = list(said)
    for rule in written:
        place = next((place for place, one in enumerate(rules) if _is_the_same(one, rule)), None)
        if place is None:
            rules.append(rule)
        elif rules[place].who != "file":
            also = f"also in {rule.origin}"
            rules[place] = replace(rules[place], note=", ".join(filter(None, (rules[place].note, also))))
    return rules


def _is_the_same(said: Rule, written: Rule) -> bool:
    """Whether most of what the shorter one is about is in the other, and both forbid something, or neither does."""
    if said.standing or said.kind != "rule":
        return False
    about, other = subjects.of(said.text), subjects.of(written.text)
    shared = about & other
    forbids = [any(one.find("never", rule.text) for one in cues.of(rule.text)) for rule in (said, written)]
    return len(shared) > 1 and 2 * len(shared) >= min(len(about), len(other)) and forbids[0] == forbids[1]


def _of_turn(facts: SessionFacts, turn: Turn, written: Written) -> list[Said]:
    """What the user states, and what the agent states besides."""
    if turn.is_compaction:
        return []
    said: list[Said] = []
    if _is_of_user(facts, turn):
        values = turn_changes.values(turn, written) if _A_NUMBER.search(turn.prompt) else ()
        said += _in_text(facts, turn, "user", Reply(turn.prompt_id, turn.time, turn.prompt), values)
    if turn.ending is Ending.ANSWERED and did_something(turn):
        for one in (one for reply in turn.replies for one in _in_text(facts, turn, "agent", reply)):
            _add(said, one)
    return said


def _is_of_user(facts: SessionFacts, turn: Turn) -> bool:
    return bool(turn.prompt) and not turn.is_command and not facts.session.parent_id


def _add(said: list[Said], one: Said) -> None:
    """Add a decision of the agent; one that repeats what the user decided only tells what that replaces."""
    about = subjects.of(one.rule.text) - subjects.of(one.rule.replaces)
    for place, earlier in enumerate(said):
        if earlier.rule.kind == "decision" and about & subjects.of(earlier.rule.text):
            is_told = earlier.rule.replaces or earlier.rule.who != "user"
            rule = earlier.rule if is_told else replace(earlier.rule, replaces=one.rule.replaces)
            said[place] = replace(earlier, rule=rule)
            return
    said.append(one)


def _answers(turns: Sequence[tuple[SessionFacts, Turn]], written: Written) -> Iterator[Said]:
    """The answers of the user that choose one of two things, or name the number that the reply before asked for."""
    for (_, before), (facts, turn) in pairwise(
        sorted((one for one in turns if not one[0].session.parent_id), key=lambda one: one[1].time)
    ):
        answer = next(iter(sentences.split(turn.prompt)), None)
        if answer is None or before.is_compaction or not _is_of_user(facts, turn):
            continue
        reply = next((reply.text for reply in reversed(before.replies) if reply.text.strip()), "")
        choices = (alternatives.choice(asked, answer) for asked in (reply, before.prompt))
        choice = next(filter(None, choices), None) or _of_number(reply, answer, turn, written)
        if choice:
            citation = Citation(facts.id, turn.prompt_id, turn.time, answer.text)
            rule = Rule(answer.text, "user", "decision", turn.time, citation, replaces=choice.other)
            note = f"the answer to “{sentences.shorten(choice.question, 120)}”"
            yield Said(replace(rule, note=note), turn, facts, forbids=False)


def _returns(found: Sequence[Said]) -> list[Said]:
    """The sentences by which a later prompt of its session goes back to what a decision had replaced."""
    told = {(one.turn.prompt_id, one.rule.text) for one in found}
    returns: list[Said] = []
    waiting = [one for one in found if one.rule.replaces and one.rule.kind == "decision"]
    while waiting:
        one = waiting.pop()
        later = _return(one)
        if later and (later.turn.prompt_id, later.rule.text) not in told:
            told.add((later.turn.prompt_id, later.rule.text))
            returns.append(later)
            waiting.append(later)  # it may be taken back in its turn
    return returns


def _return(one: Said) -> Said | None:
    for turn in one.session.turns:
        if turn.time <= one.turn.time or turn.taken_back or not _is_of_user(one.session, turn) or turn.is_compaction:
            continue
        pieces = sentences.split(turn.prompt)
        for sentence, following in zip_longest(pieces, pieces[1:]):
            if validity.returns_to(sentence, turn.prompt, one.rule):
                citation = Citation(one.session.id, turn.prompt_id, turn.time, sentence.text)
                reason = _reason_after(following, turn.prompt) if following else ""
                rule = Rule(sentence.text, "user", "decision", turn.time, citation, reason, validity.quoted(one.rule))
                return Said(rule, turn, one.session, forbids=False)
    return None


def _of_number(reply: str, answer: Sentence, turn: Turn, written: Written) -> Choice | None:
    """What a reply asks, where the answer is no more than a number or address, or takes up the question's words.

    And where that number was then written into a file; another short prompt may have nothing to do with the question.
    """
    question = next(reversed(sentences.split(reply)), None)
    numbers = [one for one in _A_NUMBER.findall(answer.bare) if len(one) > 1]
    if question is None or not question.is_question or answer.is_question or len(answer.text) > _LONGEST_ANSWER:
        return None
    is_answer = len(answer.text.split(",")[0].split()) <= _FEW_WORDS or subjects.of(question.text) & subjects.of(
        answer.text
    )
    is_written = any(turn_changes.wrote(turn, written, number) for number in numbers)
    if not is_answer or not is_written or with_value(answer, turn.prompt, is_explained=True) is None:
        return None
    return Choice(question.text)


def _in_text(facts: SessionFacts, turn: Turn, who: str, said: Reply, values: Sequence[Value] = ()) -> Iterator[Said]:
    pieces = sentences.split(said.text)
    for sentence, following in zip_longest(pieces, pieces[1:]):
        set_here = _set_in(sentence, values)
        statement = stated(sentence, who, said.text)
        if statement is None and not set_here:
            continue
        after = _reason_after(following, said.text) if following else ""
        if statement is None:
            statement = with_value(sentence, said.text, is_explained=bool(after))
            if statement and {one.new for one in set_here} & set(_A_NUMBER.findall(statement.replaces)):
                continue  # the number that was set is the one that was missed: it mends a fault
        if statement is None or (statement.if_done and not _was_carried_out(turn)):
            continue
        if statement.is_plain and _is_momentary(pieces, said.text):
            continue
        replaced = statement.replaces or (set_here[0].old if set_here and statement.kind == "decision" else "")
        citation = Citation(facts.id, said.message_id, said.time, sentence.text)
        reason = statement.reason or after
        rule = Rule(sentence.text, who, statement.kind, said.time, citation, reason, replaced)
        yield Said(rule, turn, facts, statement.forbids, statement.reconsiders, set_here)


def _is_momentary(pieces: Sequence[Sentence], context: str) -> bool:
    """Whether any sentence says that it is for this once."""
    return any(one.find("moment", piece.bare) for piece in pieces for one in cues.of(piece.bare, context))


def _set_in(sentence: Sentence, values: Sequence[Value]) -> tuple[Value, ...]:
    """Those of the values that the sentence names; a single figure may be a count of anything."""
    named = set(_A_NUMBER.findall(sentence.bare))
    return tuple(one for one in values if one.new in named and (len(one.new) > 1 or one.old in named))


def _reason_after(following: Sentence, context: str) -> str:
    """The next sentence as the reason, where it begins with it ("Because …") or is one as a whole."""
    for language in cues.of(following.bare, context):
        match = language.find("reason", following.bare)
        if language.find("because", following.bare) or (match and match.start() <= 10):
            return following.text.strip(" .。")
    return ""


def _was_carried_out(turn: Turn) -> bool:
    return turn.ending is Ending.ANSWERED and any(call.changed for call in turn.calls)
