"""What a recorded change makes of a file: whole writes, additions, edits, patches.

A result is certain when the text before it is and OpenCode's own rules lead from one to the other, or when OpenCode
recorded the text after it. Whatever contradicts the text before is reported as an outside change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from daemon.files.apply import edit_diffs, rules
from daemon.files.content import may_begin_with_mark
from daemon.files.events import formatters
from daemon.files.fragments import Fragments, Run
from daemon.files.history import CALL, RESULT, SHELL, Grade, certain
from daemon.files.replay.track import Track
from daemon.model import FileEdit, Operation

NO_BASE = "the text before it is not proven"
CONCURRENT = "another call worked on the file at the same time, and which came last is not recorded"
NO_MATCH = "its old text does not stand in the text before it, so something else changed the file before"
NOT_SHOWN = "the diff that was recorded with it shows other lines, so something else changed the file before"
NOT_CERTAIN = "where its old text stands is not certain: OpenCode's versions differ in it, or it takes too long to tell"
_EXACT = "as it stands"
MARK_UNKNOWN = "all of it is known but whether a byte order mark stands before it"
_SHELLS = frozenset({"bash", "shell"})


def kind_of(edit: FileEdit) -> str:
    """Whether a call of a file tool says it, or a command of the shell."""
    return SHELL if edit.tool in _SHELLS else CALL


def write(track: Track, edit: FileEdit, *, may_format: bool = False) -> None:
    """Whole new content; `may_format`: a formatter may have run right after it."""
    content = edit.content if edit.content is not None else edit.new or ""
    base = track.text
    # Only the file tools look at what they overwrite, for a byte order mark; a patch that adds a file does not.
    looks = edit.tool in ("write", "edit", "multiedit") and not content.startswith(rules.BOM)
    text = rules.written(content, base, edit.version) if looks else content
    outside = track.is_gone and edit.existed is True
    unseen = edit.existed is not False and not track.is_gone and (base is None or track.mark_unknown)
    unseen = unseen and may_begin_with_mark(track.path)
    kept = looks and unseen and rules.written("", rules.BOM, edit.version) != ""
    evidence = "write" if kind_of(edit) == CALL else "written by a command of the shell"
    kinds = frozenset({kind_of(edit)})
    told: dict[str, Any] = {"outside": outside, "mark_unknown": kept, "may_format": may_format}
    _put(track, edit, text, content, (evidence,), kinds, **told)


def append(track: Track, edit: FileEdit) -> None:
    """Content behind what is there."""
    added = edit.content or ""
    base = "" if track.is_gone else track.text
    if base is None:
        fragments = (track.fragments or Fragments()).added(added)
        track.add(edit, Grade.PARTIAL if fragments.runs else Grade.LOST, None, note=NO_BASE, fragments=fragments)
    elif not track.is_certain and not track.mark_unknown:
        track.put_text(edit, Grade.STALE, base + added, note=NO_BASE)
    else:
        # On bytes: what is not UTF-8 stays as it is when a shell adds to it.
        old = b"" if track.whole is None else track.whole.data or b""
        text = base + added
        if old.decode("utf-8", "replace").encode() != old:
            track.add(edit, Grade.STALE, track.whole, note="content was added to a file that is not UTF-8 text")
            return
        kinds = frozenset({kind_of(edit)})
        _put(track, edit, text, text, ("added to proven content",), kinds, mark_unknown=track.mark_unknown)


def change(track: Track, edit: FileEdit, *, may_format: bool = False) -> None:
    """One edit, or the hunks of a patch; `may_format`: a formatter may have run right after it."""
    if edit.operation is Operation.EDIT and edit.old == "" and edit.after is None and not track.text:
        # An empty old text stands for the whole file; since 1.17 it is only taken where there is none.
        creates = rules.only_creates(edit.version)
        write(track, replace(edit, existed=False) if creates else edit, may_format=may_format)
        return
    base = track.text if track.exists else None
    made = rules.Outcome() if base is None else _made(base, edit)
    if edit.after is not None:
        _confirm(track, edit)
        _recorded(track, edit, base if track.is_certain else None, made.text, may_format=may_format)
    elif base is None:
        _blind(track, edit, f"{NO_BASE}; {formatters.AS_WRITTEN}" if may_format else NO_BASE)
    elif made.text is None:
        is_known = track.is_certain or track.mark_unknown
        note = NO_BASE if not is_known else NO_MATCH if made.refused else NOT_CERTAIN
        track.add(edit, Grade.STALE, track.whole, note=note, outside_change=made.refused and is_known)
    elif not track.is_certain and not track.mark_unknown and not track.is_unconfirmed:
        track.put_text(edit, Grade.STALE, made.text, note=NO_BASE)
    elif edit.operation is Operation.EDIT and edit.hunks:
        _with_diff(track, edit, base, made, may_format=may_format)
    elif track.is_unconfirmed:
        _unconfirmed(track, edit, made.text, formatters.AS_WRITTEN)
    else:
        _follow(track, edit, made, may_format=may_format)


def _with_diff(track: Track, edit: FileEdit, base: str, made: rules.Outcome, *, may_format: bool) -> None:
    """An edit with a diff of some lines, from what was there before it to what its formatters left."""
    text = made.text or ""
    if not edit_diffs.fits_before(base, edit.hunks):
        note = formatters.FORMATTED if track.is_unconfirmed else NOT_SHOWN
        track.put_text(edit, Grade.STALE, text, note=note, outside_change=not track.is_unconfirmed)
        return
    after = edit_diffs.text_after(base, edit.hunks) if formatters.shows_it(edit) else None
    fits = edit_diffs.fits(base, text, edit.hunks)
    if fits and after in (None, text) and not may_format and not track.is_unconfirmed:
        _follow(track, edit, made, may_format=False)
    else:
        # Line ends do not show in the diff, so that it proves nothing of what a formatter left.
        note = formatters.AS_WRITTEN if fits else formatters.FORMATTED
        _unconfirmed(track, edit, text if after is None else after, note, is_whole=fits or after is not None)


def _unconfirmed(track: Track, edit: FileEdit, text: str, note: str, *, is_whole: bool = True) -> None:
    """A change that a formatter followed, or one of a text that a formatter may have changed before."""
    is_whole = is_whole and not track.overlaps(edit)
    told: dict[str, Any] = {
        "kinds": frozenset({kind_of(edit)}),
        "evidence": (f"{edit.operation.value} of what was written",),
    }
    track.put_text(edit, Grade.STALE, text, note=note, unconfirmed=is_whole, **told)


def _follow(track: Track, edit: FileEdit, made: rules.Outcome, *, may_format: bool) -> None:
    """What OpenCode's own rules make of a text that is certain."""
    text = made.text or ""
    moved = f", moved from {edit.other}" if edit.other else ""
    how = "" if not made.rule or made.rule.startswith(_EXACT) else f", its old text found by {made.rule}"
    evidence = (f"{edit.operation.value} of a proven text{moved}{how}",)
    # Up to 1.2.6 an edit drops the mark, so that after it there is none.
    unknown = track.mark_unknown and not (edit.operation is Operation.EDIT and rules.is_old(edit.version))
    told: dict[str, Any] = {"mark_unknown": unknown, "may_format": may_format}
    _put(track, edit, text, text, evidence, frozenset({kind_of(edit)}), **told)


