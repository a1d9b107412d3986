"""The tools that look: into sessions by search and by message id, and at the recovered files. They change nothing.

Everything they show is noted in the ledger. Nothing later than the moment in question is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from daemon.archive import Archive
from daemon.display import counted, one_line
from daemon.errors import BadRequest, IndexBroken, Retry
from daemon.files import FileHistory, Files
from daemon.files.trees import is_beneath
from daemon.index import Filters
from daemon.model import Hit
from daemon.moments import parse_moment
from daemon.recall.search import Recall, SearchResults
from daemon.reconstitute.agent.context.blocks import Origin, clean, cut_at_space, fenced, name, room, size, utc
from daemon.reconstitute.agent.context.ledger import Shown
from daemon.reconstitute.agent.context.messages import message_block, message_page
from daemon.reconstitute.agent.hits import hit_block
from daemon.reconstitute.agent.tools import files as file_views
from daemon.reconstitute.agent.tools import schemas
from daemon.reconstitute.agent.tools.paths import Paths
from daemon.reconstitute.agent.tools.result import Sheet
from daemon.reconstitute.scope import Scope
from daemon.redact import redact

_WRAPPED = " \t\n[](){}<>`'\""
_WIDEST_HIT = 1600
"""Bytes of one search result."""
_LONGEST_PATH = 400


class Looking:
    """What a model can look at; each method answers one call onto a sheet.

    Every method raises BadRequest, in words for the model, for what cannot be answered.
    """

    def __init__(  # noqa: PLR0917 - all that there is to be looked at
        self,
        archive: Archive,
        recall: Recall,
        files: Files,
        scope: Scope,
        histories: Iterable[FileHistory],
        paths: Paths,
        shown: Shown,
        moment: int | None,
    ) -> None:
        self._archive, self._recall, self._files = archive, recall, files
        self._paths, self._shown, self._moment = paths, shown, moment
        self._sessions = frozenset(one.session.id for one in scope.sessions)
        self._histories = {history.path: history for history in histories}
        self._outside: dict[str, FileHistory] = {}
        self._listed = file_views.files_of(self._histories.values())
        self.warnings: list[str] = []

    # -- sessions ------------------------------------------------------------------------------------------------

    def search_sessions(self, asked: schemas.SearchSessions, sheet: Sheet) -> None:
        filters = Filters(
            kinds=tuple(asked.kinds),
            before=None if self._moment is None else self._moment + 1,
            sessions=None if asked.everywhere else self._sessions,
            path=self._paths.readings(asked.path)[0] if asked.path else "",
        )
        if not self._sessions and not asked.everywhere:
            raise BadRequest("no recorded session is about this folder; search with everywhere: true")
        found = self._searched(asked, filters)
        hits, others = found.hits, tuple[Hit, ...]()
        if asked.kinds and len(hits) < asked.limit:  # who names a kind wants to see what there is of it
            others = self._recall.newest(filters, asked.limit - len(hits), {hit.message_id for hit in hits})
        missing = 0
        for hit in (*hits, *others):
            block = hit_block(self._archive, hit, min(_WIDEST_HIT, sheet.room))
            if block is None:
                missing += 1
            else:
                sheet.put(self._shown.add(block))
        if not hits and not others:
            hint = "" if asked.everywhere else "; everywhere: true searches all sessions"
            sheet.say(f"Nothing was found. Try other words, or fewer{hint}.")
        elif missing:
            sheet.say(f"{counted(missing, 'result')} more did not fit; ask for fewer, or for something narrower.")
        else:
            sheet.say("These are excerpts; read_message and read_context show more.")
        if others:
            last = "last result is" if len(others) == 1 else f"last {len(others)} results are"
            sheet.say(f"Note: the {last} just the newest other messages of kind {' or '.join(asked.kinds)}.")
        for warning in found.warnings:
            sheet.say(f"Note: {one_line(clean(warning))}.")  # it may tell words of the query, which are the model's

    def _searched(self, asked: schemas.SearchSessions, filters: Filters) -> SearchResults:
        try:
            found = self._recall.search(asked.query, limit=asked.limit, filters=filters)
        except BadRequest:
            raise
        except (IndexBroken, Retry) as error:  # the owner of the index was told; other tools still answer
            self.warnings.append(f"a search of the model was not answered: {redact(str(error))}")
            raise BadRequest(
                "search does not work at the moment; use read_message, list_files, file_history"
            ) from error
        self.warnings += [warning for warning in found.degraded if warning not in self.warnings]
        return found

    def read_message(self, asked: schemas.ReadMessage, sheet: Sheet) -> None:
        message_id = self._visible(asked.message_id)
        block = message_page(self._archive, message_id, sheet.room, asked.offset)
        if block is None:
            raise BadRequest(f"message {name(message_id)} cannot be shown: results may not be as long as needed")
        sheet.put(self._shown.add(block))
        if block.more is not None:
            sheet.say(f"It goes on: call read_message with offset {block.more}.")

    def read_context(self, asked: schemas.ReadContext, sheet: Sheet) -> None:
        message_id = self._visible(asked.message_id)
        state = self._archive.state(message_id)
        order = self._archive.message_ids(state["session"]) if state is not None else []
        place = order.index(message_id) if message_id in order else 0
        around = order[max(0, place - asked.before) : place + asked.after + 1] or [message_id]
        around = [each for each in around if self._is_visible(each)]
        missing = []
        for number, each in enumerate(around):
            later = around[number:]
            shares = len(later) + (message_id in later)
            block = message_block(self._archive, each, sheet.room * (2 if each == message_id else 1) // shares)
            if block is None:
                missing.append(each)
            else:
                sheet.put(self._shown.add(block))
        if missing:
            sheet.say(f"Not shown for want of room: {', '.join(map(name, missing))}; call read_message with one.")
        else:
            sheet.say("Long messages are shortened; read_message shows all of one.")

    def _visible(self, written: str) -> str:
        """The id of a message that may be shown."""
        message_id = written if self._archive.state(written) is not None else written.strip(_WRAPPED)
        if self._archive.state(message_id) is None:
            near = ", ".join(map(name, self._shown.near(message_id)))
            hint = f"ids that were shown: {near}" if near else "search_sessions gives ids"
            raise BadRequest(f"there is no message {name(message_id)!r}; {hint}")
        if not self._is_visible(message_id):
            raise BadRequest(f"message {name(message_id)} is later than {utc(self._moment or 0)}, which this is about")
        return message_id

    def _is_visible(self, message_id: str) -> bool:
        state = self._archive.state(message_id)
        return state is not None and (self._moment is None or state["created"] <= self._moment)

    # -- files ---------------------------------------------------------------------------------------------------

    def list_files(self, asked: schemas.ListFiles, sheet: Sheet) -> None:
        folder = self._paths.find(asked.folder) if asked.folder else self._paths.target
        lines = file_views.listing(self._listed, self._paths, folder)
        named = [path for path in self._paths.added if is_beneath(path, folder)]
        lines += [f"{name(self._paths.relative(path), _LONGEST_PATH)} | named in messages, taken up" for path in named]
        heading = f"recorded files in {name(folder, _LONGEST_PATH)}: path | how well known | size | changes | last one"
        if not lines:
            raise BadRequest(f"nothing is recorded of a folder {name(folder, _LONGEST_PATH)!r}")
        if size("\n".join(lines)) > room(heading, sheet.room):
            lines = file_views.overview(self._listed, self._paths, folder)
        shown = sheet.lines(heading, lines[asked.offset :])
        if asked.offset + shown < len(lines):
            sheet.say(f"It goes on: call list_files with offset {asked.offset + shown}, or with one of the folders.")

    def read_file(self, asked: schemas.ReadFile, sheet: Sheet) -> None:
        history = self._history(asked.path)
        until = parse_moment(asked.at)
        if until is not None:
            history = history.until(until if self._moment is None else min(until, self._moment))
        label = name(self._paths.relative(history.path), _LONGEST_PATH)
        found = file_views.content(history)
        if found is None:
            known = f"it is {file_views.state(history)}" if history.revisions else "nothing is recorded of it by then"
            raise BadRequest(f"no content is known of {label!r}: {known}; file_history tells more")
        revision, text = found.revision, found.text
        heading = f"file {label} | {revision.grade} | as of {utc(revision.time)} | message {name(revision.message_id)}"
        widest = f"{heading} | characters {len(text)} to {len(text)} of {len(text)}"
        start = min(asked.offset, len(text))
        page = cut_at_space(text[start:], room(widest, sheet.room))
        end = start + len(page)
        if (start, end) != (0, len(text)):
            heading += f" | characters {start} to {end} of {len(text)}"
        sheet.put(fenced(heading, page))
        self._note(revision.message_id, history.path, page)
        if end < len(text):
            sheet.say(f"It goes on: call read_file with offset {end}.")
        for note in found.notes:
            sheet.say(f"Note: {note}.")

    def file_history(self, asked: schemas.FileHistory, sheet: Sheet) -> None:
        history = self._history(asked.path)
        label = name(self._paths.relative(history.path), _LONGEST_PATH)
        lines = file_views.history_lines(history)[asked.offset :]
        heading = f"history of {label}, now {file_views.state(history)}, newest first"
        shown = sheet.lines(heading, [line for _, line in lines])
        for revision, _ in lines[:shown]:
            self._note(revision.message_id)
        if shown < len(lines):
            sheet.say(f"It goes on: call file_history with offset {asked.offset + shown}.")

    def _history(self, written: str) -> FileHistory:
        """The history of a file of the target, or of another file that is named by its absolute path."""
        readings = self._paths.readings(written)
        for path in readings:
            if path in self._histories:
                return self._histories[path]
        path = readings[0]
        if not is_beneath(path, self._paths.target) and list(islice(self._archive.paths(path), 2)) == [path]:
            if path not in self._outside:
                self._outside[path] = self._files.history(path, self._moment)
            if self._outside[path].revisions:
                return self._outside[path]
        if any(reading in self._paths for reading in readings):
            raise BadRequest(f"{name(path, _LONGEST_PATH)!r} is a folder; list_files tells what is in it")
        near = self._paths.near(path)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "list_files names the recorded files"
        raise BadRequest(f"nothing is recorded of a file {name(path, _LONGEST_PATH)!r}; {hint}")

    def _note(self, message_id: str, path: str = "", text: str = "") -> None:
        """A message was named; with `text`, as the one that left it in the file `path`: it may be quoted from there."""
        if not message_id or not self._is_visible(message_id):
            return
        state = self._archive.state(message_id) or {}
        session = self._archive.session(state.get("session", ""))
        title = session.title if session is not None else ""
        self._shown.note(Origin(message_id, state.get("session", ""), title, "", state.get("created", 0)))
        self._shown.note_file(message_id, path, text)
