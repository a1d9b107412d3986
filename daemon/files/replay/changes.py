"""Applies recorded changes to a file: whole writes, additions, edits, patches.

A result is certain if the text before it is and OpenCode's rules lead to it, or if OpenCode recorded the text after it.
A contradiction to the text before is reported as an outside change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from daemon.files import apply
from daemon.files.apply import edit_diffs
from daemon.files.content import Fragments, Run
from daemon.files.events import formatters
from daemon.files.history import CALL, RESULT, SHELL, Grade, certain
from daemon.files.replay.track import MARK_UNKNOWN, State, Track
from daemon.model import FileEdit, Operation

NO_BASE = "the text before it is not proven"
CONCURRENT = "another call worked on the file at the same time, and which came last is not recorded"
NO_MATCH = "its old text does not stand in the text before it, so something else changed the file before"
NOT_SHOWN = "the diff that was recorded with it shows other lines, so something else changed the file before"
NOT_CERTAIN = "where its old text stands is not certain: OpenCode's versions differ in it, or it takes too long to tell"
_EXACT = "as it stands"
_SHELLS = frozenset({"bash", "shell"})


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of a change: `text` if it is certain, else `candidate`, the best known text.

    `is_ordered`: the change surely began after all earlier ones had ended. `may_format`: a formatter may have run right
    after it.
    """

    text: str | None
    candidate: str
    evidence: tuple[str, ...]
    kinds: frozenset[str]
    outside_change: bool = False
    is_ordered: bool = False
    mark_unknown: bool = False
    may_format: bool = False


def kind_of(edit: FileEdit) -> str:
    """The kind of evidence: a call of a file tool, or a command of the shell."""
    return SHELL if edit.tool in _SHELLS else CALL


def write(track: Track, edit: FileEdit, *, may_format: bool = False) -> None:
    """Whole new content; `may_format`: a formatter may have run right after it."""
    content = edit.content if edit.content is not None else edit.new or ""
    base = track.text
    # Only the file tools check what they overwrite for a byte order mark; a patch that adds a file does not.
    looks = edit.tool in ("write", "edit", "multiedit") and not content.startswith(apply.BOM)
    text = apply.written(content, base, edit.version) if looks else content
    outside = track.is_gone and edit.existed is True
    may_be_marked = edit.existed is not False and not track.is_certain and track.may_have_mark()
    mark_unknown = looks and may_be_marked and apply.written("", apply.BOM, edit.version) != ""
    evidence = "write" if kind_of(edit) == CALL else "written by a command of the shell"
    kinds = frozenset({kind_of(edit)})
    result = _Result(
        text, content, (evidence,), kinds, outside_change=outside, mark_unknown=mark_unknown, may_format=may_format
    )
    _add_result(track, edit, result)


def append(track: Track, edit: FileEdit) -> None:
    """Content added at the end."""
    added = edit.content or ""
    base = "" if track.is_gone else track.text
    if base is None:
        fragments = (track.fragments or Fragments()).added(added)
        grade = Grade.PARTIAL if fragments.runs else Grade.LOST
        track.add(edit, State(grade, note=NO_BASE, fragments=fragments))
    elif not track.is_certain and not track.mark_unknown:
        track.add_text(edit, base + added, State(Grade.STALE, note=NO_BASE))
    else:
        # On bytes, because a shell that appends does not change bytes that are not UTF-8.
        old = b"" if track.whole is None else track.whole.data or b""
        text = base + added
        if old.decode("utf-8", "replace").encode() != old:
            note = "content was added to a file that is not UTF-8 text"
            track.add(edit, State(Grade.STALE, track.whole, note=note))
            return
        kinds = frozenset({kind_of(edit)})
        result = _Result(text, text, ("added to proven content",), kinds, mark_unknown=track.mark_unknown)
        _add_result(track, edit, result)


