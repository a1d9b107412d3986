"""A file's page: what it is for, how well it is known, its content, which prompt wrote which lines, its history.

Guarantees: a command is only named where it gives what the page says; what is not certain is never shown as certain;
text of others is redacted and inert. A page is made when it is asked for, and its basis is a digest of all it says.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from functools import partial

import jinja2

from daemon import markdown, moments
from daemon.display import visible
from daemon.files import Disk, FileHistory, Grade, Revision
from daemon.model import Page
from daemon.reconstitute.answer import Source, Statement
from daemon.reconstitute.facts.session_values import Citation
from daemon.reconstitute.facts.values import Purpose, key
from daemon.reconstitute.pages.file.history import HistoryWriter, Reference
from daemon.reconstitute.pages.file.prompts import Prompts, writers
from daemon.reconstitute.pages.layout import between
from daemon.reconstitute.pages.material import MaterialIndex, code_version
from daemon.reconstitute.pages.plan import Plan, references
from daemon.reconstitute.pages.statements import Footnotes, sentence
from daemon.reconstitute.recover import MEANING, Recovered, State, shell_word
from daemon.records import digest
from daemon.redact import redact

MAX_SHOWN_BYTES = 256 * 1024
"""Characters of a file's content on its page."""
MOST_BESIDE = 8 * 1024 * 1024
"""Bytes of a file up to which the whole of a text that is cut on its page stands beside it."""
_UNPRINTED = 0.02
_IDENTITY = (
    "time", "grade", "session_id", "message_id", "part_id", "tool", "operation", "evidence", "deleted", "note",
    "outside_change", "moved_from", "moved_to", "fragments", "mode", "mark_unknown", "blob",
)  # fmt: skip
"""The fields of a revision that its page may depend on, beside its content."""
_MOVED = "it is certain that the file was moved; this page has what it held before, as far as that is known"
MOST_UNFOLDED = 200
"""Lines of a content that stands open on its page."""


@dataclass(frozen=True, slots=True)
class ContentDisplay:
    """A file's content as a page shows it; `text` is None where it is not shown, `notes` say what was changed.

    `whole` is all of a `text` that was cut, as a text file that is harmless to print; else None.
    """

    text: str | None
    notes: tuple[markdown.Markdown, ...]
    whole: str | None = None


def display_content(content: bytes | None, *, proven: bool = True) -> ContentDisplay:
    """`content` as a page shows it: text, redacted, cut at 256 kB, with a note for everything that is not as it was.

    How a text ends is only said where it is `proven`: a read of OpenCode does not record a last newline.
    """
    if content is None:
        return ContentDisplay(None, ())
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return _hidden_content(f"The content ({len(content)} bytes) is not UTF-8 text and is not shown.")
    unprinted = sum(1 for character in text if character < " " and character not in "\t\n\r\f")
    if "\0" in text or unprinted > _UNPRINTED * len(text):
        return _hidden_content(f"The content ({len(content)} bytes) is binary and is not shown.")
    safe = redact(text)
    part = safe if len(safe) <= MAX_SHOWN_BYTES else safe[:MAX_SHOWN_BYTES].rpartition("\n")[0] + "\n"
    lines = part.replace("\r\n", "\n")
    notes = (
        (safe != text, "Secrets in it were replaced by markers."),
        (part != safe, f"Only the first {len(part)} of {len(safe)} characters are shown."),
        (part != lines, "Its lines end in CRLF."),
        (lines != visible(lines), "Characters that cannot be seen are named."),
        (proven and text and not text.endswith(("\n", "\r")), "It has no newline at its end."),
        (not text, "The file is empty."),
    )
    full_text = visible(safe.replace("\r\n", "\n")) if part != safe else None
    return ContentDisplay(part, tuple(markdown.Markdown(note) for applies, note in notes if applies), full_text)


def size_beside(revision: Revision | None) -> int:
    """The bytes of a content that may have to stand beside its page, for the page cuts it; 0 where it fits or may not.

    Only a proven content does: what is not certain is shown with its marks, on the page.
    """
    size = revision.size or 0 if revision is not None and revision.proven else 0
    return size if MAX_SHOWN_BYTES < size <= MOST_BESIDE else 0


