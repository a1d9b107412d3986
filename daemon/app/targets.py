"""Which folders and files are kept reconstituted, and when another run may improve their pages.

Targets come from the configuration, and from requests to keep a path up to date; for the same path the configuration
wins.

Each run stores its ground: which work was pending when it began, the aliases of folders, the settings and the version.
If some of the pending work has been done or the rest has changed, the target runs again. New evidence is not part of
the ground, because it triggers runs by itself (jobs.JobLoop.on_scan).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from daemon import __version__
from daemon.archive import TOOLS, Archive
from daemon.config import Config
from daemon.control.identity import meaning
from daemon.ingest import Upkeep
from daemon.model import Json, Target
from daemon.records import digest, dumps

Ground = Json
"""``{pending: {cause: progress}, aliases, settings}``; a cause whose progress has changed has advanced."""

_ADOPTED = ""
"""Where the archive keeps the list of adopted targets: no target has an empty path."""

MEANINGS = {
    "words": "messages that are not indexed by words yet",
    "meaning": "messages that are not indexed by meaning yet",
    "snapshots": "snapshots that are not captured yet",
    "sources": "sources that could not be read",
}
"""Descriptions of pending work, for users."""


def known(archive: Archive, config: Config) -> dict[str, Target]:
    """All targets, by absolute path."""
    return adopted(archive) | {target.path: target for target in configured(config)}


def configured(config: Config) -> list[Target]:
    """The configuration's targets, with absolute paths."""
    return [
        Target(
            path=section.place,
            questions=tuple(section.questions),
            schedule=section.schedule,
            refresh=section.refresh,
        )
        for section in config.targets
    ]


def adopted(archive: Archive) -> dict[str, Target]:
    """Targets that a request asked to be kept up to date."""
    stored = archive.target_get(_ADOPTED, "targets") or {}
    return {
        path: Target(path=path, questions=tuple(fields["questions"]), refresh="continuous", output=fields["output"])
        for path, fields in stored.items()
    }


def adopt(archive: Archive, target: Target) -> None:
    """Keep this target up to date from now on, as if it were configured; stored in the archive."""
    stored = archive.target_get(_ADOPTED, "targets") or {}
    stored[target.path] = {"questions": list(target.questions), "output": target.output}
    archive.target_put(_ADOPTED, "targets", stored)


def drop(archive: Archive, path: str) -> bool:
    """Stop following a target that a request added; returns whether there was one. Configured targets stay."""
    stored = archive.target_get(_ADOPTED, "targets") or {}
    if stored.pop(path, None) is None:
        return False
    archive.target_put(_ADOPTED, "targets", stored)
    return True


def with_own_questions(target: Target, targets: dict[str, Target]) -> Target:
    """`target` with the questions of the existing target of its path (in `targets`) first.

    Otherwise a run for one more question would remove the other answers from the page.

    >>> with_own_questions(Target("/a/", ("why?", "how?")), {"/a": Target("/a", ("how?",))}).questions
    ('how?', 'why?')
    """
    existing = targets.get("/" + os.path.normpath(target.path).lstrip("/"))
    if existing is None:
        return target
    return replace(target, questions=tuple(dict.fromkeys((*existing.questions, *target.questions))))


def last_success(last: Json) -> int | None:
    """Epoch ms of a target's last successful run, from its stored last run; None: never."""
    when: int | None = last.get("time") if last.get("state") == "done" else last.get("succeeded")
    return when


def concerns(places: Iterable[str], target: str) -> bool:
    """Whether one of these paths lies beneath the target, or the target beneath it.

    >>> concerns({"/a/b"}, "/a"), concerns({"/a"}, "/a/b"), concerns({"/ab"}, "/a")
    (True, True, False)
    """
    base = target.rstrip("/")
    return any(
        place == target or place.startswith(base + "/") or (place and target.startswith(place.rstrip("/") + "/"))
        for place in places
    )


# -- grounds ---------------------------------------------------------------------------------------------------------


def ground(archive: Archive, upkeep: Upkeep, config: Config, *, unread: int, captured: int) -> Ground:
    """The state of the archive and the settings that a run depends on.

    `unread` is how many sources could not be read, `captured` how many objects have been captured so far.
    """
    pending: dict[str, int] = {}
    if archive.waiting("lexical"):
        pending["words"] = 0
    if waits_for_meaning(archive) or (not upkeep.is_open and not upkeep.is_off):
        pending["meaning"] = 0
    if archive.objects.capture_queue():
        pending["snapshots"] = captured
    if unread:
        pending["sources"] = unread
    settings = {**meaning(config, "reconstitute"), "version": __version__}
    return {
        "pending": pending,
        "aliases": digest(dumps(archive.files.aliases())),
        "settings": digest(dumps(settings)),
    }


def waits_for_meaning(archive: Archive) -> bool:
    """Whether a message is still to be indexed by meaning."""
    return bool(archive.waiting("semantic") or archive.waiting(TOOLS))


def is_better(now: Ground, was: Ground) -> bool:
    """Whether pages made on `was` may become better on `now`."""
    came = any(now["pending"].get(cause) != progress for cause, progress in was["pending"].items())
    return came or any(now[cause] != was.get(cause) for cause in ("aliases", "settings"))


def pending_work(pending: Iterable[str]) -> list[str]:
    """Descriptions of the work that was still pending."""
    return [MEANINGS[cause] for cause in pending if cause in MEANINGS]
