"""Compares the known state of a file with a record of its whole state: a snapshot tree, recorded diff or attachment.

An observation that agrees confirms the state. One that differs shows a change from outside, unless it repeats the last
observation of its kind: then it is an old one and proves nothing (a snapshot may be stale, and never holds ignored or
large files).
"""

from __future__ import annotations

from dataclasses import dataclass

from daemon.files import apply
from daemon.files.content import Content, variant_with_id
from daemon.files.events import formatters
from daemon.files.history import (
    ATTACHMENT,
    CALL,
    DIFF,
    READ,
    RESULT,
    SNAPSHOT,
    Grade,
    Revision,
    certain,
)
from daemon.files.replay.track import MARK_UNKNOWN, State, Track, started
from daemon.model import FileEdit, Operation
from daemon.transcript.evidence.recorded_diffs import NO_MARK

LARGE = 2 << 20
"""Bytes; since 1.15 snapshots leave out larger files (opencode-formats.md, Tools 11)."""

_BY_CALL = frozenset({CALL, RESULT})
"""The evidence of content that only the call shows: a formatter may have run before the call ended."""
_OBSERVED = frozenset({Operation.READ, Operation.SNAPSHOT, Operation.STATE})


@dataclass(frozen=True, slots=True)
class Observation:
    """A whole state in one record; `content` is None if the path is gone.

    `previous` is the result of the last observation of its kind: a blob id, empty for gone, None if there was none;
    `since` is the number of that event. `is_forced`: the event itself made this state (a revert). `is_captured`: the
    content is archived. `hides_mark`: a byte order mark would not show. `is_fresh`: it has other recent changes, so it
    is not stale. `may_ignore`: git may leave the file out. Files of more than `largest` bytes are left out.
    """

    kind: str
    evidence: str
    content: Content | None
    previous: str | None
    since: int = 0
    mode: int = 0
    is_forced: bool = False
    is_captured: bool = True
    hides_mark: bool = False
    is_fresh: bool = False
    may_ignore: bool = False
    largest: int = 1 << 62

    @property
    def is_news(self) -> bool:
        """Whether it differs from the previous observation."""
        return self.previous is None or self.previous != ("" if self.content is None else self.content.id)


def observe(track: Track, edit: FileEdit, observation: Observation) -> None:
    """Confirm, contradict or replace the known state of a path with a recorded whole state."""
    content = observation.content
    if track.now is None:
        if content is not None or observation.is_forced:
            _replace(track, edit, observation, outside=False)
    elif holds(track, content) or _is_pointer_to(track, content):
        _confirm(track, edit, observation)
    elif observation.is_forced:
        _replace(track, edit, observation, outside=False)
    elif (track.is_certain or track.is_unconfirmed) and _is_normalised(track.whole, observation):
        return
    elif track.is_certain or (track.is_unconfirmed and content is None):
        _contradict(track, edit, observation)
    elif content is None:
        if observation.previous:
            _replace(track, edit, observation, outside=False)
    elif observation.is_news or track.definite <= observation.since:
        _replace(track, edit, observation, outside=False)


def is_outdated(track: Track, edit: FileEdit, content: Content | None) -> bool:
    """Whether the file certainly had `content` at some time since `edit` started, but no longer.

    A tree is recorded some time after it was made, and a recorded diff may be of an earlier step of its turn.
    """
    begun = started(edit)
    if not track.revisions or track.revisions[-1].time <= begun or holds(track, content):
        return False
    later = [revision for revision in track.revisions[:-1] if revision.time > begun]
    before = track.revisions[-2 - len(later) : -1 - len(later)]
    return any(
        revision.proven
        and (revision.deleted if content is None else revision.whole is not None and revision.whole.is_same(content))
        for revision in (*before, *later)
    )


def holds(track: Track, content: Content | None) -> bool:
    """Whether `content`, None for gone, is the known content of the path now."""
    now = track.now
    if now is None or content is None:
        return now is not None and now.deleted
    if now.deleted or now.whole is None:
        return False
    return now.whole.is_same(content)


