"""``reconstitute PATH`` writes the pages of a folder or file; ``trajectory`` shows how a model came to its answers."""

from __future__ import annotations

import json

import click

from daemon.cli import terminal
from daemon.cli.settings import NOTHING, Settings, absolute
from daemon.control import answers, calls
from daemon.control.answers import Trajectory
from daemon.errors import BadRequest
from daemon.model import Json

_INDENT = "    "
_COLOURS = {"system": "white", "user": "cyan", "assistant": "green", "tool": "yellow"}
_MOST_LINES = 40
_MOST_PATHS = 5


class _Path(click.Command):
    """Shown without a name of its own."""

    def format_usage(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage("reconstitute", "[OPTIONS] PATH")


@click.command(cls=_Path)
@click.argument("path", type=click.Path())
@click.option("--question", "questions", metavar="TEXT", multiple=True, help="Also answer this question. Repeatable.")
@click.option("--at", metavar="TIME", default="", help="As of this time, for example 2026-05-31 or 2026-05-31T18:00.")
@click.option("--output", metavar="DIR", default="", type=click.Path(), help="Write the pages into this folder.")
@click.option("--estimate", is_flag=True, help="Only show what a run would ask the chat model.")
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
    """Write pages about PATH: its files as far as they are proven, their purpose, and what was decided.

    PATH need not exist any more. If it has the name of a command, write ./NAME or -- NAME.

    \b
    Examples:
      reconstitute ~/projects/shop
      reconstitute ~/projects/shop --estimate
      reconstitute ~/projects/shop --at 2026-05-31 --question "Why is the cart a list?"
    """  # noqa: D301 - click's mark for text that is not to be filled
    place = absolute(path)
    where = absolute(output) if output else ""
    own_questions = list(questions)
    answer: answers.Run | answers.Estimate
    if estimate:
        answer = settings.ask(calls.Estimate(place, own_questions, at))
    else:
        answer = settings.ask(calls.Reconstitute(place, own_questions, at, where))
    if as_json:
        terminal.data(answer)
    elif isinstance(answer, answers.Estimate):
        _show_estimate(answer)
    else:
        _show_run(answer)


def _show_estimate(answer: answers.Estimate) -> None:
    """What is to be asked, by kind; that it is no promise."""
    terminal.notes(answer.warnings)
    if not answer.model:
        terminal.say(f"Nothing would be asked: {terminal.line(answer.who or 'there is no chat model')}")
        return
    for kind, cost in {"questions": answer.questions, "files": answer.files, "sessions": answer.sessions}.items():
        about = f"{cost.asked} to ask, {cost.kept} kept: about {terminal.count(cost.calls, 'call')}"
        terminal.say(f"{kind}: {about}, {_tokens(cost.tokens)}")
    if answer.later:
        terminal.say(f"files and sessions left for later runs: {answer.later} (agent.summaries)")
    total = f"{terminal.count(answer.calls, 'call')}, {_tokens(answer.tokens)}"
    limits = f"{terminal.count(answer.most_calls, 'call')}, {_tokens(answer.most_tokens)}"
    terminal.say(f"{terminal.line(answer.model)} would usually get about {total}; the limits allow {limits}")


def _tokens(number: int) -> str:
    return f"{number // 1000}k tokens" if number >= 1000 else terminal.count(number, "token")


def _show_run(answer: answers.Run) -> None:
    terminal.notes(answer.warnings)
    proven = terminal.count(answer.files.proven, "file")
    terminal.say(f"{terminal.bold(answer.target)}: {proven} proven, {answer.files.unproven} not proven")
    counts = f"{terminal.count(answer.pages, 'page')}: {answer.written} written, {answer.unchanged} unchanged"
    terminal.say(counts + (f", {answer.kept} kept as you edited them" if answer.kept else ""))
    for entry in answer.answers:
        _show_answer(entry)
    terminal.say(_who_answered(answer))
    terminal.say(f"Read {terminal.plain(answer.output)}")


def _show_answer(answer: Json) -> None:
    """The answer to a question of one's own, which is why one asked it."""
    terminal.say(terminal.bold(terminal.line(answer.get("question", ""))))
    statements = answer.get("statements") or ()
    texts = [" ".join(filter(None, (statement.get("text"), statement.get("reason")))) for statement in statements]
    for text in texts or [f'"{quote}"' for quote in answer.get("quotes") or ()] or ["(no answer)"]:
        terminal.say(terminal.fold(f"- {terminal.line(text)}", "  ", "  "))
    if answer.get("note"):
        terminal.say(terminal.dim(terminal.fold(terminal.line(answer["note"]), "  ")))


def _who_answered(answer: answers.Run) -> str:
    """How far a model has answered, and why no further."""
    answered = f"{answer.answered} of {terminal.count(answer.questions, 'question')}"
    why = terminal.line(answer.who or "no chat model: the pages are made from facts alone")
    if not answer.model:
        from_cache = f"; {answered} answered earlier, and kept" if answer.answered else ""
        return why[:1].upper() + why[1:] + from_cache
    later = f"; {terminal.count(answer.unanswered, 'question')} left for later" if answer.unanswered else ""
    requests = f"asked {terminal.count(answer.model_calls, 'time')}" if answer.model_calls else "not asked"
    return f"{terminal.line(answer.model)} has answered {answered}; {requests} in this run{later}"


@click.command()
@click.argument("path", default="", type=click.Path())
@click.option("--started", type=click.IntRange(min=1), help="Show the one with this id, with every message.")
@click.option("--last", is_flag=True, help="Show the newest one, with every message.")
@click.option("--full", is_flag=True, help=f"Show long messages in full, not only {_MOST_LINES} lines.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def trajectory(settings: Settings, *, path: str, started: int | None, last: bool, full: bool, as_json: bool) -> int:
    """List how questions about PATH (or all targets) were answered, or show one in full.

    A trajectory has all that the model was told, called and saw, and how it ended. Ends with 4 if there is none.

    \b
    Examples:
      reconstitute trajectory ~/projects/shop
      reconstitute trajectory --last
      reconstitute trajectory --started 1790000000000 --full
    """  # noqa: D301 - click's mark for text that is not to be filled
    if last and started is not None:
        raise click.UsageError("--last and --started exclude each other; give one of them")
    target = absolute(path) if path else ""
    answer = settings.ask(calls.Trajectories(target))
    reason = ""
    if last and answer.trajectories:
        started = answer.trajectories[-1].started
    if started is not None:
        try:
            answer = settings.ask(calls.Trajectories(target, started))
        except BadRequest as error:  # the path was taken before: what is not there is that trajectory
            answer, reason = answers.Trajectories(), str(error)
    if as_json:
        terminal.data(answer)
    for entry in () if as_json else answer.trajectories:
        if started is None:
            terminal.say(_headline(entry))
        else:
            _show_trajectory(entry, full=full)
    if not answer.trajectories:
        terminal.note(reason or _no_trajectories(settings, target))
    return 0 if answer.trajectories else NOTHING


def _no_trajectories(settings: Settings, target: str) -> str:
    """Why nothing is listed, and where something is."""
    trajectories = settings.ask(calls.Trajectories()).trajectories if target else []
    paths = list(dict.fromkeys(entry.target for entry in reversed(trajectories)))
    if not paths:
        return "no model has been asked yet; trajectories come from a reconstitution with a chat model"
    remainder = f" and {len(paths) - _MOST_PATHS} more" if len(paths) > _MOST_PATHS else ""
    listed = ", ".join(paths[:_MOST_PATHS]) + remainder
    return f"no model has been asked about {terminal.line(target)}; there are trajectories of {listed}"


def _headline(trajectory: Trajectory) -> str:
    facts = [
        terminal.dim(trajectory.started),
        terminal.moment(trajectory.started),
        terminal.bold(terminal.line(trajectory.target)),
        terminal.line(trajectory.question.id),
        f"{terminal.count(trajectory.steps, 'step')}, {trajectory.tokens:,} tokens",
        terminal.line(trajectory.state),
    ]
    return "  ".join(facts)


def _show_trajectory(trajectory: Trajectory, *, full: bool) -> None:
    terminal.say(_headline(trajectory))
    terminal.say(f"{terminal.line(trajectory.model)}, {trajectory.seconds} s")
    for number, message in enumerate(trajectory.messages or ()):
        role = str(message.get("role", ""))
        tool = f" {terminal.line(message['tool_name'])}" if message.get("tool_name") else ""
        terminal.say("")
        terminal.say(terminal.tint(f"[{number}] {role}{tool}", _COLOURS.get(role, "white")))
        if message.get("thinking"):
            terminal.say(terminal.dim(_shortened(str(message["thinking"]), full=full)))
        if message.get("content"):
            terminal.say(_shortened(str(message["content"]), full=full))
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            arguments = json.dumps(function.get("arguments"), ensure_ascii=False)
            terminal.say(_shortened(f"-> {function.get('name')}({arguments})", full=full))


def _shortened(text: str, *, full: bool) -> str:
    lines = terminal.plain(text).splitlines()
    if not full and len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"(and {len(lines) - _MOST_LINES} more lines: --full)"]
    return "\n".join(_INDENT + line for line in lines)
