"""A file's history as its page tells it: each state with its time, prompt, diff and evidence.

Guarantees: bounded, and what is left out is said; what is not certain says so in its own line; nothing is said to have
been asked for that was only seen. Values for the template.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from daemon import markdown
from daemon.display import counted
from daemon.files import Revision
from daemon.files.end_states import OUTSIDE
from daemon.files.history import OBSERVATIONS, REVERTED
from daemon.files.line_diffs import unified
from daemon.files.states import Change, Entry, file_history
from daemon.reconstitute.facts.session_values import CallStatus
from daemon.reconstitute.pages.file.prompts import Prompts
from daemon.reconstitute.recover import evidence, note_for_people
from daemon.redact import redact
from daemon.transcript.shell import NOTE_PREFIX

MOST_BYTES: Final = 256 * 1024
"""Bytes of a content that is compared."""
MOST_READ: Final = 2 * 1024 * 1024
"""Bytes of all contents that are compared for one page."""
MOST_LINES: Final = 100
MOST_TEXT: Final = 8000
"""Characters of one diff."""
_CRLF = "\r\n"
MOST_ENTRIES = 50
_MOST_EVIDENCE = 6
_MOST_CAUSES = 5
_MOST_COMMAND = 160
_GOING_BACK = frozenset({Change.TAKEN_BACK, Change.BROUGHT_BACK, Change.FOUND_CHANGED})
_NO_TOOLS = {"summary": "recorded diff", "": "not recorded"}


@dataclass(frozen=True, slots=True)
class Diff:
    """`text` are hunks; `added` and `removed` count lines, None where the states were not compared; `note` says why."""

    text: str = ""
    added: int | None = None
    removed: int | None = None
    note: str = ""

    @property
    def counts(self) -> str:
        """``+3 −1``; empty where nothing was counted."""
        if self.added is None or self.removed is None or not (self.added or self.removed):
            return ""
        return f"+{self.added} −{self.removed}"


class Diffs:
    """Compares the states of one page."""

    def __init__(self) -> None:
        self._bytes_left = MOST_READ
        self._texts: dict[int, str | None] = {}

    def of(self, entry: Entry) -> Diff:
        """What changed from the entry's base to its state."""
        now = entry.best
        if now.deleted and entry.base is None:
            return Diff()
        if not now.deleted and (now.whole is None or now.content is None):
            return Diff()
        base = entry.base.whole if entry.base is not None else None
        if base is not None and now.whole is not None and base.is_same(now.whole):
            return Diff()  # back to it, after a state that is not certain
        sides = [revision for revision in (entry.base, now) if revision is not None and not revision.deleted]
        if any((revision.size or 0) > MOST_BYTES for revision in sides) or not self._fits(sides):
            return Diff(note="The change is too long to be shown here")
        before, after = (self._text(revision) for revision in (entry.base, now))
        if before is None or after is None:
            return Diff(note="It is no text, so its change is not shown")
        return _compared(before, after)

    def _fits(self, sides: list[Revision]) -> bool:
        self._bytes_left -= sum(revision.size or 0 for revision in sides if id(revision) not in self._texts)
        return self._bytes_left >= 0

    def _text(self, revision: Revision | None) -> str | None:
        """Its content, redacted; empty where there was no file, None where it is no text."""
        if revision is None or revision.deleted:
            return ""
        if id(revision) not in self._texts:
            try:
                text = (revision.content or b"").decode("utf-8")
            except UnicodeDecodeError:
                text = "\0"
            self._texts[id(revision)] = None if "\0" in text else redact(text)
        return self._texts[id(revision)]


def _compared(before: str, after: str) -> Diff:
    note = ""
    if before and after and (_CRLF in before) is not (_CRLF in after):
        note = "Its lines ended in LF before and in CRLF after" if _CRLF in after else "Its lines ended in CRLF before"
    text = unified(before.replace(_CRLF, "\n"), after.replace(_CRLF, "\n"))
    if not text:
        return Diff(note=note or ("" if before == after == "" else "Only what is redacted changed"))
    lines = text.splitlines(keepends=True)
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    diff_lines = _shortened(lines)
    if (omitted := len(lines) - len(diff_lines)) > 0:
        note = ". ".join(filter(None, [note, f"Of the diff {counted(omitted, 'more line')} are left out"]))
    return Diff("".join(diff_lines), added, removed, note)


