"""The command line: the table of commands, each loaded when it is called, and the run of one command.

``reconstitute PATH`` reconstitutes it if the word is no command and looks like a path: it has a slash or a dot,
begins with ~, or exists. ``reconstitute -- PATH`` always does. An option may stand before a command that has it:
``reconstitute --json status``.

Guarantees: an error of ours is one line on stderr (thing: cause; fix) and its own exit code, never a traceback, and
with --json also an object on stdout (docs/json.md); Ctrl-C ends with 130; a reader that goes away (``| head``) is no
error; nothing heavy is loaded before a command needs it; a process ends with its command's exit code, whatever its
threads are doing; what it writes others cannot read, and it leaves no core file.
"""

from __future__ import annotations

import difflib
import importlib
import logging
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import click
from click.shell_completion import CompletionItem

from daemon import __version__
from daemon.cli.settings import Settings
from daemon.errors import ReconstituteError

INTERRUPTED = 130
BROKEN_PIPE = 141
USAGE = 64
FAULT = 70
"""Exit codes, as shells and sysexits.h number them."""

HEADINGS = {
    "Find": {
        "search": "Search everything that was said, done and printed.",
        "recall": "The same as search, by the name that agents know.",
        "recall-get": "Show one message in full.",
        "recall-context": "Show the messages around one message.",
        "recall-messages": "Page through a session's messages.",
        "recall-sessions": "List sessions, latest first.",
        "recall-timeline": "Show what happened around a message, session or time.",
        "recall-files": "Show which sessions touched a path.",
    },
    "Files": {
        "files": "List recorded files, their grade, and which are lost.",
        "history": "Show every revision of one file.",
        "show": "Print a file as it is recorded, now or at a time.",
        "restore": "Write recorded files into a new folder.",
        "alias": "Record that a folder was renamed or moved.",
    },
    "Pages and exports": {
        "open": "Open the pages of a folder.",
        "web": "Open the service's page in the browser.",
        "export": "Export sessions as JSON lines, chat messages or Markdown.",
        "trajectory": "Show how a model found its answers.",
    },
    "Service": {
        "status": "Show what is archived, indexed and waiting.",
        "doctor": "Check everything, and name what mends it.",
        "index": "Read everything OpenCode has now.",
        "pause": "Pause all work but archiving, or resume it.",
        "forget": "Remove sessions or messages for good.",
        "backup": "Back up the archive into a folder, or check the backups there.",
        "restore-archive": "Make an archive of a backup.",
        "models": "Show which embedding models are at hand, and which fits.",
        "service": "Install, show or remove the user service.",
        "run": "Run the service in the foreground.",
        "mcp": "Serve recall to agents (MCP, stdin and stdout).",
        "adapter": "Serve OpenCode's models to clients of Ollama.",
        "config": "Check, show or locate the configuration.",
        "completion": "Print a script with which a shell completes commands.",
    },
}
"""The commands with one line each, under the headings of the help."""
COMMANDS = {name: line for commands in HEADINGS.values() for name, line in commands.items()}
PATH_COMMAND = ":path"
_PLACES = {
    PATH_COMMAND: "path:command",
    "search": "recall:recall",
    "recall-get": "recall_records:get",
    "recall-context": "recall_records:context",
    "recall-messages": "recall_records:messages",
    "recall-sessions": "recall_records:sessions",
    "recall-timeline": "recall_records:timeline",
    "recall-files": "recall_records:files",
    "history": "files:history",
    "show": "files:show",
    "alias": "files:alias",
    "open": "pages:open_pages",
    "web": "pages:web",
    "trajectory": "path:trajectory",
    "restore-archive": "backup:restore_archive",
    "index": "status:index",
    "pause": "pausing:pause",
    "models": "config:models",
    "run": "foreground:run",
    "mcp": "foreground:mcp",
    "adapter": "foreground:adapter",
}
"""Module and attribute of the commands that are not of their own name in a module of that name."""
_FLAGS = ("-v", "--verbose", "--version", "-h", "--help")