def display_revision(revision: Revision | None) -> ContentDisplay:
    """What a revision held: its content, or of a partial one the known lines with the gaps marked."""
    if revision is None:
        return ContentDisplay(None, ())
    if revision.whole is None and revision.fragments is not None:
        return display_content(revision.fragments.marked().encode("utf-8", "replace"), proven=False)
    if revision.whole is not None and revision.content is None:
        return _hidden_content("The content is known by its hash, but it was not kept.")
    return display_content(revision.content, proven=revision.proven)


def _hidden_content(note: str) -> ContentDisplay:
    return ContentDisplay(None, (markdown.Markdown(note),))


class FilePages:
    """Makes the pages of a target's files."""

    def __init__(self, index: MaterialIndex, plan: Plan, environment: jinja2.Environment) -> None:
        self._index = index
        self._plan = plan
        self._template = environment.get_template("file.md.j2")
        self._prompts = Prompts(index.material.facts.sessions, index.titles, plan.transcripts)
        self._history = HistoryWriter(self._prompts)
        self._basis_values = code_version(), markdown.zone(), index.material.moment, index.target

    def pages(self, file: Recovered) -> list[Page]:
        """A file's page, and the whole text of a large one beside it."""
        page = self._plan.layout.file(file.relative)
        statements = self._index.statements(file.relative)
        purpose = self._index.material.facts.file_purposes.get(file.path)
        beside, content = self._plan.beside(file.relative), ContentDisplay(None, ())
        if beside:
            content = display_revision(file.certain)
            beside = beside if content.whole is not None else ""
        struck = self._strike(purpose)
        about = [*statements, *([struck] if struck is not None else [])]
        origins: list[Source | Citation] = [source for statement in about for source in statement.sources]
        origins += [purpose.citation] if purpose is not None and purpose.citation is not None else []
        sources = {record.message_id for record in (*file.revisions, *origins)}
        transcripts, cited = self._plan.transcripts, [(origin.session_id, origin.message_id) for origin in origins]
        led = [(transcripts.href(page, *citation), transcripts.place(*citation)) for citation in cited]
        basis = self._basis(file, page, beside, purpose, about, led)
        pages = [Page(page, partial(self._text, file, page, beside), tuple(sorted(sources - {""})), basis)]
        if beside and content.whole is not None and file.certain is not None:
            pages.append(Page(beside, content.whole, (file.certain.message_id,) if file.certain.message_id else ()))
        return pages

    def _strike(self, purpose: Purpose | None) -> Statement | None:
        """Why a model struck out what the file says of itself."""
        return None if purpose is None else self._index.material.record.struck.get(key(purpose))

    def _basis(self, file: Recovered, page: str, *values: object) -> str:
        """A digest of everything that the page is made from, with `values`; the contents by their ids."""
        number = {id(revision): n for n, revision in enumerate(file.revisions)}
        revisions = [
            (
                [getattr(revision, name) for name in _IDENTITY],
                sorted(revision.kinds),
                "" if revision.whole is None else revision.whole.id,
                self._prompts.basis(page, revision),
                [self._href(page, path) for path in (revision.moved_from, revision.moved_to) if path],
            )
            for revision in file.revisions
        ]
        chosen = [number.get(id(chosen_revision), -1) for chosen_revision in (file.certain, file.uncertain)]
        up = between(page, self._plan.layout.folder(self._plan.folder_of(file.relative)))
        state = (file.path, file.state, file.disk, file.reason, chosen, up, values)
        return digest(
            *(repr(part).encode("utf-8", "backslashreplace") for part in (self._basis_values, state, revisions))
        )

    def _text(self, file: Recovered, page: str, beside: str) -> str:
        moment = self._index.material.moment
        content = display_revision(file.certain)
        is_there = file.disk is Disk.IDENTICAL
        purpose = self._index.material.facts.file_purposes.get(file.path)
        notes = Footnotes(page, self._plan.transcripts, self._index.titles, partial(self._href, page))
        struck = self._strike(purpose)
        return self._template.render(
            file=file,
            name=posixpath.basename(file.path),
            up=between(page, self._plan.layout.folder(self._plan.folder_of(file.relative))),
            purpose=purpose,
            struck=sentence(struck, notes) if struck is not None else "",
            statements=self._index.statements(file.relative),
            notes=notes,
            standing=standing(file, partial(self._refer, page)),
            meaning=_MOVED if file.moved_to else MEANING[file.state],
            on_disk=on_disk(file),
            content=content,
            is_folded=is_long(content),
            beside=between(page, beside) if beside else "",
            command="" if is_there else restore_command(file, file.certain, moment),
            uncertain=(uncertain := display_revision(file.uncertain)),
            is_uncertain_folded=is_long(uncertain),
            uncertain_command=restore_command(file, file.uncertain, moment),
            fence_info=markdown.language(file.path),
            writers=writers(file, self._prompts, page),
            history=self._history.history(page, file.revisions, partial(self._refer, page)),
            history_command=history_command(file.path),
            moment=moment,
            zone=markdown.zone(),
        )

    def _href(self, page: str, path: str) -> str:
        """The link to another file's page; empty where it has none."""
        relative = self._index.relative(path)
        return self._plan.href(page, relative) if relative else ""

    def _refer(self, page: str, path: str) -> markdown.Markdown:
        """A link to another file's page, else its path."""
        return next(iter(references(self._index, self._plan, page, [path])))


