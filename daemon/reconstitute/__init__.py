"""One run of a target: collect its evidence, recover its files, answer its questions, publish its pages (design
section 7).

Guarantees: the same evidence gives the same pages, so a second run writes nothing and asks no model; a path nobody
recorded is refused with the nearest ones that were. Without a chat model the answers are quotations. It never writes
outside the output directory, and never the files themselves.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from daemon import config
from daemon.archive import Archive
from daemon.archive.unknown import unknown
from daemon.chat import ChatModel
from daemon.display import counted
from daemon.errors import ModelUnavailable, NotRecorded
from daemon.files import FileHistory, Files
from daemon.files.trees import is_beneath
from daemon.model import Json, Page, Target
from daemon.recall.search import Recall
from daemon.reconstitute import output, passages
from daemon.reconstitute.agent.all_questions import Asked, Rounds
from daemon.reconstitute.agent.context.case import Case, Holdings
from daemon.reconstitute.agent.estimate import LARGE_CALLS, Estimate
from daemon.reconstitute.agent.notes import Notes
from daemon.reconstitute.conversations import Conversations
from daemon.reconstitute.facts import gather
from daemon.reconstitute.look import Look
from daemon.reconstitute.moment import parse_moment, tree_suffix
from daemon.reconstitute.pages.material import Material
from daemon.reconstitute.pages.render import Renderer
from daemon.reconstitute.passages import Extractor, Findings, Passage
from daemon.reconstitute.questions import Question, of
from daemon.reconstitute.recover import Recovered, recover
from daemon.reconstitute.scope import Scope, collect
from daemon.reconstitute.searches import Searches
from daemon.records import digest, dumps
from daemon.redact import redact

__all__ = ["Reconstitution", "Who", "parse_moment"]

Progress = Callable[[Json], None]
_LATER_S = 600.0
"""When a question is tried again that no model was there for."""


@dataclass(frozen=True, slots=True)
class Who:
    """Who answers: a model, or nobody and why. Without `section` no model's answers are wanted at all."""

    model: ChatModel | None = None
    why: str = ""
    section: config.Agent | None = None


