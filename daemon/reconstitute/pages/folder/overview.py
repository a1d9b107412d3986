"""The first screen of a folder's page: what it is, where it stands, how to run it, what is left open.

Guarantees: each is a line or two; nothing is said to run that no record ran or named. It makes Markdown from facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from daemon import markdown
from daemon.display import counted
from daemon.model import FileEdit
from daemon.reconstitute.answer import Statement
from daemon.reconstitute.facts.session_values import CallStatus, Citation, SessionFacts
from daemon.reconstitute.facts.shell import COULD_NOT_RUN, spellings
from daemon.reconstitute.facts.values import Aftermath, Command, Facts, Purpose, Script, Standing
from daemon.reconstitute.pages.folder.fact_lists import FactLists
from daemon.reconstitute.pages.plan import Links
from daemon.reconstitute.pages.statements import Footnotes
from daemon.reconstitute.recover import Recovered, State
from daemon.redact import redact
from daemon.transcript.shell import NOTE_PREFIX

_MOST_PURPOSE = 500
_MOST_TEXT = 160
_MOST_NAMED = 3
"""Files that differ on the disk."""
_EXACT = frozenset({State.VERIFIED, State.PROVEN})
_RUN = "run"
_FOR = {
    "build": "to build it: ",
    "test": "to test it: ",
    "lint": "to check it: ",
    "install": "to install it: ",
    "migrate": "to migrate its data: ",
    "deploy": "to deploy it: ",
}
"""What a command is for that does not start the project, the main ones first."""
_ENDED = re.compile(r"[.!?…。！？](?:\[\^[\w-]+\])*$")
"""That a text ends as a sentence does, before its footnotes."""


class Overview:
    """The lines before the sections; `titles` are the sessions' by id."""

    def __init__(
        self, facts: Facts, titles: Mapping[str, str], links: Links, notes: Footnotes, entries: FactLists
    ) -> None:
        self._facts = facts
        self._titles = titles
        self._links = links
        self._notes = notes
        self._entries = entries

    def purpose(self, statements: Sequence[Statement], model: str) -> markdown.Markdown:
        """The project's own words and the model's first statement, as a block quote; empty where there are none."""
        rows = [f"> {self._purpose(purpose)}" for purpose in self._facts.purpose]
        rows += [
            f"> {markdown.prose(redact(first.text), _MOST_PURPOSE)} (by {model}){self._notes.mark(*first.sources)}"
            for first in statements[:1]
        ]
        return markdown.Markdown("\n>\n".join(rows))

    def _purpose(self, purpose: Purpose) -> str:
        struck = self._entries.strike(purpose)
        text = markdown.prose(purpose.text, _MOST_PURPOSE)
        return (
            f"~~{text}~~ {struck}"
            if struck
            else f"{text} ({markdown.inline(purpose.origin)}){self._notes.mark(purpose.citation, beside=purpose.text)}"
        )

    def standing(self, files: Sequence[Recovered]) -> markdown.Markdown:
        """The last activity, how much is known, what is missing on this disk, and what came after."""
        standing = self._facts.standing
        sentences = [f"{known(files)}{_as_of(standing)}."] if files else []
        last = max([standing.last_activity, *(session.last for session in self._facts.sessions)])
        if last > 0:
            title = self._titles.get(standing.last_session, "")
            where = f" in {self._links.session(standing.last_session, title)}" if title else ""
            sentences.insert(0, f"Last activity {markdown.moment(last)}{where}.")
        existing = sum(file.state is not State.DELETED and not file.is_folder for file in files)
        noun = "known file" if any(file.is_folder for file in files) else "file"
        sentences += list(_on_disk(standing, existing, noun, self._links))
        sentences += [self._aftermath(standing.aftermath)] if standing.aftermath else []
        return markdown.Markdown(" ".join(sentences))

    def _aftermath(self, aftermath: Sequence[Aftermath]) -> str:
        newest = aftermath[0]
        text = markdown.prose(newest.text, _MOST_TEXT)
        if newest.command and newest.command not in newest.text:
            text = markdown.Markdown(f"{text}: {markdown.code(markdown.cut(newest.command, _MOST_TEXT))}")
        note = f", and {len(aftermath) - 1} more" if len(aftermath) > 1 else ""
        return f"What came after may have changed files: {text}{self._mark(newest.citation)}{note}."

    def run(self) -> markdown.Markdown:
        """The command that starts the project, with its last result; else what builds or tests it; empty without any.

        What failed is only told where nothing of the same standing succeeded.
        """
        lasting = [command for command in self._facts.commands if not command.taken_back]
        commands = sorted((command for command in lasting if not self._entries.is_struck(command)), key=_trust)
        ran = next((command for command in commands if command.group == _RUN), None)
        named_script = next(
            (script for script in self._facts.scripts if script.group == _RUN and not self._entries.is_struck(script)),
            None,
        )
        if ran is not None and (ran.last is CallStatus.OK or ran.named):
            return self._last_run(ran)
        if ran is None and any(command.group == _RUN for command in lasting):
            return markdown.Markdown("the model struck out what the records name, see below.")
        if named_script is not None:
            return self._named_script(named_script, commands)
        good = [command for command in commands if command.last is CallStatus.OK and command.group in _FOR]
        useful = (command for command in commands if command.group in _FOR)
        main = min(good, key=lambda command: list(_FOR).index(command.group), default=None) or ran or next(useful, None)
        return self._last_run(main) if main is not None else markdown.Markdown("")

    def _last_run(self, command: Command) -> markdown.Markdown:
        return markdown.Markdown(f"{_FOR.get(command.group, '')}{self._entries.last_run(command)}.")

    def _named_script(self, script: Script, commands: Sequence[Command]) -> markdown.Markdown:
        """A script that the project names, with how it ended where it was run, in whatever words."""
        spelled = spellings.of(script.invocation or script.runs)
        spell = partial(spellings.is_run_by, spelled, is_default=script.is_default)
        run_command = next(
            (command for command in commands if spell(spellings.of(command.command, command.folder))), None
        )
        if run_command is not None:
            return markdown.Markdown(self._entries.last_run(run_command) + ".")
        invocation = markdown.code(markdown.cut(script.invocation or script.runs, _MOST_TEXT))
        where = self._links.file(script.path)
        calls = (call.command for session in self._facts.sessions for turn in session.turns for call in turn.calls)
        if spellings.mentions(spelled, calls, is_default=script.is_default):
            return markdown.Markdown(f"{invocation} ({where}).")  # it may have been run
        return markdown.Markdown(f"{invocation} ({where}); it was not run in these sessions.")

    def left_open(self) -> markdown.Markdown:
        """How many points are open, and the first of them."""
        points = [point for point in self._facts.open if not self._entries.is_struck(point)]
        if not self._facts.open:
            return markdown.Markdown("the records name no open todo, question or failure.")
        if not points:
            return markdown.Markdown("the model struck out all that the records name, see below.")
        # Only our own bold goes: the text may have stars in code.
        first = self._entries.open_point(points[0], _MOST_TEXT).replace("**", "", 2)
        end = "" if _ENDED.search(first) else "."
        return markdown.Markdown(f"{f'{len(points)} points, the first: ' if len(points) > 1 else ''}{first}{end}")

    def _mark(self, cited: Citation | None) -> str:
        return self._notes.mark(cited)


