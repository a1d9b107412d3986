"""The options of the recall commands, made from what may be asked (recall.query), and how the answer is got.

Only what the user wrote is sent: the defaults are the service's, so that every door has the same ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click
import msgspec

from daemon.cli import terminal
from daemon.cli.settings import Settings, absolute
from daemon.control import calls
from daemon.errors import BadRequest
from daemon.hints import for_commands, option_name, rendered
from daemon.recall.query import CALLS

_PATH_OPTIONS = frozenset({"directory", "path"})


class Searching(click.Command):
    """A command whose words are a query, which may begin as an option does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            fix = f"to look for it, write -- before the query: {ctx.command_path} -- {error.option_name}"
            raise click.UsageError(f"{error.format_message()} {fix}", ctx) from None


def with_options(call: str, *left_out: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: an option for each argument of `call`, but for those that the command takes as words, and --json."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        function = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")(function)
        schema = CALLS[call]
        hints = get_type_hints(schema, include_extras=True)
        for field in reversed(msgspec.structs.fields(schema)):
            if field.encode_name not in left_out:
                function = _option(field, hints[field.name])(function)
        return function

    return decorate


def ask(settings: Settings, call: str, as_json: bool, options: dict[str, Any], **words: Any) -> dict[str, Any]:
    """The answer to `call`, its warnings said on stderr; with `as_json` printed as well.

    `options` have click's names, `words` are the command's arguments.
    """
    fields = {field.name: field.encode_name for field in msgspec.structs.fields(CALLS[call])}
    arguments = {fields[name]: value for name, value in options.items() if value not in (None, ())}
    arguments |= {name: value for name, value in words.items() if value}
    for name in _PATH_OPTIONS & arguments.keys():
        if arguments[name].strip():  # a blank one is none, as at every other door, and not the current folder
            arguments[name] = absolute(arguments[name])
    arguments = {name: list(value) if isinstance(value, tuple) else value for name, value in arguments.items()}
    try:
        answer = settings.ask(calls.Recall(call, arguments, os.getcwd()))
    except BadRequest as error:
        raise type(error)(for_commands(str(error), call)) from None
    answer = {key: rendered(value, lambda text: for_commands(text, call), key) for key, value in answer.items()}
    terminal.notes(answer.get("warnings") or ())
    if as_json:
        terminal.data(answer)
    return answer


def _option(field: msgspec.structs.FieldInfo, hint: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    kind, *notes = get_args(hint)
    described = next((note.description for note in notes if isinstance(note, msgspec.Meta)), "") or ""
    described = for_commands(described)
    name = option_name(field.encode_name)
    if kind is bool and field.default is True:
        return click.option(f"{name}/--no-{name[2:]}", field.name, default=None, help=described)
    if kind is bool:
        return click.option(name, field.name, is_flag=True, default=None, help=described)
    default = field.default if field.default not in ("", None, msgspec.NODEFAULT) else ""
    text = f"{described.rstrip('.')}.{f'  [default: {default}]' if default != '' else ''}"
    if get_origin(kind) is Literal:
        choice = click.Choice(get_args(kind), case_sensitive=False)
        return click.option(name, field.name, type=choice, default=None, help=text)
    if get_origin(kind) is list:
        words = get_args(get_args(kind)[0])
        description = f"{text} Any of {', '.join(words)}. Repeatable." if words else f"{text} Repeatable."
        return click.option(name, field.name, multiple=True, metavar="KIND", help=description)
    # Numbers go as text too: the service reads them, keeps them within bounds, and says so.
    type_ = click.Path() if field.encode_name in _PATH_OPTIONS else None
    return click.option(name, field.name, metavar=_metavar(kind), type=type_, default=None, help=text)


def _metavar(kind: Any) -> str:
    kinds = get_args(kind) or (kind,)
    words = [word for type_ in kinds if get_origin(type_) is Literal for word in get_args(type_)]
    if str in kinds:
        return "TIME" if float in kinds else "TEXT"
    return "|".join(["N", *words])
