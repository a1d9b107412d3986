"""``reconstitute forget``: shows what would go, asks, and lets the service remove it for good."""

from __future__ import annotations

import sys

import click
from msgspec.structs import replace

from daemon.cli import terminal
from daemon.cli.settings import NOTHING, Settings, absolute, as_project
from daemon.control import answers, calls

_MOST_LISTED = 20
_DECLINED = 1


@click.command()
@click.argument("name", metavar="[SESSION|MESSAGE|PATH]", default="")
@click.option("--before", metavar="DATE", default="", help="All sessions whose last message is older than this.")
@click.option("--project", metavar="P", default="", help="All sessions of a project: its folder, or its id.")
@click.option("--dry-run", is_flag=True, help="Forget nothing; show what would go.")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def forget(
    settings: Settings, /, *, name: str, before: str, project: str, dry_run: bool, is_sure: bool, as_json: bool
) -> int:
    """Remove a session, a message, what is recorded of a file or folder, or all sessions before DATE or of project P.

    They go for good: from the archive, the indexes, kept answers and the files of the archive, and are not read again
    while OpenCode still has them. The service writes the pages anew that were made of them; OpenCode's own records
    stay. Sub-agents' sessions go with the session that started them. Of a PATH (with a slash in it: ./notes.txt) go
    the calls, snapshots and diffs that have it; the rest of those messages stays, and what later messages do with it is
    archived. Without --yes it shows what would go and asks. Ends with 4 if there is nothing to forget, and with 1 if
    you say no.

    \b
    Examples:
      reconstitute forget ses_4ab1 --dry-run
      reconstitute forget msg_90cd
      reconstitute forget ~/projects/shop/.env
      reconstitute forget --before 2026-01-01
      reconstitute forget --project ~/projects/shop --yes
    """  # noqa: D301 - click's mark for text that is not to be filled
    if sum(map(bool, (name, before, project))) != 1:
        raise click.UsageError("give one SESSION, MESSAGE or PATH, or --before, or --project")
    if dry_run and is_sure:
        raise click.UsageError("--dry-run and --yes exclude each other; give one of them")
    is_path = "/" in name or name.startswith(("~", "."))
    request = calls.Forget(absolute(name) if is_path else name, before, as_project(project))
    if not is_sure:
        preview = _called(settings, request)
        if not as_json:
            _show(preview)
        elif dry_run:
            terminal.data(preview)
        is_empty = not (preview.messages or preview.sessions or preview.path)
        if dry_run or is_empty:
            return NOTHING if is_empty else 0
        if not _agrees(as_json=as_json):
            return _DECLINED
    answer = _called(settings, replace(request, confirmed=True))
    if as_json:
        terminal.data(answer)
    elif is_sure:
        _show(answer)
    else:
        terminal.say(f"Forgotten: {_counted(answer)}.")
    return 0 if answer.forgotten else NOTHING


def _agrees(*, as_json: bool) -> bool:
    """Whether the user says yes.

    Raises:
        click.UsageError: nobody can be asked.
    """
    if as_json or not _is_answerable():
        raise click.UsageError("nothing was forgotten; give --yes to forget this, or --dry-run to look only")
    if click.confirm("Forget this for good?", default=False, err=True):
        return True
    terminal.note("nothing was forgotten")
    return False


def _is_answerable() -> bool:
    """Whether a person can read a question and type an answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _called(settings: Settings, request: calls.Forget) -> answers.Forget:
    answer = settings.ask(request)
    terminal.notes(answer.warnings)
    return answer


def _counted(answer: answers.Forget) -> str:
    counts = [
        (len(answer.sessions), "session"),
        (0 if answer.parts else answer.messages, "message"),
        (answer.files, "recorded file"),
        (answer.objects, "stored object"),
    ]
    parts = f"{terminal.count(answer.parts, 'part')} of {terminal.count(answer.messages, 'message')}"
    listed = [parts] if answer.parts else []
    return ", ".join([*listed, *(terminal.count(number, noun) for number, noun in counts if number)]) or "nothing"


def _show(answer: answers.Forget) -> None:
    for session in answer.sessions[:_MOST_LISTED]:
        name = terminal.identifier(session.id)
        facts = [terminal.moment(session.updated), name, terminal.count(session.messages, "message")]
        title = terminal.bold(" ".join(session.title.split()))
        parent = terminal.line(terminal.identifier(session.parent_id))
        by = terminal.dim(f"  (sub-agent of {parent})") if parent else ""
        terminal.say(f"{'  '.join(map(terminal.line, facts))}  {title}{by}")
    if len(answer.sessions) > _MOST_LISTED:
        terminal.say(f"and {terminal.count(len(answer.sessions) - _MOST_LISTED, 'more session', 'more sessions')}")
    if answer.message_id:
        terminal.say(f"message {terminal.line(terminal.identifier(answer.message_id))}")
    if answer.path:
        terminal.say(terminal.line(answer.path))
    if answer.messages or answer.sessions or answer.path:
        terminal.say(f"{'Forgotten' if answer.forgotten else 'Would go'}: {_counted(answer)}")
    for folder in answer.pages:
        terminal.say(terminal.fold(f"pages made of it, which the service writes anew: {folder}", "  ", "  "))
    for target in answer.targets:
        terminal.say(terminal.fold(f"answers and results kept of {target}", "  ", "  "))
    for result in answer.results:
        terminal.say(terminal.fold(f"result of a request: {result}", "  ", "  "))
    for note in answer.notes:
        terminal.say(terminal.dim(terminal.fold(note, "  ", "  ")))
