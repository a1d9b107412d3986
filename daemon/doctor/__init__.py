"""Whether everything works, and what mends what does not: one list of checks, each a small function that gives rows.

CHECKS look at the archive and what stands on it, so whoever holds it runs them: the service, else a command. MACHINE
needs only the configuration, and a command can always run it. `status` shows the rows of the QUICK ones that need a
person; the exit code follows from the rows in both (rows.exit_code).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from daemon.control.answers import Check
from daemon.doctor import machine
from daemon.doctor.rows import Subject, guarded

if TYPE_CHECKING:
    from daemon.config import Config

MACHINE: dict[str, Callable[[Config], Iterator[Check]]] = {
    "places": machine.places,
    "free space": machine.free_space,
    "file modes": machine.private,
}


def checks() -> dict[str, Callable[[Subject], Iterator[Check]]]:
    """The checks of whoever holds the archive, by name, in the order of the report."""
    from daemon.doctor import archive, indexes, models, sources  # noqa: PLC0415 - they load what they check

    return {
        "archive": archive.archive,
        "forgetting": archive.forgetting,
        "records": archive.checksums,
        "clock": archive.clock,
        "sources": sources.sources,
        "other databases": sources.unfollowed,
        "watch": sources.watch,
        "targets": sources.targets,
        "indexes": indexes.states,
        "words": indexes.words,
        "meaning": indexes.meaning,
        "embedding": models.embedding,
        "chat model": models.chat,
    }


QUICK = frozenset({"archive", "forgetting", "clock", "sources", "other databases", "watch", "targets", "indexes"})
"""The checks that read next to nothing and ask no server, so that `status` can run them."""


def of_machine(config: Config) -> list[Check]:
    """The rows of MACHINE."""
    return [row for what, check in MACHINE.items() for row in guarded(what, lambda check=check: check(config))]  # type: ignore[misc]


def of_archive(subject: Subject, on_check: Callable[[str], None], only: frozenset[str] | None = None) -> list[Check]:
    """The rows of the checks of the archive, all or `only` some; `on_check` is called before each with its name."""
    rows: list[Check] = []
    for what, check in checks().items():
        if only is None or what in only:
            on_check(what)
            rows += guarded(what, lambda check=check: check(subject))  # type: ignore[misc]
    return rows
