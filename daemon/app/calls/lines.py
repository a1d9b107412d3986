"""The calls by which a file is read line by line: its lines at a moment, who wrote them, what changed between two.

Guarantees: answers are redacted, a text as a whole before it is cut into lines or compared. A text of which pieces are
asked for one after the other is made once and kept for a few seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from daemon import records
from daemon.app.calls.contents import ContentCalls, data_of
from daemon.app.calls.files import absolute, as_of, clean_lines, diff_of, file_revision
from daemon.control import calls, file_answers
from daemon.control.answers import from_json, to_json
from daemon.control.calls import Progress
from daemon.display import shorten
from daemon.errors import BadRequest
from daemon.files import FileHistory, Revision
from daemon.files.line_diffs import authors
from daemon.model import Message
from daemon.redact import fingerprint, redact, redact_value

MOST_LINES: Final = 5000
"""Lines of one answer."""
MOST_CHARS: Final = 2000
"""Characters of a line; the rest is left out."""
_PROMPT_CHARS = 300
_KEPT_S = 15.0
_LARGEST = 16 << 20
"""Bytes of a content that is taken apart into lines."""


@dataclass(frozen=True, slots=True)
class _Text:
    """The lines of a file at a moment, redacted, with an index into `authors` for each, -1 for an unknown author."""

    head: file_answers.Lines
    lines: Sequence[str] = ()
    by: Sequence[int] = ()
    authors: Sequence[file_answers.LineAuthor] = ()


class _LastText:
    """Keeps the text that was made last, for `_KEPT_S` seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: tuple[tuple[object, ...], _Text] | None = None
        self._timer: threading.Timer | None = None

    def get(self, key: tuple[object, ...]) -> _Text | None:
        with self._lock:
            return self._kept[1] if self._kept is not None and self._kept[0] == key else None

    def put(self, key: tuple[object, ...], text: _Text) -> None:
        timer = threading.Timer(_KEPT_S, self._drop)  # without the text, which it would keep in memory
        timer.daemon = True
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._kept, self._timer = (key, text), timer
            timer.start()

    def _drop(self) -> None:
        with self._lock:
            if self._timer is threading.current_thread():  # one that was cancelled too late drops nothing
                self._kept = self._timer = None


