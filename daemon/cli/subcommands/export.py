"""``reconstitute export``: whole sessions, for other programs and for reading, to stdout or into one file.

The service says what stands in it; this process writes it, while it comes. A file takes its name when it is whole.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

import click

from daemon.cli import terminal
from daemon.cli.settings import NOTHING, Settings, absolute, as_project
from daemon.control import answers, calls
from daemon.control.answers import to_json
from daemon.control.calls import silent
from daemon.errors import OutputRefused
from daemon.filesystem import durable

if TYPE_CHECKING:
    from daemon.model import Json

_MAX_WARNINGS = 20


@click.command()
@click.option(
    "--format",
    "format_",
    type=click.Choice(["jsonl", "messages", "markdown"]),
    required=True,
    help="JSON lines, chat messages for a model, or a Markdown document.",
)
@click.option("--session", metavar="ID", default=None, help="Only this session.")
@click.option("--project", metavar="ID|DIR", default=None, help="Only this project, by its id or its folder.")
@click.option(
    "--path", metavar="PATH", default=None, type=click.Path(), help="Only sessions that touched this file or folder."
)
@click.option("--since", metavar="WHEN", default=None, help="Only sessions active since then: 2026-05-31, 7d, 30d ago.")
@click.option("--until", metavar="WHEN", default=None, help="Only sessions active until then.")
@click.option(
    "--results",
    type=click.Choice(["summary", "full", "none"]),
    default=None,
    help="Tool calls in one line, in full, or not at all; by default full for messages, else summary.",
)
@click.option("--deleted/--no-deleted", default=True, help="Include what OpenCode has deleted (the default).")
@click.option("--raw", is_flag=True, help="Include secrets.")
@click.option(
    "--output", metavar="FILE", default=None, type=click.Path(), help="Write to this file; by default to stdout."
)
@click.option("--json", "as_json", is_flag=True, help="With --output: report in JSON what was written.")
@click.pass_obj
def export(settings: Settings, /, *, output: str | None, as_json: bool, **conditions: Any) -> int:
    """Export whole sessions, in order of time, including those that OpenCode has archived, deleted or lost.

    All conditions must hold. Secrets are hidden unless --raw is given. FILE appears when it is complete, and only you
    can read it. Ends with 4, and writes no file, if nothing matches.

    \b
    Examples:
      reconstitute export --format jsonl --output sessions.jsonl
      reconstitute export --format markdown --project ~/projects/shop --since 30d > shop.md
      reconstitute export --format messages --session ses_5f1 --raw | head -c 2000
    """  # noqa: D301 - click's mark for text that is not to be filled
    if as_json and not output:
        raise click.UsageError("--json says what was written into a file; give --output FILE too")
    _refuse_blanks(output=output, **conditions)
    arguments = _arguments(**conditions)
    with _File(settings, output) if output else _Stdout() as target:
        # A bar and the text itself cannot share a terminal.
        progress = silent if not output and sys.stdout.isatty() else None
        answer = settings.ask(calls.Export(arguments), progress=progress, on_part=target.write, before=target.begin)
        if answer.sessions:
            target.finish()
    if as_json:
        terminal.data(to_json(answer) | {"output": target.name if answer.sessions else None})
    else:
        _show(answer, target.name)
    return 0 if answer.sessions else NOTHING


def _refuse_blanks(**conditions: str | bool | None) -> None:
    """An empty shell variable is no filter: without it everything would be exported."""
    for name, value in conditions.items():
        if isinstance(value, str) and not value.strip():
            raise click.UsageError(
                f"--{name} is blank; give it a value, or leave it out to export without this condition"
            )


def _arguments(*, format_: str, project: str | None, path: str | None, **conditions: Any) -> Json:
    """What was asked, as the service takes it; what is not given is left out."""
    places = {"project": project and as_project(project), "path": path and absolute(path)}
    return {name: value for name, value in ({"format": format_} | places | conditions).items() if value is not None}


def _show(answer: answers.Export, name: str) -> None:
    terminal.notes(answer.warnings[:_MAX_WARNINGS])
    if not answer.sessions:
        terminal.note("no session matches; `reconstitute recall-sessions` lists those there are")
    elif name:
        counted = terminal.count(answer.sessions, "session"), terminal.count(answer.messages, "message")
        terminal.say(f"Wrote {counted[0]} with {counted[1]} into {terminal.line(name)}.")


class _Stdout:
    """Text to stdout in UTF-8, whatever the terminal's encoding."""

    name = ""

    def __init__(self) -> None:
        self._has_begun = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def begin(self) -> None:
        """Before the service is asked.

        Raises:
            OutputRefused: the daemon broke off in the middle, and this would be the second time.
        """
        if self._has_begun:
            raise OutputRefused(
                "stdout: the service stopped answering, and what was printed is not complete; run the command again"
            )

    def write(self, text: str) -> None:
        """Print one piece."""
        self._has_begun = True
        # The formats have made everything that steers a terminal harmless: as escapes in JSON, as symbols in Markdown.
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))

    def finish(self) -> None:
        """Let the reader have all of it."""
        sys.stdout.buffer.flush()


