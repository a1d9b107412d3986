"""What a folder is: its README's and its manifest's own words, else the first prompts that began it.

A prompt counts only where sessions made most of the folder's files. Words that a generator wrote are not what a project
says of itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from daemon.model import Operation
from daemon.reconstitute.facts import generated, manifests
from daemon.reconstitute.facts.contents import Text, has_letters, is_mostly_links, key, last_text, sentences, weight
from daemon.reconstitute.facts.documents import KINDS, Block, blocks
from daemon.reconstitute.facts.values import Citation, Purpose, SessionFacts, Turn
from daemon.reconstitute.recover import Recovered

_MOST = 240
_MOST_DOCUMENT = 32 << 10
_MOST_BLOCKS = 60
_MOST_SESSIONS = 5
_README = re.compile(
    r"(?:readme|read[-_ ]?me|liesmich|lies[-_ ]?mich|lisez[-_ ]?moi|l[eé]eme|leia[-_ ]?me|leggimi|leesmij|l[aä]smig|"
    r"l[aä]s[-_ ]?mig|czytaj[-_ ]?to|benioku|прочти(?:[-_ ]?меня)?|читай(?:[-_ ]?меня)?|自述|说明|說明|お読みください|"
    r"읽어보기)"
    r"(?:[._-][a-z]{2,3}(?:[-_][a-z]{2,4})?)?(\.(?:md|markdown|mdx|rst|txt|text|adoc|asciidoc|org))?",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"(?:about|overview|introduction|intro|description|summary|purpose|synopsis|abstract|goal|über|ueber|überblick|"
    r"übersicht|einleitung|einführung|beschreibung|zweck|worum|ziel|à propos|présentation|aperçu|objectif|but|"
    r"acerca|descripción|introducción|resumen|propósito|objetivo|sobre|descrição|introdução|resumo|descrizione|"
    r"introduzione|panoramica|scopo|over|inleiding|beschrijving|doel|om|beskrivning|beskrivelse|opis|wstęp|"
    r"о проекте|описание|введение|обзор|назначение|про проєкт|опис|hakkında|açıklama|giriş|简介|介绍|概述|关于|說明|"
    r"簡介|介紹|概要|はじめに|紹介|소개|개요|설명)\b",
    re.IGNORECASE,
)
"""Headings under which a project says what it is. Without one of these, only what stands before the first chapter does,
in any language."""


def find(target: str, sessions: Sequence[SessionFacts], files: Sequence[Recovered]) -> tuple[Purpose, ...]:
    """At most two: what the project says of itself, best first; nothing where nothing says it."""
    name = target.rstrip("/").rpartition("/")[2]
    found: list[Purpose] = []
    for purpose in (*islice(_of_readmes(name, sessions, files), 1), *islice(_of_manifests(name, sessions, files), 1),
                    *islice(_of_prompts(target, sessions, files), 1)):  # fmt: skip
        if not any(_says_the_same(purpose.text, other.text) for other in found):
            found.append(purpose)
    return tuple(found[:2])


def _says_the_same(one: str, other: str) -> bool:
    shorter, longer = sorted((key(one), key(other)), key=len)
    return shorter in longer


def _of_readmes(name: str, sessions: Sequence[SessionFacts], files: Sequence[Recovered]) -> Iterator[Purpose]:
    """What the READMEs of the folder itself say, the one without a language in its name first."""
    readmes = [(file, found) for file in files if (found := _README.fullmatch(file.relative))]
    for file, _ in sorted(readmes, key=lambda pair: (len(pair[0].relative), pair[0].relative)):
        read = last_text(file, _MOST_DOCUMENT)
        if read is None:
            continue
        ending = "." + file.relative.lower().rpartition(".")[2] if "." in file.relative else ""
        kind = KINDS.get(ending, "md")
        raw = _first_paragraph(list(islice(blocks(read.text, kind), _MOST_BLOCKS)), name, is_text=kind == "txt")
        if raw and not generated.is_template(raw) and not generated.was_generated(file, read.revision, sessions):
            yield _purpose(raw, read, 2)


def _first_paragraph(document: Sequence[Block], name: str, *, is_text: bool) -> str:
    """The first paragraph that says what it is about: before the first chapter, or in one that is about that."""
    title, chapter = "", None
    for number, block in enumerate(document):
        if block.level:
            is_first = not any(one.level for one in document[:number])
            is_title = is_first and (block.level == 1 or number == 0)
            title, chapter = (block.text, None) if is_title else (title, block)
            continue
        if chapter is not None and not _is_about(chapter.text, title, name):
            continue
        if is_text and number == 0 and len(document) > 1 and weight(block.text) < 8 and block.text[-1:] not in ".。!！":
            title = block.text
            continue
        if _says_something(block, title, name):
            return block.text
    return ""


def _is_about(heading: str, title: str, name: str) -> bool:
    """Whether a chapter tells what the project is: it is called so, or asks for it by its name."""
    bare = heading.strip(" :?!.-*_`")
    return bool(_ABOUT.match(bare)) or (
        heading.rstrip().endswith(("?", "？")) and any(key(one) in key(bare) for one in (title, name) if key(one))
    )


def _says_something(block: Block, title: str, name: str) -> bool:
    text = block.text
    if not has_letters(text) or weight(text) < 3 or is_mostly_links(block.raw):
        return False
    return key(text) not in (key(title), key(name)) and not text.rstrip().endswith((":", "："))


def _of_manifests(name: str, sessions: Sequence[SessionFacts], files: Sequence[Recovered]) -> Iterator[Purpose]:
    order = {known: number for number, known in enumerate(manifests.NAMES)}
    own = [file for file in files if "/" not in file.relative and manifests.is_manifest(file.relative)]
    for file in sorted(own, key=lambda one: (order.get(one.relative.lower(), len(order)), one.relative)):
        read = last_text(file)
        if read is None or not read.is_whole:
            continue
        said = manifests.description(file.relative, read.text)
        if weight(said) < 2 or key(said) == key(name) or generated.is_template(said):
            continue
        if not generated.was_generated(file, read.revision, sessions):
            yield _purpose(said, read, 2)


def _purpose(text: str, read: Text, count: int) -> Purpose:
    said = sentences(text, _MOST, count)
    origin = read.relative if read.is_certain else f"{read.relative}, which may have changed since"
    return Purpose(said, origin, read.citation(said))


# -- prompts ---------------------------------------------------------------------------------------------------------


def _of_prompts(target: str, sessions: Sequence[SessionFacts], files: Sequence[Recovered]) -> Iterator[Purpose]:
    """The prompt that began the folder, and so says what it was to become.

    Of the oldest sessions' first prompts under which files were made: the one that speaks of the folder by its name,
    else the oldest. None where most of the files were there before, for then none of them began it.
    """
    openings = list(islice(_openings(target, sessions, files), _MOST_SESSIONS))
    if files and sum(map(_was_there, files)) * 2 > len(files):
        return
    names = {key(word) for word in re.split(r"[^\w]|_", target.rstrip("/").rpartition("/")[2]) if len(key(word)) > 1}
    openings.sort(key=lambda pair: -sum(name in key(pair[1]) for name in names))
    for citation, text in openings:
        said = sentences(text, _MOST, 2)
        yield Purpose(said, "first prompt", replace(citation, quote=said))


def _openings(
    target: str, sessions: Sequence[SessionFacts], files: Sequence[Recovered]
) -> Iterator[tuple[Citation, str]]:
    """Of each session in this very folder the first prompt that made files, or the one before it that says something.

    Where no files are known the first that says something: a folder in which one only talks.
    """
    made = {file.revisions[0].message_id for file in files if is_made(file)}
    for session in sorted(sessions, key=lambda one: (one.session.created, one.id)):
        told: tuple[Citation, str] | None = None
        for turn in _own_turns(session, target):
            text = asked(turn)
            if told is None and weight(text) >= 4:
                told = (Citation(session.id, turn.prompt_id, turn.time), text)
            if told is not None and (not files or made & set(turn.message_ids)):
                if weight(text) >= 4:
                    told = Citation(session.id, turn.prompt_id, turn.time), text
                yield told
                break


def _own_turns(session: SessionFacts, target: str) -> Iterator[Turn]:
    """The turns in which a person asked for something in this very folder."""
    if session.session.parent_id or not session.is_whole or session.session.directory.rstrip("/") != target.rstrip("/"):
        return
    for turn in session.turns[session.copied :]:
        if turn.prompt and not (turn.is_command or turn.is_compaction or turn.taken_back):
            yield turn


def is_made(file: Recovered) -> bool:
    """Whether the first that is recorded of a file is that it was made."""
    first = file.revisions[0]
    return first.appeared or first.operation in (Operation.WRITE, Operation.APPEND, Operation.TOUCH, Operation.COPY)


def _was_there(file: Recovered) -> bool:
    """Whether the first that is recorded of a file shows that it was there already."""
    first = file.revisions[0]
    seen = first.operation in (Operation.READ, Operation.READ_RANGE, Operation.SNAPSHOT, Operation.STATE)
    return (seen and not first.appeared) or first.operation in (Operation.EDIT, Operation.PATCH)


def asked(turn: Turn) -> str:
    """A prompt on one line, without the quotation marks that ``opencode run`` puts around it."""
    line = " ".join(turn.prompt.split())
    return line[1:-1].strip() if len(line) > 2 and line[0] == line[-1] == '"' else line