class Reconstitution:
    """Runs targets over one archive; pages go beneath `output_root` unless the target names another directory."""

    def __init__(
        self,
        archive: Archive,
        recall: Recall,
        files: Files,
        output_root: Path,
        *,
        who: Who | None = None,
        notes: Notes | None = None,
        pages: int = 5000,
        spare_mb: int = 200,
        forbidden: Sequence[Path] = (),
        ground: Json | None = None,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """`pages` bounds one tree, which leaves `spare_mb` of the disk free; no page goes into a `forbidden` directory
        (the records' own).

        `ground` says what a run stands on besides its evidence; it is kept with the run. What was looked up while
        something of it was `pending` is looked up anew the next time.

        `notes` is where what was found out goes to be found again, by this target and others. `clock` (epoch ms) only
        dates the record of the last run and trajectories, never a page.
        """
        self._archive = archive
        self._recall = recall
        self._files = files
        self._output_root = output_root
        self._who = who or Who()
        self._notes = notes
        self._most_pages = pages
        self._spare_bytes = spare_mb << 20
        self._forbidden = tuple(forbidden)
        self._ground = ground or {"pending": {}}
        self._clock = clock
        self.look: Look | None = None
        """After a run: whether what it said of the disk, or a page of it, has changed since."""

    def run(self, target: Target, progress: Progress = lambda _: None, at: str = "") -> Json:
        """``{target, output, pages, written, unchanged, kept, edited, files: {proven, unproven}, model, who, questions,
        answered, answers, model_calls, unanswered, later_s, warnings}``, mostly counts; `edited` are the pages that a
        person edited and that have the current one beside them.

        `who` says which model was asked, or why none was; `answered` of the target's own `questions` have statements
        of a model; `answers` are those to a person's own questions (output.answers); `unanswered` counts the questions
        that a model is still to be asked, in `later_s` seconds.
        `at` (see parse_moment) asks for an earlier state and goes before the target's own. Such a state has a tree of
        its own beside the current one, which stays as it is: ``<target>@2026-10-01T235959Z`` (UTC).
        A target that is kept up to date (`refresh` is not ``once``) and has no evidence yet gets a page that says so.

        Raises:
            BadRequest: not an absolute path, or `at` is no moment.
            NotRecorded: nothing is recorded of it; what is near is named.
            OutputRefused: the output directory is not ours to write to, or one of records.
        """
        began = time.time_ns()
        path = output.normal(target.path)
        target = replace(target, at=parse_moment(at)) if at else target
        root = Path(output.absolute(target.output)) if target.output else self._output_root
        tree = path.strip("/") + tree_suffix(target.at)
        output.check(root, tree, self._forbidden)
        progress({"phase": "collect", "done": 0, "total": None})
        folder = self._files.folder(path, target.at)
        histories = folder.histories
        scope = collect(self._archive, self._recall, path, histories, target.at)
        files = []
        for number, file in enumerate(recover(histories, path), start=1):
            files.append(file)
            progress({"phase": "recover", "done": number, "total": len(histories)})
        said = [*scope.warnings, *self._emptiness(target, path, scope, files)]
        case = self._case(target, path, scope, histories, files)
        findings = self._findings(case, progress)
        quoted = {one.question.id: tuple(dict.fromkeys(q.message_id for q in one.quotes)) for one in findings}
        progress({"phase": "facts", "done": 0, "total": None})
        facts = gather(path, scope.sessions, files, folder.programs, target.at)
        asked = self._asked(target, replace(case, quoted=quoted, facts=facts), progress)
        material = Material(
            scope,
            tuple(files),
            findings,
            target.at,
            tuple(said),
            asked.record,
            tuple(folder.programs),
            facts,
            Conversations(self._archive, scope.sessions),
        )  # fmt: skip - what recall and the model warn of is not here: one that comes and goes must not rewrite pages
        renderer = Renderer(material, self._most_pages)
        pages = _making(renderer.pages(), progress)
        if renderer.left_out:
            said.append(f"without a page: {counted(renderer.left_out, 'file')}; limits.pages is {self._most_pages}")
        result = output.published(root, tree, path, pages, files, spare_bytes=self._spare_bytes)
        self.look = Look(root, os.path.relpath(result["output"], root), files, began)
        warnings = dict.fromkeys([*said, *case.searches.warnings, *asked.warnings, *result["warnings"]])
        result["warnings"] = [redact(warning) for warning in warnings]  # an address may hold a password
        result |= self._told(case, asked, findings)
        entry = output.entry(renderer, root, result)
        last = {"evidence": scope.fingerprint, "at": target.at, "time": self._clock(), "state": "done", "entry": entry}
        last["ground"] = self._ground
        name = "last" if target.at is None else "last-at"
        self._archive.target_put(path, name, last | {"result": result})
        output.remember(self._archive, path, entry)
        if root == self._output_root:
            more = output.publish_targets(self._archive, root, self._spare_bytes)
            if more:
                result["warnings"] += more
                self._archive.target_put(path, name, last | {"result": result})
        return result

    def estimate(self, target: Target, progress: Progress = lambda _: None, at: str = "") -> Json:
        """What `run` would ask its model now: ``{target, model, who, questions, files, sessions, later, calls, tokens,
        most_calls, most_tokens}`` (agent.estimate). Nothing is asked and nothing written.

        Raises:
            BadRequest, NotRecorded: as run.
            ModelUnavailable: the model's server is down.
        """
        path = output.normal(target.path)
        target = replace(target, at=parse_moment(at)) if at else target
        progress({"phase": "collect", "done": 0, "total": None})
        folder = self._files.folder(path, target.at)
        scope = collect(self._archive, self._recall, path, folder.histories, target.at)
        files = list(recover(folder.histories, path))
        self._emptiness(target, path, scope, files)
        facts = gather(path, scope.sessions, files, folder.programs, target.at)
        case = replace(self._case(target, path, scope, folder.histories, files), facts=facts)
        made = Estimate()
        if self._who.model is not None and self._who.section is not None:
            holdings = Holdings(self._archive, self._recall, self._files, self._notes)
            rounds = Rounds(holdings, self._who.model, self._who.section, now=self._clock, progress=progress)
            made = rounds.estimate(case)
        name = self._who.model.name if self._who.model is not None else ""
        return {"target": path, "model": name, "who": redact(self._who.why), **made.to_json()}

    def _told(self, case: Case, asked: Asked, findings: Sequence[Findings]) -> Json:
        """What the result tells of the questions (see run)."""
        return {
            "model": self._who.model.name if self._who.model is not None else "",
            "who": redact(self._who.why),
            "questions": len(case.questions),
            "answered": _answered(case, asked),
            "answers": output.answers(case.questions, asked.record, findings),
            "model_calls": asked.calls,
            "unanswered": asked.unanswered,
            "later_s": asked.later_s,
        }

    def _case(
        self, target: Target, path: str, scope: Scope, histories: Sequence[FileHistory], files: Sequence[Recovered]
    ) -> Case:
        return Case(
            path=path,
            moment=target.at,
            suffix=tree_suffix(target.at),
            scope=scope,
            histories=histories,
            files=files,
            questions=of(target, [file.relative for file in files]),
            searches=Searches(
                self._archive, self._recall, path, scope, target.at, is_early=bool(self._ground["pending"])
            ),
        )

    # -- answers -------------------------------------------------------------------------------------------------

    def _asked(self, target: Target, case: Case, progress: Progress) -> Asked:
        """What a model says, or said before. A folder in the middle of its work is asked about when it is quiet."""
        section = self._who.section
        if section is None or (not case.files and not case.scope.sessions):
            return Asked()
        now = self._clock()
        newest = max((one.session.updated for one in case.scope.sessions if one.session.updated <= now), default=0)
        quiet_s = section.quiet_minutes * 60 - (now - newest) / 1000
        is_busy = target.refresh == "continuous" and quiet_s > 0
        trouble = "its sessions go on; it waits until they are quiet (agent.quiet_minutes)" if is_busy else ""
        if self._who.model is None:
            trouble = self._who.why or "there is no chat model"
        noted = self._notes.fill(progress) if self._notes is not None else []
        holdings = Holdings(self._archive, self._recall, self._files, self._notes)
        rounds = Rounds(holdings, self._who.model, section, trouble=trouble, now=self._clock, progress=progress)
        if self._who.model is not None and not trouble:
            with suppress(ModelUnavailable):  # which the questions meet as well, and report
                self._announce(rounds.estimate(case), self._who.model.name, progress)
        asked = rounds.ask(case)
        if asked.unanswered:
            asked.later_s = max(1.0, quiet_s) if is_busy else _LATER_S
        if self._notes is not None:
            noted += self._notes.keep(case.path, progress)
        asked.warnings += dict.fromkeys(noted)
        return asked

    @staticmethod
    def _announce(cost: Estimate, model: str, progress: Progress) -> None:
        """Say what a large run is going to cost, before it begins."""
        if cost.calls >= LARGE_CALLS:
            note = f"this asks {model} about {cost.calls} times, about {cost.tokens // 1000}k tokens in all"
            progress({"phase": "ask the model", "done": 0, "total": None, "note": note})

    def _findings(self, case: Case, progress: Progress) -> tuple[Findings, ...]:
        """The quotations that answer each of a person's own questions.

        Stored ones are used again while the evidence and the questions are the same, unless recall was not whole when
        they were found: then they are looked for anew.
        """
        own = [question for question in case.questions if question.id not in output.DEFAULT]
        if not own:
            return ()
        key = digest(
            case.scope.fingerprint.encode(),
            dumps([asdict(question) for question in own]),
            f"{passages.VERSION} {case.moment}".encode(),
        )
        name = "answers" if case.moment is None else "answers-at"
        stored = self._archive.target_get(case.path, name)
        if stored is not None and stored["key"] == key and not stored["warnings"]:
            return tuple(_from_json(q, stored["answers"][q.id]) for q in own)
        found: list[Findings] = []
        extractor = Extractor(passages.passages(case.scope.sessions))
        for number, question in enumerate(own):
            progress({"phase": "quote", "done": number, "total": len(own)})
            found.append(extractor.answer(question, case.searches.ranks(question)))
        answers = {finding.question.id: _to_json(finding) for finding in found}
        warnings = [*case.searches.warnings, *self._ground["pending"]]
        value = {"key": key, "answers": answers, "warnings": warnings}
        if stored != value:
            self._archive.target_put(case.path, name, value)
        return tuple(found)

    # -- nothing recorded ----------------------------------------------------------------------------------------

    def _emptiness(self, target: Target, path: str, scope: Scope, files: Sequence[Recovered]) -> list[str]:
        """What is to be said where nothing is recorded of a target that is kept up to date.

        Raises:
            NotRecorded: it is not kept up to date.
        """
        if files or scope.sessions:
            return []
        message = self._nothing(path, target.at)
        if target.refresh == "once":
            raise NotRecorded(message)
        return [message]

    def _nothing(self, path: str, until: int | None) -> str:
        """Why there is nothing to reconstitute, and which paths a person may have meant."""
        if until is not None and (self._files.rows(path) or self._sessions_beneath(path)):
            return f"{path}: nothing was recorded of it by that time; leave out --at, or give a later one"
        return unknown(self._archive, path)

    def _sessions_beneath(self, path: str) -> bool:
        return any(is_beneath(session.directory, path) for session in self._archive.sessions())


def _making(pages: Sequence[Page], progress: Progress) -> list[Page]:
    """The pages, telling of each when it is made. To stop there is safe: nothing is published before all are made."""

    def text(number: int, page: Page) -> str:
        progress({"phase": "write", "done": number, "total": len(pages)})
        return page.text

    return [replace(page, content=partial(text, number, page)) for number, page in enumerate(pages)]


def _answered(case: Case, asked: Asked) -> int:
    """How many of the target's questions a model has answered with statements."""
    answers = asked.record.answers
    return sum(question.id in answers and bool(answers[question.id].statements) for question in case.questions)


def _to_json(found: Findings) -> Json:
    fields = ("text", "kind", "message_id", "session_id", "title", "created")
    return {"note": found.note, "quotes": [{name: getattr(quote, name) for name in fields} for quote in found.quotes]}


def _from_json(question: Question, stored: Json) -> Findings:
    return Findings(question, tuple(Passage(**quote) for quote in stored["quotes"]), stored["note"])
