"""Replays reads of a file: all of it, or some of its lines."""

from __future__ import annotations

from daemon.files import apply
from daemon.files.content import Fragments, Run
from daemon.files.history import READ, Grade
from daemon.files.replay.observe import prove_by_hash
from daemon.files.replay.track import MARK_UNKNOWN, State, Track
from daemon.model import FileEdit, Operation
from daemon.transcript.evidence.call_results import INEXACT_READ

NOT_UTF8 = "it holds U+FFFD: the file may have other bytes there"


def read(track: Track, edit: FileEdit) -> None:
    """The whole file, or some lines of it, in the output of the read tool."""
    text, now = edit.content, track.now
    whole = text if edit.operation is Operation.READ else None
    blob = now.blob if now is not None else ""
    if whole is not None and blob and prove_by_hash(track, edit, blob, "complete read", whole):
        return
    if text is None or _confirms(track, edit, text) or track.overlaps(edit):
        return  # an overlapping read may have the text before or after the other call
    if edit.operation is Operation.READ_RANGE:
        _read_range(track, edit, text)
        return
    outside = track.is_certain or track.mark_unknown
    if edit.note.startswith(INEXACT_READ):
        known = track.fragments
        fragments = Fragments((Run(1, tuple(text.split("\n"))),), is_all=True)
        if known is not None and not known.has_gaps and known.runs == fragments.runs:
            fragments = known  # a diff may show more than a read can
        state = State(
            Grade.PARTIAL,
            evidence=("complete read",),
            note=edit.note,
            outside_change=outside,
            fragments=fragments,
        )
        track.add(edit, state)
    elif "\ufffd" in text:
        track.add_text(edit, text, State(Grade.STALE, note=NOT_UTF8, outside_change=outside))
    else:
        _read_whole(track, edit, text, outside=outside)


def _read_whole(track: Track, edit: FileEdit, text: str, *, outside: bool) -> None:
    """A complete read, exact except for a byte order mark."""
    kinds = frozenset({READ})
    if track.may_have_mark(was_read=True):
        state = State(
            Grade.PARTIAL,
            evidence=("complete read",),
            kinds=kinds,
            note=MARK_UNKNOWN,
            outside_change=outside,
            mark_unknown=True,
        )
    else:
        evidence = ("complete read, in which a byte order mark would not show",)
        state = State(Grade.PROVEN, evidence=evidence, kinds=kinds, note=edit.note, outside_change=outside)
    track.add_text(edit, text, state)


def _read_range(track: Track, edit: FileEdit, text: str) -> None:
    """Some lines that are not in the known text."""
    lines = tuple(text.split("\n"))
    first = _first_line(edit)
    if (track.is_certain or track.mark_unknown) and not track.is_gone:
        note = f"a read of {edit.note} shows other text"
        track.add(edit, State(Grade.STALE, track.whole, note=note, outside_change=True))
        return
    if track.is_unconfirmed:
        note = f"a read of {edit.note} shows other text: a formatter ran"
        track.add(edit, State(Grade.STALE, track.whole, note=note))
        return
    if track.whole is not None and not track.is_gone:
        return  # whole content, even if stale, is worth more than these lines, which are not in it
    fragments = track.fragments or Fragments()
    fragments = (
        fragments.with_lines(first, lines) if first is not None else Fragments((*fragments.runs, Run(None, lines)))
    )
    state = State(
        Grade.PARTIAL,
        evidence=("read of a part",),
        note=f"only {edit.note} were seen" if len(fragments.runs) == 1 else "only some of its lines were seen",
        outside_change=track.is_gone,
        fragments=fragments,
    )
    track.add(edit, state)


def _first_line(edit: FileEdit) -> int | None:
    """The number of the first line in a read of some lines; None if its note does not say."""
    words = edit.note.split()
    return int(words[1]) if words[:1] == ["lines"] and len(words) > 1 and words[1].isdigit() else None


def _contains(whole: str, part: str, first: int | None) -> bool:
    """Whether the lines of `part` are in `whole`, at line `first` if known."""
    if first is None:
        return f"\n{part}\n" in f"\n{whole}\n"
    lines = part.split("\n")
    return whole.split("\n")[first - 1 : first - 1 + len(lines)] == lines


def _confirms(track: Track, edit: FileEdit, text: str) -> bool:
    """Whether a read agrees with the known text; a whole read then confirms it."""
    known = track.text
    if known is None or not track.exists:
        return False
    if edit.operation is Operation.READ_RANGE:
        return _contains(apply.as_read(known), apply.as_read(text), _first_line(edit))
    is_exact = not edit.note.startswith(INEXACT_READ)
    is_same = known.removeprefix(apply.BOM) == text if is_exact else apply.as_read(known) == text
    if not is_same:
        return False
    if is_exact and (track.is_certain or track.is_unconfirmed):
        if track.is_certain or not track.may_have_mark():
            track.confirm(READ, "confirmed by a read")
        else:
            track.confirm_but_mark(READ, "a read shows the same lines")
        return True
    if is_exact and not track.mark_unknown:
        return False
    # The same lines, but their ends and a final newline do not show. So this is no second kind of evidence for a
    # certain content, and none at all for one that may have changed.
    now = track.revisions[-1]
    now.evidence = tuple(dict.fromkeys((*now.evidence, "a read shows the same lines")))
    if not track.is_certain:
        now.kinds = now.kinds | {READ}
    return True
