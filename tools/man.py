"""Writes man/*.1, one man page for each command, from the help that the program prints (`make man`).

A wheel puts them into share/man/man1, where `man` looks beside a prefix's bin. They are kept in the repository because
the help needs the program's dependencies, which a build of the wheel does not have.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from daemon.cli import COMMANDS, HEADINGS, PATH_COMMAND, reconstitute

FOLDER = Path(__file__).resolve().parent.parent / "man"


def pages() -> dict[str, str]:
    """The text of each page, by file name."""
    context = click.Context(reconstitute, info_name="reconstitute", help_option_names=["-h", "--help"])
    made = {"reconstitute.1": "\n".join(_main(context)) + "\n"}
    for name, line in COMMANDS.items():
        command = reconstitute.get_command(context, name)
        assert command is not None
        sub = click.Context(command, info_name=name, parent=context)
        made[f"reconstitute-{name}.1"] = "\n".join(_page(f"reconstitute-{name}", line, sub)) + "\n"
    return made


def _main(context: click.Context) -> Iterator[str]:
    yield from _page("reconstitute", "archive of OpenCode's sessions, search, and lost folders rebuilt", context)
    path = reconstitute.get_command(context, PATH_COMMAND)
    assert path is not None
    yield ".SH RECONSTITUTE PATH"
    yield from _text(path.help or "")
    yield from _options(click.Context(path, info_name=PATH_COMMAND, parent=context))
    yield ".SH COMMANDS"
    for heading, commands in HEADINGS.items():
        yield f".SS {_escaped(heading)}"
        for name, line in commands.items():
            yield from (".TP", rf"\fB{_escaped(name)}\fR", _line(line))
    yield ".SH SEE ALSO"
    yield ", ".join(rf"\fBreconstitute\-{_escaped(name)}\fR(1)" for name in COMMANDS)


def _page(title: str, line: str, context: click.Context) -> Iterator[str]:
    command = context.command
    yield f'.TH {_escaped(title.upper())} 1 "" "Reconstitute" "Reconstitute"'
    yield from (".SH NAME", rf"{_escaped(title)} \- {_escaped(line.rstrip('.'))}", ".SH SYNOPSIS")
    yield rf"\fB{_escaped(title.replace('-', ' ', 1))}\fR {_escaped(' '.join(command.collect_usage_pieces(context)))}"
    yield ".SH DESCRIPTION"
    yield from _text(command.help or "")
    options = list(_options(context))
    if options:
        yield from (".SH OPTIONS", *options)
    if isinstance(command, click.Group) and command is not reconstitute:
        yield ".SH COMMANDS"
        for name in command.list_commands(context):
            sub = command.get_command(context, name)
            assert sub is not None
            inner = click.Context(sub, info_name=name, parent=context)
            yield f".SS {_escaped(' '.join([name, *sub.collect_usage_pieces(inner)]))}"
            yield from _text(sub.help or "")
            yield from _options(inner)
    if command is not reconstitute:
        yield from (".SH SEE ALSO", r"\fBreconstitute\fR(1)")


def _text(text: str) -> Iterator[str]:
    """Paragraphs; one that begins with click's mark keeps its lines."""
    for number, paragraph in enumerate(inspect.cleandoc(text).split("\n\n")):
        if number:
            yield ".PP"
        lines = paragraph.split("\n")
        if lines[0] == "\b":
            yield from (".nf", *map(_line, lines[1:]), ".fi")
        else:
            yield _line(" ".join(line.strip() for line in lines))


def _options(context: click.Context) -> Iterator[str]:
    for option in context.command.get_params(context):
        record = option.get_help_record(context) if isinstance(option, click.Option) else None
        if record is not None:
            yield from (".TP", rf"\fB{_escaped(record[0])}\fR", _line(record[1]))


def _line(text: str) -> str:
    escaped = _escaped(text)
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _escaped(text: str) -> str:
    return text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")


def main() -> int:
    """Write the pages into FOLDER, or the one that is named, and remove those of commands that are no more."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(exist_ok=True)
    made = pages()
    for file in folder.glob("*.1"):
        if file.name not in made:
            file.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