def change(track: Track, edit: FileEdit, *, may_format: bool = False) -> None:
    """One edit, or the hunks of a patch; `may_format`: a formatter may have run right after it."""
    if edit.operation is Operation.EDIT and edit.old == "" and edit.after is None and not track.text:
        # An empty old text replaces the whole file; since 1.17 it is accepted only if there is no file.
        creates = apply.only_creates(edit.version)
        write(track, replace(edit, existed=False) if creates else edit, may_format=may_format)
        return
    base = track.text if track.exists else None
    outcome = apply.Outcome() if base is None else _apply(base, edit)
    if edit.after is not None:
        _confirm_before(track, edit)
        _with_recorded_texts(track, edit, base if track.is_certain else None, outcome.text, may_format=may_format)
    elif base is None:
        _without_base(track, edit, f"{NO_BASE}; {formatters.AS_WRITTEN}" if may_format else NO_BASE)
    elif outcome.text is None:
        is_known = track.is_certain or track.mark_unknown
        note = NO_BASE if not is_known else NO_MATCH if outcome.refused else NOT_CERTAIN
        track.add(edit, State(Grade.STALE, track.whole, note=note, outside_change=outcome.refused and is_known))
    elif not track.is_certain and not track.mark_unknown and not track.is_unconfirmed:
        track.add_text(edit, outcome.text, State(Grade.STALE, note=NO_BASE))
    elif edit.operation is Operation.EDIT and edit.hunks:
        _with_diff(track, edit, base, outcome, may_format=may_format)
    elif track.is_unconfirmed:
        _unconfirmed(track, edit, outcome.text, formatters.AS_WRITTEN)
    else:
        _by_rules(track, edit, outcome, may_format=may_format)


def _with_diff(track: Track, edit: FileEdit, base: str, outcome: apply.Outcome, *, may_format: bool) -> None:
    """An edit with a recorded diff of some lines of the file after its formatters."""
    text = outcome.text or ""
    if not edit_diffs.fits_before(base, edit.hunks):
        note = formatters.FORMATTED if track.is_unconfirmed else NOT_SHOWN
        track.add_text(edit, text, State(Grade.STALE, note=note, outside_change=not track.is_unconfirmed))
        return
    after = edit_diffs.text_after(base, edit.hunks) if formatters.shows_it(edit) else None
    fits = edit_diffs.fits(base, text, edit.hunks)
    if fits and after in (None, text) and not may_format and not track.is_unconfirmed:
        _by_rules(track, edit, outcome, may_format=False)
    else:
        # The diff has no line ends, so it does not prove the text after a formatter.
        note = formatters.AS_WRITTEN if fits else formatters.FORMATTED
        _unconfirmed(track, edit, text if after is None else after, note, is_whole=fits or after is not None)


def _unconfirmed(track: Track, edit: FileEdit, text: str, note: str, *, is_whole: bool = True) -> None:
    """A change before or after which a formatter may have changed the text."""
    state = State(
        Grade.STALE,
        evidence=(f"{edit.operation.value} of what was written",),
        kinds=frozenset({kind_of(edit)}),
        note=note,
        mark_unknown=track.revisions[-1].mark_unknown,
        unconfirmed=is_whole and not track.overlaps(edit),
    )
    track.add_text(edit, text, state)


def _by_rules(track: Track, edit: FileEdit, outcome: apply.Outcome, *, may_format: bool) -> None:
    """The result of OpenCode's rules for a certain text."""
    text = outcome.text or ""
    moved = f", moved from {edit.other}" if edit.other else ""
    how = "" if not outcome.rule or outcome.rule.startswith(_EXACT) else f", its old text found by {outcome.rule}"
    evidence = (f"{edit.operation.value} of a proven text{moved}{how}",)
    # Up to 1.2.6 an edit drops the mark, so that after it there is none.
    unknown = track.mark_unknown and not (edit.operation is Operation.EDIT and apply.is_old(edit.version))
    kinds = frozenset({kind_of(edit)})
    _add_result(track, edit, _Result(text, text, evidence, kinds, mark_unknown=unknown, may_format=may_format))


def _confirm_before(track: Track, edit: FileEdit) -> None:
    """The recorded text before this change confirms the state after a call, if both are the same."""
    overwrites = edit.operation is Operation.EDIT and edit.old == ""
    known = track.text
    if track.is_unconfirmed and known and known == edit.before and not overwrites and not track.overlaps(edit):
        confirm = track.confirm_but_mark if track.may_have_mark() else track.confirm
        confirm(RESULT, "found by the next edit")


def outcome(base: str, edit: FileEdit) -> str | None:
    """The text after `edit` of `base` by OpenCode's rules; None if it is uncertain, or would have been refused."""
    if edit.operation is Operation.WRITE:
        return edit.content
    if edit.operation is Operation.APPEND:
        return base + (edit.content or "")
    return edit.after if edit.after is not None else _apply(base, edit).text


