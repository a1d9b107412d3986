"""What the files of a folder hold in their last known state, and whether a program wrote it.

A content that is only partly known, was deleted, or may have been reverted is not used. Text is bounded in length.

A file that appeared while a generator ran (``npm create``, ``cargo new``) and was not changed since holds the
generator's words. Without such a record, a text is taken for a generator's if it says what the project was made with,
or if it has only names and words that fit every project.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from daemon.display import strip_invisible
from daemon.files.history import REVERTED, FileHistory, Revision
from daemon.model import Operation
from daemon.reconstitute.facts.session_values import Citation, SessionFacts
from daemon.reconstitute.recover import Recovered, State
from daemon.redact import redact
from daemon.transcript.shell.names import words

MOST_BYTES = 128 << 10
"""A larger file is read to here. What must be parsed whole is then not read at all."""
_MOST_PARAGRAPH = 4000
_SENTENCE = re.compile(
    r"(?<![\s.(]\w[.])(?<=[.!?…])[\"')\]»”’`*]*\s+(?=[^\s\W\da-zß-öø-ÿа-я]|[`\"'(«“„¿¡])|(?<=[。！？])"
)
_ABBREVIATION = re.compile(
    r"(?:^|\W)(?:inkl|incl|bzw|evtl|ggf|usw|ca|approx|etc|vs|resp|nr|no|dr|mr|mrs|st|abs|art|ex|env|cf|al|fig|vol|ing)"
    r"\.\s*$",
    re.IGNORECASE,
)
"""A period behind an abbreviation ends no sentence, nor does one behind a single letter."""
_DOUBTS = frozenset({Operation.UNCLEAR, Operation.RUN})
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
"""Scripts that put no spaces between words, or short ones: two characters stand for a word."""


@dataclass(frozen=True, slots=True)
class Text:
    """A file's text with the revision that shows it; `is_certain`: nothing later may have changed the file."""

    path: str
    relative: str
    text: str
    revision: Revision
    is_certain: bool
    is_whole: bool

    def citation(self, quote: str = "") -> Citation:
        """The message that left the file like this."""
        revision = self.revision
        return Citation(revision.session_id, revision.message_id, revision.time, quote, self.path)


def last_text(file: Recovered, limit: int = MOST_BYTES) -> Text | None:
    """The first `limit` bytes of the last known content, redacted; None if it is not completely known, or no text.

    It is redacted as a whole, because a secret may be recognised by its line, tag or key, which a sentence leaves out.
    """
    revision = _revision(file)
    if revision is not None:
        data, is_certain = revision.content or b"", file.state is not State.STALE
    elif (revision := _read_to_its_end(file)) is not None:
        data = "\n".join(_lines(revision)).encode()
        is_certain = file.state is State.PARTIAL and revision is file.last
    else:
        return None
    head = data[:limit]
    if b"\0" in head:
        return None
    if len(data) > limit:
        head = head[: head.rfind(b"\n") + 1]
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    text = redact(strip_invisible(text.replace("\r\n", "\n").replace("\r", "\n")))
    return Text(file.path, file.relative, text, revision, is_certain, len(data) <= limit)


def _revision(file: Recovered) -> Revision | None:
    """The revision that shows the last known state whole."""
    if file.state in (State.VERIFIED, State.PROVEN):
        return file.certain
    if file.state is State.PARTIAL and file.uncertain is not None and file.uncertain.mark_unknown:
        return file.uncertain if file.uncertain.whole is not None else None  # only a byte order mark is in doubt
    if file.state is not State.STALE:
        return None
    for revision in reversed(file.revisions):
        if revision.proven:
            break
        if revision.note == REVERTED:
            return None
    best = file.uncertain if file.uncertain is not None else file.certain
    return best if best is not None and best.whole is not None else None


def _read_to_its_end(file: Recovered) -> Revision | None:
    """The revision of which all lines are known, except whether a newline ends them, if no known change followed."""
    if file.state not in (State.PARTIAL, State.STALE):
        return None
    for revision in reversed(file.revisions):
        if revision.note == REVERTED or revision.deleted:
            return None
        if _lines(revision):
            return revision
        if revision.operation not in _DOUBTS:
            return None
    return None


