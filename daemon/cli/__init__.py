"""The command line.

Guarantees: an error of ours is one line on stderr (thing: cause; fix) and its own exit code, never a traceback, and
with --json also an object on stdout (docs/json.md); Ctrl-C ends with 130; a reader that goes away (``| head``) is no
error; nothing heavy is loaded before a command needs it; a process ends with its command's exit code, whatever its
threads are doing; what it writes others cannot read, and it leaves no core file.
"""

from __future__ import annotations

import logging
import os
import resource
import sys
from contextlib import suppress
from typing import NoReturn

import click

from daemon.cli.commands import reconstitute
from daemon.errors import ReconstituteError

INTERRUPTED = 130
BROKEN_PIPE = 141
USAGE = 64
FAULT = 70
"""What shells and sysexits.h call them."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the answer is the exit code. Without `arguments` it is the process's own, which then ends."""
    if arguments is None:
        _keep_private()
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
        message = f"{_in_one_line(error).rstrip('.')}; see: {command.partition(' :')[0]} --help"
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
    fault = f"a fault of its own ({type(error).__name__}: {error}); run it with -v for the details, and report it"
    return _failed(arguments, "Fault", redact(fault), FAULT)
