"""What a folder is: its README's, its manifest's or its main document's words, else the prompt that began it.

That is a prompt of the folder's first session. Beside words of its own it counts only where sessions made these words
and most of the folder's files. Words that a generator
wrote are not what a project says of itself. A folder that only holds projects is what these are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from daemon.files import Revision
from daemon.model import Operation
from daemon.reconstitute.facts.content import generated, manifests
from daemon.reconstitute.facts.content.markup import KINDS, Block, blocks
from daemon.reconstitute.facts.content.text import (
    Text,
    has_letters,
    is_mostly_links,
    is_sentence_end,
    key,
    last_text,
    sentences,
    weight,
)
from daemon.reconstitute.facts.language import cues
from daemon.reconstitute.facts.language.sentences import share, whole, words
from daemon.reconstitute.facts.purposes import main_document
from daemon.reconstitute.facts.session_values import Citation, SessionFacts, Turn
from daemon.reconstitute.facts.values import Purpose
from daemon.reconstitute.recover import Recovered

_MOST = 240
_MOST_DOCUMENT = 32 << 10
_MOST_BLOCKS = 60
_MAKING = frozenset({Operation.WRITE, Operation.APPEND, Operation.TOUCH, Operation.COPY})
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


_OTHER_CHAPTER = re.compile(
    r"(?:install|set ?up|usage|using|use\b|how|getting|get |quick|start|run|build|compil|deploy|develop|contribut|test|"
    r"requir|prereq|depend|licen|copyright|credit|author|thank|acknowledg|contact|support|help|faq|change|release|"
    r"version|news|history|roadmap|to-?do|status|warn|note|notice|caution|important|disclaim|deprecat|content|index|"
    r"table|example|demo|screenshot|config|option|api|command|structure|layout|file|folder|document|link|see |"
    r"reference|features?$|known|issue|bug|limit|secur|download|update|upgrade|team|"
    r"verwend|benutz|nutzung|bedien|voraussetz|lizenz|mitwirk|entwick|aufbau|hinweis|änder|stand\b|bauen|"
    r"utilis|prérequis|démarr|contribu|auteur|instal|uso\b|requisit|instruc|ejec|exec|como\b|cómo|licen[cç]|autor|"
    r"requisi|gebruik|vereist|anvä|använd|krav|bruk|kom i|wymag|uruchom|użyc|licenc|autorz|установ|запуск|"
    r"использ|требов|лиценз|автор|сборк|встанов|вимог|kurulum|kullan|gereks|lisans|安装|安裝|使用|运行|運行|许可|"
    r"要求|依赖|快速|开始|更新|インスト|使い方|使用|ライセンス|必要|設定|설치|사용|실행|요구|라이선스|تثبيت|استخدام|"
    r"asenn|käyttö|telepít|használ|instalac|použit|εγκατ|χρήσ)",
    re.IGNORECASE,
)
"""How chapters begin that say something else than what it is, such as how to install it."""
_CHORES = frozenset(
    "a again all and any at build bug bugs can check clean code continue do done error errors everything fail failing "  # noqa: SIM905
    "fails failure file files fix fixed get go green in is it just keep let lint look make more my no not now of ok "
    "okay on one out pass passes passing please project put red repo repository run see so test tests the them then "
    "there these thing things this those to try up us we with work works would you your that until".split()
)
"""A prompt of nothing but these words says nothing of what is worked on."""
_REDACTED = "[REDACTED:"
_SAME = 0.7
_MOST_PROJECTS = 6
_STATEMENT = 20
"""Characters of a sentence that is no greeting."""


def find(target: str, sessions: Sequence[SessionFacts], files: Sequence[Recovered]) -> tuple[Purpose, ...]:
    """At most two: what the project says of itself, best first; of a folder of projects what each is, by its name."""
    name = target.rstrip("/").rpartition("/")[2]
    own = [*islice(_of_readmes(name, sessions, files), 1), *islice(_of_manifests(name, sessions, files), 1)]
    own = own or list(islice(_of_documents(name, sessions, files), 1))
    own = own or list(islice(_of_main_document(name, sessions, files), 1))
    within = [] if own else _of_projects(sessions, files)
    if within:
        return tuple(within[:_MOST_PROJECTS])
    found: list[Purpose] = []
    there = {file.path for file in files if _was_there(file)}
    goes_on = any(one.citation is not None and one.citation.path in there for one in own)
    prompts = [] if goes_on else islice(_of_prompts(target, sessions, files, is_only=not own), 1)
    for purpose in (*own, *prompts):
        if not any(_says_the_same(purpose.text, other.text) for other in found):
            found.append(purpose)
    return tuple(found[:2])


def _says_the_same(one: str, other: str) -> bool:
    """Whether two descriptions are one, or nearly all words of the shorter are in the longer."""
    shorter, longer = sorted((key(one), key(other)), key=len)
    few, many = sorted((_parts(one), _parts(other)), key=len)
    return shorter in longer or share(few, many) >= _SAME


def _parts(text: str) -> frozenset[str]:
    return frozenset(part for word in words(text) for part in re.split(r"[-_/.]", word))


def _of_projects(sessions: Sequence[SessionFacts], files: Sequence[Recovered]) -> list[Purpose]:
    """What the projects right beneath a folder say of themselves, where it has several and is none itself."""
    below: dict[str, list[Recovered]] = {}
    for file in files:
        folder, _, relative = file.relative.partition("/")
        if relative:
            below.setdefault(folder, []).append(replace(file, relative=relative))
        elif _README.fullmatch(folder) or manifests.is_manifest(folder):
            return []
    projects = {folder: held for folder, held in below.items() if any(_heads_project(one.relative) for one in held)}
    if len(projects) < 2:
        return []
    found = []
    for folder, held in sorted(projects.items()):
        said = (*islice(_of_readmes(folder, sessions, held), 1), *islice(_of_manifests(folder, sessions, held), 1))
        found += [replace(one, text=f"{folder}: {one.text}", origin=f"{folder}/{one.origin}") for one in said[:1]]
    return found


def _heads_project(relative: str) -> bool:
    return _README.fullmatch(relative) is not None or ("/" not in relative and manifests.is_manifest(relative))


_INDEX = re.compile(r"docs?/(?:source/|src/)?index\.\w+", re.IGNORECASE)


def _of_documents(name: str, sessions: Sequence[SessionFacts], files: Sequence[Recovered]) -> Iterator[Purpose]:
    """What a document at the top, or the first page of its documents, says whose heading names the folder."""
    if not key(name):
        return
    for file in sorted(files, key=lambda one: (one.relative.count("/"), one.relative)):
        ending = "." + file.relative.lower().rpartition(".")[2]
        is_apart = "/" in file.relative and not _INDEX.fullmatch(file.relative)
        if is_apart or ending not in KINDS or KINDS[ending] == "txt" or _README.fullmatch(file.relative):
            continue
        read = last_text(file, _MOST_DOCUMENT)
        document = list(islice(blocks(read.text, KINDS[ending]), _MOST_BLOCKS)) if read is not None else []
        if read is None or not document or document[0].level != 1 or not key(document[0].text).startswith(key(name)):
            continue
        raw = _first_paragraph(document, name, is_text=False)
        if raw and not generated.is_template(raw) and not generated.was_generated(file, read.revision, sessions):
            yield _purpose(raw, read, 2)


def _of_main_document(name: str, sessions: Sequence[SessionFacts], files: Sequence[Recovered]) -> Iterator[Purpose]:
    by_path = {file.path: file for file in files}
    for said, read in main_document.find(name, files):
        if not generated.was_generated(by_path[read.path], read.revision, sessions):
            yield _purpose(said, read, 2)


def readmes(files: Sequence[Recovered]) -> list[Recovered]:
    """The READMEs of the folder itself, the one without a language in its name first."""
    found = [file for file in files if _README.fullmatch(file.relative)]
    return sorted(found, key=lambda one: (len(one.relative), one.relative))


def _of_readmes(name: str, sessions: Sequence[SessionFacts], files: Sequence[Recovered]) -> Iterator[Purpose]:
    for file in readmes(files):
        read = last_text(file, _MOST_DOCUMENT)
        if read is None:
            continue
        ending = "." + file.relative.lower().rpartition(".")[2] if "." in file.relative else ""
        kind = KINDS.get(ending, "md")
        raw = _first_paragraph(list(islice(blocks(read.text, kind), _MOST_BLOCKS)), name, is_text=kind == "txt")
        if raw and not generated.is_template(raw) and not generated.was_generated(file, read.revision, sessions):
            yield _purpose(raw, read, 2)


def _first_paragraph(document: Sequence[Block], name: str, *, is_text: bool) -> str:
    """The first paragraph that says what it is about: before the first chapter, or in one that is about that.

    Where neither does, that of the first chapter, if its heading is a word or two and not about something else.
    """
    title, chapter = "", None
    chapters, other = 0, ""
    for number, block in enumerate(document):
        if block.level:
            is_first = not any(one.level for one in document[:number])
            is_title = is_first and (block.level == 1 or number == 0)
            title, chapter = (block.text, None) if is_title else (title, block)
            chapters += not is_title
            continue
        if chapter is not None and not _is_about(chapter.text, title, name):
            if title and chapters == 1 and not other and _is_short(chapter.text) and _is_sentence(block, title, name):
                other = block.text
            continue
        if is_text and number == 0 and len(document) > 1 and weight(block.text) < 8 and block.text[-1:] not in ".。!！":
            title = block.text
            continue
        if _says_something(block, title, name):
            return block.text
    return other


def _is_short(heading: str) -> bool:
    """Whether a heading is a word or two, and not one that begins a chapter about something else."""
    bare = heading.strip(" :?!¿.-*_`\"'")
    return 0 < weight(bare) <= 2 and not _OTHER_CHAPTER.match(bare)


def _is_sentence(block: Block, title: str, name: str) -> bool:
    return _says_something(block, title, name) and is_sentence_end(block.text) and weight(block.text) > 4


def _is_about(heading: str, title: str, name: str) -> bool:
    """Whether a chapter tells what the project is: it is called so, or asks for it by its name."""
    bare = heading.strip(" :?!.-*_`")
    return bool(_ABOUT.match(bare)) or (
        heading.rstrip().endswith(("?", "？")) and any(key(one) in key(bare) for one in (title, name) if key(one))
    )


def _says_something(block: Block, title: str, name: str) -> bool:
    text = block.text
    if not has_letters(text) or weight(text) < 3 or is_mostly_links(block.raw) or _leads_to_another(block):
        return False
    return key(text) not in (key(title), key(name)) and not text.rstrip().endswith((":", "："))


_TARGET = re.compile(r"\]\(\s*<?([^()\s<>]{1,300})|href=[\"']([^\"'<>]{1,300})|[`<]([^`<>\s]{1,300})[`>]_?")
_LONGEST_LEAD = 14


def _leads_to_another(block: Block) -> bool:
    """Whether a short paragraph leads to this README in another language, such as “Lies das auf [Deutsch](…)”."""
    if weight(block.text) > _LONGEST_LEAD:
        return False
    found = (next(filter(None, one.groups())) for one in _TARGET.finditer(block.raw))
    return any(_README.fullmatch(path.partition("#")[0].rpartition("/")[2]) for path in found)


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


def _of_prompts(
    target: str, sessions: Sequence[SessionFacts], files: Sequence[Recovered], *, is_only: bool
) -> Iterator[Purpose]:
    """The prompt that began the folder, and so says what it was to become.

    It is of the very first session, or there is none: a later one began something else. Where the folder was mostly
    there before it did not begin it: it is given only if nothing else (`is_only`) says what it is, and only then one
    that was not the session's first.
    """
    was_there = bool(files) and sum(map(_was_there, files)) * 2 > len(files)
    if was_there and not is_only:
        return
    first = next(filter(_is_begun, _oldest_first(sessions)), None)
    if first is None:
        return
    first_prompt = next((turn.prompt_id for turn in _own_turns(first, target)), "")
    for citation, text in _opening(first, target, files, is_only=is_only):
        if not is_only and citation.message_id != first_prompt:
            continue
        said = _statement(text) or sentences(text, _MOST, 2)
        origin = "first prompt" if citation.message_id == first_prompt else "an early prompt"
        origin += "; most files were there before" if was_there else ""
        yield Purpose(said, origin, replace(citation, quote=said))


def _statement(prompt: str) -> str:
    """The first sentence of a prompt where it states something at length, as what follows are tasks; else empty."""
    said = sentences(prompt, _MOST)
    sentence = whole(said)
    if len(said) < _STATEMENT or weight(said) < 4 or sentence.is_question or not is_sentence_end(said):
        return ""
    is_task = any(one.find("task", one.without_lead(sentence.bare)) for one in cues.of(sentence.bare, prompt))
    return "" if is_task else said


def _is_begun(session: SessionFacts) -> bool:
    """Whether somebody asked for something in it, wherever; sub-agents' sessions belong to others."""
    return not session.session.parent_id and any(turn.prompt for turn in session.turns[session.copied :])


