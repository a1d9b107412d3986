"""What every command is given, and how it gets its answers: from the running daemon, else from an engine of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from daemon.errors import DaemonUnreachable, ServesAnother

if TYPE_CHECKING:
    from daemon.config import Config
    from daemon.control.calls import OnPart, Progress, Request

A = TypeVar("A")

NOT_PROVEN = 3
"""Exit code: something was shown or left out that is not proven; stderr, or the answer, says what."""

NOTHING = 4
"""Exit code: nothing of what was asked for is known."""


def absolute(path: str) -> str:
    """A path of the command line as the service takes it.

    Links in it are not resolved: what OpenCode recorded is the path as it was called, and the folder may be gone.
    """
    return os.path.abspath(os.path.expanduser(path))


def as_project(name: str) -> str:
    """A project's id as it is; a folder as an absolute path: with a slash, a dot or ~, or one that is there."""
    is_folder = "/" in name or name.startswith((".", "~")) or os.path.isdir(name)
    return absolute(name) if is_folder and name else name


@dataclass(frozen=True, slots=True)
class Settings:
    """The options before the command's name."""

    config: Path | None = None
    verbose: bool = False

    def load(self) -> Config:
        """The configuration.

        Raises:
            ConfigError: naming file, key and fix.
        """
        from daemon.config import load  # noqa: PLC0415 - each command loads what it needs

        return load(self.config)

    def log(self, config: Config, *, least: str = "") -> None:
        """Let the log speak, at the configured level, at `least` when given, at debug with --verbose."""
        import msgspec  # noqa: PLC0415

        from daemon import log  # noqa: PLC0415
        from daemon.redact import redact_value  # noqa: PLC0415

        level = "debug" if self.verbose else least or config.log.level
        log.setup(msgspec.structs.replace(config.log, level=level), redact_value)

    def ask(
        self,
        request: Request[A],
        *,
        progress: Progress | None = None,
        on_part: OnPart | None = None,
        before: Callable[[], None] = lambda: None,
    ) -> A:
        """The answer of the running daemon; with none running for this archive, of an engine in this process.

        `before` is called before each of them is asked.

        Raises:
            ArchiveLocked: somebody has the archive and does not answer.
            ConfigError: the daemon has this archive, but works with other settings.
            ReconstituteError: whatever the call raises.
        """
        config = self.load()
        from daemon.control.calls import silent  # noqa: PLC0415 - `--version` and help need no calls
        from daemon.control.client import Client  # noqa: PLC0415

        progress, on_part = progress or silent, on_part or silent
        try:
            before()
            return Client(config.socket_path, config).call(request, progress=progress, on_part=on_part)
        except ServesAnother as error:
            from daemon.cli import terminal  # noqa: PLC0415

            terminal.note(f"{error}; this command does the work itself")
            unreachable: DaemonUnreachable = error
        except DaemonUnreachable as error:
            # Broken off in the middle, it may still hold the archive: then the lock says so.
            unreachable = error
        # What goes wrong is in the answer, or raised; the log would only say it twice.
        self.log(config, least="error")
        if self.verbose:
            import logging  # noqa: PLC0415

            logging.getLogger("daemon.cli").debug("no daemon: %s", unreachable)
        from daemon.app import open_engine  # noqa: PLC0415
        from daemon.cli.terminal import progress as shown  # noqa: PLC0415 - an answer of the daemon needs none

        with shown() as step, open_engine(config, step) as engine:
            before()
            return engine.call(request, progress=progress, on_part=on_part)
