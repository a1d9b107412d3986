"""One run of a target: collect its evidence, recover its files, answer its questions, publish its pages.

Guarantees: the same evidence gives the same pages, so a second run writes nothing and asks no model. A path without
records is refused, and similar recorded paths are named. Without a chat model, answers are quotations. A run writes
only into the output directory, never the recovered files themselves.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from daemon import config
from daemon.archive import Archive
from daemon.archive.paths import unknown
from daemon.chat import ChatModel
from daemon.display import counted
from daemon.errors import ModelUnavailable, NotRecorded
from daemon.files import Files
from daemon.files.trees import is_beneath
from daemon.hints import for_commands
from daemon.model import FileEdit, Json, Target
from daemon.moments import parse_moment
from daemon.recall.search import RecallEngine
from daemon.reconstitute import output, passages, repeat, withheld
from daemon.reconstitute.agent import AllQuestions, QuestionRun
from daemon.reconstitute.agent.context import Case
from daemon.reconstitute.agent.limits import LARGE_CALLS, Estimate
from daemon.reconstitute.agent.notes import Notes
from daemon.reconstitute.agent.tools import Holdings
from daemon.reconstitute.facts import gather
from daemon.reconstitute.output import ChangeCheck
from daemon.reconstitute.pages import LinkedPage, Renderer
from daemon.reconstitute.pages.material import Material
from daemon.reconstitute.passages import Findings, QuestionSearch
from daemon.reconstitute.questions import of_target
from daemon.reconstitute.recover import Recovered, recover
from daemon.reconstitute.scope import Conversations, Scope, collect
from daemon.redact import redact

__all__ = ["Answerer", "Reconstitution", "parse_moment"]

Progress = Callable[[Json], None]
_LATER_S = 600.0
"""Seconds until a question is asked again for which there was no model."""


@dataclass(frozen=True, slots=True)
class Answerer:
    """The model that answers questions; None, and `why`, if there is none. Without `section`, no answers are wanted."""

    model: ChatModel | None = None
    why: str = ""
    section: config.Agent | None = None


@dataclass(frozen=True, slots=True)
class _Collected:
    """Everything recorded about a target. `programs` may have written files that no record names (see files.Folder)."""

    case: Case
    programs: tuple[FileEdit, ...]
    warnings: tuple[str, ...]

    def complete(self, findings: Sequence[Findings], progress: Progress) -> Case:
        """The case with its facts, and with the messages that the findings quote."""
        progress({"phase": "facts", "done": 0, "total": None})
        case = self.case
        quoted_ids = {
            finding.question.id: tuple(dict.fromkeys(q.message_id for q in finding.quotes)) for finding in findings
        }
        facts = gather(case.path, case.scope.sessions, case.files, self.programs, case.moment)
        return replace(case, quoted_ids=quoted_ids, facts=facts)


class Reconstitution:
    """Runs targets over one archive; pages go beneath `output_root` unless the target names another directory."""

    def __init__(
        self,
        archive: Archive,
        recall: RecallEngine,
        files: Files,
        output_root: Path,
        *,
        answerer: Answerer | None = None,
        notes: Notes | None = None,
        pages: int = 5000,
        spare_mb: int = 200,
        forbidden: Sequence[Path] = (),
        secret_files: bool = False,
        ground: Json | None = None,
        stores: bool = True,
        shown: repeat.ShownPages | None = None,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """`pages` limits the pages of one tree; `spare_mb` of the disk stay free. No page is written into the
        `forbidden` directories, which hold the records. Without `secret_files` they show nothing of what a file such as
        .env holds.

        `ground` says what a run depends on besides its evidence (app.targets), and is stored with the run. Searches
        made while some work was `pending` are repeated by the next run. `notes` stores what runs learned, for this
        target and others. Without `stores`, `page` stores nothing, so that a forgetting need not wait for it. `clock`
        (epoch ms) only dates trajectories and the record of the last run, never a page.
        """
        self._archive = archive if secret_files else withheld.view(archive)
        self._shows_secret_files = secret_files
        self._recall = recall
        self._files = files if secret_files else withheld.files_view(files)
        self._output_root = output_root
        self._answerer = answerer or Answerer()
        self._notes = notes
        self._most_pages = pages
        self._spare_bytes = spare_mb << 20
        self._forbidden = tuple(forbidden)
        self._ground = ground or {"pending": {}}
        self._stores = stores
        self._shown = shown or repeat.ShownPages()
        self._clock = clock
        self.change_check: ChangeCheck | None = None
        """After a run: tells whether a page, or a file that it compares with the disk, has changed since."""

    def run(self, target: Target, progress: Progress = lambda _: None, at: str = "") -> Json:
        """``{target, output, pages, written, unchanged, kept, edited, files: {proven, unproven}, model, who, questions,
        answered, answers, model_calls, unanswered, later_s, warnings}``, mostly counts; `edited` are the pages that a
        person edited and that have the current one beside them.

        `who` says which model was asked, or why none was. `answered` counts the `questions` that have statements of a
        model; `answers` are those to a person's own questions (output.answers). `unanswered` counts the questions that
        the model should be asked again in `later_s` seconds.
        `at` (see parse_moment) requests an earlier state, and overrides the target's own moment. Such a state has its
        own tree beside the current one: ``<target>@2026-10-01T235959Z`` (UTC).
        A target that is kept up to date (`refresh` is not ``once``) and has no evidence yet gets a page that says so.

        Raises:
            BadRequest: not an absolute path, or `at` is no moment.
            NotRecorded: nothing is recorded about it; similar recorded paths are named.
            OutputRefused: the output directory is not ours to write to, or holds records.
        """
        began = time.time_ns()
        target, root, tree = self._resolve(target, at)
        made_from = self._inputs(target, root)
        material, case, run = self._material(target, progress)
        renderer = Renderer(material, self._most_pages)
        pages = output.with_progress(renderer.pages(), progress)
        result = output.published(root, tree, target.path, pages, case.files, spare_bytes=self._spare_bytes)
        self.change_check = ChangeCheck(root, os.path.relpath(result["output"], root), case.files, began)
        warnings_so_far = [*material.warnings]
        if renderer.left_out:
            warnings_so_far.append(
                f"without a page: {counted(renderer.left_out, 'file')}; limits.pages is {self._most_pages}"
            )
        warnings = dict.fromkeys([*warnings_so_far, *case.searches.warnings, *run.warnings, *result["warnings"]])
        result["warnings"] = [redact(warning) for warning in warnings]  # an address may hold a password
        result |= self._answer_counts(case, run, material.findings)
        self._remember(target, case, root, output.entry(renderer, root, result), result)
        if not self.pending(target):
            repeat.keep(self._archive, target, made_from, result, self.change_check)
        return result

    def page(self, target: Target, progress: Progress = lambda _: None, at: str = "") -> LinkedPage:
        """The front page that `run` would publish now, which is not published. Without a model kept answers are shown.

        One of those that were `shown` last, if nothing has changed since.

        Raises:
            BadRequest, NotRecorded: as run.
        """
        target = replace(target, path=output.normal(target.path), at=parse_moment(at, self._clock()) or target.at)
        generation, began = self._shown.generation, time.time_ns()
        made_from = self._inputs(target, self._output_root)
        is_final = not self.pending(target)
        if is_final and (shown := self._shown.find(target, made_from)) is not None:
            return shown
        material, case, run = self._material(target, progress)
        page = Renderer(material, self._most_pages).front()
        if is_final and not (case.searches.warnings or run.warnings):
            check = output.FileChangeCheck(case.files, began, [history.path for history in case.histories])
            self._shown.keep(target, made_from, check, page, generation)
        return page

    def _material(self, target: Target, progress: Progress) -> tuple[Material, Case, QuestionRun]:
        """What the pages are rendered from, and where it comes from. Asks the model."""
        collected = self._collect(target, progress)
        case = collected.case
        own = [question for question in case.questions if question.id not in output.DEFAULT]
        pending = self._ground["pending"]
        findings = passages.kept(self._archive, own, case.searches, pending, progress, stores=self._stores)
        case = collected.complete(findings, progress)
        run = self._ask_model(target, case, progress)
        material = Material(
            case.scope,
            tuple(case.files),
            findings,
            target.at,
            tuple(collected.warnings),
            run.record,
            collected.programs,
            case.facts,
            Conversations(self._archive, case.scope.sessions),
        )  # fmt: skip - without the warnings of recall and the model: temporary ones must not rewrite pages
        return material, case, run

    def repeated(self, target: Target, at: str = "") -> Json | None:
        """The result of the last run, if another one would write and answer the same; else None (see repeat).

        Raises:
            BadRequest, OutputRefused: as run.
        """
        if self.pending(target) or self._answerer.model is not None:  # a run with a model also repairs its notes' index
            return None
        target, root, _ = self._resolve(target, at)
        result = repeat.find(self._archive, target, self._inputs(target, root))
        last = self._archive.target_get(target.path, _last_run_name(target))
        if result is None or last is None or last["state"] != "done":
            return None
        if root == self._output_root:
            result["warnings"] = output.publish_targets(self._archive, root, self._spare_bytes)
        self._archive.target_put(target.path, _last_run_name(target), last | {"time": self._clock(), "result": result})
        return result

    def pending(self, target: Target) -> list[str]:
        """The pending work that the target's pages depend on; only questions depend on the index by meaning."""
        asks = bool(target.questions) or self._answerer.model is not None
        return [cause for cause in self._ground["pending"] if asks or cause != "meaning"]

    def _resolve(self, target: Target, at: str) -> tuple[Target, Path, str]:
        """The target with its path normalised and its moment parsed, the output directory, and the tree in it."""
        target = replace(target, path=output.normal(target.path), at=parse_moment(at, self._clock()) or target.at)
        root = Path(output.absolute(target.output)) if target.output else self._output_root
        tree = target.path.strip("/") + output.tree_suffix(target.at)
        output.check(root, tree, self._forbidden)
        return target, root, tree

    def _inputs(self, target: Target, root: Path) -> str:
        answers = [self._model_name, self._answerer.why, self._answerer.section is not None]
        settings = [str(root), self._most_pages, *answers]
        return repeat.inputs(self._archive, target, [*settings, self._ground | {"pending": None}])

    def _remember(self, target: Target, case: Case, root: Path, entry: Json, result: Json) -> None:
        """Store the run with its result, and publish the index over all targets again."""
        last = {
            "evidence": case.scope.fingerprint,
            "at": target.at,
            "time": self._clock(),
            "state": "done",
            "entry": entry,
            "ground": self._ground,
        }
        name = _last_run_name(target)
        self._archive.target_put(target.path, name, last | {"result": result})
        output.remember(self._archive, target.path, entry)
        if root == self._output_root:
            warnings = output.publish_targets(self._archive, root, self._spare_bytes)
            if warnings:
                result["warnings"] += warnings
                self._archive.target_put(target.path, name, last | {"result": result})

    def estimate(self, target: Target, progress: Progress = lambda _: None, at: str = "") -> Json:
        """What `run` would ask its model now: ``{target, model, who, questions, files, sessions, later, calls, tokens,
        most_calls, most_tokens}`` (agent.limits.Estimate). It asks and writes nothing.

        Raises:
            BadRequest, NotRecorded: as run.
            ModelUnavailable: the model's server is down.
        """
        target = replace(target, path=output.normal(target.path), at=parse_moment(at, self._clock()) or target.at)
        case = self._collect(target, progress).complete((), progress)
        estimate = Estimate()
        if self._answerer.model is not None and self._answerer.section is not None:
            estimate = self._questions(self._answerer.section, progress).estimate(case)
        why = redact(self._answerer.why)
        return {"target": target.path, "model": self._model_name, "who": why, **estimate.to_json()}

    # -- evidence ------------------------------------------------------------------------------------------------

    def _collect(self, target: Target, progress: Progress) -> _Collected:
        """Everything recorded about the target.

        Raises:
            NotRecorded: nothing is recorded, and the target is not kept up to date.
        """
        progress({"phase": "collect", "done": 0, "total": None})
        folder = self._files.folder(target.path, target.at)
        histories = folder.histories
        if not self._shows_secret_files:
            histories = list(map(withheld.without_content, histories))
        scope = collect(self._archive, self._recall, target.path, histories, target.at)
        files = []
        for number, file in enumerate(recover(histories, target.path), start=1):
            files.append(file)
            progress({"phase": "recover", "done": number, "total": len(histories)})
        progress({"phase": "recover", "done": len(histories), "total": len(histories)})
        warnings = [*scope.warnings, *self._check_recorded(target, scope, files)]
        is_early = bool(self._ground["pending"]) or not self._stores  # then ranks are not stored
        case = Case(
            path=target.path,
            moment=target.at,
            suffix=output.tree_suffix(target.at),
            scope=scope,
            histories=histories,
            files=files,
            questions=of_target(target, [file.relative for file in files]),
            searches=QuestionSearch(self._archive, self._recall, target.path, scope, target.at, is_early=is_early),
        )
        return _Collected(case, tuple(folder.programs), tuple(warnings))

    def _check_recorded(self, target: Target, scope: Scope, files: Sequence[Recovered]) -> list[str]:
        """Check that something is recorded about the target; a warning if nothing is, but it is kept up to date.

        Raises:
            NotRecorded: nothing is recorded, and the target is not kept up to date.
        """
        if files or scope.sessions:
            return []
        message = self._no_records_message(target.path, target.at)
        if target.refresh == "once":
            raise NotRecorded(message)
        return [for_commands(message)]

    def _no_records_message(self, path: str, until: int | None) -> str:
        """Why there is nothing to reconstitute, and which similar paths are recorded."""
        if until is not None and (self._files.rows(path) or self._sessions_beneath(path)):
            return f"{path}: nothing was recorded of it by that time; leave out `at`, or give a later one"
        return unknown(self._archive, path)

    def _sessions_beneath(self, path: str) -> bool:
        return any(is_beneath(session.directory, path) for session in self._archive.sessions())

    # -- answers -------------------------------------------------------------------------------------------------

    @property
    def _model_name(self) -> str:
        return self._answerer.model.name if self._answerer.model is not None else ""

    def _questions(self, section: config.Agent, progress: Progress, trouble: str = "") -> AllQuestions:
        holdings = Holdings(self._archive, self._recall, self._files, self._notes)
        return AllQuestions(
            holdings, self._answerer.model, section, trouble=trouble, now=self._clock, progress=progress
        )

    def _ask_model(self, target: Target, case: Case, progress: Progress) -> QuestionRun:
        """The model's answers, new or stored. While sessions of the folder are active, the model is not asked."""
        section = self._answerer.section
        if section is None or (not case.files and not case.scope.sessions):
            return QuestionRun()
        now = self._clock()
        newest = max(
            (session.session.updated for session in case.scope.sessions if session.session.updated <= now), default=0
        )
        quiet_s = section.quiet_minutes * 60 - (now - newest) / 1000
        is_busy = target.refresh == "continuous" and quiet_s > 0
        trouble = "its sessions go on; it waits until they are quiet (agent.quiet_minutes)" if is_busy else ""
        if self._answerer.model is None:
            trouble = self._answerer.why or "there is no chat model"
        note_warnings = self._notes.fill(progress) if self._notes is not None else []
        questions = self._questions(section, progress, trouble)
        if self._answerer.model is not None and not trouble:
            with suppress(ModelUnavailable):  # the questions fail the same way and report it
                self._announce(questions.estimate(case), progress)
        run = questions.ask(case)
        if run.unanswered:
            run.later_s = max(1.0, quiet_s) if is_busy else _LATER_S
        if self._notes is not None:
            note_warnings += self._notes.keep(case.path, progress)
        run.warnings += dict.fromkeys(note_warnings)
        return run

    def _announce(self, cost: Estimate, progress: Progress) -> None:
        """Report the estimated cost of a large run before it begins."""
        if cost.calls >= LARGE_CALLS:
            tokens = f"{cost.tokens // 1000}k tokens"
            note = f"this asks {self._model_name} about {cost.calls} times, about {tokens} in all"
            progress({"phase": "ask the model", "done": 0, "total": None, "note": note})

    def _answer_counts(self, case: Case, run: QuestionRun, findings: Sequence[Findings]) -> Json:
        """The part of the result that is about questions (see run)."""
        answers = run.record.answers
        return {
            "model": self._model_name,
            "who": redact(self._answerer.why),
            "questions": len(case.questions),
            "answered": sum(
                question.id in answers and bool(answers[question.id].statements) for question in case.questions
            ),
            "answers": output.answers(case.questions, run.record, findings),
            "model_calls": run.calls,
            "unanswered": run.unanswered,
            "later_s": run.later_s,
        }


def _last_run_name(target: Target) -> str:
    """The name under which the archive stores a target's last run."""
    return "last" if target.at is None else "last-at"