def _apply(base: str, edit: FileEdit) -> apply.Outcome:
    if edit.operation is Operation.PATCH:
        return apply.patched_by(base, edit.hunks, edit.version)
    if edit.old is None or edit.new is None:
        return apply.Outcome()
    return apply.edited_by(base, edit.old, edit.new, edit.replace_all, edit.version)


def _without_base(track: Track, edit: FileEdit, note: str) -> None:
    """A change of a partly known file, or of one that should not exist."""
    fragments, now = track.fragments or Fragments(), track.now
    is_orderly = not track.overlaps(edit) and (now is None or now.operation is not Operation.UNCLEAR)
    outside = track.is_gone
    if not is_orderly:
        fragments = Fragments(fragments.runs)
    elif not fragments.has_gaps:
        by_rules = edit_diffs.lines_by_rules(fragments, edit, lambda text: _apply(text, edit))
        if by_rules is not None and by_rules.runs:
            track.add(edit, State(Grade.PARTIAL, note=note, outside_change=outside, fragments=by_rules))
            return
        if by_rules is not None:
            fragments, note, outside = Fragments(), NO_MATCH, True
    by_diff = edit_diffs.lines_by_diff(fragments, edit) if edit.operation is Operation.EDIT and is_orderly else None
    if by_diff is not None:
        fragments = by_diff
    elif edit.operation is Operation.EDIT and edit.old is not None and edit.new is not None:
        if not fragments.has_gaps and not _has_one_place("\n".join(fragments.runs[0].lines), edit):
            fragments = Fragments()  # it changed an unknown one of these lines
        fragments = fragments.edited(edit.old, edit.new, everywhere=edit.replace_all)
    else:
        runs = [Run(None, new) for _, _, new, _ in edit.hunks if new]
        fragments = Fragments((*(Run(None, run.lines) for run in fragments.runs), *runs))
    grade = Grade.PARTIAL if fragments.runs else Grade.LOST
    track.add(edit, State(grade, note=note, outside_change=outside, fragments=fragments))


def _has_one_place(text: str, edit: FileEdit) -> bool:
    times = text.count(edit.old or "")
    return times == 1 or (times > 1 and edit.replace_all)


def _with_recorded_texts(
    track: Track, edit: FileEdit, base: str | None, computed: str | None, *, may_format: bool = False
) -> None:
    """An edit with its recorded text before and after; neither has a byte order mark."""
    before, after = edit.before or "", edit.after or ""
    follows = base is not None and base.removeprefix(apply.BOM) == before.removeprefix(apply.BOM)
    # An empty old text overwrites: the recorded text before is then empty, whatever was there (opencode-formats.md,
    # Tools 6).
    overwrites = edit.operation is Operation.EDIT and edit.old == ""
    was_gone = track.is_gone and edit.other is None and before != ""
    outside = not overwrites and (was_gone or (base is not None and not follows))
    evidence, kinds = ["recorded text after the edit"], {RESULT}
    if follows and computed == after:
        evidence.append(f"{edit.operation.value} of a proven text")
        kinds.add(CALL)
    hides_mark = not after.startswith(apply.BOM) and not apply.is_old(edit.version)
    text = None if hides_mark and track.may_have_mark() else after
    # If the recorded text before is our text, the earlier change ended before this one, overlap or not.
    may_format = may_format and not formatters.shows_it(edit)
    result = _Result(
        text,
        after,
        tuple(evidence),
        frozenset(kinds),
        outside_change=outside,
        is_ordered=follows,
        may_format=may_format,
    )
    _add_result(track, edit, result)


def _add_result(track: Track, edit: FileEdit, result: _Result) -> None:
    """Add the state after a change; it is certain if its text is and nothing else ran at the same time."""
    state = State(
        certain(result.kinds),
        evidence=result.evidence,
        kinds=result.kinds,
        outside_change=result.outside_change,
        note=edit.note,
    )
    text = result.candidate if result.text is None else result.text
    overlaps = track.overlaps(edit)
    if result.may_format and (result.is_ordered or not overlaps):
        mark_unknown = result.text is None or result.mark_unknown
        note = formatters.AS_WRITTEN
        state = replace(state, grade=Grade.STALE, note=note, unconfirmed=True, mark_unknown=mark_unknown)
    elif result.text is None or (result.mark_unknown and not overlaps):
        state = replace(state, grade=Grade.PARTIAL, note=MARK_UNKNOWN, mark_unknown=True)
    elif overlaps and not result.is_ordered:
        state = State(Grade.STALE, note=CONCURRENT, outside_change=result.outside_change)
    track.add_text(edit, text, state)