def _confirm(track: Track, edit: FileEdit) -> None:
    """What OpenCode found before this change, and recorded, proves what a call had left if it is the same."""
    overwrites = edit.operation is Operation.EDIT and edit.old == ""
    known = track.text
    if track.is_unconfirmed and known and known == edit.before and not overwrites and not track.overlaps(edit):
        track.confirm(RESULT, "found by the next edit")


def outcome(base: str, edit: FileEdit) -> str | None:
    """The text after `edit` of `base` by OpenCode's rules; None where it is not certain, or would have been refused."""
    if edit.operation is Operation.WRITE:
        return edit.content
    if edit.operation is Operation.APPEND:
        return base + (edit.content or "")
    return edit.after if edit.after is not None else _made(base, edit).text


def _made(base: str, edit: FileEdit) -> rules.Outcome:
    if edit.operation is Operation.PATCH:
        return rules.patched_by(base, edit.hunks, edit.version)
    if edit.old is None or edit.new is None:
        return rules.Outcome()
    return rules.edited_by(base, edit.old, edit.new, edit.replace_all, edit.version)


def _blind(track: Track, edit: FileEdit, note: str) -> None:
    """A change of a file of which not everything is known, or that should not be there."""
    fragments, now = track.fragments or Fragments(), track.now
    is_orderly = not track.overlaps(edit) and (now is None or now.operation is not Operation.UNCLEAR)
    told: dict[str, Any] = {"note": note, "outside_change": track.is_gone}
    if not is_orderly:
        fragments = Fragments(fragments.runs)
    elif not fragments.has_gaps:
        found = edit_diffs.lines_by_rules(fragments, edit, lambda text: _made(text, edit))
        if found is not None and found.runs:
            track.add(edit, Grade.PARTIAL, None, fragments=found, **told)
            return
        if found is not None:
            fragments, told = Fragments(), {"note": NO_MATCH, "outside_change": True}
    found = edit_diffs.lines_by_diff(fragments, edit) if edit.operation is Operation.EDIT and is_orderly else None
    if found is not None:
        fragments = found
    elif edit.operation is Operation.EDIT and edit.old is not None and edit.new is not None:
        fragments = fragments.edited(edit.old, edit.new, everywhere=edit.replace_all)
    else:
        runs = [Run(None, new) for _, _, new, _ in edit.hunks if new]
        fragments = Fragments((*(Run(None, run.lines) for run in fragments.runs), *runs))
    track.add(edit, Grade.PARTIAL if fragments.runs else Grade.LOST, None, fragments=fragments, **told)


