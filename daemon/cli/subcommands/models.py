"""``reconstitute models``: which embedding models are at hand, and which of them fits."""

from __future__ import annotations

from collections.abc import Iterator

import click

from daemon.cli import terminal
from daemon.cli.settings import Settings
from daemon.cli.terminal import progress
from daemon.control import calls
from daemon.control.answers import EmbeddingModel, Models


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def models(settings: Settings, as_json: bool) -> None:
    """Show which embedding models are at hand, and which fits this archive.

    These are the built-in one, that of embedding.model_dir, and those that Ollama has at embedding.url.
    Each one embeds some texts of the archive, which takes some seconds, more where a server has to load it.

    \b
    Examples:
      reconstitute models
      reconstitute models --json
    """  # noqa: D301 - click's mark for text that is not to be filled
    with progress(brief=True) as step:
        answer = settings.ask(calls.Models(), progress=step)
    if as_json:
        terminal.data(answer)
        return
    terminal.notes(answer.warnings)
    for model in answer.models:
        terminal.say(terminal.bold(model.name) + (", in use" if model.in_use else ""))
        for fact in _facts(model, answer):
            terminal.say(terminal.fold(fact, "  ", "  "))
    terminal.say(terminal.fold(f"{answer.advice}.", ""))


def _facts(model: EmbeddingModel, answer: Models) -> Iterator[str]:
    if model.error:
        yield f"does not work: {model.error}"
    else:
        facts = [f"{model.dims} dimensions", f"{model.texts_per_second:g} texts a second"]
        if model.readable is not None:
            facts.insert(0, f"reads {model.readable:.0%} of {terminal.count(answer.sample, 'message')}")
            facts.append(f"{duration(model.seconds)} for the whole archive")
        yield ", ".join(facts)
    if model.setting:
        yield f"to use it: {model.setting}"


def duration(seconds: float) -> str:
    """Seconds in a unit that suits them.

    >>> duration(0.4), duration(90), duration(7000), duration(200_000)
    ('1 s', '90 s', '117 min', '56 h')
    """
    for unit, size, most in (("s", 1, 120), ("min", 60, 120)):
        if seconds / size < most:
            return f"{max(1, round(seconds / size))} {unit}"
    return f"{round(seconds / 3600)} h"
