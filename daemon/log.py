"""What the daemon says of itself: lines for people on a terminal, JSON lines for the journal.

The only import of structlog. Guarantees (docs/reliability.md, X5): every text of a line, tracebacks and lines of other
libraries included, passed the redactor that `setup` was given, and holds no control characters; nothing is ever written
to stdout, which belongs to answers. Fixed event names, ids and counts: callers never log message text.

Before `setup`, warnings and errors go to stderr as Python's logging does it.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Protocol, TextIO, cast

import structlog
from structlog.stdlib import BoundLogger, ProcessorFormatter
from structlog.typing import EventDict, Processor, WrappedLogger

ROOT = "daemon"
PRIORITIES = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 2}
"""The journal's priorities; it reads them from a prefix and drops it."""
_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if code not in (9, 10)}


class Settings(Protocol):
    """What config.Log has."""

    @property
    def level(self) -> str:
        """The least severe level shown: debug, info, warning or error."""

    @property
    def format(self) -> str:
        """console, json, or auto: JSON when stderr is the journal."""


def get(name: str) -> BoundLogger:
    """A logger: ``get("ingest").info("pass finished", changed=3)``. Does nothing on its own; see `setup`."""
    full = name if name == ROOT or name.startswith(f"{ROOT}.") else f"{ROOT}.{name}"
    chain: list[Processor] = [
        structlog.stdlib.filter_by_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.format_exc_info,
        ProcessorFormatter.wrap_for_formatter,
    ]
    # Processors of its own: structlog's global configuration is not used, and its default would print to stdout.
    logger = structlog.wrap_logger(logging.getLogger(full), processors=chain, wrapper_class=BoundLogger)
    return cast("BoundLogger", logger)


def setup(settings: Settings, redact: Callable[[object], object], *, stream: TextIO | None = None) -> None:
    """Send all logging of this process through one handler on `stream` (stderr when not given). May be called again.

    Args:
        settings: config.Log.
        redact: redact.redact_value: a JSON value with the secrets in its texts replaced. Passed in, because this module
            and that one stand on the same layer.
        stream: where to.
    """
    stream = stream or sys.stderr
    journal = is_journal(stream, os.environ)
    as_json = settings.format == "json" or (settings.format == "auto" and journal)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_formatter(redact, as_json=as_json, journal=journal, colours=_colours(stream)))
    handler.set_name(ROOT)
    root = logging.getLogger()
    for old in [h for h in root.handlers if h.get_name() == ROOT]:
        root.removeHandler(old)
    root.addHandler(handler)
    # Other libraries are heard from warning on, also when we are at debug: theirs quote what they work on.
    root.setLevel(logging.WARNING)
    logging.getLogger(ROOT).setLevel(settings.level.upper())
    logging.captureWarnings(capture=True)
    # watchdog 7.1.0 formats its whole table of watches into this one (docs/reliability.md, section W).
    warnings.filterwarnings("ignore", message="Callback with id", category=RuntimeWarning)
    threading.excepthook = _thread_failed


def is_journal(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether this stream is the journal's: $JOURNAL_STREAM names its device and inode (systemd.exec(5)).

    The variable alone is no proof: it is inherited by children whose stderr is something else.
    """
    try:
        info = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environment.get("JOURNAL_STREAM", "") == f"{info.st_dev}:{info.st_ino}"


def _colours(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _formatter(
    redact: Callable[[object], object], *, as_json: bool, journal: bool, colours: bool
) -> ProcessorFormatter:
    def clean(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        return cast("EventDict", _without_controls(redact(_plain(dict(event)))))

    renderer: Processor
    if as_json:
        renderer = _Lines(journal=journal)
    else:
        renderer = structlog.dev.ConsoleRenderer(colors=colours, timestamp_key="time", pad_event_to=0)
    return ProcessorFormatter(
        processors=[
            structlog.stdlib.add_logger_name,
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.processors.format_exc_info,
            ProcessorFormatter.remove_processors_meta,
            clean,
            renderer,
        ]
    )


class _Lines:
    """Renders one JSON object a line: time, level, logger, event, then what the caller added."""

    def __init__(self, *, journal: bool) -> None:
        self._journal = journal

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> str:
        first = {key: event.pop(key, "") for key in ("time", "level", "logger", "event")}
        line = json.dumps({**first, **event})
        return f"<{PRIORITIES.get(first['level'], 6)}>{line}" if self._journal else line


def _plain(value: object) -> object:
    """The same as JSON data: what is none (a path, an exception) as its text, which then is redacted too."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _without_controls(value: object) -> object:
    if isinstance(value, str):
        return value.translate(_CONTROLS)
    if isinstance(value, dict):
        return {key.translate(_CONTROLS): _without_controls(item) for key, item in value.items()}
    return [_without_controls(item) for item in value] if isinstance(value, list) else value


def _thread_failed(failure: threading.ExceptHookArgs) -> None:
    name = failure.thread.name if failure.thread else "unknown"
    error = failure.exc_value or failure.exc_type()
    logging.getLogger(ROOT).error("a thread ended by an error: %s", name, exc_info=error)