class LineCalls(ContentCalls):
    """A part of the engine, as ContentCalls."""

    @cached_property
    def _last_text(self) -> _LastText:
        return _LastText()

    def lines(self, request: calls.Lines, progress: Progress) -> file_answers.Lines:
        """See calls.Lines.

        Raises:
            BadRequest: the path is not absolute, `at` is no time, `start` or `count` is out of range.
        """
        file, until = absolute(request.path), as_of(request.at)
        if request.start < 0 or not 0 <= request.count <= MOST_LINES:
            raise BadRequest(f"`start` {request.start}, `count` {request.count}: ask for at most {MOST_LINES} lines")
        warnings = self.current(progress)
        key = (file, until, self.archive.revision, fingerprint())
        text = self._last_text.get(key)
        if text is None:
            text = self._text(file, until)
            self._last_text.put(key, text)
        answer = from_json(to_json(text.head), file_answers.Lines)
        answer.start = request.start
        answer.warnings = [*(redact(warning) for warning in warnings), *answer.warnings]
        window = slice(request.start, request.start + request.count)
        answer.lines = [_cut(line) for line in text.lines[window]]
        answer.cut = sum(len(line) > MOST_CHARS for line in text.lines[window])
        used = sorted(set(text.by[window]) - {-1})
        answer.authors = [text.authors[number] for number in used]
        places = {number: place for place, number in enumerate(used)} | {-1: -1}
        answer.by = [places[number] for number in text.by[window]]
        return answer

    def _text(self, file: str, until: int | None) -> _Text:
        history = self.recorded.history(file).until(until)
        latest = history.latest
        last = next((revision for revision in reversed(history.revisions) if data_of(revision) is not None), None)
        head = file_answers.Lines(
            path=file,
            at=until,
            known=latest is not None,
            state=None if latest is None else self._state(latest),
            last=None if last is None or last is latest else last.time,
            warnings=[] if latest is not None else [self.nothing_known(file, is_file=True)],
        )
        head = from_json(redact_value(to_json(head)), file_answers.Lines)
        data = None if latest is None else data_of(latest)
        if latest is None or data is None:
            head.note = "" if latest is None else "deleted" if latest.deleted else "its content is not known"
            return _Text(head)
        if len(data) > _LARGEST or b"\0" in data:
            head.note = f"binary, {len(data)} bytes" if b"\0" in data else f"too long to show: {len(data)} bytes"
            return _Text(head)
        try:
            plain = data.decode("utf-8").splitlines()
        except UnicodeDecodeError:
            head.note = f"not text: {len(data)} bytes"
            return _Text(head)
        lines = clean_lines(plain)
        head.total, head.redacted = len(lines), lines != plain
        writers = authors(history) if latest.content is not None else []
        if len(writers) != len(lines):  # partly known: nobody can say who wrote what lies between
            return _Text(head, lines)
        numbers = {id(writer): number for number, writer in enumerate({id(each): each for each in writers}.values())}
        by_number = {numbers[id(writer)]: writer for writer in writers}
        named = [self._author(by_number[number]) for number in range(len(by_number))]
        return _Text(head, lines, [numbers[id(writer)] for writer in writers], named)

    def _state(self, revision: Revision) -> file_answers.FileRevision:
        return file_revision(revision, self._title(revision.session_id))

    def _author(self, revision: Revision) -> file_answers.LineAuthor:
        prompt_id, prompt = self._prompt(self.archive.message(revision.message_id))
        return file_answers.LineAuthor(
            time=revision.time,
            session_id=revision.session_id,
            message_id=revision.message_id,
            tool=redact(revision.tool),
            session_title=redact(self._title(revision.session_id)),
            prompt_id=prompt_id,
            prompt=shorten(" ".join(redact(prompt).split()), _PROMPT_CHARS),
        )

    def _prompt(self, message: Message | None) -> tuple[str, str]:
        """The prompt that a message answers: its id and its text."""
        if message is None:
            return "", ""
        parent = message if message.role == "user" else None
        if parent is None:
            parent = self.archive.message(records.text(message.data.get("parentID")))
        if parent is None:
            ids = self.archive.message_ids(message.session_id)
            before = ids[: ids.index(message.id)] if message.id in ids else []
            earlier = (self.archive.message(message_id) for message_id in reversed(before))
            parent = next((each for each in earlier if each is not None and each.role == "user"), None)
        if parent is None:
            return "", ""
        texts = (
            records.text(part.data.get("text"))
            for part in parent.parts
            if part.type == "text" and part.data.get("synthetic") is not True
        )
        return parent.id, "\n".join(texts)

    def diff(self, request: calls.Diff, progress: Progress) -> file_answers.Diff:
        """See calls.Diff.

        Raises:
            BadRequest: the path is not absolute, `old` or `new` is no time.
        """
        file = absolute(request.path)
        before, after = (as_of(moment) for moment in (request.old, request.new))
        warnings = self.current(progress)
        history = self.recorded.history(file)
        warnings += [] if history.revisions else [self.nothing_known(file, is_file=True)]
        old = None if before is None else history.until(before).latest
        new = history.until(after).latest
        answer = file_answers.Diff(
            path=file,
            old=None if old is None else self._state(old),
            new=None if new is None else self._state(new),
            warnings=warnings,
        )
        answer = from_json(redact_value(to_json(answer)), file_answers.Diff)
        answer.diff, answer.note = _compared(history, old, new)
        return answer


def _compared(history: FileHistory, old: Revision | None, new: Revision | None) -> tuple[str, str]:
    if not history.revisions:
        return "", ""
    sides = []
    for revision in (old, new):
        data = b"" if revision is None or revision.deleted else data_of(revision)
        if data is None:
            return "", "the content of one of the two is not known"
        sides.append(data)
    return diff_of(sides[0], sides[1])


def _cut(line: str) -> str:
    return line if len(line) <= MOST_CHARS else f"{line[:MOST_CHARS]}… [{len(line) - MOST_CHARS} more characters]"