def _oldest_first(sessions: Sequence[SessionFacts]) -> list[SessionFacts]:
    return sorted(sessions, key=lambda one: (one.session.created, one.id))


def _opening(
    session: SessionFacts, target: str, files: Sequence[Recovered], *, is_only: bool
) -> Iterator[tuple[Citation, str]]:
    """The first prompt of a session that made files, or the one before it that says something.

    Where no files are known the first that says something: a folder in which one only talks.
    """
    made = {one.message_id for file in files if (one := maker(file)) is not None}
    there = {name for file in files if _was_there(file) for name in (file.relative, file.relative.rpartition("/")[2])}
    told: tuple[Citation, str] | None = None
    for turn in _own_turns(session, target):
        text = asked(turn)
        if not is_only and any(_names(text, name) for name in there):
            return  # it goes on from what was there
        says = _says_what(text)
        if told is None and says:
            told = (Citation(session.id, turn.prompt_id, turn.time), text)
        if told is not None and (not files or made & set(turn.message_ids)):
            yield (Citation(session.id, turn.prompt_id, turn.time), text) if says else told
            return


def _says_what(text: str) -> bool:
    """Whether a prompt says something of what is worked on; one that held a secret is not quoted for that."""
    if weight(text) < 4 or _REDACTED in text:
        return False
    return any(word.casefold() not in _CHORES for word in re.findall(r"[^\W\d_]+", text))


