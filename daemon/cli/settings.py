"""The global options of every command, and where it gets its answers: from the running daemon, else its own engine."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from daemon.errors import DaemonUnreachable, ServesAnother

if TYPE_CHECKING:
    from daemon.config import Config
    from daemon.control.calls import OnPart, Progress, Request

A = TypeVar("A")

NOT_PROVEN = 3
"""Exit code: some content is not proven, whether it was shown or left out; stderr, or the answer, says which."""

NOTHING = 4
"""Exit code: the archive has nothing that matches the request."""


def absolute(path: str) -> str:
    """An absolute path, as the service expects it.

    Symbolic links are not resolved, because OpenCode records the path as it was typed, and the folder may be gone.
    """
    return os.path.abspath(os.path.expanduser(path))


def as_project(name: str) -> str:
    """A project id unchanged, or a folder as an absolute path.

    A name is a folder if it contains a slash, begins with a dot or ~, or exists here.
    """
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

    @property
    def file(self) -> Path:
        """Where the configuration is read from, whether or not there is a file."""
        from daemon.config import default_path  # noqa: PLC0415 - as above

        return Path(os.path.abspath(self.config or default_path()))

    def for_commands(self, fix: str) -> str:
        """A command that mends something, as it has to be typed where --config was given."""
        if self.config is None:
            return fix
        program = shlex.join(["reconstitute", "--config", str(self.file)])
        return re.sub(r"(^|, then )reconstitute(?= )", lambda match: match[1] + program, fix)

    def log(self, config: Config, *, default_level: str = "") -> None:
        """Set up logging: at debug with --verbose, else at `default_level`, else at the configured level."""
        import msgspec  # noqa: PLC0415

        from daemon import log  # noqa: PLC0415
        from daemon.redact import redact_value  # noqa: PLC0415

        level = "debug" if self.verbose else default_level or config.log.level
        log.setup(msgspec.structs.replace(config.log, level=level), redact_value)

    def ask(
        self,
        request: Request[A],
        *,
        progress: Progress | None = None,
        on_part: OnPart | None = None,
        before: Callable[[], None] = lambda: None,
    ) -> A:
        """The answer of the running daemon, or of an engine in this process if none runs for this archive.

        Without `progress` it is shown on stderr. `before` is called before each attempt.

        Raises:
            ArchiveLocked: another process holds the archive and does not answer.
            ConfigError: the daemon has this archive, but works with other settings.
            ReconstituteError: whatever the call raises.
        """
        config = self.load()
        from daemon.cli.progress import display  # noqa: PLC0415 - `--version` and help need no calls

        with display() if progress is None else nullcontext(progress) as step:
            return self._ask(config, request, step, on_part, before)

    def _ask(
        self,
        config: Config,
        request: Request[A],
        progress: Progress,
        on_part: OnPart | None,
        before: Callable[[], None],
    ) -> A:
        from daemon.control.calls import silent  # noqa: PLC0415
        from daemon.control.client import Client  # noqa: PLC0415

        on_part = on_part or silent
        try:
            before()
            return Client(config.socket_path, config).call(request, progress=progress, on_part=on_part)
        except ServesAnother as error:
            from daemon.cli import terminal  # noqa: PLC0415

            terminal.note(f"{error}; this command does the work itself")
            unreachable: DaemonUnreachable = error
        except DaemonUnreachable as error:
            # A daemon that broke off may still hold the archive; then opening the engine raises ArchiveLocked.
            unreachable = error
        # Problems are in the answer or raised, so a log at a lower level would only repeat them.
        self.log(config, default_level="error")
        if self.verbose:
            import logging  # noqa: PLC0415

            logging.getLogger("daemon.cli").debug("no daemon: %s", unreachable)
        from daemon.app import open_engine  # noqa: PLC0415

        with open_engine(config, progress, file=self.file) as engine:
            before()
            return engine.call(request, progress=progress, on_part=on_part)
