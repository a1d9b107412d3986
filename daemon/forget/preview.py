"""Says what a removal takes out and what it cannot, in words for a person.

Nothing here is redacted yet.
"""

from __future__ import annotations

from daemon.archive import Archive
from daemon.archive.migrations import backups_before
from daemon.display import counted
from daemon.forget import mentions
from daemon.forget.removal import Plan
from daemon.forget.selection import Selection
from daemon.model import Json, Session

_QUOTED = "what other sessions quote of it cannot be known and stays: search for its words, and forget those too"
_SOURCE = "OpenCode still has it; it is never read from there again"
_OUTSIDE = (
    "pages, backups and snapshots of your file system are yours and stay; an archive that is restored from an older "
    "backup has it again"
)


def of(archive: Archive, selection: Selection, plan: Plan) -> Json:
    """The fields of answers.Forget, before the removal."""
    return {
        "sessions": [_session(archive, session) for session in selection.sessions],
        "message_id": selection.message_id,
        "path": next(iter(selection.places), ""),
        "parts": plan.parts,
        "messages": len(plan.messages) or plan.shortened,
        "files": len(plan.paths),
        "objects": plan.objects,
        "targets": plan.targets,
        "pages": sorted({folder for target in plan.targets for folder in mentions.page_folders(archive, target)}),
        "results": [str(path) for path in plan.results],
        "notes": _notes(archive, selection),
    }


def _session(archive: Archive, session: Session) -> Json:
    return {
        "id": session.id,
        "title": session.title,
        "directory": session.directory,
        "parent_id": session.parent_id or "",
        "updated": session.updated,
        "messages": len(archive.message_ids(session.id)),
    }


def _notes(archive: Archive, selection: Selection) -> list[str]:
    notes = [_SOURCE, _QUOTED, _OUTSIDE]
    notes += [
        f"the backup from before an upgrade goes too, and with it the way back to the older version: {folder}"
        for folder in backups_before(archive.directory)
    ]
    chosen = {session.id for session in selection.sessions}
    agents = sum(session.parent_id in chosen for session in selection.sessions)
    if agents:
        notes.insert(0, f"{counted(agents, 'session')} of sub-agents {'goes' if agents == 1 else 'go'} with the others")
    parents = sorted({session.parent_id for session in selection.sessions if session.parent_id} - chosen)
    parents = [name for name in parents if archive.session(name) is not None]
    if parents:
        notes.append(f"what a sub-agent answered stays in the session that asked it: {', '.join(parents)}")
    if selection.later:
        later = counted(selection.later, "session")
        notes.append(f"not among them: {later} that began before then and went on after it")
    if selection.message_id:
        notes.append(
            "the session's title and OpenCode's own summaries of its turns may tell of the message and stay; the "
            "session's recorded diff goes"
        )
    return notes
