"""The rules in files written for agents and contributors (AGENTS.md, .cursorrules, CONTRIBUTING.md).

In a file for agents, every item is a rule that gives an order or is a sentence. An item that only names a command, a
path or a part of the project is none. In a file for everybody, an item must state a rule itself. Items under a heading
or lead-in that forbids something or sets a condition are left out, because alone they would say something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from daemon.reconstitute.facts.content import (
    Text,
    comparable,
    first_sentences,
    has_letters,
    is_mostly_links,
    last_text,
    without_markup,
    word_count,
)
from daemon.reconstitute.facts.decisions import statements
from daemon.reconstitute.facts.language import cues, sentences
from daemon.reconstitute.facts.values import Rule
from daemon.reconstitute.recover import Recovered

MOST = 24
"""Rules of one file."""

_FOR_AGENTS = re.compile(
    r"(?:agents?|claude|claude\.local|gemini|conventions|copilot-instructions)\.md|\.(?:cursor|windsurf|cline)rules",
    re.IGNORECASE,
)
_FOR_ALL = re.compile(r"contributing(?:\.(?:md|markdown|rst|txt|adoc))?", re.IGNORECASE)
_ELSEWHERE = re.compile(r"(?:^|/)(?:node_modules|vendor|third_party|fixtures|templates?|examples?)/")
_CURSOR = ".cursor/rules/"
_FRONT = re.compile(r"\A\s*(---|\+\+\+)[ \t]*\n.*?\n\1[ \t]*(?:\n|\Z)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_HEADING = re.compile(r"\s{0,3}(#{1,6})[ \t]+(.*?)[ \t#]*")
_ITEM = re.compile(r"(\s*)[-*+•][ \t]+(.*)")
_NUMBERED = re.compile(r"\s*\d{1,3}[.)]\s")
_TASK = re.compile(r"\[[ xX]\]\s")
_NO_PROSE = re.compile(r"\s*(?:\||>|<|:::|(?:[-=*_]\s*){3,}$)")
_CODE_FIRST = re.compile(r"\W{0,3}(?:`|[\w.-]+/|https?:)")
_LABEL = re.compile(r"[^\s:：`][^:：`]{0,40}[:：]\s")
_DENIES = re.compile("[❌✗✘🚫👎⛔]")
_CODE = re.compile(r"`[^`]*`")
_FEWEST_WORDS = 2
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class _Item:
    """A bullet (`depth`: its indentation) or, without a depth, a paragraph; `lead` are the words above it."""

    text: str
    heading: str
    lead: str
    depth: int | None


def find(files: Sequence[Recovered]) -> Iterator[Rule]:
    """The rules in these files, in their order; each wording once."""
    seen: set[str] = set()
    for file in sorted(files, key=lambda candidate: (candidate.relative.count("/"), candidate.relative)):
        is_for_agents = _is_for_agents(file.relative)
        if not is_for_agents and not _FOR_ALL.fullmatch(file.relative.rpartition("/")[2]):
            continue
        read = None if _ELSEWHERE.search(file.relative) else last_text(file)
        if read is not None:
            rules = _rules(read, is_for_agents=is_for_agents)
            new = [rule for rule in rules if comparable(rule.text) not in seen][:MOST]
            seen.update(comparable(rule.text) for rule in new)
            yield from new


def _is_for_agents(relative: str) -> bool:
    is_cursor = _CURSOR in f"/{relative}" and relative.endswith(".mdc")
    return is_cursor or bool(_FOR_AGENTS.fullmatch(relative.rpartition("/")[2]))


def _rules(read: Text, *, is_for_agents: bool) -> Iterator[Rule]:
    items = list(_items(_COMMENT.sub("", _FRONT.sub("", read.text, count=1))))
    names_parts = _naming_parts(items)
    for item in items:
        if item.text.endswith((":", "：")) or is_mostly_links(item.text) or _is_reversed(item, read.text):
            continue
        is_free = is_for_agents and item.heading not in names_parts
        note = f"under “{item.heading}”" if item.heading else ""
        for sentence in _sentences(item):
            if _is_stated(sentence, read.text) or (is_free and _is_order(sentence, item, read.text)):
                citation = read.citation(sentence.text)
                yield Rule(sentence.text, "file", "rule", citation.time, citation, note=note, origin=read.relative)


def _sentences(item: _Item) -> Sequence[sentences.Sentence]:
    """A bullet as one sentence, because its sentences belong together; a paragraph sentence by sentence."""
    text = without_markup(item.text)
    if item.depth is None:
        return sentences.split(text)
    line = first_sentences(text, _LONGEST, 2)
    return [sentences.whole(line)] if has_letters(line) else []


def _naming_parts(items: Sequence[_Item]) -> set[str]:
    """The headings under which at least half of the bullets begin with a command, a path or other code."""
    under: dict[str, list[bool]] = {}
    for item in items:
        if item.depth is not None:
            under.setdefault(item.heading, []).append(_CODE_FIRST.match(item.text) is not None)
    return {heading for heading, is_code in under.items() if 2 * sum(is_code) >= len(is_code)}


def _is_reversed(item: _Item, context: str) -> bool:
    """Whether the words above an item reverse it, or limit it to a case."""
    if _DENIES.search(item.text[:4]) or _DENIES.search(item.heading):
        return True
    return any(
        language.find(kind, above)
        for above in (item.heading, item.lead)
        if above
        for language in cues.of(above, context)
        for kind in ("never", "condition")
    )


def _is_stated(sentence: sentences.Sentence, context: str) -> bool:
    """Whether it states a rule, or begins by forbidding something."""
    stated = (statements.stated(piece, "user", context) for piece in sentences.split(sentence.text))
    if any(statement is not None and statement.kind == "rule" for statement in stated):
        return True
    first = sentence.bare.split(maxsplit=1)[0]
    is_long = word_count(sentence.text) >= _FEWEST_WORDS and not sentence.is_question
    return is_long and any(language.find("never", first) for language in cues.of(sentence.bare, context))


def _is_order(sentence: sentences.Sentence, item: _Item, context: str) -> bool:
    """Whether a bullet is a sentence, not only the name of a part of the project; a paragraph must give an order."""
    if item.depth is None:
        languages = cues.of(sentence.bare, context)
        return sentence.text == sentence.bare and any(language.find("task", sentence.bare) for language in languages)
    prose = _CODE.sub(" ", sentence.text)
    if sentence.is_question or _CODE_FIRST.match(sentence.text) or _is_case(sentence, context):
        return False
    label = _LABEL.match(sentence.text)
    return word_count(prose[label.end() :] if label else prose) >= (2 * _FEWEST_WORDS if label else _FEWEST_WORDS)


def _is_case(sentence: sentences.Sentence, context: str) -> bool:
    """Whether it only says when to do what the items below say."""
    has_more = any(mark in sentence.bare for mark in ",，、")
    return not has_more and any(
        language.find("condition", sentence.bare) for language in cues.of(sentence.bare, context)
    )


def _items(text: str) -> Iterator[_Item]:
    """The bullets and paragraphs of a document, each with the heading and the lead-in above it."""
    heading, lead, fence = "", "", ""
    parents: list[_Item] = []
    lines: list[str] = []
    depth: int | None = None
    for line in [*text.split("\n"), "#"]:
        mark = _FENCE.match(line)
        bullet, title = _ITEM.fullmatch(line), _HEADING.fullmatch(line)
        goes_on = bool(lines and line.strip() and not (mark or bullet or title or fence or line == "#"))
        if goes_on and not _NUMBERED.match(line) and not _NO_PROSE.match(line):
            lines.append(line.strip())
            continue
        if lines:
            item = _Item(" ".join(lines), heading, "", depth)
            lines = []
            if depth is None:
                lead = item.text if item.text.endswith((":", "：")) else ""
            else:
                parents = [parent for parent in parents if (parent.depth or 0) < depth]
                item = _Item(item.text, heading, " ".join([lead, *(parent.text for parent in parents)]).strip(), depth)
                parents.append(item)
            yield item
        if fence or mark:
            fence = ("" if mark and mark[1].startswith(fence) else fence) if fence else str(mark and mark[1])
        elif title:
            heading, lead, parents = without_markup(title[2]) if len(title[1]) > 1 else "", "", []
        elif bullet and not _TASK.match(bullet[2]):
            depth, lines = len(bullet[1].expandtabs(4)), [bullet[2]]
        elif line.strip() and not bullet and not _NUMBERED.match(line) and not _NO_PROSE.match(line):
            depth, lines, parents = None, [line.strip()], []
