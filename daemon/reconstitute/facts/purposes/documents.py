"""What a folder's own documents say it is: its README, its manifest, a document named after it, its main document.

Text that a generator wrote is not used. A main document is the only LaTeX document or AsciiDoc book at the top of a
folder that holds no program, or the description of a web site.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from daemon.reconstitute.facts.content import (
    Text,
    comments,
    comparable,
    first_sentences,
    has_letters,
    is_mostly_links,
    is_sentence_end,
    is_template,
    last_text,
    manifests,
    was_generated,
    word_count,
)
from daemon.reconstitute.facts.content.markup import KINDS, Block, blocks
from daemon.reconstitute.facts.session_values import SessionFacts
from daemon.reconstitute.facts.values import Purpose
from daemon.reconstitute.recover import Recovered, State

LONGEST = 240
"""Characters of a folder's purpose."""
_MOST_DOCUMENT = 32 << 10
_MOST_BLOCKS = 60
_LONGEST_LEAD = 14
_FEWEST_WORDS = 3
"""Words of a main document's title."""
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
"""Headings of chapters that say what the project is. Without one, only what comes before the first chapter counts."""
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
"""How chapters begin that say something else, such as how to install it."""
_INDEX = re.compile(r"docs?/(?:source/|src/)?index\.\w+", re.IGNORECASE)
_TARGET = re.compile(r"\]\(\s*<?([^()\s<>]{1,300})|href=[\"']([^\"'<>]{1,300})|[`<]([^`<>\s]{1,300})[`>]_?")


def is_readme(name: str) -> bool:
    """Whether a file of this name is a README, in any language."""
    return _README.fullmatch(name) is not None


def readmes(files: Sequence[Recovered]) -> list[Recovered]:
    """The READMEs of the folder itself, the one without a language in its name first."""
    candidates = [file for file in files if is_readme(file.relative)]
    return sorted(candidates, key=lambda file: (len(file.relative), file.relative))


def of_readmes(name: str, sessions: Sequence[SessionFacts], files: Sequence[Recovered]) -> Iterator[Purpose]:
    """What the READMEs of the folder `name` say it is."""
    for file in readmes(files):
        read = last_text(file, _MOST_DOCUMENT)
        if read is None:
            continue
        kind = KINDS.get(_ending(file) if "." in file.relative else "", "md")
        raw = _first_paragraph(list(islice(blocks(read.text, kind), _MOST_BLOCKS)), name, is_text=kind == "txt")
        if raw and not is_template(raw) and not was_generated(file, read.revision, sessions):
            yield _purpose(raw, read)


def of_manifests(name: str, sessions: Sequence[SessionFacts], files: Sequence[Recovered]) -> Iterator[Purpose]:
    """What the manifests of the folder `name` say it is."""
    order = {manifest: number for number, manifest in enumerate(manifests.NAMES)}
    candidates = [file for file in files if "/" not in file.relative and manifests.is_manifest(file.relative)]
    for file in sorted(candidates, key=lambda file: (order.get(file.relative.lower(), len(order)), file.relative)):
        read = last_text(file)
        if read is None or not read.is_whole:
            continue
        description = manifests.description(file.relative, read.text)
        is_own = word_count(description) > 1 and comparable(description) != comparable(name)
        if is_own and not is_template(description) and not was_generated(file, read.revision, sessions):
            yield _purpose(description, read)


def of_documents(name: str, sessions: Sequence[SessionFacts], files: Sequence[Recovered]) -> Iterator[Purpose]:
    """What a document says whose heading names the folder: one at the top, or the first page of its documentation."""
    if not comparable(name):
        return
    for file in sorted(files, key=lambda file: (file.relative.count("/"), file.relative)):
        ending = _ending(file)
        is_apart = "/" in file.relative and not _INDEX.fullmatch(file.relative)
        if is_apart or ending not in KINDS or KINDS[ending] == "txt" or is_readme(file.relative):
            continue
        read = last_text(file, _MOST_DOCUMENT)
        document = list(islice(blocks(read.text, KINDS[ending]), _MOST_BLOCKS)) if read is not None else []
        if read is None or not document or document[0].level != 1:
            continue
        if not comparable(document[0].text).startswith(comparable(name)):
            continue
        raw = _first_paragraph(document, name, is_text=False)
        if raw and not is_template(raw) and not was_generated(file, read.revision, sessions):
            yield _purpose(raw, read)