def _lines(revision: Revision) -> tuple[str, ...]:
    """All lines of the file; none if some are not known."""
    fragments = revision.fragments
    is_all = fragments is not None and fragments.is_all and not fragments.is_stale and len(fragments.runs) == 1
    return fragments.runs[0].lines if fragments is not None and is_all else ()


def is_sentence_end(line: str) -> bool:
    """Whether a line ends with a sentence, not with an abbreviation."""
    return re.search(r"[^\W\d_]{2}[.!?。]$", line.rstrip()) is not None and not _ABBREVIATION.search(line[-12:])


def first_sentences(text: str, limit: int, count: int = 1) -> str:
    """The first `count` sentences of a paragraph, redacted, on one line, at most `limit` characters."""
    line = " ".join(redact(strip_invisible(text[:_MOST_PARAGRAPH])).split())
    ends = [match.end() for match in _SENTENCE.finditer(line)]
    ends = [end for end in ends if not _ABBREVIATION.search(line, max(0, end - 12), end)][:count]
    quote = line[: ends[count - 1]].rstrip() if len(ends) == count else line
    while len(quote) > limit and ends:
        ends = ends[:-1]
        quote = line[: ends[-1]].rstrip() if ends else line
    return cut(quote, limit)


def cut(line: str, limit: int) -> str:
    """`line`, with more than `limit` characters cut between words and marked with an ellipsis."""
    if len(line) <= limit:
        return line
    head = line[: limit - 1]
    space = head.rfind(" ")
    return (head[:space] if space > limit // 2 else head).rstrip(" ,;:.-–—(") + "…"


def word_count(text: str) -> int:
    """About how many words a text has, in any script."""
    dense = len(_DENSE.findall(text))
    return dense // 2 + len(_WORD.findall(_DENSE.sub(" ", text)))


def comparable(text: str) -> str:
    """Its letters and digits in lower case, for comparisons."""
    return "".join(_WORD.findall(text.casefold()))


def has_letters(text: str) -> bool:
    """Whether there is a letter of any script in it."""
    return _LETTER.search(text) is not None


_IMAGE = re.compile(r"!\[[^\[\]]{0,400}\](?:\([^()]{0,600}\)|\[[^\[\]]{0,200}\])")
_LINKED = re.compile(r"\[([^\[\]]{0,400})\](?:\([^()]{0,600}(?:\([^()]{0,200}\)[^()]{0,200})?\)|\[[^\[\]]{0,200}\])")
_ANCHOR = re.compile(r"<a\b[^<>]{0,600}>([^<>]{0,400})</a>", re.IGNORECASE)
_ADDRESS = re.compile(r"<?\bhttps?://[^\s<>]+>?")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,600}>")
_FOOTNOTE = re.compile(r"\[\^[^\[\]]{1,60}\]")
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3}|~~)(?=\S)([^*~\n]{1,600}?)(?<=\S)\1(?![\w*])")
_UNDERSCORED = re.compile(r"(?<![\w_])(_{1,3})(?=[^\s_])([^_\n]{1,600}?)(?<=\S)\1(?![\w_])")


