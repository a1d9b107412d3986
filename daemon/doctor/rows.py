"""A row of the report, and what the checks of whoever holds the archive look at.

A row says what was checked, its state, what that means, and the command that mends it. An error of a check is a row
too: a damaged archive or a wrong configuration ends no report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from daemon import log, supervisor
from daemon.control.answers import CHECK_STATES, Check, TargetStatus
from daemon.errors import ReconstituteError, Retry
from daemon.redact import redact

if TYPE_CHECKING:  # a command that opens no archive need not load them
    from daemon.archive import Archive
    from daemon.config import Config
    from daemon.exclude import Exclusion
    from daemon.ingest import Upkeep
    from daemon.opencode.discover import Sources

OK, ATTENTION, BROKEN, NOT_CHECKED = CHECK_STATES
RESTART = supervisor.restart()
_LOG = log.get("doctor")


@dataclass(frozen=True, slots=True)
class Subject:
    """What the checks look at; `service` is that of the running service, None where a command holds the archive."""

    config: Config
    archive: Archive
    upkeep: Upkeep
    sources: Sources
    exclusion: Exclusion
    unread: dict[str, str]
    """Why sources could not be read by the last scan, by name."""
    watch: str | None
    """How the service follows the sources, or why it cannot; None where a command holds the archive."""
    targets: list[TargetStatus]
    newest: int | None
    """When the newest archived message was created, epoch ms."""
    now: int
    on_entries: Callable[[int], None] | None = None
    """Called with the number of entries read, where everything is read; None: only a sample is."""

    @property
    def is_served(self) -> bool:
        """Whether the running service holds the archive."""
        return self.watch is not None


def ok(what: str, message: str, fix: str = "") -> Check:
    """Works; `fix` is what could be done all the same."""
    return Check(what, OK, redact(message), fix)


def attention(what: str, message: str, fix: str) -> Check:
    """Works, but a person should see to it."""
    return Check(what, ATTENTION, redact(message), fix)


def broken(what: str, message: str, fix: str) -> Check:
    """Does not work."""
    return Check(what, BROKEN, redact(message), fix)


def not_checked(what: str, message: str, fix: str = "") -> Check:
    """Could not be checked, or is not in use."""
    return Check(what, NOT_CHECKED, redact(message), fix)


def guarded(what: str, check: Callable[[], Iterable[Check]]) -> Iterator[Check]:
    """The rows of a check, and where it fails a row with the reason. Most of our errors name the fix at their end."""
    try:
        yield from check()
    except Retry as error:
        yield attention(what, *parted(str(error)))
    except ReconstituteError as error:
        yield broken(what, *parted(str(error)))
    except OSError as error:
        yield broken(what, f"{error.filename or what}: {error.strerror}", "see to the disk, then try again")
    except Exception as error:  # noqa: BLE001 - the other checks go on; the log has the traceback
        _LOG.warning("check failed", what=what, exc_info=error)
        yield broken(what, f"internal error ({type(error).__name__})", "report it, with: reconstitute -v doctor")


def exit_code(rows: Iterable[Check]) -> int:
    """2 where something is broken, 1 where a person should see to something, else 0."""
    states = {row.state for row in rows}
    return 2 if BROKEN in states else 1 if ATTENTION in states else 0


def troubles(rows: Iterable[Check]) -> list[Check]:
    """The rows that need a person."""
    return [row for row in rows if row.state in (ATTENTION, BROKEN)]


def parted(message: str) -> tuple[str, str]:
    """An error's cause and its fix, which stands after the last semicolon."""
    cause, _, fix = message.rpartition("; ")
    return (cause, fix) if cause else (message, "")


def restart(pid: int | None) -> str:
    """The command that starts the service again that runs as this process, or, if that is not known, the unit."""
    return RESTART if pid is None or is_of_unit(pid) else f"kill {pid}, then reconstitute run"


def is_of_unit(pid: int) -> bool:
    """Whether the process is that of reconstitute.service, by its control group."""
    try:
        return "reconstitute.service" in Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has ended, or this system has no control groups
        return True