class Commands(click.Group):
    """Knows its commands by name and one line each, without loading them."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """The names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        """Load one command: module daemon.cli.subcommands.NAME, attribute NAME."""
        name = _command_name(name)
        if name not in COMMANDS and name != PATH_COMMAND:
            return None
        module, _, attribute = _PLACES.get(name, f"{name}:{name}").partition(":")
        loaded = importlib.import_module(f"daemon.cli.subcommands.{module}")
        command: click.Command = getattr(loaded, attribute)
        command.name = name
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click, after the command for a bare path has been named."""
        return super().parse_args(ctx, self._name_path_command(ctx, args))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click, with a hint for a mistyped name, but not while a shell asks what may follow."""
        if not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            similar = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = (
                f"did you mean {similar[0]}"
                if similar
                else f"for a path of this name, write: reconstitute -- {args[0]}"
            )
            raise click.UsageError(f"{args[0]}: no such command and no such path; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names that begin so, without loading the commands; else a path."""
        items = [CompletionItem(name, help=line) for name, line in COMMANDS.items() if name.startswith(incomplete)]
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return items or [CompletionItem(incomplete, type="file")]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands, and the options that go with a path."""
        widest = max(map(len, COMMANDS))
        for heading, commands in HEADINGS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), line) for name, line in commands.items()])
        path = self.get_command(ctx, PATH_COMMAND)
        with formatter.section("Options with PATH"):
            options = [p for p in path.params if isinstance(p, click.Option)] if path else []
            formatter.write_dl([r for option in options if (r := option.get_help_record(ctx)) is not None])

    def _name_path_command(self, ctx: click.Context, args: list[str]) -> list[str]:
        place = 0
        while place < len(args) and (args[place] in _FLAGS or args[place].startswith("--config")):
            place += 2 if args[place] == "--config" else 1
        words = args[place:]
        if not words or _command_name(words[0]) in COMMANDS:
            return args
        options = self._options_of_path(ctx, words)
        if options and _command_name(word := next(iter(words[options:]), "")) in COMMANDS:
            return [*args[:place], word, *words[:options], *words[options + 1 :]]
        if words[0] == "--" or options or _looks_like_path(words[0]):
            return [*args[:place], PATH_COMMAND, *words]
        return args

    def _options_of_path(self, ctx: click.Context, args: list[str]) -> int:
        """How many words at the beginning of `args` are options that go with a path, and their values."""
        path = self.get_command(ctx, PATH_COMMAND) if args[0].startswith("-") else None
        options_by_name = {name: option for option in path.params for name in option.opts} if path else {}
        place = 0
        while place < len(args) and (option := options_by_name.get(args[place].partition("=")[0])) is not None:
            takes_next = isinstance(option, click.Option) and not option.is_flag and "=" not in args[place]
            place += 2 if takes_next else 1
        return min(place, len(args))


def _command_name(word: str) -> str:
    """A command's name; agents write those of recall with underscores."""
    return word.replace("_", "-") if word.startswith("recall_") else word


def _looks_like_path(word: str) -> bool:
    return not word.startswith("-") and ("/" in word or "." in word or word.startswith("~") or os.path.lexists(word))


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 90},
    subcommand_metavar="PATH | COMMAND ...",
    options_metavar="[OPTIONS]",
)
@click.option("--config", "config", metavar="FILE", type=click.Path(path_type=Path), help="Use this configuration.")
@click.option("-v", "--verbose", is_flag=True, help="Print more details on stderr.")
@click.version_option(__version__, prog_name="reconstitute", message="%(prog)s %(version)s")
@click.pass_context
def reconstitute(context: click.Context, config: Path | None, verbose: bool) -> None:
    """Archive OpenCode's sessions, search them, and restore files and folders from them.

    \b
    Examples:
      reconstitute ~/projects/shop           write pages about a folder, lost or not
      reconstitute ~/projects/shop --question "Why is the cart a list?"
      reconstitute recall rate limit         search all sessions
      reconstitute files --lost              list what is missing on the disk
      reconstitute restore ~/projects/shop --to ~/shop-back
      reconstitute service install           keep everything up to date from now on
    """  # noqa: D301 - click's mark for text that is not to be filled
    context.obj = Settings(config=config, verbose=verbose)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the answer is the exit code. Without `arguments` it is the process's own, which then ends."""
    if arguments is None:
        _keep_private()
        _open_standard_streams()
        _end(main(sys.argv[1:]))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A title that this terminal's encoding does not have is shown as an escape, not as a crash.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = BROKEN_PIPE
    return code