def standing(file: Recovered, refer: Reference) -> markdown.Markdown:
    """How well the file is known, as of when, in a sentence that anybody understands."""
    last, at = file.last, f"{markdown.moment(file.last.time)} ({markdown.zone()})"
    if file.state is State.DELETED:
        last_change = file.changed or last
        at = f"{markdown.moment(last_change.time)} ({markdown.zone()})"
        if file.moved_to:
            return markdown.Markdown(f"It was moved to {refer(file.moved_to)} on {at}.")
        how = "taken back, and so removed," if last_change.tool == "revert" else "deleted"
        return markdown.Markdown(f"It was {how} on {at}.")
    if file.state in {State.VERIFIED, State.PROVEN}:
        return markdown.Markdown(f"Known exactly, as of {at}.")
    why = markdown.prose(redact(file.reason))
    maybe = " It may be deleted." if last.deleted else ""
    if file.certain is not None:
        time = f"{markdown.moment(file.certain.time)} ({markdown.zone()})"
        since = "it may have changed since" if file.uncertain is None else "what is known of it since is not certain"
        return markdown.Markdown(f"Known exactly as of {time}; {since}: {why}.{maybe}")
    texts = {
        State.STALE: "A whole text is known, but it is not certain that it is the file's",
        State.PARTIAL: "Known in part",
    }.get(file.state, "What it held is not known")
    return markdown.Markdown(f"{texts}, as of {at}: {why}.{maybe}")


def is_long(content: ContentDisplay) -> bool:
    """Whether a content is to be folded."""
    return content.text is not None and content.text.count("\n") > MOST_UNFOLDED


def history_command(path: str) -> str:
    """The command that shows every revision; empty for a path that cannot be shown as it is."""
    word = shell_word(path)
    return f"reconstitute history {word}" if word else ""


def restore_command(file: Recovered, revision: Revision | None, moment: int | None) -> str:
    """The command that writes what `revision` held into a new folder; empty where none would.

    A path that cannot be shown as it is (a secret, a control character) has none either.
    """
    if revision is None or revision.deleted or revision.grade is Grade.LOST:
        return ""
    if revision.size is None and (revision.whole is not None or revision.fragments is None):
        return ""
    word = shell_word(file.path)
    if not word:
        return ""
    flags = [] if moment is None else [f"--at {moments.written(moment)}"]
    if revision is not file.last_existing:
        at = moments.written(revision.time)
        if not at or FileHistory(file.path, file.revisions).at(revision.time) is not revision:
            return ""  # no time that --at takes, or another one of the same millisecond came after it
        flags = [f"--at {at}"]
    elif file.last.deleted:
        flags.append("--deleted")
    if not revision.proven:
        flags.append(f"--grade {revision.grade}")
    return " ".join(["reconstitute restore", word, "--to DIR", *flags])


def on_disk(file: Recovered) -> str:
    """How the disk compares, in a sentence; what is shown first is what it was compared with."""
    is_gone = file.state is State.DELETED
    return {
        Disk.IDENTICAL: "The file on this disk is the same.",
        Disk.DIFFERS: "The file on this disk is another one.",
        Disk.MISSING: "Nothing stands at its path on this disk." if is_gone else "It is not on this disk.",
        Disk.PRESENT: "Something stands at its path on this disk"
        + (" again." if is_gone else ", and nothing certain is known to compare it with."),
        Disk.UNREADABLE: "What stands at its path on this disk cannot be read.",
    }[file.disk]
