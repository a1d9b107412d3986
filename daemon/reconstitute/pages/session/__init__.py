"""The pages of a session: its conversation as a person reads it, divided where it is long.

Guarantees: a page is only made when it is asked for, and its basis changes whenever it would; every link leads to a
page of the set. It reads messages one at a time, through what it is given for that.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from daemon import markdown, records
from daemon.display import counted
from daemon.markdown import Href, Markdown, code, link, prose
from daemon.model import Page
from daemon.reconstitute.answer import Statement
from daemon.reconstitute.facts import shell
from daemon.reconstitute.facts.session.reverts import kept_words
from daemon.reconstitute.facts.session_values import Ending, FileChange, SessionFacts, TakenBack, TestRun, Turn
from daemon.reconstitute.pages.folder.timeline import written
from daemon.reconstitute.pages.layout import Chapter, between, name_of
from daemon.reconstitute.pages.material import Conversation, MaterialIndex
from daemon.reconstitute.pages.plan import Plan, references
from daemon.reconstitute.pages.session.messages import Links, Messages
from daemon.reconstitute.pages.statements import Footnotes, sentence

VERSION = 2
"""Of what these pages look like; raise it when they are to be made anew."""
_LEAST_HEADING, _MOST_HEADING = 20, 90
_LIKE_ANCHOR = re.compile(r"\W*msg\W", re.IGNORECASE)
"""A heading that a renderer could give the slug of a message."""
_MOST_FILES = 40


class SessionPages:
    """All session pages of a tree."""

    def __init__(self, index: MaterialIndex, plan: Plan, conversation: Conversation) -> None:
        self._index = index
        self._plan = plan
        self._transcripts = plan.transcripts
        self._conversation = conversation
        self._facts = {session.id: session for session in index.material.facts.sessions}
        ordered = sorted(self._facts.values(), key=lambda session: (session.session.created, session.id))
        roots = [session for session in ordered if session.session.parent_id not in self._facts]
        self._later = {older.id: newer.id for older, newer in pairwise(roots)}
        self._earlier = {newer: older for older, newer in self._later.items()}
        self._paths: dict[str, dict[int, str]] = {}
        for chapter in self._transcripts.chapters:
            self._paths.setdefault(chapter.facts.id, {})[chapter.number] = chapter.path
        self._children: dict[str, list[SessionFacts]] = {}
        for session in ordered:
            if session.session.parent_id in self._facts:
                self._children.setdefault(session.session.parent_id or "", []).append(session)

    def pages(self) -> list[Page]:
        """Every page, to be made when it is needed."""
        return [
            Page(
                chapter.path,
                partial(self._text, chapter),
                self._sources(chapter),
                self._basis(chapter),
                f"{chapter.facts.id} {chapter.number}",
            )
            for chapter in self._transcripts.chapters
        ]

    def _summary(self, chapter: Chapter) -> Statement | None:
        """What a model says came of the session, on its first page."""
        return self._index.material.record.summaries.get(chapter.facts.id) if chapter.number == 1 else None

    def _sources(self, chapter: Chapter) -> tuple[str, ...]:
        summary = self._summary(chapter)
        cited = {source.message_id for source in summary.sources} if summary is not None else set()
        return tuple(sorted(cited | set(chapter.messages)))

    def _basis(self, chapter: Chapter) -> str:
        facts = chapter.facts
        # A session's record is touched without a change of anything that is shown.
        session_facts = replace(facts, session=replace(facts.session, raw=b"", updated=0, archived=None))
        links = [self._files(chapter.path, (change.path for change in facts.changes))]
        links += [self._files(chapter.path, call.changed) for turn in facts.turns for call in turn.calls]
        related = [self._earlier.get(facts.id), self._later.get(facts.id), facts.session.parent_id, facts.forked_from]
        related += [session_id.id for session_id in self._children.get(facts.id, ())]
        related += [call.child for turn in facts.turns for call in turn.calls if call.child]
        leads_to = [str(self._session(chapter.path, session_id or "")) for session_id in related]
        summary = self._summary(chapter)
        sources = [] if summary is None else [(source.session_id, source.message_id) for source in summary.sources]
        cited = [
            (self._transcripts.place(*source), self._transcripts.href(chapter.path, *source)) for source in sources
        ]
        about = (
            VERSION,
            chapter.number,
            chapter.count,
            self._paths[facts.id],
            markdown.zone(),
            self._title,
            summary,
            cited,
        )
        return records.digest(
            repr((about, session_facts, leads_to, links)).encode("utf-8", "replace"),
            self._conversation.digest(list(chapter.messages)).encode(),
        )

    @property
    def _title(self) -> str:
        return self._index.target.rpartition("/")[2] or "/"

    def _text(self, chapter: Chapter) -> str:
        with self._conversation.hiding():
            return "".join(self._chapter_text(chapter)).rstrip("\n") + "\n"

    def _chapter_text(self, chapter: Chapter) -> Iterator[str]:
        facts = chapter.facts
        name = name_of(facts) or "A session without a title"
        yield f"# {'Session: ' if _LIKE_ANCHOR.match(name) else ''}{_heading(name)}\n\n"
        yield f"{self._pager(chapter)}\n\n"
        notes = Footnotes(chapter.path, self._transcripts, self._index.titles)
        if (summary := self._summary(chapter)) is not None:
            yield f"> {sentence(summary, notes)} (by the model)\n\n"
        yield from (
            f"{paragraph}\n\n" for paragraph in (self._head(chapter) if chapter.number == 1 else ()) if paragraph
        )
        yield from self._conversation_of(chapter)
        yield f"{self._pager(chapter)}\n"
        yield from (f"\n{definition}\n" for definition in notes.definitions)

    # -- the head ------------------------------------------------------------------------------------------------

    def _pager(self, chapter: Chapter) -> str:
        """Where to go from here: up, to the sessions before and after, to the other pages of this one."""
        folder = self._plan.layout.folder("")
        links = [link(markdown.bare(self._title), between(chapter.path, folder))]
        for label, id_ in (
            ("earlier session", self._earlier.get(chapter.facts.id)),
            ("later session", self._later.get(chapter.facts.id)),
        ):
            if id_ and (href := self._transcripts.href(chapter.path, id_)):
                links.append(link(label, href))
        line = " · ".join(links)
        if chapter.count == 1:
            return line
        paths = self._paths[chapter.facts.id]
        numbers = (
            str(number)
            if number == chapter.number or number not in paths
            else link(str(number), between(chapter.path, paths[number]))
            for number in range(1, chapter.count + 1)
        )
        return f"{line}\n\nPage {chapter.number} of {chapter.count}: {' '.join(numbers)}"

    def _head(self, chapter: Chapter) -> Iterator[str]:
        facts, page = chapter.facts, chapter.path
        reverts = [
            ("Taken back", _revert(revert, self._transcripts.href(page, facts.id, revert.message_id)))
            for revert in facts.reverts
        ]
        yield "\n".join(f"- {name}: {value}" for name, value in [*self._about(facts, page), *reverts] if value)
        if not facts.is_whole:
            command = code(f"reconstitute export --format markdown --results full --session {shlex.quote(facts.id)}")
            yield f"Only the turns that have to do with this folder are here. The whole session: {command}"
        if facts.todos:
            completed = sum(todo.status == "completed" for todo in facts.todos)
            todos = "\n".join(
                f"- {prose(todo.text)}{'' if todo.status == 'completed' else f' ({_todo_status(todo.status)})'}"
                for todo in facts.todos
            )
            yield f"Its todo list in the end, {completed} of {len(facts.todos)} done:\n\n{todos}"

    def _about(self, facts: SessionFacts, page: str) -> Iterator[tuple[str, str]]:
        begun, ended = markdown.moment(facts.session.created), markdown.moment(facts.last)
        until = ended.removeprefix(begun[:11]) if ended[:10] == begun[:10] else ended
        yield "When", f"{begun}{f' to {until}' if ended != begun else ''} ({markdown.zone()})"
        yield "Where", code(facts.session.directory) if facts.session.directory else ""
        yield "Ended", _ended(facts)
        parent = facts.session.parent_id or ""
        yield "Sub-agent of", self._session(page, parent) or (code(parent) if parent else "")
        yield (
            "Sub-agents",
            ", ".join(filter(None, (self._session(page, child.id) for child in self._children.get(facts.id, ())))),
        )
        copied = f", with {counted(facts.copied, 'turn')} of it" if facts.copied else ""
        forked = facts.forked_from
        yield "Copy of", f"{self._session(page, forked) or code(forked)}{copied}" if forked else ""
        yield "Files", self._changes(page, facts.changes)
        yield "Commits", ", ".join(map(prose, facts.commits))
        yield "Tests", ", ".join(map(partial(_tests, facts.session.directory), facts.tests))
        yield "Deleted in OpenCode", "yes" if facts.deleted else ""

    def _changes(self, page: str, changes: Sequence[FileChange]) -> str:
        items = []
        for change in changes[:_MOST_FILES]:
            name = next(iter(self._files(page, (change.path,))), Markdown(""))
            if change.kind == "written":
                items.append(f"{name}{written(change)}")
                continue
            lines = [f"+{change.added}" if change.added else "", f"−{change.removed}" if change.removed else ""]
            notes = ["" if change.kind == "changed" else change.kind, "taken back" if change.undone else ""]
            items.append(" ".join(filter(None, [name, *lines, *(f"({note})" for note in notes if note)])))
        omitted = len(changes) - _MOST_FILES
        return ", ".join(items) + (f" and {omitted} more" if omitted > 0 else "")

    # -- the conversation ----------------------------------------------------------------------------------------

    def _conversation_of(self, chapter: Chapter) -> Iterator[str]:
        facts, page = chapter.facts, chapter.path
        begins = {
            turn.message_ids[0]: (number, turn) for number, turn in enumerate(facts.turns, start=1) if turn.message_ids
        }
        quoted_prompts = {turn.prompt_id for turn in facts.turns if turn.prompt and not turn.prompt.startswith('"')}
        reverted_ids = {message for turn in facts.turns if turn.taken_back for message in turn.message_ids}
        calls = {call.part_id: call for turn in facts.turns for call in turn.calls}
        links = Links(
            lambda paths: [
                line for line in self._files(page, paths) if line.startswith("[")
            ],  # a name alone says nothing new
            lambda id_: self._session(page, id_),
        )
        messages = Messages(calls, links)
        for message in self._conversation.messages(facts.id, list(chapter.messages)):
            if message.id in begins:
                yield _turn(*begins[message.id], facts.reverts)
            number = chapter.messages[message.id]
            yield messages.write(
                message, number, is_quoted=message.id in quoted_prompts, is_taken_back=message.id in reverted_ids
            )

    def _files(self, page: str, paths: Iterable[str]) -> list[Markdown]:
        return references(self._index, self._plan, page, paths)

    def _session(self, page: str, session_id: str) -> Markdown:
        """A session by its title, with a link; empty where it has no page."""
        href: Href = self._transcripts.href(page, session_id) if session_id else Href("")
        if not href:
            return Markdown("")
        return link(markdown.cut(markdown.bare(name_of(self._facts[session_id]) or session_id), _MOST_HEADING), href)


def _turn(number: int, turn: Turn, reverts: Sequence[TakenBack]) -> str:
    """The heading of a turn, and whether it still stands."""
    name = (
        _heading(_first_line(turn.prompt))
        if turn.prompt
        else "Conversation summarised"
        if turn.is_compaction
        else "Without a prompt"
    )
    text = f"## {number}. {name}\n\n"
    return f"{text}{_standing(turn, reverts)}\n\n" if turn.taken_back else text


def _first_line(prompt: str) -> str:
    """The first line of a prompt, if it is long enough to tell it from others; else all of it."""
    first = prompt.strip().partition("\n")[0].strip()
    return first if len(first) >= _LEAST_HEADING else prompt


def _standing(turn: Turn, reverts: Sequence[TakenBack]) -> str:
    kept_text = kept_words([turn])
    files = f" In the folder, {markdown.inline(kept_text)}." if kept_text else ""
    if turn.in_doubt:
        part = " in part" if turn.in_part else ""
        return f"**Taken back{part}**, as it seems: OpenCode no longer has these messages.{files}"
    revert_texts = [
        revert
        for revert in reverts
        if revert.undone is None and (turn.prompt in revert.prompts or revert.message_id in turn.message_ids)
    ]
    when = f" on {markdown.moment(revert_texts[-1].time)}" if revert_texts else ""
    pending = "; OpenCode can still undo that" if revert_texts and revert_texts[-1].pending else ""
    return f"**Taken back{' in part' if turn.in_part else ''}**{when}{pending}.{files}"


def _revert(revert: TakenBack, href: Href) -> str:
    """What a revert took back, when, and whether that was undone."""
    prompts = (
        ", ".join(f"“{prose(prompt, _MOST_HEADING)}”" for prompt in revert.prompts) or "the end of the conversation"
    )
    place = f", from [here]({href}) on" if href else ""
    doubt = "" if revert.is_certain else ", as it seems"
    undone = f"; undone {markdown.moment(revert.undone)}" if revert.undone is not None else ""
    pending = "; OpenCode can still undo that" if revert.pending else ""
    return f"{prompts}{place}, {markdown.moment(revert.time)}{doubt}{undone}{pending}"


def _tests(directory: str, run: TestRun) -> str:
    where = shell.where(run, directory)
    return f"{code(run.command)}{f' in {code(where)}' if where else ''} {'passed' if run.passed else 'failed'}"


def _ended(facts: SessionFacts) -> str:
    if not facts.turns:
        return ""
    last = facts.turns[-1]
    words = {
        Ending.ANSWERED: "with an answer",
        Ending.STOPPED: "the last answer was stopped",
        Ending.REFUSED: "a permission was refused, and the answer ended there",
        Ending.FAILED: f"the last answer failed: {prose(last.error, _MOST_HEADING)}"
        if last.error
        else "the last answer failed",
        Ending.OPEN: "the last prompt has no answer yet",
    }
    return words[last.ending]


def _todo_status(status: str) -> str:
    return {"pending": "open", "in_progress": "begun", "cancelled": "given up"}.get(status) or str(prose(status, 40))


def _heading(text: str) -> str:
    """A title on one line."""
    return markdown.inline(markdown.bare(text).strip() or "…", _MOST_HEADING)
