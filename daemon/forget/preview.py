"""Says what a removal takes out and what it cannot, in words for a person.

Nothing here is redacted yet.
"""

from __future__ import annotations

from daemon.archive import Archive
from daemon.archive.migrations import backups_before
from daemon.display import counted
from daemon.files.trees import is_beneath
from daemon.forget import pages
from daemon.forget.removal import Plan
from daemon.forget.selection import Selection
from daemon.model import Json, Session

_QUOTED = "what other sessions quote of it cannot be known and stays: search for its words, and forget those too"
_SOURCE = "OpenCode still has it; it is never read from there again"
_OUTSIDE = (
    "backups and snapshots of your file system are yours and stay; an archive that is restored from an older backup "
    "has it again"
)
_PAGES = (
    "the service writes the pages anew at once, or at its next start; pages that you edited or copied stay as they are"
)
_PATH = (
    "what people and models said of it in their own words stays, and so does what is recorded under another name: "
    "search for it, and forget those messages or files too"
)
_LATER = "work on it in later messages is archived again; `exclude.paths` in the configuration keeps it out"


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
        "pages": sorted(map(pages.folder, plan.pages)),
        "results": [str(path) for path in plan.results],
        "notes": _notes(archive, selection, plan),
    }


def _conversations(archive: Archive, selection: Selection) -> list[str]:
    """What stays of the sessions that ran in a folder that is forgotten."""
    place = selection.places[0]
    number = sum(is_beneath(session.directory, place) for session in archive.sessions() if session.directory)
    if not number:
        return []
    what = counted(number, "session")
    note = f"what was said in {what} that ran there stays, with the folder's name: forget the folder as a project, too"
    return [note]


def _session(archive: Archive, session: Session) -> Json:
    return {
        "id": session.id,
        "title": session.title,
        "directory": session.directory,
        "parent_id": session.parent_id or "",
        "updated": session.updated,
        "messages": len(archive.message_ids(session.id)),
    }


def _notes(archive: Archive, selection: Selection, plan: Plan) -> list[str]:
    notes = [_SOURCE, _PATH if selection.places else _QUOTED, _OUTSIDE]
    if selection.places:
        notes.insert(1, _LATER)
        notes += _conversations(archive, selection)
    if plan.pages:
        notes.append(_PAGES)
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