def _shortened(lines: list[str]) -> list[str]:
    """The first lines, as many as may be shown; a line that is too long by itself is cut."""
    kept_lines: list[str] = []
    remaining = MOST_TEXT
    for line in lines[:MOST_LINES]:
        if remaining <= 0:
            break
        kept_lines.append(line if len(line) <= remaining else line[: remaining - 1] + "…\n")
        remaining -= len(line)
    return kept_lines


Reference = Callable[[str], markdown.Markdown]


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One state; `where` is the session, `prompt` the prompt, `remarks` what must not be overlooked.

    `lead` says what these have to do with it, where they did not ask for it. `evidence` are lines about the first of
    its records, `more` counts the others.
    """

    time: markdown.Markdown
    description: str
    lead: markdown.Markdown
    prompt: markdown.Markdown
    where: markdown.Markdown
    remarks: tuple[markdown.Markdown, ...]
    diff: Diff
    evidence: tuple[markdown.Markdown, ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class History:
    """The newest states, newest first, and how many `older` ones are left out."""

    entries: tuple[HistoryEntry, ...]
    older: int


class HistoryWriter:
    """Tells the history of files; `refer` makes a path a link from the page."""

    def __init__(self, prompts: Prompts) -> None:
        self._prompts = prompts

    def history(self, page: str, revisions: Sequence[Revision], refer: Reference) -> History:
        """What the page of a file with these `revisions`, oldest first, tells."""
        entries = file_history(revisions)
        diffs = Diffs()
        newest = entries[:MOST_ENTRIES]
        newest_entries = tuple(self._entry(page, number, entries, diffs, refer) for number in range(len(newest)))
        return History(newest_entries, len(entries) - len(newest))

    def _entry(self, page: str, number: int, entries: Sequence[Entry], diffs: Diffs, refer: Reference) -> HistoryEntry:
        entry, source = entries[number], entries[number].source
        diff = Diff() if entry.change is Change.PERHAPS else diffs.of(entry)
        back = _earlier(entry, entries[number + 1 :])
        prompt, where = self._origin(page, entry)
        description = _description(entry, back, entries[number + 1 : number + 2])
        if len(entries) == 1:
            diff = Diff(added=diff.added, removed=diff.removed, note=diff.note)  # its content stands on the page
        records = entry.records[:_MOST_EVIDENCE]
        counts = "" if entry.change is Change.FIRST_SEEN else diff.counts
        return HistoryEntry(
            markdown.moment(source.time),
            ", ".join(filter(None, [description, counts])),
            _lead(entry, description),
            prompt,
            where,
            tuple(self._remarks(page, entry, back, refer)),
            diff,
            tuple(dict.fromkeys(self._evidence(revision) for revision in records)),
            len(entry.records) - len(records),
        )

    def _origin(self, page: str, entry: Entry) -> tuple[markdown.Markdown, markdown.Markdown]:
        """The prompt, where the state is its doing, and the session."""
        source = entry.source
        was_only_read = _was_only_read(source)
        cause = source
        if was_only_read and entry.perhaps:
            cause, was_only_read = entry.perhaps[-1], False
        none = markdown.Markdown("")
        prompt = none if was_only_read else self._prompts.link(page, cause.session_id, cause.message_id)
        return prompt, self._prompts.session(page, cause.session_id, cause.message_id)

    def _remarks(self, page: str, entry: Entry, back: Entry | None, refer: Reference) -> list[markdown.Markdown]:
        source, remarks = entry.source, []
        if source.moved_from:
            remarks.append(_joined("It came from ", refer(source.moved_from)))
        if source.moved_to:
            remarks.append(_joined("It went to ", refer(source.moved_to)))
        if back is not None:
            prompt, _ = self._origin(page, back)
            by_prompt = f" by {prompt}" if prompt else ""
            remarks.append(_joined("Back to how it was left at ", markdown.moment(back.source.time), by_prompt))
        if entry.change is Change.PERHAPS:
            remarks += self._causes("", entry.records)
        elif not entry.is_certain:
            remarks.append(
                _joined(
                    "Not certain: ", markdown.prose(redact(note_for_people(entry.best) or "no record tells it all"))
                )
            )
        if entry.perhaps and entry.change is not Change.PERHAPS:
            remarks += self._causes("Perhaps by ", entry.perhaps)
        if source.was_changed_outside and entry.change is not Change.OUTSIDE:
            remarks.append(markdown.Markdown("It had been changed outside OpenCode before this"))
        return remarks

    def _causes(self, intro: str, doubts: Sequence[Revision]) -> list[markdown.Markdown]:
        """What may have changed the file, the newest first, each once."""
        causes = list(dict.fromkeys(self._cause(revision) for revision in reversed(doubts)))
        texts = [_joined(intro, cause) for cause in causes[:_MOST_CAUSES]]
        if len(causes) > _MOST_CAUSES:
            texts.append(markdown.Markdown(f"And {len(causes) - _MOST_CAUSES} more; the evidence names them"))
        return texts

    def _cause(self, revision: Revision) -> markdown.Markdown:
        if revision.note == REVERTED:
            return markdown.Markdown("a revert: the message of its change was removed from the session")
        if not revision.note.startswith(NOTE_PREFIX):
            return markdown.prose(redact(revision.note or "a call of which not all is recorded"))
        command = markdown.code(markdown.cut(redact(revision.note.removeprefix(NOTE_PREFIX)), _MOST_COMMAND))
        return _joined(command, self._ended(revision))

    def _ended(self, revision: Revision) -> str:
        """How its call ended, where that was not well."""
        call = self._prompts.call(revision)
        if call is None or call.status not in {CallStatus.STOPPED, CallStatus.FAILED}:
            return ""
        seconds = round((call.ended - call.started) / 1000)
        how = f"stopped after {seconds} s" if call.status is CallStatus.STOPPED else "failed"
        return f" ({how})"

    def _evidence(self, revision: Revision) -> markdown.Markdown:
        text = redact(evidence(revision)) or "recorded"
        by = f", {tool(revision)}" if tool(revision) not in text.split(" ")[:1] else ""
        line = f"{markdown.moment(revision.time)}, {revision.grade}{markdown.inline(by)}: {markdown.inline(text)}"
        message = f" ({markdown.code(redact(revision.message_id))})" if revision.message_id else ""
        return markdown.Markdown(line + message)


def tool(revision: Revision) -> str:
    """What did it, or showed it."""
    if revision.is_from_outside:
        return OUTSIDE
    return _NO_TOOLS.get(revision.tool, revision.tool)


def _lead(entry: Entry, description: str) -> markdown.Markdown:
    """What the prompt and the session have to do with a state that they did not ask for."""
    if entry.change is Change.TAKEN_BACK or description.startswith("taken back"):
        lead = "Undone: "
    elif entry.change is Change.BROUGHT_BACK:
        lead = "Brought back: "
    elif entry.perhaps:
        lead = "Perhaps: "
    else:
        lead = "Seen in " if _was_only_read(entry.source) else ""
    return markdown.Markdown(lead)


def _was_only_read(revision: Revision) -> bool:
    return revision.operation in OBSERVATIONS and revision.tool != "revert"


def _description(entry: Entry, back: Entry | None, before: Sequence[Entry]) -> str:
    """What happened to the file, in a few words."""
    change, is_deleted = entry.change, entry.best.deleted
    was_gone = bool(before) and before[0].best.deleted
    if change is Change.PERHAPS:
        return "may have changed since" if before else change.value
    if (
        change is Change.FOUND_CHANGED
        and back is not None
        and all(revision.note == REVERTED for revision in entry.perhaps or (entry.best,))
    ):
        return "taken back, it seems"
    if change in {Change.OUTSIDE, Change.FOUND_CHANGED} and (is_deleted or was_gone):
        word = "deleted" if is_deleted else "there again"
        return f"{word} outside OpenCode" if change is Change.OUTSIDE and is_deleted else f"found {word}"
    if change is Change.TAKEN_BACK and is_deleted:
        return "taken back, which removed it"
    return (
        f"{change.value}, moved here" if entry.source.moved_from and change is not Change.MOVED_HERE else change.value
    )


def _earlier(entry: Entry, older: Sequence[Entry]) -> Entry | None:
    """The state with the same certain content that this one goes back to: the newest that was made, not restored."""
    content = entry.best.whole
    if (
        content is None
        or not entry.is_certain
        or entry.change not in {Change.TAKEN_BACK, Change.BROUGHT_BACK, Change.FOUND_CHANGED}
    ):
        return None
    candidates = (candidate for candidate in older if candidate.is_certain and candidate.best.whole is not None)
    identical = [
        candidate
        for candidate in candidates
        if candidate.best.whole is not None and candidate.best.whole.is_same(content)
    ]
    return next(
        (candidate for candidate in identical if candidate.change not in _GOING_BACK),
        identical[0] if identical else None,
    )


def _joined(*pieces: str) -> markdown.Markdown:
    """Our own words and pieces that are Markdown already."""
    return markdown.Markdown("".join(pieces))