def _own_turns(session: SessionFacts, target: str) -> Iterator[Turn]:
    """The turns in which a person asked for something in this very folder."""
    if session.session.parent_id or not session.is_whole or session.session.directory.rstrip("/") != target.rstrip("/"):
        return
    for turn in session.turns[session.copied :]:
        if turn.prompt and not (turn.is_command or turn.is_compaction or turn.taken_back):
            yield turn


def maker(file: Recovered) -> Revision | None:
    """The revision in which a session made a file; None where it was there before, or nothing surely tells.

    What a snapshot shows for the first time another session at the same time may have made, so a write counts more.
    """
    if _was_there(file):
        return None
    made = (one for one in file.revisions if one.operation in _MAKING)
    return next(made, file.revisions[0] if file.revisions[0].appeared else None)


def _names(text: str, name: str) -> bool:
    return name in text and re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None


def _was_there(file: Recovered) -> bool:
    """Whether the first that is recorded of a file shows that it was there already."""
    first = file.revisions[0]
    seen = first.operation in (Operation.READ, Operation.READ_RANGE, Operation.SNAPSHOT, Operation.STATE)
    return (seen and not first.appeared) or first.operation in (Operation.EDIT, Operation.PATCH)


def asked(turn: Turn) -> str:
    """A prompt on one line, without the quotation marks that ``opencode run`` puts around it."""
    line = " ".join(turn.prompt.split())
    return line[1:-1].strip() if len(line) > 2 and line[0] == line[-1] == '"' else line