def _ending(file: Recovered) -> str:
    return "." + file.relative.lower().rpartition(".")[2]


def _purpose(text: str, read: Text) -> Purpose:
    quote = first_sentences(text, LONGEST, 2)
    origin = read.relative if read.is_certain else f"{read.relative}, which may have changed since"
    return Purpose(quote, origin, read.citation(quote))


# -- the first paragraph that says what it is --------------------------------------------------------------------


def _first_paragraph(document: Sequence[Block], name: str, *, is_text: bool) -> str:
    """The first paragraph that says what the project is: before the first chapter, or in a chapter about that.

    If there is none, the first paragraph of the first chapter, if its heading is a word or two about nothing else.
    """
    title, chapter = "", None
    chapters, fallback = 0, ""
    for number, block in enumerate(document):
        if block.level:
            is_first = not any(before.level for before in document[:number])
            is_title = is_first and (block.level == 1 or number == 0)
            title, chapter = (block.text, None) if is_title else (title, block)
            chapters += not is_title
            continue
        if chapter is not None and not _is_about(chapter.text, title, name):
            if (
                title
                and chapters == 1
                and not fallback
                and _is_short(chapter.text)
                and _is_sentence(block, title, name)
            ):
                fallback = block.text
            continue
        is_first_line = is_text and number == 0 and len(document) > 1
        if is_first_line and word_count(block.text) < 8 and block.text[-1:] not in ".。!！":
            title = block.text
            continue
        if _says_something(block, title, name):
            return block.text
    return fallback


def _is_short(heading: str) -> bool:
    """Whether a heading is a word or two, and does not begin a chapter about something else."""
    bare = heading.strip(" :?!¿.-*_`\"'")
    return 0 < word_count(bare) <= 2 and not _OTHER_CHAPTER.match(bare)


def _is_sentence(block: Block, title: str, name: str) -> bool:
    return _says_something(block, title, name) and is_sentence_end(block.text) and word_count(block.text) > 4


def _is_about(heading: str, title: str, name: str) -> bool:
    """Whether a chapter says what the project is: by its heading, or because it asks that of the project's name."""
    bare = heading.strip(" :?!.-*_`")
    if _ABOUT.match(bare):
        return True
    names = (comparable(subject) for subject in (title, name))
    return heading.rstrip().endswith(("?", "？")) and any(subject in comparable(bare) for subject in names if subject)


def _says_something(block: Block, title: str, name: str) -> bool:
    text = block.text
    if not has_letters(text) or word_count(text) < 3 or is_mostly_links(block.raw) or _leads_to_another(block):
        return False
    return comparable(text) not in (comparable(title), comparable(name)) and not text.rstrip().endswith((":", "："))


def _leads_to_another(block: Block) -> bool:
    """Whether a short paragraph links to this README in another language, such as “Lies das auf [Deutsch](…)”."""
    if word_count(block.text) > _LONGEST_LEAD:
        return False
    targets = (next(filter(None, match.groups())) for match in _TARGET.finditer(block.raw))
    return any(is_readme(path.partition("#")[0].rpartition("/")[2]) for path in targets)


# -- the main document -------------------------------------------------------------------------------------------

