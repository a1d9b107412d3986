"""Sentences in which the user or the agent states a rule or a decision, in their own words.

Only what somebody said in so many words counts: no question, wish, doubt, hearsay, quotation or code (`sentences`), and
no plain task. By which words a language states one is in `cues.toml`. A rule is the user's; a decision of the agent
counts where its answer was whole and changed something. Guarantees: `Rule.text`, `reason` and `replaces` are stretches
of what was said; a statement that no longer holds says so in `standing`; at most MOST.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, pairwise

from daemon.reconstitute.facts import alternatives, changed_again, cues, looks, sentences, subjects
from daemon.reconstitute.facts.cues import Cues
from daemon.reconstitute.facts.sentences import Sentence
from daemon.reconstitute.facts.values import CallStatus, Citation, Ending, Reply, Rule, SessionFacts, Turn
from daemon.reconstitute.recover import Recovered

MOST = 40
"""Statements of one folder."""

_LONGEST = 320
"""A sentence with more characters argues; it is no rule that can be quoted."""
_PATH = re.compile(r"[\w.-]*(?:/[\w.-]+)+/?|[\w-]+/|[\w-]+\.\w{1,5}\b")
_FIRST_WORD = re.compile(r"\w[\w.+#-]*\s+")
"""All that a reply such as "Tailscale instead of WireGuard." says before what it replaces."""
_NUMBER = re.compile(r"v?\d+(?:\.\d+)*")
_ENDS = frozenset(",;，；、で")
_OPENING = 60
"""Characters of a prompt in which it says that the one before no longer holds."""
_MOST_OF_A_PHRASE = 4
"""Words of what is replaced, where the sentence begins with it."""
_ALIKE = 0.6
_SHORT_STEM = 3
_MOST_KEPT = 16_384
_UNANSWERED = {
    Ending.STOPPED: "the answer to it was stopped",
    Ending.REFUSED: "a permission for it was refused",
    Ending.FAILED: "the answer to it failed",
    Ending.OPEN: "no answer to it is recorded",
}


@dataclass(frozen=True, slots=True)
class Statement:
    """What a sentence states: a ``rule`` or a ``decision``, with its reason and what it takes the place of."""

    kind: str
    reason: str = ""
    replaces: str = ""
    forbids: bool = False
    if_done: bool = False  # a task as much as a decision: it is one where it was carried out
    is_plain: bool = False  # an order that does not say itself for how long


@dataclass(frozen=True, slots=True)
class _Said:
    rule: Rule
    turn: Turn
    session: SessionFacts
    forbids: bool


def find(sessions: Sequence[SessionFacts], files: Sequence[Recovered] = ()) -> tuple[Rule, ...]:
    """Few and right: those that state one beyond doubt; `files` tell what became of what they changed.

    Rules come before decisions, what holds before what no longer does, and newer ones before older ones.
    """
    turns = [(facts, turn) for facts in sessions for turn in facts.turns[facts.copied :]]
    found = [*chain.from_iterable(_of_turn(facts, turn) for facts, turn in turns), *_chosen(turns)]
    said = sorted(found, key=lambda one: (one.rule.time, one.rule.citation.message_id))
    changes = [change for facts in sessions for change in _changes(facts)]
    kept_apart = _without_repetitions([_with_standing(one, changes) for one in said])
    rules = _with_later_ones(kept_apart)
    rules = [_as_of_now(one, rule, files) for one, rule in zip(kept_apart, rules, strict=True)]
    return tuple(sorted(rules, key=lambda rule: (bool(rule.standing), rule.kind != "rule", -rule.time))[:MOST])


def stated(sentence: Sentence, who: str, context: str = "") -> Statement | None:
    """What a sentence of the ``user`` or the ``agent`` states, or None; `context` is the text that it stands in."""
    is_short = len(sentences.words(sentence.text)) < 2 and len(sentence.text.split()) < 3
    if sentence.is_question or is_short or not 8 <= len(sentence.text) <= _LONGEST:
        return None
    return _stated(sentence, who, tuple(one.code for one in cues.of(sentence.bare, context)))


@lru_cache(maxsize=_MOST_KEPT)
def _stated(sentence: Sentence, who: str, codes: tuple[str, ...]) -> Statement | None:
    """What it states in these languages; kept, for a service reads the same sentences again with every message."""
    languages = [cues.named(code) for code in codes]
    vetoes = ("veto", "explain", "moment") if who == "user" else ("veto", "explain")
    if any(language.find(kind, sentence.bare) for kind in vetoes for language in languages):
        return None
    for language in languages:
        bare = language.without_lead(sentence.bare)
        if who == "agent":
            statement = Statement(_of_agent(language, sentence.bare))
        elif language.find("explain", bare):
            continue
        else:
            statement = _of_user(language, bare)
        if statement.kind:
            return replace(
                statement,
                reason=_stretch(language, "reason", "r", sentence),
                replaces=_stretch(language, "contrast", "y", sentence),
                forbids=statement.kind == "rule" and language.find("never", sentence.bare) is not None,
            )
    return None


def _of_user(language: Cues, bare: str) -> Statement:
    if language.find("rule", bare):
        return Statement("rule")
    if language.find("condition", bare):
        return Statement("")
    is_norm = language.find("norm", bare) is not None
    if language.find("choice", bare) and not (is_norm and not language.find("contrast", bare)):
        return Statement("decision")
    if is_norm:
        return Statement("rule", is_plain=True)
    return Statement("decision", if_done=True) if _is_exchange(language, bare) else Statement("")


def _is_exchange(language: Cues, bare: str) -> bool:
    """Whether it asks for one thing in place of another, in words that compare them or with a reason."""
    if language.find("swap", bare):
        return True
    contrast, reason = language.find("contrast", bare), language.find("reason", bare)
    if contrast is None or (reason and reason.start("r") <= contrast.start("y") < reason.end("r")):
        return False
    if reason is None and contrast.re is not next(language.patterns("contrast")):
        return False  # to put one for another may be any task; to compare them is a choice
    return language.find("task", bare) is not None


def _of_agent(language: Cues, bare: str) -> str:
    if language.find("condition", bare) or language.find("offer", bare):
        return ""
    contrast = language.find("contrast", bare)
    if contrast and looks.is_tool(contrast["y"]):
        return ""  # how it worked, and not what it decided
    explained = contrast or language.find("reason", bare)
    is_decision = (
        language.find("chosen", bare)
        or (explained and language.find("weak", bare))
        or (contrast and (language.find("now", bare) or _names_first(language, contrast, bare)))
    )
    return "decision" if is_decision else ""


def _names_first(language: Cues, contrast: re.Match[str], bare: str) -> bool:
    """Whether it names the one thing and then, by the first way to compare of its language, the other."""
    return contrast.re is next(language.patterns("contrast")) and bool(_FIRST_WORD.fullmatch(bare[: contrast.start()]))


def _stretch(language: Cues, kind: str, group: str, sentence: Sentence) -> str:
    match = language.find(kind, sentence.bare)
    is_cut = match is not None and match.start() == 0 and match.end() == match.end(group) and group == "y"
    if match and is_cut and not _is_whole(language, match[group], sentence.bare[match.end() :].lstrip()):
        return ""  # it begins the sentence, and nothing tells where it ends
    return sentence.text[slice(*match.span(group))].strip(" .。!！,，、;") if match else ""


def _is_whole(language: Cues, phrase: str, rest: str) -> bool:
    """Whether a phrase at the start ends with the comma: in many languages the verb comes before it, with a reason."""
    if rest[:1] not in _ENDS:
        return False
    reason = language.find("reason", rest)
    return len(phrase.split()) <= _MOST_OF_A_PHRASE and (reason is None or reason.start() > 1 + len(rest[:1]))


def _of_turn(facts: SessionFacts, turn: Turn) -> list[_Said]:
    """What the user states, and what the agent states besides."""
    if turn.is_compaction:
        return []
    said: list[_Said] = []
    if _is_of_user(facts, turn):
        said += _in_text(facts, turn, "user", Reply(turn.prompt_id, turn.time, turn.prompt))
    if turn.ending is Ending.ANSWERED and _did_something(turn):
        for one in (one for reply in turn.replies for one in _in_text(facts, turn, "agent", reply)):
            _add(said, one)
    return said


def _is_of_user(facts: SessionFacts, turn: Turn) -> bool:
    return bool(turn.prompt) and not turn.is_command and not facts.session.parent_id


def _add(said: list[_Said], one: _Said) -> None:
    """Add a decision of the agent; one that repeats what the user decided only tells what that replaces."""
    about = subjects.of(one.rule.text) - subjects.of(one.rule.replaces)
    for place, earlier in enumerate(said):
        if earlier.rule.kind == "decision" and about & subjects.of(earlier.rule.text):
            is_told = earlier.rule.replaces or earlier.rule.who != "user"
            rule = earlier.rule if is_told else replace(earlier.rule, replaces=one.rule.replaces)
            said[place] = replace(earlier, rule=rule)
            return
    said.append(one)


def _chosen(turns: Sequence[tuple[SessionFacts, Turn]]) -> Iterator[_Said]:
    """The answers of the user that choose one of two things which the reply before asked about."""
    for (_, before), (facts, turn) in pairwise(
        sorted((one for one in turns if not one[0].session.parent_id), key=lambda one: one[1].time)
    ):
        asked = next((reply.text for reply in reversed(before.replies) if reply.text.strip()), "")
        if not asked or before.is_compaction or not _is_of_user(facts, turn):
            continue
        answer = next(iter(sentences.split(turn.prompt)), None)
        choice = alternatives.choice(asked, answer) if answer else None
        if answer and choice:
            citation = Citation(facts.id, turn.prompt_id, turn.time, answer.text)
            rule = Rule(answer.text, "user", "decision", turn.time, citation, replaces=choice.other)
            note = f"the answer to “{sentences.shorten(choice.question, 120)}”"
            yield _Said(replace(rule, note=note), turn, facts, forbids=False)


def _in_text(facts: SessionFacts, turn: Turn, who: str, said: Reply) -> Iterator[_Said]:
    pieces = sentences.split(said.text)
    is_momentary = any(one.find("moment", piece.bare) for piece in pieces for one in cues.of(piece.bare, said.text))
    for number, sentence in enumerate(pieces):
        statement = stated(sentence, who, said.text)
        if statement is None or (statement.if_done and not _was_carried_out(turn)):
            continue
        if statement.is_plain and is_momentary:
            continue
        reason = statement.reason or (_reason_after(pieces[number + 1], said.text) if number + 1 < len(pieces) else "")
        citation = Citation(facts.id, said.message_id, said.time, sentence.text)
        rule = Rule(sentence.text, who, statement.kind, said.time, citation, reason, statement.replaces)
        yield _Said(rule, turn, facts, statement.forbids)


def _reason_after(following: Sentence, context: str) -> str:
    """The next sentence as the reason, where it begins with it ("Because …") or is one as a whole."""
    for language in cues.of(following.bare, context):
        match = language.find("reason", following.bare)
        if match and match.start() <= 10:
            return following.text.strip(" .。")
    return ""


def _was_carried_out(turn: Turn) -> bool:
    return turn.ending is Ending.ANSWERED and any(call.changed for call in turn.calls)


def _did_something(turn: Turn) -> bool:
    return any(call.status is CallStatus.OK and (call.changed or call.child or call.command) for call in turn.calls)


def _changes(facts: SessionFacts) -> Iterator[tuple[int, str]]:
    """When its turns that stand changed which files."""
    for turn in facts.turns:
        if not turn.taken_back:
            yield from ((call.started, path) for call in turn.calls for path in call.changed)


def _with_standing(one: _Said, changes: Sequence[tuple[int, str]]) -> _Said:
    standing = _taken_back(one) or _retracted(one) or _disregarded(one, changes)
    note = one.rule.note or ("" if standing else _what_came_of_it(one))
    return replace(one, rule=replace(one.rule, standing=standing, note=note))


def _what_came_of_it(one: _Said) -> str:
    """That nothing was done in the session of a decision that asks for something; another one may have done it."""
    if one.rule.kind != "decision" or one.rule.who != "user" or _keeps(one):
        return ""
    turns = [turn for turn in one.session.turns if turn.time >= one.turn.time and not turn.taken_back]
    if any(map(_did_something, turns)):
        return ""
    return _UNANSWERED.get(one.turn.ending, "its session changed nothing after it")


def _keeps(one: _Said) -> bool:
    """Whether it decides against something or for what is there already, which changes no file."""
    return any(language.find("keeps", one.rule.text) for language in cues.of(one.rule.text, one.turn.prompt))


def _taken_back(one: _Said) -> str:
    if one.turn.taken_back:
        return "probably taken back with its turn" if one.turn.in_doubt else "taken back with its turn"
    changed = {path for call in one.turn.calls for path in call.changed}
    undone = {change.path for change in one.session.changes if change.undone}
    return "what it changed was undone" if changed and changed <= undone and one.rule.kind == "decision" else ""


def _retracted(one: _Said) -> str:
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


def _as_of_now(one: _Said, rule: Rule, files: Sequence[Recovered]) -> Rule:
    """A decision whose changes are gone from the files, though nobody said in so many words what replaces it."""
    is_changed = not rule.standing and rule.kind == "decision" and changed_again.since(one.turn, files)
    return replace(rule, standing="what it changed was changed again later") if is_changed else rule


def _disregarded(one: _Said, changes: Sequence[tuple[int, str]]) -> str:
    """Whether a file that it forbids to touch was changed after its turn."""
    named = {name.strip("./") for name in _PATH.findall(one.rule.text)} - {""} if one.forbids else set()
    if not named:
        return ""
    later = (f"{path}/" for time, path in changes if time > one.turn.ended)
    return "changed later all the same" if any(f"/{name}/" in path for path in later for name in named) else ""


def _with_later_ones(said: list[_Said]) -> list[Rule]:
    """A decision that a later one takes the place of says so, and the later one what it replaces."""
    rules = [one.rule for one in said]
    for place, one in enumerate(said):
        if one.turn.taken_back or one.rule.kind != "decision":
            continue
        for before in range(place):
            earlier, later = rules[before], rules[place]
            if earlier.standing or not _replaces(later, earlier):
                if not (earlier.standing or earlier.note) and _goes_over(one, said[before]):
                    note = f"a later decision changed the same file: “{sentences.shorten(later.text, 120)}”"
                    rules[before] = replace(earlier, note=note)
                continue
            rules[before] = replace(earlier, standing=f"replaced later: “{sentences.shorten(later.text, 120)}”")
            if not later.replaces:
                rules[place] = replace(later, replaces=earlier.text)
    return rules


def _goes_over(later: _Said, earlier: _Said) -> bool:
    """Whether a decision is the next one or about the same, and was carried out in a file in which the earlier was."""
    if earlier.turn is later.turn or earlier.rule.kind != "decision":
        return False
    files = [{path for call in one.turn.calls for path in call.changed} for one in (earlier, later)]
    about = [{stem for stem in subjects.of(one.turn.prompt) if len(stem) > _SHORT_STEM} for one in (earlier, later)]
    turns = [turn for turn in later.session.turns if not turn.taken_back]
    is_next = any(one is earlier.turn and two is later.turn for one, two in pairwise(turns))
    return bool(files[0] & files[1]) and (is_next or bool(about[0] & about[1]))


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


def _without_repetitions(said: list[_Said]) -> list[_Said]:
    """Of the same words only the first that holds, or else the last."""
    chosen: dict[str, _Said] = {}
    for one in said:
        key = " ".join(re.findall(r"\w+", one.rule.text.casefold()))
        if key not in chosen or chosen[key].rule.standing:
            chosen[key] = one
    return sorted(chosen.values(), key=lambda one: (one.rule.time, one.rule.citation.message_id))
