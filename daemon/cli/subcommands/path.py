"""``reconstitute PATH``: the pages of a folder or file, from everything recorded about it."""

from __future__ import annotations

from typing import Any

import click

from daemon.cli import terminal
from daemon.cli.progress import progress
from daemon.cli.settings import Settings, absolute
from daemon.model import Json


class _Path(click.Command):
    """Shown without a name of its own."""

    def format_usage(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage("reconstitute", "[OPTIONS] PATH")


@click.command(cls=_Path)
@click.argument("path")
@click.option("--question", "questions", metavar="TEXT", multiple=True, help="Ask this too; may be given again.")
@click.option("--at", metavar="TIME", default="", help="As it was then, for example 2026-05-31 or 2026-05-31T18:00.")
@click.option("--output", metavar="DIR", default="", help="Write the pages there.")
@click.option("--estimate", is_flag=True, help="Only say what a run would ask the chat model now.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def command(
    settings: Settings,
    *,
    path: str,
    questions: tuple[str, ...],
    at: str,
    output: str,
    estimate: bool,
    as_json: bool,
) -> None:
    """Write the pages of PATH: its files as far as they are proven, what they were for, what was decided.

    PATH need not exist any more. A name that is also a command's is given as ./NAME or after --.

    \b
    Examples:
      reconstitute ~/projects/shop
      reconstitute ~/projects/shop --estimate
      reconstitute ~/projects/shop --at 2026-05-31 --question "Why is the cart a list?"
    """  # noqa: D301 - click's mark for text that is not to be filled
    place = absolute(path)
    where = absolute(output) if output else ""
    own = list(questions)
    with progress() as step:

        def told(event: Json) -> None:
            if event.get("note"):
                terminal.note(event["note"])
            step(event)

        if estimate:
            answer = settings.ask(lambda service: service.estimate(place, questions=own, at=at, progress=told))
        else:
            answer = settings.ask(
                lambda service: service.reconstitute(place, questions=own, at=at, output=where, progress=told)
            )
    if as_json:
        terminal.data(answer)
    elif estimate:
        _show_estimate(answer)
    else:
        _show(answer)


def _show_estimate(answer: Json) -> None:
    """What is to be asked, by kind; that it is no promise."""
    for warning in answer.get("warnings") or ():
        terminal.note(warning)
    if not answer.get("model"):
        terminal.say(f"Nothing would be asked: {terminal.line(answer.get('who') or 'there is no chat model')}")
        return
    for kind in ("questions", "files", "sessions"):
        cost = answer[kind]
        said = f"{cost['asked']} to ask, {cost['kept']} kept: about {terminal.count(cost['calls'], 'call')}"
        terminal.say(f"{kind}: {said}, {_tokens(cost['tokens'])}")
    if answer["later"]:
        terminal.say(f"files and sessions left for later runs: {answer['later']} (agent.summaries)")
    total = f"{terminal.count(answer['calls'], 'call')}, {_tokens(answer['tokens'])}"
    most = f"{terminal.count(answer['most_calls'], 'call')}, {_tokens(answer['most_tokens'])}"
    terminal.say(f"{terminal.line(answer['model'])} would usually get about {total}; the limits allow {most}")


def _tokens(number: int) -> str:
    return f"{number // 1000}k tokens" if number >= 1000 else terminal.count(number, "token")


def _show(answer: dict[str, Any]) -> None:
    for warning in answer.get("warnings") or ():
        terminal.note(warning)
    files = answer.get("files") or {}
    proven, unproven = files.get("proven", 0), files.get("unproven", 0)
    terminal.say(
        f"{terminal.bold(answer.get('target', ''))}: {terminal.count(proven, 'file')} proven, {unproven} not proven"
    )
    kept = answer.get("kept") or 0
    kept = len(kept) if isinstance(kept, list) else kept
    pages = terminal.count(answer.get("pages", 0), "page")
    counts = f"{pages}: {answer.get('written', 0)} written, {answer.get('unchanged', 0)} unchanged"
    terminal.say(counts + (f", {kept} kept as you edited them" if kept else ""))
    for each in answer.get("answers") or ():
        _show_answer(each)
    terminal.say(_who_answered(answer))
    terminal.say(f"Read {terminal.plain(answer.get('output', ''))}")


def _show_answer(each: dict[str, Any]) -> None:
    """The answer to a question of one's own, which is why one asked it."""
    terminal.say(terminal.bold(terminal.line(each.get("question", ""))))
    said = [" ".join(filter(None, (one.get("text"), one.get("reason")))) for one in each.get("statements") or ()]
    for text in said or [f'"{quote}"' for quote in each.get("quotes") or ()] or ["(no answer)"]:
        terminal.say(terminal.fold(f"- {terminal.line(text)}", "  ", "  "))
    if each.get("note"):
        terminal.say(terminal.dim(terminal.fold(terminal.line(each["note"]), "  ")))


def _who_answered(answer: dict[str, Any]) -> str:
    """How far a model has answered, and why no further."""
    calls, left = answer.get("model_calls") or 0, answer.get("unanswered") or 0
    answered = f"{answer.get('answered') or 0} of {terminal.count(answer.get('questions') or 0, 'question')}"
    why = terminal.line(answer.get("who") or "no chat model: the pages are made from facts alone")
    if not answer.get("model"):
        kept = f"; {answered} answered earlier, and kept" if answer.get("answered") else ""
        return why[:1].upper() + why[1:] + kept
    later = f"; {terminal.count(left, 'question')} left for later" if left else ""
    asked = f"asked {terminal.count(calls, 'time')}" if calls else "not asked"
    return f"{terminal.line(answer['model'])} has answered {answered}; {asked} in this run{later}"