def _recorded(
    track: Track, edit: FileEdit, base: str | None, computed: str | None, *, may_format: bool = False
) -> None:
    """An edit whose text before and after OpenCode has recorded; neither shows a byte order mark."""
    before, after = edit.before or "", edit.after or ""
    follows = base is not None and base.removeprefix(rules.BOM) == before.removeprefix(rules.BOM)
    # An empty old text overwrites: the recorded text before is empty then, whatever was there (section 9, 6).
    overwrites = edit.operation is Operation.EDIT and edit.old == ""
    was_gone = track.is_gone and edit.other is None and before != ""
    outside = not overwrites and (was_gone or (base is not None and not follows))
    evidence, kinds = ["recorded text after the edit"], {RESULT}
    if follows and computed == after:
        evidence.append(f"{edit.operation.value} of a proven text")
        kinds.add(CALL)
    keeps_mark = base is not None and base.startswith(rules.BOM) and not rules.is_old(edit.version)
    text = None if keeps_mark and not after.startswith(rules.BOM) else after
    # What came before and is the text this one started from did end before it, overlap or not.
    may_format = may_format and not formatters.shows_it(edit)
    told: dict[str, Any] = {"outside": outside, "orderly": follows, "may_format": may_format}
    _put(track, edit, text, after, tuple(evidence), frozenset(kinds), **told)


def _put(  # noqa: PLR0917 - what every caller has to say
    track: Track,
    edit: FileEdit,
    text: str | None,
    candidate: str,
    evidence: tuple[str, ...],
    kinds: frozenset[str],
    *,
    outside: bool = False,
    orderly: bool = False,
    mark_unknown: bool = False,
    may_format: bool = False,
) -> None:
    """`text` stands now, if it is certain and nothing ran beside it; else `candidate` is the best that is known."""
    told: dict[str, Any] = {"evidence": evidence, "kinds": kinds, "outside_change": outside}
    if may_format and (orderly or not track.overlaps(edit)):
        text = candidate if text is None else text
        track.put_text(edit, Grade.STALE, text, note=formatters.AS_WRITTEN, unconfirmed=True, **told)
    elif text is None or (mark_unknown and not track.overlaps(edit)):
        told["note"] = MARK_UNKNOWN
        track.put_text(edit, Grade.PARTIAL, candidate if text is None else text, mark_unknown=True, **told)
    elif track.overlaps(edit) and not orderly:
        track.put_text(edit, Grade.STALE, text, note=CONCURRENT, outside_change=outside)
    else:
        track.put_text(edit, certain(kinds), text, note=edit.note, **told)
