"""All that a model can do while it answers a question: look into the archive, and fill in the target's own record.

Guarantees (docs/reliability.md, A1, A2): no call reads anything but the archive or writes anything but the fields of
this object; whatever arguments come, the answer is text of at most `result_bytes`; recorded text stands in delimited
blocks, and the ledger knows every message of which something was shown. What the model claims is held against the
ledger before it is taken.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from daemon import records
from daemon.display import counted
from daemon.errors import BadRecord, BadRequest
from daemon.model import Json
from daemon.recall.query.arguments import read
from daemon.reconstitute.agent.context.blocks import clean, cut, label, name
from daemon.reconstitute.agent.limits import Ended
from daemon.reconstitute.agent.tools import schemas as tool_schemas
from daemon.reconstitute.agent.tools.call import Evidence, Holdings, Paths, Result, names
from daemon.reconstitute.agent.tools.citations import CheckedDraft, Checker
from daemon.reconstitute.agent.tools.files import FileTools
from daemon.reconstitute.agent.tools.schemas import TOOLS, VERSION
from daemon.reconstitute.agent.tools.sessions import NoteTools, SessionTools
from daemon.reconstitute.answer import Source, Statement, unchecked

__all__ = ["VERSION", "Evidence", "Holdings", "Toolbox"]

_RESULT_BYTES = 12 * 1024
_LONGEST_WHY = 300
_LONGEST_LINE = 300
"""Bytes of the line that names a path."""
_LONGEST_PATH = 1024
"""Bytes of a path that may be recorded."""
_USUAL = {
    "id": "message_id", "message": "message_id", "file": "path", "filename": "path", "file_path": "path",
    "filepath": "path", "q": "query", "search": "query", "path": "folder", "directory": "folder", "dir": "folder",
}  # fmt: skip
"""Names that models give to an argument, beside ours."""
_MOST_RECORDED, _MOST_DESCRIBED, _MOST_NOTES, _MOST_STRUCK = 200, 500, 50, 40


class Toolbox:
    """The tools for one question, and what the model has left in them so far.

    `answer` is the accepted answer; `returned` is the draft that went back to be mended (its statements passed);
    `finished` says why the model ended without an answer. `recorded` are absolute paths that this run took up, each
    with the line of a message that names it, or None if only file records do. `descriptions` are by absolute path.
    `struck` are the facts that the model struck out, by key, each with the reason and its sources.
    """

    def __init__(
        self,
        evidence: Evidence,
        *,
        result_bytes: int = _RESULT_BYTES,
        recorded_paths: Iterable[str] = (),
        question_id: str = "",
        entries: Mapping[str, str] | None = None,
    ) -> None:
        """`recorded_paths` are recorded for other questions; `entries` are the facts shown to the model, by key.

        `question_id` is the question being request: search_notes leaves out what answered it before.
        """
        self._evidence, self._archive, self.ledger = evidence, evidence.archive, evidence.ledger
        self._result_bytes = result_bytes
        self._paths = Paths(evidence.target, (history.path for history in evidence.histories))
        for path in recorded_paths:
            self._paths.add(path)
        self._checker = Checker(evidence.archive, evidence.ledger, self._paths)
        self._entries = entries or {}
        self.recorded: dict[str, Source | None] = {}
        self.descriptions: dict[str, Statement] = {}
        self.notes: list[Statement] = []
        self.struck: dict[str, Statement] = {}
        self.answer: CheckedDraft | None = None
        self.finished: str | None = None
        self.returned: CheckedDraft | None = None
        sessions, files = SessionTools(evidence, self._paths), FileTools(evidence, self._paths)
        self._tools: dict[str, Callable[[Any, Result], None]] = {
            "search_sessions": sessions.search_sessions,
            "read_message": sessions.read_message,
            "read_context": sessions.read_context,
            "list_sessions": sessions.list_sessions,
            "read_session": sessions.read_session,
            "list_calls": sessions.list_calls,
            "list_files": files.list_files,
            "read_file": files.read_file,
            "file_history": files.file_history,
            "search_notes": NoteTools(evidence, question_id).search_notes,
            "record_path": self._record_path,
            "finish": self._finish,
        }
        self._drafts: dict[str, Callable[[Json, Result], None]] = {
            "describe_path": self._describe_path,
            "answer_question": self._answer_question,
            "add_note": self._add_note,
            "strike_out": self._strike_out,
        }

    def schemas(self) -> list[Json]:
        """JSON-schema functions, as Ollama takes them."""
        return tool_schemas.schemas()

    @property
    def is_done(self) -> Ended | None:
        """How the question ended; None while it goes on."""
        if self.answer is not None:
            return Ended.ANSWERED
        return None if self.finished is None else Ended.FINISHED

    @property
    def warnings(self) -> list[str]:
        """What did not work while it looked, for people; each once."""
        return self._evidence.warnings

    def call(self, name_: str, arguments: object) -> str:
        """What a call shows: text of at most `result_bytes`. Whatever a model asks for, it is no error of ours.

        Raises:
            Stop: the archive is damaged, or held by somebody else.
        """
        result = Result(self._result_bytes)
        try:
            self._call(_plain_name(name_), arguments, result)
        except BadRequest as error:
            result.add_line(f"Not done: {str(error).rstrip('.')}" + ("" if str(error).endswith("?") else "."))
        return result.text

    def _call(self, tool: str, arguments: object, result: Result) -> None:
        if tool not in TOOLS:
            similar = difflib.get_close_matches(tool[:100], TOOLS, 1)
            hint = f" did you mean {similar[0]}?" if similar else ""
            raise BadRequest(f"there is no tool {name(tool)!r};{hint} there are {', '.join(TOOLS)}")
        values = _parsed_arguments(arguments)
        if tool in self._drafts:
            self._drafts[tool](_draft(tool, values), result)
            return
        request, warnings = read(tool, _renamed(tool, values), TOOLS)
        self._tools[tool](request, result)
        for warning in warnings:
            result.add_line(f"Note: {clean(warning)}.")

    # -- the target's own record ---------------------------------------------------------------------------------

    def _record_path(self, request: tool_schemas.RecordPath, result: Result) -> None:
        path = self._paths.find(request.path)
        path_label = label(self._paths.relative(path))
        if path not in self._paths and name(path, _LONGEST_PATH) != path:
            raise BadRequest(
                f"{path_label} is no path to be recorded: it is too long, has several lines, or holds what is not shown"
            )
        source = self._naming(path, request.message_id.strip())
        if path not in self._paths and source is None:
            raise BadRequest(
                f"no message that you were shown names {path_label}; search for it and read where it is named, then "
                "record it with that message's id"
            )
        if len(self.recorded) >= _MOST_RECORDED and path not in self.recorded:
            raise BadRequest(f"{_MOST_RECORDED} paths are recorded already; that is enough for one question")
        self.recorded[path] = source
        self._paths.add(path)
        result.add_line(f"Recorded: {path_label}.")

    def _naming(self, path: str, message_id: str) -> Source | None:
        """The line that names the path, in what was shown of the message that was given, or else of any other."""
        ordered = [message_id, *self.ledger] if message_id in self.ledger else list(self.ledger)
        for spelled in ordered:
            state = self._archive.state(spelled)
            session = self._archive.session(state["session"]) if state is not None else None
            folders = (self._paths.target, session.directory if session is not None else "")
            for piece in self.ledger.pieces(spelled):
                if names(piece, path, folders):
                    line = next((line for line in piece.split("\n") if names(line, path, folders)), piece)
                    return self.ledger.source(spelled, cut(line.strip(), _LONGEST_LINE))
        return None

    def _describe_path(self, draft: Json, result: Result) -> None:
        draft = draft | {"paths": draft.get("path") or draft.get("paths")}
        if not isinstance(draft["paths"], str) or not draft["paths"].strip():
            raise BadRequest("describe_path: path is missing; give the one file or folder that it is about")
        statements, problems = self._checker.statement(draft | {"paths": [draft["paths"]]})
        if statements is None:
            result.add_lines(["Not kept:", *(f"- {problem}" for problem in problems)])
        elif len(self.descriptions) >= _MOST_DESCRIBED:
            result.add_line(f"{_MOST_DESCRIBED} descriptions are kept already; that is enough for one question.")
        else:
            self.descriptions[statements.paths[0]] = statements
            result.add_line(f"Kept: what {label(self._paths.relative(statements.paths[0]))} is for.")

    def _add_note(self, draft: Json, result: Result) -> None:
        statements, problems = self._checker.statement(draft)
        if statements is None:
            result.add_lines(["Not kept:", *(f"- {problem}" for problem in problems)])
        elif len(self.notes) >= _MOST_NOTES:
            result.add_line(f"{_MOST_NOTES} notes are kept already; that is enough for one question.")
        else:
            if all(statements.text != note.text for note in self.notes):
                self.notes.append(statements)
            result.add_line("Kept.")

    def _strike_out(self, draft: Json, result: Result) -> None:
        """Take a reason against an entry of the facts: it hides nothing, and is checked like any statement."""
        fact_key = draft.get("key")
        key = fact_key.strip(" \t\n[]`'\"") if isinstance(fact_key, str) else ""
        if key not in self._entries:
            raise BadRequest("there is no such entry; give the key that stands in brackets before it in the facts")
        reason = draft.get("reason") or draft.get("text")
        statements, problems = self._checker.statement(draft | {"text": reason, "reason": "", "paths": []})
        if statements is None:
            result.add_lines(["Not struck out:", *(f"- {problem}" for problem in problems)])
        elif len(self.struck) >= _MOST_STRUCK:
            result.add_line(f"{_MOST_STRUCK} entries are struck out already; that is enough for one question.")
        else:
            self.struck[key] = statements
            result.add_line("Struck out; it stays on the page with your reason.")

    # -- the end -------------------------------------------------------------------------------------------------

    def _answer_question(self, draft: Json, result: Result) -> None:
        """Take an answer; one that has problems goes back once, and then what still fails is left out."""
        if self.answer is not None:
            raise BadRequest("the question is answered already")
        checked = self._checker.check(draft)
        if checked.problems and self.returned is None:
            self.returned = checked
            retry = "Call answer_question once more, with all statements. What fails then is left out."
            result.add_lines([f"Not accepted yet. {retry}", *(f"- {problem}" for problem in checked.problems)])
            return
        if not checked.statements and not checked.note:
            checked = replace(checked, note=unchecked(checked.dropped))
        self.answer = checked
        left_out = f" Left out: {counted(checked.dropped, 'statement')}." if checked.dropped else ""
        result.add_line(f"Accepted: {counted(len(checked.statements), 'statement')}.{left_out}")

    def _finish(self, request: tool_schemas.Finish, result: Result) -> None:
        self.finished = cut(clean(request.reason).strip(), _LONGEST_WHY)
        result.add_line("Ended.")


def _plain_name(name_: object) -> str:
    """A tool's name without the prefix that some models put before it (``functions.read_file``)."""
    plain = records.text(records.clean(name_)).strip() if isinstance(name_, str) else ""
    return plain if plain in TOOLS else plain.rsplit(".", 1)[-1].rsplit(":", 1)[-1].replace("-", "_").strip().lower()


def _parsed_arguments(arguments: object) -> Any:
    """Arguments of valid text; an object that came as its JSON text is read."""
    if isinstance(arguments, str):
        try:
            arguments = records.loads(arguments.encode("utf-8", "replace"))
        except BadRecord:
            raise BadRequest("the arguments are no JSON object; send an object of names and values") from None
    try:
        return records.clean(arguments)
    except RecursionError:
        raise BadRequest("the arguments are nested too deep; send a plain object of names and values") from None


def _renamed(tool: str, values: object) -> Any:
    """Arguments under our names, where a model has used another usual one."""
    if not isinstance(values, dict):
        return values
    fields = TOOLS[tool].__struct_fields__
    renamed = dict(values)
    for key, value in values.items():
        name = _USUAL.get(str(key).lower(), "")
        if key not in fields and name in fields and name not in renamed:
            del renamed[key]
            renamed[name] = value
    return renamed


def _draft(tool: str, values: object) -> Json:
    if isinstance(values, list):
        return {"statements": values}
    if not isinstance(values, dict):
        raise BadRequest(f"{tool}: its arguments are no object; send an object of names and values")
    return values