def without_markup(markdown: str) -> str:
    """A paragraph of Markdown as a reader sees it: without images, tags and emphasis; links are their text."""
    text = _LINKED.sub(r"\1", _IMAGE.sub("", markdown))
    text = _FOOTNOTE.sub("", _TAG.sub("", text))
    text = _UNDERSCORED.sub(r"\2", _EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", text)))
    return " ".join(html.unescape(text).split())


def is_mostly_links(markdown: str) -> bool:
    """Whether a paragraph is a row of badges or labels, or a list of languages or chapters, and says nothing."""
    if _is_row_of_labels(without_markup(markdown)):
        return True
    bare = _LINKED.sub(" ", _IMAGE.sub(" ", markdown))
    bare = _TAG.sub(" ", _ADDRESS.sub(" ", _ANCHOR.sub(" ", bare)))
    return word_count(bare) * 2 < word_count(without_markup(markdown)) or not has_letters(without_markup(markdown))


_BETWEEN_LABELS = re.compile(r"\s*[|｜·•‧∙●◦¦]\s*|\s+/\s+")


def _is_row_of_labels(text: str) -> bool:
    """Whether a line is ``English | Deutsch`` or ``Home · Docs · Chat``: short labels with separators between them."""
    labels = [label for label in _BETWEEN_LABELS.split(text.strip()) if label]
    return len(labels) > 1 and all(word_count(label) <= 3 and not is_sentence_end(label) for label in labels)


# -- what a program wrote ----------------------------------------------------------------------------------------

_MANUAL_OPERATIONS = frozenset({Operation.WRITE, Operation.APPEND, Operation.EDIT, Operation.PATCH})
_GENERATOR = re.compile(
    r"(?:^|[\s;&|(/])(?:npm|pnpm|yarn|bun|cargo|flutter|dart|ng|nx|rails|dotnet|uv|poetry|hatch|pdm|rye|mix|stack|cabal|"
    r"django-admin|gradle|mvn|vue|expo|ionic|nest|hugo|composer|laravel|symfony|swift\s+package|zig|dune|lein|sbt|gleam|"
    r"deno|jekyll|wails|tauri)\s+(?:\S+\s+){0,2}?(?:create|new|init|generate|startproject|create-project|archetype:generate|"
    r"phx\.new)\b|\b(?:create-[\w-]+|cookiecutter|degit|copier|yo|sv\s+create|django-admin\s+startproject)\b"
)
_GENERATED_NAME = re.compile(
    r"^(?:this|the|your)\b.{0,80}\b(?:(?:bootstrapped|scaffolded|initiali[sz]ed|(?:auto-?)?generated)\s+"
    r"(?:with|by|using|from|via)|created\s+(?:with|using))\b"
    r"|\b(?:this|the) (?:template|starter|boilerplate|scaffold)\b|\badd (?:your|a|the) .{0,40}\bhere\b|\blorem ipsum\b"
    r"|\badd your content using\b|\bcreated (?:with|using) create-[\w-]+"
    r"|\beverything you need to (?:build|get started)\b|\byou(?:'ve| have) (?:just )?(?:successfully )?created\b",
    re.IGNORECASE,
)
_FITS_ALL = words(
    "a an the this that my your our is are it its in of for with and to on by here new simple basic minimal default "
    "example sample starter demo template boilerplate hello world project projects app application apps package "
    "library module program repository repo code file files readme description summary title name todo tbd wip "
    "placeholder write add insert put some something short longer text used using use test fixme none untitled "
    "getting started start"
)
_FEWEST_FILES = 3
_GENERATOR_WORD = re.compile(r"[^\W_]+(?:[.'’+#-][^\W_]+)*[+#]*")


def is_template(text: str) -> bool:
    """Whether a text would fit every project made with the same generator."""
    if _GENERATED_NAME.search(text[:400]):
        return True
    for number, word in enumerate(_GENERATOR_WORD.findall(text)):
        is_name = number > 0 and word[0].isupper() and text.isascii()
        if word.casefold() not in _FITS_ALL and not is_name:
            return False
    return True


def was_generated(file: Recovered, revision: Revision, sessions: Sequence[SessionFacts]) -> bool:
    """Whether the content of `revision` appeared while a generator ran, and no session wrote it."""
    if revision.whole is None:
        return False
    identical = [state for state in file.revisions if state.whole is not None and state.whole.is_same(revision.whole)]
    if not identical or any(state.operation in _MANUAL_OPERATIONS for state in identical):
        return False
    first = identical[0]
    if not first.appeared and first.operation not in (Operation.RUN, Operation.UNCLEAR):
        return False
    for session in sessions:
        for turn in session.turns if session.id == first.session_id else ():
            if first.message_id in turn.message_ids:
                return any(
                    call.command and call.started <= first.time and _GENERATOR.search(call.command[:2000])
                    for call in turn.calls
                )
    return False


def is_build_output(files: Sequence[Recovered]) -> bool:
    """Whether these files of a folder were only ever written by programs, as snapshots show: a build's output."""
    existing = [file for file in files if not (file.last.proven and file.last.deleted)]
    return len(existing) >= _FEWEST_FILES and all(map(_was_only_read, existing))


def _was_only_read(file: Recovered) -> bool:
    changes = FileHistory(file.path, file.revisions).changes
    return changes != [] and all(
        change.revision.operation is Operation.SNAPSHOT
        and change.maker
        and not change.is_revert
        and not change.revision.moved_from
        for change in changes
    )
