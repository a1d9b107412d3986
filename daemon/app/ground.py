"""What a run of a target stood on besides its evidence, so that it runs again when there is more to stand on.

One rule for every reason why pages may be worse than the archive allows: a run notes what was still to come when it
began, which folders had which names, and by which settings and version it was made; when some of that has come or has
changed, it is made again. New evidence is not in it: that triggers runs by itself (jobs.JobLoop.taken).
"""

from __future__ import annotations

from importlib.metadata import version

from daemon.archive import Archive
from daemon.config import Config
from daemon.control.identity import meaning
from daemon.ingest import Upkeep
from daemon.model import Json
from daemon.records import digest, dumps

MEANINGS = {
    "words": "messages that are not indexed by words yet",
    "meaning": "messages that are not indexed by meaning yet",
    "snapshots": "snapshots that are not captured yet",
    "sources": "sources that could not be read",
}
"""What may be still to come, for people."""


def ground(archive: Archive, upkeep: Upkeep, config: Config, *, unread: int, captured: int) -> Json:
    """``{pending: {what: how far}, aliases, settings}``; a pending thing whose value changes has got on.

    `unread` is how many sources could not be read, `captured` how many objects have been captured so far.
    """
    pending: dict[str, int] = {}
    if archive.waiting("lexical"):
        pending["words"] = 0
    if archive.waiting("semantic") or upkeep.semantic is None:
        pending["meaning"] = 0
    if archive.objects.wanted():
        pending["snapshots"] = captured
    if unread:
        pending["sources"] = unread
    settings = {**meaning(config, "reconstitute"), "version": version("reconstitute")}
    return {
        "pending": pending,
        "aliases": digest(dumps(archive.files.aliases())),
        "settings": digest(dumps(settings)),
    }


def is_better(now: Json, was: Json) -> bool:
    """Whether pages that were made on the one ground may be better on the other."""
    came = any(now["pending"].get(what) != far for what, far in was["pending"].items())
    return came or any(now[what] != was.get(what) for what in ("aliases", "settings"))


def missing(was: Json) -> list[str]:
    """What was still to come, for people."""
    return [MEANINGS[what] for what in was["pending"] if what in MEANINGS]
