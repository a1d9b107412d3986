"""The rules in the files that people write for agents and contributors (AGENTS.md, .cursorrules, CONTRIBUTING.md).

In a file made for agents every item is one that gives an order or says something in words; one that only names a
command, a path or a part of the project is none. What everybody else reads, too, holds rules where it says so itself.
Guarantees: the words stand in the file's last known state; nothing under a heading or a lead-in that forbids or sets a
condition, for then an item alone says something else; at most MOST of a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from daemon.reconstitute.facts.content.text import Text, has_letters, is_mostly_links, key, last_text, plain, weight
from daemon.reconstitute.facts.content.text import sentences as first_sentences
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
    """A bullet (`depth` is what it is indented by) or, without a depth, a paragraph; `lead` are the words above it."""

    text: str
    heading: str
    lead: str
    depth: int | None


def find(files: Sequence[Recovered]) -> Iterator[Rule]:
    """What these files say, in their order; the same words once."""
    seen: set[str] = set()
    for file in sorted(files, key=lambda one: (one.relative.count("/"), one.relative)):
        is_for_agents = _is_for_agents(file.relative)
        if not is_for_agents and not _FOR_ALL.fullmatch(file.relative.rpartition("/")[2]):
            continue
        read = None if _ELSEWHERE.search(file.relative) else last_text(file)
        if read is not None:
            told = [rule for rule in _rules(read, is_for_agents=is_for_agents) if key(rule.text) not in seen][:MOST]
            seen.update(key(rule.text) for rule in told)
            yield from told


def _is_for_agents(relative: str) -> bool:
    is_cursor = _CURSOR in f"/{relative}" and relative.endswith(".mdc")
    return is_cursor or bool(_FOR_AGENTS.fullmatch(relative.rpartition("/")[2]))


def _rules(read: Text, *, is_for_agents: bool) -> Iterator[Rule]:
    items = list(_items(_COMMENT.sub("", _FRONT.sub("", read.text, count=1))))
    names_parts = _naming_parts(items)
    for item in items:
        if item.text.endswith((":", "：")) or is_mostly_links(item.text) or _is_turned(item, read.text):
            continue
        is_free = is_for_agents and item.heading not in names_parts
        note = f"under “{item.heading}”" if item.heading else ""
        for said in _said(item):
            if _is_stated(said, read.text) or (is_free and _is_order(said, item, read.text)):
                citation = read.citation(said.text)
                yield Rule(said.text, "file", "rule", citation.time, citation, note=note, origin=read.relative)


def _said(item: _Item) -> Sequence[sentences.Sentence]:
    """A bullet as one, for its sentences belong together; a paragraph sentence by sentence."""
    text = plain(item.text)
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
    return {heading for heading, are_code in under.items() if 2 * sum(are_code) >= len(are_code)}


def _is_turned(item: _Item, context: str) -> bool:
    """Whether what stands above an item turns it into its contrary, or limits it to a case."""
    if _DENIES.search(item.text[:4]) or _DENIES.search(item.heading):
        return True
    return any(
        language.find(kind, above)
        for above in (item.heading, item.lead)
        if above
        for language in cues.of(above, context)
        for kind in ("never", "condition")
    )


def _is_stated(said: sentences.Sentence, context: str) -> bool:
    """Whether it states a rule in so many words, or begins by forbidding something."""
    told = [statements.stated(one, "user", context) for one in sentences.split(said.text)]
    if any(one is not None and one.kind == "rule" for one in told):
        return True
    first = said.bare.split(maxsplit=1)[0]
    is_long = weight(said.text) >= _FEWEST_WORDS and not said.is_question
    return is_long and any(language.find("never", first) for language in cues.of(said.bare, context))


def _is_order(said: sentences.Sentence, item: _Item, context: str) -> bool:
    """Whether a bullet says something in words, and not only names a part of the project; prose must give an order."""
    if item.depth is None:
        languages = cues.of(said.bare, context)
        return said.text == said.bare and any(language.find("task", said.bare) for language in languages)
    prose = _CODE.sub(" ", said.text)
    if said.is_question or _CODE_FIRST.match(said.text) or _is_case(said, context):
        return False
    label = _LABEL.match(said.text)
    return weight(prose[label.end() :] if label else prose) >= (2 * _FEWEST_WORDS if label else _FEWEST_WORDS)


def _is_case(said: sentences.Sentence, context: str) -> bool:
    """Whether it only says when something is to be done that stands below."""
    has_more = any(mark in said.bare for mark in ",，、")
    return not has_more and any(one.find("condition", said.bare) for one in cues.of(said.bare, context))


def _items(text: str) -> Iterator[_Item]:
    """The bullets and paragraphs of a document, each with the heading and the lead-in that it stands under."""
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
                parents = [one for one in parents if (one.depth or 0) < depth]
                item = _Item(item.text, heading, " ".join([lead, *(one.text for one in parents)]).strip(), depth)
                parents.append(item)
            yield item
        if fence or mark:
            fence = ("" if mark and mark[1].startswith(fence) else fence) if fence else str(mark and mark[1])
        elif title:
            heading, lead, parents = plain(title[2]) if len(title[1]) > 1 else "", "", []
        elif bullet and not _TASK.match(bullet[2]):
            depth, lines = len(bullet[1].expandtabs(4)), [bullet[2]]
        elif line.strip() and not bullet and not _NUMBERED.match(line) and not _NO_PROSE.match(line):
            depth, lines, parents = None, [line.strip()], []