def _is_normalised(whole: Content | None, observation: Observation) -> bool:
    """Whether git's `text` attribute turned CRLF into LF in the blob; the working file still has CRLF.

    False if an earlier tree had the CRs, because then git does not normalise here and the file has changed.
    """
    data = None if whole is None or observation.content is None else whole.data
    if whole is None or observation.content is None or data is None or b"\r\n" not in data:
        return False
    return observation.previous != whole.id and observation.content.data == data.replace(b"\r\n", b"\n")


def _confirm(track: Track, edit: FileEdit, observation: Observation) -> None:
    """The observation agrees with the known state."""
    if track.is_certain or (track.is_unconfirmed and not observation.hides_mark):
        if not track.revisions[-1].mode:
            track.revisions[-1].mode = observation.mode
        track.confirm(observation.kind, observation.evidence)
        return
    if observation.hides_mark and (track.mark_unknown or track.is_unconfirmed):
        track.confirm_but_mark(observation.kind, observation.evidence)
        return
    if observation.hides_mark:
        _replace(track, edit, observation, outside=False)
        return
    if observation.content is None and track.definite > observation.since and not observation.is_news:
        return
    before = next((r for r in reversed(track.revisions) if r.proven), None)
    kinds, evidence = frozenset({observation.kind}), [observation.evidence]
    known, whole = None if before is None else before.whole, track.whole
    if before is not None and known is not None and whole is not None and known.is_same(whole):
        kinds |= before.kinds
        evidence.append("the same content as was proven before")
    is_gone = observation.content is None
    state = State(certain(kinds), whole, evidence=tuple(evidence), kinds=kinds, deleted=is_gone, mode=observation.mode)
    track.add(edit, state)


def _contradict(track: Track, edit: FileEdit, observation: Observation) -> None:
    """The state is certain and the observation differs."""
    now = track.revisions[-1]
    if observation.content is None:
        _contradict_presence(track, edit, observation)
    elif observation.is_news:
        was_formatted = now.tool in formatters.TOOLS and now.kinds <= _BY_CALL and _is_of(now, edit)
        if was_formatted:
            # The configuration is rarely recorded, and a change by the end of the step or turn is most likely a
            # formatter's.
            now.grade, now.note = Grade.STALE, formatters.AS_WRITTEN
        _replace(track, edit, observation, outside=not was_formatted)
    elif observation.is_fresh and track.definite > observation.since and now.operation not in _OBSERVED:
        note = f"{observation.evidence}, taken after it, shows what there was before"
        track.add(edit, State(Grade.STALE, now.whole, note=note, outside_change=True))


def _contradict_presence(track: Track, edit: FileEdit, observation: Observation) -> None:
    """The state is certain and the observation lacks the file."""
    now = track.revisions[-1]
    if observation.previous is None:
        note = f"the first {observation.kind} of its folder does not hold it: ignored by git, or gone"
        track.add(edit, State(Grade.STALE, now.whole, note=note))
    elif observation.previous and (now.size or 0) <= observation.largest:
        if observation.may_ignore:
            note = f"{observation.evidence} does not hold it any more: ignored by git from then on, or gone"
            track.add(edit, State(Grade.STALE, now.whole, note=note))
        else:
            _replace(track, edit, observation, outside=True)


def _is_of(revision: Revision, edit: FileEdit) -> bool:
    """Whether the observation was made after the step (a tree) or turn (a recorded diff) that made the revision."""
    if edit.operation is Operation.SNAPSHOT:
        return revision.message_id == edit.message_id
    return revision.session_id == edit.session_id and started(edit) <= revision.time <= edit.time != started(edit)


def _replace(track: Track, edit: FileEdit, observation: Observation, *, outside: bool) -> None:
    """The observed state becomes the state; `outside`: something other than a recorded call made it."""
    content = observation.content
    if content is not None and not observation.is_captured:
        if not prove_by_hash(track, edit, content.id, observation.evidence):
            _add_without_content(track, edit, observation, blob=content.id, outside=outside)
    elif content is not None and _is_pointer(content):
        _add_without_content(track, edit, observation, blob="", outside=outside)
    elif content is not None and observation.hides_mark:
        state = State(
            Grade.PARTIAL,
            content,
            evidence=(observation.evidence,),
            kinds=frozenset({observation.kind}),
            note=MARK_UNKNOWN,
            outside_change=outside,
            mark_unknown=True,
            appeared=observation.previous == "",
        )
        track.add(edit, state)
    else:
        state = State(
            Grade.PROVEN,
            content,
            evidence=(observation.evidence,),
            kinds=frozenset({observation.kind}),
            deleted=content is None,
            outside_change=outside,
            mode=observation.mode,
            appeared=content is not None and observation.previous == "",
        )
        track.add(edit, state)