def _trust(command: Command) -> int:
    """Where a command stands among those that may be the way to run it, the surest first."""
    if command.last is CallStatus.OK:
        return 0 if command.named else 1
    if command.named:
        return 2
    if command.last is CallStatus.UNKNOWN:
        return 3 if command.succeeded else 4
    return 5 if command.last is CallStatus.FAILED else 6


def unlisted(
    programs: Sequence[FileEdit], sessions: Sequence[SessionFacts], notes: Footnotes
) -> list[markdown.Markdown]:
    """That programs, the newest first, may have written files that are in no list, as a sentence; none without any.

    How the first of them ended is told by the calls of `sessions`.
    """
    commands: dict[str, FileEdit] = {}
    for program in programs:
        commands.setdefault(" ".join(redact(program.note).removeprefix(NOTE_PREFIX).split()), program)
    commands.pop("", None)
    for command, ran in commands.items():
        calls = (
            call for session in sessions for turn in session.turns for call in turn.calls if call.part_id == ran.part_id
        )
        status = next((call.exit for call in calls), None)
        if status in COULD_NOT_RUN:
            continue  # what never began wrote nothing
        note = f"; {counted(len(commands) - 1, 'other command')} may have, too" if len(commands) > 1 else ""
        mark = notes.mark(Citation(ran.session_id, ran.message_id, ran.time))
        quoted_command = markdown.code(markdown.cut(command, _MOST_TEXT))
        ended = f" (it failed with exit status {status})" if status else ""
        return [
            markdown.Markdown(f"{quoted_command}{ended} may have written files that are not listed here{mark}{note}.")
        ]
    return []


