"""Which folders and files are kept reconstituted: those of the configuration, and those that a request asked to follow.

What the configuration says of a path goes before what a request said of it.
"""

from __future__ import annotations

import os
from dataclasses import replace

from daemon.archive import Archive
from daemon.config import Config
from daemon.model import Json, Target

_ADOPTED = ""
"""Where the archive keeps the list of adopted targets: no target has an empty path."""


def known(archive: Archive, config: Config) -> dict[str, Target]:
    """All of them, by absolute path."""
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
        path: Target(path=path, questions=tuple(each["questions"]), refresh="continuous", output=each["output"])
        for path, each in stored.items()
    }


def adopt(archive: Archive, target: Target) -> None:
    """Follow it from now on, as if the configuration named it; the archive remembers."""
    stored = archive.target_get(_ADOPTED, "targets") or {}
    stored[target.path] = {"questions": list(target.questions), "output": target.output}
    archive.target_put(_ADOPTED, "targets", stored)


def drop(archive: Archive, path: str) -> bool:
    """Follow it no more; whether a request had asked to. What the configuration names stays."""
    stored = archive.target_get(_ADOPTED, "targets") or {}
    if stored.pop(path, None) is None:
        return False
    archive.target_put(_ADOPTED, "targets", stored)
    return True


def with_own_questions(target: Target, there: dict[str, Target]) -> Target:
    """`target` with the questions, too, that are asked of its path anyway (`there`, by absolute path), those first:
    a run for a question more would else take the other answers off the page.

    >>> with_own_questions(Target("/a/", ("why?", "how?")), {"/a": Target("/a", ("how?",))}).questions
    ('how?', 'why?')
    """
    own = there.get("/" + os.path.normpath(target.path).lstrip("/"))
    if own is None:
        return target
    return replace(target, questions=tuple(dict.fromkeys((*own.questions, *target.questions))))


def last_success(last: Json) -> int | None:
    """When a target's last good run was, by what was stored of its last run (epoch ms); None: never."""
    when: int | None = last.get("time") if last.get("state") == "done" else last.get("succeeded")
    return when