def _add_without_content(track: Track, edit: FileEdit, observation: Observation, *, blob: str, outside: bool) -> None:
    note = f"{observation.evidence}: its content was not captured"
    track.add(edit, State(Grade.LOST, note=note, outside_change=outside, mode=observation.mode, blob=blob))


def prove_by_hash(track: Track, edit: FileEdit, id_: str, evidence: str, text: str | None = None) -> bool:
    """Add a certain state if the known content, or `text`, has the hash in a snapshot."""
    fragments = None if track.now is None else track.now.fragments
    if text is None:
        text = track.text
    if text is None and fragments is not None and not fragments.has_gaps:
        text = "\n".join(fragments.runs[0].lines)
    content = None if text is None else variant_with_id(text, id_)
    if content is None:
        return False
    kinds = frozenset({SNAPSHOT, READ if edit.operation is not Operation.STATE else DIFF})
    state = State(
        certain(kinds),
        content,
        evidence=(evidence, "its text, as records show it, has the hash that the snapshot names"),
        kinds=kinds,
        mode=0 if track.now is None else track.now.mode,
    )
    track.add(edit, state)
    return True


def _is_pointer_to(track: Track, content: Content | None) -> bool:
    """Whether git has a Git LFS pointer to the known content of the file."""
    whole = track.whole
    if content is None or whole is None or not track.is_certain or not _is_pointer(content):
        return False
    return f"oid sha256:{whole.sha256}".encode() in (content.data or b"")


def _is_pointer(content: Content) -> bool:
    """Whether this is a Git LFS pointer, not the content."""
    return 0 <= content.size < 1024 and (content.data or b"").startswith(b"version https://git-lfs.github.com/spec/")


# -- states ------------------------------------------------------------------------------------------------------


def recorded_state(track: Track, edit: FileEdit, content: Content | None, number: int) -> None:
    """Replay a STATE event. `edit.tool` is its origin: revert, read, attachment, else a recorded diff."""
    if edit.tool == "revert":
        track.definite = number
        observe(track, edit, Observation(SNAPSHOT, edit.note, content, None, is_forced=True))
    elif edit.tool == "read":  # one that found no file
        if track.now is not None and not track.overlaps(edit):
            observe(track, edit, Observation(READ, edit.note, content, "there"))
    elif edit.tool == "attachment":
        observe(track, edit, Observation(ATTACHMENT, edit.note or "attached whole", content, None))
    else:
        _recorded_diff(track, edit, content, number)


def _recorded_diff(track: Track, edit: FileEdit, content: Content | None, number: int) -> None:
    """The text of a file on one side of a recorded diff."""
    known = track.text
    is_same = False
    if known is not None and known.startswith(apply.BOM) and content is not None:
        # Recorded diffs are decoded texts, and decoding drops a byte order mark.
        is_same = content.data == known.removeprefix(apply.BOM).encode()
        content = track.whole if is_same else content
    now = track.now
    evidence = f"recorded diff, {edit.note.removesuffix(NO_MARK)}"
    if now is not None and now.blob and edit.content and prove_by_hash(track, edit, now.blob, evidence, edit.content):
        track.last_observed[DIFF] = (now.blob, number)
        return
    if is_outdated(track, edit, content):
        return
    previous, since = track.last_observed.get(DIFF, (None, 0))
    track.last_observed[DIFF] = ("" if content is None else content.id, number)
    if content is None and previous is None and track.exists:
        previous = ""  # a diff that begins without the file does not report a deletion
    hides_mark = (is_same or edit.note.endswith(NO_MARK)) and track.may_have_mark()
    evidence = evidence if edit.note else "recorded diff"
    observe(track, edit, Observation(DIFF, evidence, content, previous, since, hides_mark=hides_mark))
