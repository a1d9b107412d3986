"""What an observation says of a file: reads, whole states out of recorded diffs and attachments, snapshot trees.

An observation that agrees confirms the state. One that does not is news of an outside change, unless it says the same
as the observation of its kind before: then it did not notice what was done meanwhile, and proves nothing (a snapshot
may be stale, and never holds ignored or large files). Nothing is averaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from daemon.files import marks, variants
from daemon.files.apply import rules
from daemon.files.content import Content
from daemon.files.events import formatters
from daemon.files.fragments import Fragments, Run
from daemon.files.grade import ATTACHMENT, CALL, DIFF, READ, RESULT, SNAPSHOT, Grade, certain
from daemon.files.history import Revision
from daemon.files.replay.changes import MARK_UNKNOWN
from daemon.files.replay.track import Track, started
from daemon.model import FileEdit, Operation
from daemon.transcript.evidence.edits import INEXACT_READ
from daemon.transcript.evidence.recorded_diffs import NO_MARK

NOT_UTF8 = "it holds U+FFFD: the file may have other bytes there"
LARGE = 2 << 20
"""Bytes; since 1.15 snapshots leave out larger files (opencode-formats.md, Tools 11)."""

_UNSEEN = frozenset({CALL, RESULT})
"""The evidence of content that nothing has shown since the call: a formatter may have run before that ended."""
_OBSERVED = frozenset({Operation.READ, Operation.SNAPSHOT, Operation.STATE})


@dataclass(frozen=True, slots=True)
class Sight:
    """A whole state as one observation shows it: `content` is None where the path is gone.

    `was` is what the observation of its kind before showed: a blob id, empty for gone, None where there was none.
    `since` is the number of that one; `forced`: the event itself made this state (a revert). `is_blind`: a byte order
    mark would not show in it; `is_fresh`: it has noticed other changes, so it is not an old one; `is_ignoring`: git
    may leave the file out of it; files of more than `largest` bytes are left out of it.
    """

    kind: str
    evidence: str
    content: Content | None
    was: str | None
    since: int = 0
    mode: int = 0
    forced: bool = False
    captured: bool = True
    is_blind: bool = False
    is_fresh: bool = False
    is_ignoring: bool = False
    largest: int = 1 << 62

    @property
    def is_news(self) -> bool:
        """Whether it says something else than the one before."""
        return self.was is None or self.was != ("" if self.content is None else self.content.id)


def see(track: Track, edit: FileEdit, sight: Sight) -> None:
    """Take up a whole state that a record shows."""
    now = track.now
    if now is None:
        if sight.content is not None or sight.forced:
            _adopt(track, edit, sight, outside=False)
        return
    if is_shown(track, sight.content) or _is_pointer_to(track, sight.content):
        _agree(track, edit, sight)
    elif sight.forced:
        _adopt(track, edit, sight, outside=False)
    elif (track.is_certain or track.is_unconfirmed) and _is_normalised(track.whole, sight):
        return
    elif track.is_certain or (track.is_unconfirmed and sight.content is None):
        _contradict(track, edit, sight)
    elif sight.content is None:
        _miss(track, edit, sight)
    elif sight.is_news or track.definite <= sight.since:
        _adopt(track, edit, sight, outside=False)


def was_so(track: Track, edit: FileEdit, content: Content | None) -> bool:
    """Whether `content` is a certain state that has passed since the observation can have been made (`started`).

    A tree is told of some time after it was taken, and a recorded diff may be of an earlier step of its turn.
    """
    begun = started(edit)
    if not track.revisions or track.revisions[-1].time <= begun or is_shown(track, content):
        return False
    later = [revision for revision in track.revisions[:-1] if revision.time > begun]
    before = track.revisions[-2 - len(later) : -1 - len(later)]
    return any(
        revision.proven
        and (revision.deleted if content is None else revision.whole is not None and revision.whole.is_same(content))
        for revision in (*before, *later)
    )


def is_shown(track: Track, content: Content | None) -> bool:
    """Whether `content`, None for gone, is what the path holds now as far as is known."""
    now = track.now
    if now is None or content is None:
        return now is not None and now.deleted
    if now.deleted or now.whole is None:
        return False
    return now.whole.is_same(content)


def _is_normalised(whole: Content | None, sight: Sight) -> bool:
    """Whether git, told so by attributes, took CR LF for LF when it stored the file; the file itself keeps its CRs.

    Not where a tree before held the CRs: then git does not do so here, and the file has changed.
    """
    data = None if whole is None or sight.content is None else whole.data
    if whole is None or sight.content is None or data is None or b"\r\n" not in data or sight.was == whole.id:
        return False
    return sight.content.data == data.replace(b"\r\n", b"\n")


def _agree(track: Track, edit: FileEdit, sight: Sight) -> None:
    if track.is_certain or (track.is_unconfirmed and not (sight.is_blind and _may_have_mark(track))):
        if not track.revisions[-1].mode:
            track.revisions[-1].mode = sight.mode
        track.confirm(sight.kind, sight.evidence)
        return
    if sight.is_blind and track.mark_unknown:
        now = track.revisions[-1]
        now.kinds, now.evidence = now.kinds | {sight.kind}, tuple(dict.fromkeys((*now.evidence, sight.evidence)))
        return
    if sight.content is None and track.definite > sight.since and not sight.is_news:
        return
    before = next((r for r in reversed(track.revisions) if r.proven), None)
    kinds, evidence = frozenset({sight.kind}), [sight.evidence]
    known, whole = None if before is None else before.whole, track.whole
    if before is not None and known is not None and whole is not None and known.is_same(whole):
        kinds |= before.kinds
        evidence.append("the same content as was proven before")
    told: dict[str, Any] = {"evidence": tuple(evidence), "kinds": kinds, "mode": sight.mode}
    track.add(edit, certain(kinds), whole, deleted=sight.content is None, **told)


def _contradict(track: Track, edit: FileEdit, sight: Sight) -> None:
    """The state is certain and the observation shows another one."""
    now = track.revisions[-1]
    was_changed = track.definite > sight.since
    if sight.content is None:
        if sight.was is None:
            note = f"the first {sight.kind} of its folder does not hold it: ignored by git, or gone"
            track.add(edit, Grade.STALE, now.whole, note=note)
        elif sight.was and (now.size or 0) <= sight.largest:
            if sight.is_ignoring:
                note = f"{sight.evidence} does not hold it any more: ignored by git from then on, or gone"
                track.add(edit, Grade.STALE, now.whole, note=note)
            else:
                _adopt(track, edit, sight, outside=True)
    elif sight.is_news:
        was_formatted = now.tool in formatters.TOOLS and now.kinds <= _UNSEEN and _is_of(now, edit)
        if was_formatted:
            # The configuration is seldom recorded: what the end of the step or turn shows is hardly anybody else's.
            now.grade, now.note = Grade.STALE, formatters.AS_WRITTEN
        _adopt(track, edit, sight, outside=not was_formatted)
    elif sight.is_fresh and was_changed and now.operation not in _OBSERVED:
        note = f"{sight.evidence}, taken after it, shows what there was before"
        track.add(edit, Grade.STALE, now.whole, note=note, outside_change=True)


def _is_of(revision: Revision, edit: FileEdit) -> bool:
    """Whether a tree is of the end of the step that made a revision, or a recorded diff of the turn that did."""
    if edit.operation is Operation.SNAPSHOT:
        return revision.message_id == edit.message_id
    return revision.session_id == edit.session_id and started(edit) <= revision.time <= edit.time != started(edit)


def _miss(track: Track, edit: FileEdit, sight: Sight) -> None:
    """The observation does not hold a file whose state is not certain."""
    if sight.was:
        _adopt(track, edit, sight, outside=False)


def _adopt(track: Track, edit: FileEdit, sight: Sight, *, outside: bool) -> None:
    kinds = frozenset({sight.kind})
    if sight.content is not None and not sight.captured and _by_hash(track, edit, sight.content.id, sight.evidence):
        return
    if sight.content is not None and (not sight.captured or _is_pointer(sight.content)):
        note = f"{sight.evidence}: its content was not captured"
        blob = "" if sight.captured else sight.content.id
        track.add(edit, Grade.LOST, None, note=note, outside_change=outside, mode=sight.mode, blob=blob)
        return
    told: dict[str, Any] = {"evidence": (sight.evidence,), "kinds": kinds, "outside_change": outside}
    told["appeared"] = sight.content is not None and sight.was == ""
    if sight.is_blind and sight.content is not None:
        track.add(edit, Grade.PARTIAL, sight.content, note=MARK_UNKNOWN, mark_unknown=True, **told)
    else:
        track.add(edit, Grade.PROVEN, sight.content, deleted=sight.content is None, mode=sight.mode, **told)


def _by_hash(track: Track, edit: FileEdit, id_: str, evidence: str, text: str | None = None) -> bool:
    """Whether what is known of the file, or `text`, has the hash that a snapshot names; it is certain then."""
    fragments = None if track.now is None else track.now.fragments
    if text is None:
        text = track.text
    if text is None and fragments is not None and not fragments.has_gaps:
        text = "\n".join(fragments.runs[0].lines)
    found = None if text is None else variants.with_id(text, id_)
    if found is None:
        return False
    told = (evidence, "its text, as records show it, has the hash that the snapshot names")
    kinds = frozenset({SNAPSHOT, READ if edit.operation is not Operation.STATE else DIFF})
    mode = 0 if track.now is None else track.now.mode
    track.add(edit, certain(kinds), found, evidence=told, kinds=kinds, mode=mode)
    return True


def _is_pointer_to(track: Track, content: Content | None) -> bool:
    """Whether git holds a note of where the very content lies that the file is known to have."""
    whole = track.whole
    if content is None or whole is None or not track.is_certain or not _is_pointer(content):
        return False
    return f"oid sha256:{whole.sha256}".encode() in (content.data or b"")


def _is_pointer(content: Content) -> bool:
    """Whether git holds only a note of where the content lies (Git LFS)."""
    return 0 <= content.size < 1024 and (content.data or b"").startswith(b"version https://git-lfs.github.com/spec/")


# -- states ------------------------------------------------------------------------------------------------------


def state(track: Track, edit: FileEdit, content: Content | None, number: int) -> None:
    """A whole state out of a recorded diff, an attachment, or made by a revert."""
    if edit.tool == "revert":
        track.definite = number
        see(track, edit, Sight(SNAPSHOT, edit.note, content, None, forced=True))
        return
    if edit.tool == "read":  # one that found no file
        if track.now is not None and not track.overlaps(edit):
            see(track, edit, Sight(READ, edit.note, content, "there"))
        return
    if edit.tool == "attachment":
        see(track, edit, Sight(ATTACHMENT, edit.note or "attached whole", content, None))
        return
    known = track.text
    if known is not None and known.startswith(rules.BOM) and content is not None:
        # Recorded diffs are texts that were decoded, and decoding drops a byte order mark.
        same = content.data == known.removeprefix(rules.BOM).encode()
        content = track.whole if same else content
    now = track.now
    how = f"recorded diff, {edit.note.removesuffix(NO_MARK)}"
    if now is not None and now.blob and edit.content and _by_hash(track, edit, now.blob, how, edit.content):
        track.seen[DIFF] = (now.blob, number)
        return
    if was_so(track, edit, content):
        return
    id_ = "" if content is None else content.id
    was, since = track.seen.get(DIFF, (None, 0))
    track.seen[DIFF] = (id_, number)
    if content is None and was is None and track.exists:
        was = ""  # that a diff begins without the file is no news of a deletion
    blind = edit.note.endswith(NO_MARK) and marks.may_begin_with_one(track.path) and not _had_no_mark(track)
    evidence = f"recorded diff, {edit.note.removesuffix(NO_MARK)}" if edit.note else "recorded diff"
    see(track, edit, Sight(DIFF, evidence, content, was, since, is_blind=blind))


# -- reads -------------------------------------------------------------------------------------------------------


def read(track: Track, edit: FileEdit) -> None:
    """The whole file, or some lines of it, as the read tool shows them."""
    text, now = edit.content, track.now
    whole = text if edit.operation is Operation.READ else None
    if whole is not None and now is not None and now.blob and _by_hash(track, edit, now.blob, "complete read", whole):
        return
    if text is None or _is_shown(track, edit, text) or track.overlaps(edit):
        return  # one that overlaps may show the text before the other call, or the one after
    if edit.operation is Operation.READ_RANGE:
        _range(track, edit, text)
        return
    outside = track.is_certain or track.mark_unknown
    if edit.note.startswith(INEXACT_READ):
        known = track.fragments
        fragments = Fragments((Run(1, tuple(text.split("\n"))),), is_all=True)
        if known is not None and not known.has_gaps and known.runs == fragments.runs:
            fragments = known  # a diff may have told more than a read can
        evidence = ("complete read",)
        track.add(
            edit, Grade.PARTIAL, None, evidence=evidence, note=edit.note, outside_change=outside, fragments=fragments
        )
    elif "\ufffd" in text:
        track.put_text(edit, Grade.STALE, text, note=NOT_UTF8, outside_change=outside)
    else:
        told: dict[str, Any] = {"kinds": frozenset({READ}), "outside_change": outside}
        if marks.may_begin_with_one(track.path, was_read=True) and not _had_no_mark(track):
            told |= {"evidence": ("complete read",), "note": MARK_UNKNOWN, "mark_unknown": True}
            track.put_text(edit, Grade.PARTIAL, text, **told)
        else:
            evidence = ("complete read, in which a byte order mark would not show",)
            track.put_text(edit, Grade.PROVEN, text, evidence=evidence, note=edit.note, **told)


def _may_have_mark(track: Track) -> bool:
    """Whether a byte order mark may stand before a text in which none would show."""
    return marks.may_begin_with_one(track.path) and not _had_no_mark(track)


def _had_no_mark(track: Track) -> bool:
    """Whether the file was once known to begin without one; what changes a file seldom puts one before it."""
    known = next((r.content for r in reversed(track.revisions) if r.proven and r.whole is not None), None)
    return known is not None and not known.startswith(rules.BOM.encode())


def _range(track: Track, edit: FileEdit, text: str) -> None:
    lines = tuple(text.split("\n"))
    first = _first(edit)
    if (track.is_certain or track.mark_unknown) and not track.is_gone:
        note = f"a read of {edit.note} shows other text"
        track.add(edit, Grade.STALE, track.whole, note=note, outside_change=True)
        return
    if track.is_unconfirmed:
        note = f"a read of {edit.note} shows other text: a formatter ran"
        track.add(edit, Grade.STALE, track.whole, note=note)
        return
    if track.whole is not None and not track.is_gone:
        return  # whole content that may be stale says more than these lines, and they do not stand in it
    fragments = track.fragments or Fragments()
    fragments = fragments.seen(first, lines) if first is not None else Fragments((*fragments.runs, Run(None, lines)))
    note = f"only {edit.note} were seen" if len(fragments.runs) == 1 else "only some of its lines were seen"
    track.add(
        edit,
        Grade.PARTIAL,
        None,
        evidence=("read of a part",),
        note=note,
        outside_change=track.is_gone,
        fragments=fragments,
    )


def _first(edit: FileEdit) -> int | None:
    """The number of the first line that a read of some lines shows; None where its note does not say."""
    words = edit.note.split()
    return int(words[1]) if words[:1] == ["lines"] and len(words) > 1 and words[1].isdigit() else None


def _holds(whole: str, part: str, first: int | None) -> bool:
    """Whether the lines of `part` stand in `whole`, from line `first` on where that is known."""
    if first is None:
        return f"\n{part}\n" in f"\n{whole}\n"
    lines = part.split("\n")
    return whole.split("\n")[first - 1 : first - 1 + len(lines)] == lines


def _is_shown(track: Track, edit: FileEdit, text: str) -> bool:
    """Whether a read shows the text that is known; a whole one then confirms it."""
    known = track.text
    if known is None or not track.exists:
        return False
    if edit.operation is Operation.READ_RANGE:
        return _holds(rules.shown(known), rules.shown(text), _first(edit))
    is_exact = not edit.note.startswith(INEXACT_READ)
    is_same = known.removeprefix(rules.BOM) == text if is_exact else rules.shown(known) == text
    if not is_same:
        return False
    hides_mark = known.startswith(rules.BOM) or marks.may_begin_with_one(track.path, was_read=True)
    if is_exact and (track.is_certain or (track.is_unconfirmed and (not hides_mark or _had_no_mark(track)))):
        track.confirm(READ, "confirmed by a read")
        return True
    if is_exact and not track.mark_unknown:
        return False
    # The same lines; but how they end, and whether the file does with a newline, it does not show: no second kind of
    # evidence for the whole of a certain content, and none at all for one that may have changed.
    now = track.revisions[-1]
    now.evidence = tuple(dict.fromkeys((*now.evidence, "a read shows the same lines")))
    if not track.is_certain:
        now.kinds = now.kinds | {READ}
    return True