class _File:
    """A file made beside the one it is to become, and renamed into its place when it is whole."""

    def __init__(self, settings: Settings, output: str) -> None:
        """Look whether it can be written.

        Raises:
            OutputRefused: a folder or a device is there, its folder is not, or it is no place of ours to write to.
        """
        self.name = absolute(output)
        self._place = Path(os.path.realpath(self.name))  # through a link, as the shell's > does
        self._file: IO[bytes] | None = None
        config = settings.load()
        for folder in (*config.opencode_dirs, config.archive_dir):
            if self._place.is_relative_to(os.path.realpath(folder)):
                raise OutputRefused(f"{self.name}: is in {folder}, where nothing may be written; name another")
        try:
            if not stat.S_ISREG(os.stat(self._place).st_mode):
                raise OutputRefused(f"{self.name}: is no regular file; name another, or use > for a device")
        except FileNotFoundError:
            pass  # it is new
        except (OSError, ValueError) as error:
            raise OutputRefused(f"{self.name}: cannot be looked at: {error}; name another") from error

    def __enter__(self) -> Self:
        try:
            # Made with mode 0600: what was said in private stays so until its owner decides otherwise.
            fd, self._temporary = tempfile.mkstemp(prefix=f".{self._place.name[:100]}.", dir=self._place.parent)
        except OSError as error:
            raise OutputRefused(f"{self.name}: cannot be made: {error.strerror}; name another place") from error
        self._file = os.fdopen(fd, "wb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:  # not finished: nothing of it stays
            with suppress(OSError):
                os.unlink(self._temporary)
            with suppress(OSError):
                self._file.close()

    def begin(self) -> None:
        """Before the service is asked: what a daemon that broke off had sent is thrown away."""
        if self._file is not None:
            self._file.seek(0)
            self._file.truncate()

    def write(self, text: str) -> None:
        """Write one piece.

        Raises:
            OutputRefused: the disk is full or fails.
        """
        if self._file is not None:
            self._failing(self._file.write, text.encode("utf-8", "replace"))

    def finish(self) -> None:
        """Give it its name, when the disk has all of it.

        Raises:
            OutputRefused: the disk is full or fails; what stood there before still does.
        """
        if self._file is None:
            return
        self._failing(self._settle, self._file)
        self._file = None

    def _settle(self, file: IO[bytes]) -> None:
        file.flush()
        durable.sync(file.fileno())
        file.close()
        os.replace(self._temporary, self._place)

    def _failing(self, call: Any, argument: Any) -> None:
        try:
            call(argument)
        except OSError as error:
            cause = error.strerror or str(error)
            raise OutputRefused(
                f"{self.name}: {cause}; make room or name another place, and run the command again"
            ) from error