def _keep_private() -> None:
    """What this process writes is for its user alone, and it leaves no core: a core is a dump of every transcript."""
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _open_standard_streams() -> None:
    """Put /dev/null where this process was started with a closed stdin, stdout or stderr.

    Otherwise a file of the archive may get the number of stderr, and what a library prints goes into it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free, which is this one
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))


def _end(code: int) -> NoReturn:
    """End the process now.

    Not by returning: the interpreter's end unwinds a thread that comes back from native code (a model, an index)
    through frames of C++, which abort the process. Whatever has to be closed has been closed by its context.
    """
    logging.shutdown()
    with suppress(OSError, ValueError):  # a reader of stderr that has gone away, or a stream that is closed
        sys.stderr.flush()
    os._exit(code)


def _run(arguments: list[str]) -> int:  # noqa: PLR0911 - one exit code a line
    try:
        if "_RECONSTITUTE_COMPLETE" in os.environ:
            importlib.import_module("daemon.cli.subcommands.completion")  # has what click lacks
            reconstitute.main(arguments, prog_name="reconstitute")
        with reconstitute.make_context("reconstitute", list(arguments)) as context:
            answer = reconstitute.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "")
        return 0
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "reconstitute"
        message = f"{_in_one_line(error).rstrip('.')}; {_usage_fix(error, command.partition(' :')[0])}"
        return _failed(arguments, "UsageError", message, USAGE)
    except click.ClickException as error:
        return _failed(arguments, type(error).__name__, _in_one_line(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _failed(arguments, "Interrupted", "interrupted", INTERRUPTED)
    except ReconstituteError as error:
        return _failed(arguments, type(error).__name__, str(error), error.exit_code)
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - the last resort: what is not ours is a fault of ours
        return _fault(error, arguments)
    return answer if isinstance(answer, int) else 0


def _usage_fix(error: click.UsageError, command: str) -> str:
    if isinstance(error, click.NoSuchOption) and error.option_name in (*_FLAGS, "--config"):
        return f"write it before the command: reconstitute {error.option_name} ..."
    return f"see: {command} --help"


def _in_one_line(error: click.ClickException) -> str:
    return " ".join(error.format_message().split())


def _failed(arguments: list[str], kind: str, message: str, code: int) -> int:
    """Say what went wrong; the exit code."""
    from daemon.cli import terminal  # noqa: PLC0415 - an error is rare

    terminal.note(message)
    # The words behind -- are no options.
    if "--json" in arguments[: arguments.index("--") if "--" in arguments else None]:
        terminal.data({"error": {"type": kind, "message": message, "exitCode": code}})
    return code


def _fault(error: Exception, arguments: list[str]) -> int:
    from daemon.redact import redact  # noqa: PLC0415

    if {"-v", "--verbose"} & set(arguments):
        import traceback  # noqa: PLC0415

        from daemon.cli import terminal  # noqa: PLC0415

        terminal.note(redact("".join(traceback.format_exception(error))))
    fault = f"internal error ({type(error).__name__}: {error}); run it again with -v for details, and report it"
    return _failed(arguments, "Fault", redact(fault), FAULT)
