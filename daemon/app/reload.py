"""Reading the configuration again when SIGHUP asks for it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

from daemon.config import Config, changes
from daemon.schedule import parse


class Reload:
    """Whether it was asked for, and what the file says now.

    The handler stays from the start to the end of the process: without one, a signal while the daemon starts or stops
    would end it.
    """

    def __init__(self, read: Callable[[], Config]) -> None:
        """`read` reads and validates the configuration; raises ConfigError."""
        self._read = read
        self._is_asked = False
        self.on_asked: Callable[[], object] = lambda: None
        """Called in the main thread when a reload is asked for; until it is set, `take` remembers it."""
        signal.signal(signal.SIGHUP, self._ask)

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        self._is_asked = True
        self.on_asked()

    def take(self) -> bool:
        """Whether a reload was asked for since the last call."""
        is_asked, self._is_asked = self._is_asked, False
        return is_asked

    def changed(self, config: Config) -> tuple[Config, list[str]]:
        """The configuration as it is now, and the keys in which it differs from `config`.

        Raises:
            ConfigError: it has a mistake.
        """
        new = self._read()
        check_schedules(new)
        return new, changes(config, new)


def check_schedules(config: Config) -> None:
    """Raise ConfigError where a target's schedule is not a cron expression."""
    for number, section in enumerate(config.targets):
        if section.schedule:
            parse(section.schedule, key=f"targets[{number}].schedule")