_TEX_COMMENT = re.compile(r"(?<!\\)%.*")
_TEX_CLASS = re.compile(r"^[ \t]*\\documentclass[ \t]*(?:\[[^\]]{0,600}\])?\s{0,9}\{([^{}]{0,80})\}", re.MULTILINE)
_NO_MAIN_CLASS = frozenset({"standalone", "subfiles", "letter", "scrlttr2", "minimal"})
_TEX_TITLE = re.compile(r"\\title[ \t]*(?:\[[^\[\]]{0,400}\])?\s{0,9}\{")
_TEX_NOTE = re.compile(
    r"\\(?:thanks|footnote|footnotemark|vspace|hspace|includegraphics|label)\*?(?:\[[^\]]*\])?\{[^{}]*\}"
)
_TEX_COMMAND = re.compile(r"\\(?:[A-Za-z]+\*?|[\\,;! /])(?:\[[^\[\]]*\])?")
_ADOC = re.compile(r"^:doctype:[ \t]*(?:book|article)\b", re.MULTILINE)
_ADOC_TITLE = re.compile(r"^= (\S.*)$", re.MULTILINE)
_HTML_META = re.compile(r"<meta\b[^<>]{0,1500}>", re.IGNORECASE)
_HTML_NAME = re.compile(r"\bname\s*=\s*[\"']?description\b", re.IGNORECASE)
_HTML_CONTENT = re.compile(r"\bcontent\s*=\s*(?:\"([^\"]{1,1000})\"|'([^']{1,1000})')", re.IGNORECASE)
_HTML_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def of_main_document(name: str, sessions: Sequence[SessionFacts], files: Sequence[Recovered]) -> Iterator[Purpose]:
    """What the main document of the folder `name` says it is; at most one of each kind."""
    by_path = {file.path: file for file in files}
    for title, read in _main_documents(files):
        is_own = word_count(title) >= _FEWEST_WORDS and comparable(title) != comparable(name)
        if not is_own or is_template(title) or re.search(r"[\\{}<>]", title):
            continue
        if not was_generated(by_path[read.path], read.revision, sessions):
            yield _purpose(title, read)


def _main_documents(files: Sequence[Recovered]) -> Iterator[tuple[str, Text]]:
    top = [file for file in files if "/" not in file.relative and file.state is not State.DELETED]
    is_program = any(manifests.is_manifest(file.relative) for file in top)
    for ending, title_of in ((".tex", _of_tex), (".adoc", _of_adoc)):
        titles = (
            [] if is_program else [document for file in top if (document := _title(file, ending, title_of)) is not None]
        )
        yield from titles if len(titles) == 1 else ()
    for file in top:
        is_start = file.relative.lower() in ("index.html", "index.htm")
        if is_start and (document := _title(file, "", _of_html)) is not None:
            yield document


def _title(file: Recovered, ending: str, title_of: Callable[[Text], str | None]) -> tuple[str, Text] | None:
    """The title of a file that may be the main document; None if it is not of that kind."""
    read = last_text(file, _MOST_DOCUMENT) if file.relative.lower().endswith(ending) else None
    title = title_of(read) if read is not None else None
    return None if read is None or title is None else (title, read)


def _of_tex(read: Text) -> str | None:
    """Its title, else a sentence in the comment at its top; None if it is only a part of a document."""
    text = _TEX_COMMENT.sub("", read.text)
    kind = _TEX_CLASS.search(text)
    if kind is None or kind[1].strip() in _NO_MAIN_CLASS:
        return None
    opening = _TEX_TITLE.search(text)
    if opening is None:
        comment, _ = comments.about(read.relative, read.text)
        return comment if is_sentence_end(comment) else ""
    inner = _until_closed(text, opening.end())
    for _ in range(3):
        inner = _TEX_NOTE.sub("", inner)
    without_markup = _TEX_COMMAND.sub(" ", inner.replace(r"\&", "&").replace(r"\%", "%").replace(r"\_", "_"))
    return " ".join(re.sub(r"[{}]|~", " ", without_markup).replace("---", "—").replace("--", "\u2013").split())


def _until_closed(text: str, at: int) -> str:
    """The text up to the brace that closes what was opened before `at`; empty if none does."""
    depth = 1
    for number, char in enumerate(text[at : at + 2000], at):
        depth += (char == "{") - (char == "}") if text[number - 1] != "\\" else 0
        if not depth:
            return text[at:number]
    return ""


def _of_adoc(read: Text) -> str | None:
    """The title of a book or an article; None if it does not call itself one."""
    title = _ADOC_TITLE.search(read.text) if _ADOC.search(read.text) else None
    return None if title is None else title[1].strip()


def _of_html(read: Text) -> str | None:
    for tag in _HTML_META.finditer(_HTML_COMMENT.sub("", read.text)):
        content = _HTML_CONTENT.search(tag[0])
        if content is not None and _HTML_NAME.search(tag[0]):
            return " ".join(html.unescape(content[1] or content[2]).split())
    return None