def known(files: Sequence[Recovered]) -> str:
    """``14 of 16 files are known exactly, 1 was deleted; the files in 2 folders are unknown``."""
    exact = sum(file.state in _EXACT for file in files)
    folders = unknown_folders(files)
    files = [file for file in files if not file.is_folder]
    deleted = [file for file in files if file.state is State.DELETED]
    moved = sum(bool(file.moved_to) for file in deleted)
    existing = len(files) - len(deleted)
    if not existing:
        sentence = "" if folders else "no file is left" if deleted else "it is not certain that it has any file"
    elif exact == existing:
        # "All" would leave out the files of the unknown folders.
        sentence = (
            f"{counted(existing, 'file')} {'is' if existing == 1 else 'are'} known exactly"
            if folders
            else _all_known(existing)
        )
    else:
        sentence = f"{exact} of {counted(existing, 'file')} {'is' if exact == 1 else 'are'} known exactly"
    parts = [sentence] if sentence else []
    for count, verb in ((len(deleted) - moved, "deleted"), (moved, "moved away")):
        files_of = str(count) if parts else counted(count, "file")
        parts += [f"{files_of} {'was' if count == 1 else 'were'} {verb}"] if count else []
    text = "; ".join(filter(None, (", ".join(parts), folders)))
    return text[:1].upper() + text[1:]


def _all_known(existing: int) -> str:
    texts = {1: "its only file is known exactly", 2: "both of its files are known exactly"}
    return texts.get(existing, f"all {existing} files are known exactly")


def unknown_folders(files: Sequence[Recovered]) -> str:
    """``the files in 2 folders are unknown``: of these not even the names in them are recorded; empty without any."""
    count = sum(file.is_folder for file in files)
    return f"the files in {counted(count, 'folder')} are unknown" if count else ""


def _as_of(standing: Standing) -> str:
    return f" (as of {markdown.moment(standing.known_at)})" if standing.known_at > 0 else ""


def _on_disk(standing: Standing, existing: int, noun: str, links: Links) -> Iterator[str]:
    """What this disk lacks of the `existing` files (each a `noun`), and which command brings what of it back."""
    if standing.absent:
        yield f"{_absent(len(standing.absent), existing, noun)}; {_brought_back(standing)}."
    differing = len(standing.differing)
    if differing:
        names = ", ".join(map(links.file, standing.differing[:_MOST_NAMED]))
        note = f" and {differing - _MOST_NAMED} more" if differing > _MOST_NAMED else ""
        sentence = f"{names}{note} {'differs' if differing == 1 else 'differ'} on this disk"
        is_stated = standing.absent and (standing.missing or standing.likely)
        restore = "the recorded state comes back with"
        yield (
            f"{sentence}."
            if is_stated or not standing.restore
            else f"{sentence}; {restore} {markdown.code(standing.restore)}."
        )


def _absent(absent: int, existing: int, noun: str) -> str:
    if absent < existing:
        return f"{absent} of its {existing} {noun}s {'is' if absent == 1 else 'are'} not on this disk"
    return (
        f"Its only {noun} is not on this disk" if existing == 1 else f"None of its {existing} {noun}s is on this disk"
    )


def _brought_back(standing: Standing) -> str:
    """How many of the absent files come back exactly, how many only as last known, and the commands that do it."""
    absent, exact, likely = len(standing.absent), len(standing.missing), len(standing.likely)
    if not exact + likely:
        return "what it held is not known whole" if absent == 1 else "of none of these a whole content is known"
    command = f": {markdown.code(standing.restore)}" if standing.restore else ""
    if not exact:
        subject = "it" if absent == 1 else "all" if likely == absent else str(likely)
        stale_command = f": {markdown.code(f'{standing.restore} --grade stale')}" if standing.restore else ""
        return f"{subject} can be brought back as last known, perhaps changed since{stale_command}"
    subject = "it" if absent == 1 else "all" if exact == absent else str(exact)
    note = f", {likely} more as last known with {markdown.code('--grade stale')}" if likely else ""
    return f"{subject} can be brought back exactly{command}{note}"
