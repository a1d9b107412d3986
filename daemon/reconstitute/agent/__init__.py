"""A model answers the questions about a target from the records, a step at a time.

`single_question` asks one question in a `loop` within `limits`. `context` is what the model is shown, as data. `tools`
is all that it can do; they hold its statements against what it was shown. `outcomes` and `trajectory` are kept. Nothing
here reads outside the archive or writes outside the target's own record.

Here all questions are asked, in a stable order: inner folders from the deepest up, then the target's own.

The target's questions draw on the answers about its folders. After them, round by round, come the paths that the model
newly recorded, until a round adds none or the time is over. A question is only asked when the evidence for its answer
has changed (`outcomes`). When the model goes away, kept answers stay, marked where there is newer evidence.
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from daemon import config
from daemon.chat import ChatModel, ModelUnavailable
from daemon.display import counted
from daemon.model import Json
from daemon.reconstitute import questions
from daemon.reconstitute.agent import trajectory
from daemon.reconstitute.agent.context import Case
from daemon.reconstitute.agent.context.facts import keys
from daemon.reconstitute.agent.limits import Estimate, Limits, count_tokens
from daemon.reconstitute.agent.outcomes import CachedModel, Outcome, OutcomeStore, merged
from daemon.reconstitute.agent.single_question import Opening, QuestionRunner
from daemon.reconstitute.agent.summaries import Summaries, size
from daemon.reconstitute.agent.tools import Holdings
from daemon.reconstitute.agent.tools.schemas import schemas
from daemon.reconstitute.answer import EMPTY_RECORD, Record
from daemon.reconstitute.questions import Question

_PULSE_S = 1.0
_FAILURES = 2
_OVER = "the time for this target was over (agent.target_minutes)"
Progress = Callable[[Json], None]
_Outcomes: TypeAlias = dict[str, tuple[Outcome, bool]]
"""By question id: the outcome, and whether it is current: it has seen all evidence there is."""


@dataclass(slots=True)
class QuestionRun:
    """The answers of one run. `calls` counts model calls; `unanswered` questions are asked in `later_s` seconds."""

    record: Record = EMPTY_RECORD
    calls: int = 0
    unanswered: int = 0
    later_s: float = 0.0
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _PathQuestion:
    """A question about a path, and what is known of the path's parts."""

    question: Question
    path: str
    parts: list[str]


class AllQuestions:
    """Asks one model; without a model it uses the answers that are kept. `now` is epoch ms; `clock` counts seconds."""

    def __init__(
        self,
        holdings: Holdings,
        model: ChatModel | None,
        section: config.Agent,
        *,
        trouble: str = "",
        now: Callable[[], int],
        progress: Progress,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`trouble` says why nothing can be asked now: there is no model, or it has to wait."""
        self._holdings, self._archive, self._section = holdings, holdings.archive, section
        self._model = None if model is None else CachedModel(model, holdings.archive)
        self._trouble = self._reason = trouble
        self._failures = 0
        self._limits = Limits.of(section)
        self._now, self._progress, self._clock = now, progress, clock
        self._pulsed = clock()
        self._event: Json = {}

    def ask(self, case: Case) -> QuestionRun:
        """Answer all questions about it. Raises only what `progress` raises to break off."""
        store, runner = OutcomeStore(self._archive, case.path, case.suffix), self._runner(case)
        deadline = self._clock() + self._section.target_minutes * 60
        outcomes: _Outcomes = {}
        unasked: dict[str, str] = {}
        unanswered = 0
        pending = [*self._folders(case), *((question, case.path) for question in case.questions)]
        for _ in range(1 + self._section.rounds):
            for number, (question, path) in enumerate(pending):
                self._event = {
                    "phase": "ask the model" if self._model else "quote",
                    "done": number,
                    "total": len(pending),
                }
                self._progress(self._event)
                if self._clock() > deadline:
                    self._trouble = self._reason = self._trouble or _OVER
                record = merged(outcomes.values())
                answered = self._outcome(
                    runner, store, _PathQuestion(question, path, _parts(case, path, record)), record
                )
                if answered is not None:
                    outcomes[question.id] = answered
                else:
                    unasked[question.id] = self._reason
                unanswered += not answered[1] if answered is not None else self._model is not None
            pending = _recorded(case, outcomes)
            if not pending:
                break
        if self._model is not None:  # without one none was added
            trajectory.trim(self._archive, case.path, self._section.trajectories)
        summaries, remaining = self._summaries(case, merged(outcomes.values()), deadline)
        warnings = list(dict.fromkeys(warning for outcome, _ in outcomes.values() for warning in outcome.warnings))
        if unanswered:
            warnings.append(f"{counted(unanswered, 'question')} left for later: {self._reason}")
        if remaining:
            warnings.append(f"files and sessions left to be described in a later run: {remaining} (agent.summaries)")
        calls = self._model.calls if self._model is not None else 0
        record = merged(outcomes.values())
        record = replace(record, descriptions=summaries.files | record.descriptions, summaries=summaries.sessions)
        fact_keys = keys(case.facts)
        struck = {key: reason for key, reason in record.struck.items() if key in fact_keys}
        return QuestionRun(replace(record, unasked=unasked, struck=struck), calls, unanswered, warnings=warnings)

    def estimate(self, case: Case) -> Estimate:
        """What `ask` would cost now; the model is asked nothing.

        Raises:
            ModelUnavailable: the server must be asked which model it is, and is down.
        """
        estimate, model = Estimate(), self._model
        if model is None:
            return estimate
        store, runner = OutcomeStore(self._archive, case.path, case.suffix), self._runner(case)
        outcomes: _Outcomes = {}
        for question, path in [*self._folders(case), *((question, case.path) for question in case.questions)]:
            earlier, about = (
                store.get(question.id),
                _PathQuestion(question, path, _parts(case, path, merged(outcomes.values()))),
            )
            is_unchanged = earlier is not None and self._is_unchanged(runner, about, earlier)
            outcome = self._cached_or_opening(model, runner, about, earlier, is_unchanged=is_unchanged)
            if isinstance(outcome, Outcome):
                estimate.questions.kept += 1
                outcomes[question.id] = outcome, True
            else:
                estimate.question(count_tokens(outcome.messages, schemas()), self._limits)
        summaries = Summaries(self._archive, case)
        waiting = summaries.waiting(list(merged(outcomes.values()).descriptions), model.fingerprint)
        for subject in waiting[: self._section.summaries]:
            estimate.summary(subject.kind, size(subject, model.context_tokens))
        estimate.files.kept, estimate.sessions.kept = summaries.reused.count("file"), summaries.reused.count("session")
        estimate.later = max(0, len(waiting) - self._section.summaries) if self._section.summaries else 0
        return estimate

    def _runner(self, case: Case) -> QuestionRunner:
        result_bytes = self._section.result_kb * 1024
        return QuestionRunner(self._holdings, case, result_bytes=result_bytes, now=self._now, clock=self._clock)

    def _is_unchanged(self, runner: QuestionRunner, about: _PathQuestion, earlier: Outcome) -> bool:
        """Whether the evidence is the same as for the earlier outcome."""
        return earlier.evidence == runner.evidence(about.question, about.path) and earlier.is_as_read(self._archive)

    def _summaries(self, case: Case, record: Record, deadline: float) -> tuple[Summaries, int]:
        """The descriptions of files and sessions, with as many new ones as one run may ask for; how many are left."""
        summaries = Summaries(self._archive, case)
        model, trouble = self._model, self._trouble
        waiting = summaries.waiting(list(record.descriptions), self._fingerprint())
        if model is None or trouble:
            return summaries, len(waiting) if model is not None else 0
        batch = waiting[: self._section.summaries]
        for number, subject in enumerate(batch):
            self._event = {"phase": "describe files and sessions", "done": number, "total": len(batch)}
            self._progress(self._event)
            if self._clock() > deadline:
                return summaries, len(waiting) - number
            try:
                summaries.ask(model, subject, self._pulse)
            except ModelUnavailable as error:
                self._failed(str(error))
                return summaries, len(waiting) - number
        return summaries, len(waiting) - len(batch) if self._section.summaries else 0

    def _fingerprint(self) -> str:
        """The model's fingerprint; empty where it is away."""
        try:
            return self._model.fingerprint if self._model is not None else ""
        except ModelUnavailable:
            return ""

    def _folders(self, case: Case) -> list[tuple[Question, str]]:
        """The inner folders that sessions worked on most, the deepest first; none that only leads to another."""
        often: dict[str, int] = {}
        inside: dict[str, set[str]] = {}
        for file in case.files:
            child, folder = file.relative, posixpath.dirname(file.relative)
            while folder and (file.was_touched or file.path in case.scope.touched):
                often[folder] = often.get(folder, 0) + 1
                inside.setdefault(folder, set()).add(child)
                child, folder = folder, posixpath.dirname(folder)
        shared = [folder for folder in often if len(inside[folder]) > 1]
        busiest = sorted(shared, key=lambda folder: (-often[folder], folder))[: self._section.folders]
        ordered = sorted(busiest, key=lambda folder: (-folder.count("/"), folder))
        return [(questions.of_folder(folder), posixpath.join(case.path, folder)) for folder in ordered]

    def _outcome(
        self, runner: QuestionRunner, store: OutcomeStore, about: _PathQuestion, record: Record
    ) -> tuple[Outcome, bool] | None:
        """The outcome, and whether it is current; None where there is none yet. `record` has the answers so far."""
        earlier = store.get(about.question.id)
        is_unchanged = earlier is not None and self._is_unchanged(runner, about, earlier)
        if self._model is not None and not self._trouble:
            try:
                outcome = self._cached_or_new(self._model, runner, about, record, earlier, is_unchanged=is_unchanged)
            except ModelUnavailable as error:
                self._failed(str(error))
            else:
                self._failures = 0
                store.put(outcome)
                return outcome, True
        return None if earlier is None else (earlier, is_unchanged)

    def _cached_or_new(
        self,
        model: CachedModel,
        runner: QuestionRunner,
        about: _PathQuestion,
        record: Record,
        earlier: Outcome | None,
        *,
        is_unchanged: bool,
    ) -> Outcome:
        """The earlier outcome, where it may stand, else what the model says now."""
        outcome = self._cached_or_opening(model, runner, about, earlier, is_unchanged=is_unchanged)
        if isinstance(outcome, Outcome):
            return outcome
        recorded_paths = [path for path, _ in record.recorded]
        return runner.ask(
            model, about.question, outcome, limits=self._limits, recorded_paths=recorded_paths, pulse=self._pulse
        )

    def _cached_or_opening(
        self,
        model: CachedModel,
        runner: QuestionRunner,
        about: _PathQuestion,
        earlier: Outcome | None,
        *,
        is_unchanged: bool,
    ) -> Outcome | Opening:
        """The earlier outcome, where it may stand, else how the question begins."""
        stands = earlier is not None and earlier.may_stand(model.fingerprint, str(self._limits), self._now())
        if earlier is not None and stands and is_unchanged:
            return earlier
        opening = runner.opening(about.question, about.path, about.parts, model.context_tokens)
        if earlier is not None and stands and earlier.key == opening.key and earlier.is_as_read(self._archive):
            return replace(earlier, evidence=opening.evidence)
        return opening

    def _failed(self, reason: str) -> None:
        """Note a failure. One question may be too much for a server; after two in a row, no more are asked."""
        self._failures += 1
        self._reason = reason
        if self._failures >= _FAILURES:
            self._trouble = reason

    def _pulse(self, _text: str) -> None:
        """Report progress while the model writes, once a second at most."""
        if self._clock() - self._pulsed >= _PULSE_S:
            self._pulsed = self._clock()
            self._progress(self._event)


def _recorded(case: Case, outcomes: _Outcomes) -> list[tuple[Question, str]]:
    """The newly recorded paths that were neither described nor asked about yet, each with its question."""
    record = merged(outcomes.values())
    pending = [(questions.of_path(posixpath.relpath(path, case.path)), path) for path, _ in record.recorded]
    return [(q, path) for q, path in pending if path not in record.descriptions and q.id not in outcomes]


def _parts(case: Case, path: str, record: Record) -> list[str]:
    """A line for each inner folder of `path`, and each path in it, that was answered or described."""
    lines: dict[str, str] = {}
    for question_id, answer in record.answers.items():
        folder = posixpath.join(case.path, question_id.partition(":")[2])
        if ":" in question_id and folder.startswith(path + "/") and answer.statements:
            lines[folder] = " ".join(statement.text for statement in answer.statements[:2])
    for described, statement in record.descriptions.items():
        if described.startswith(path + "/"):
            lines.setdefault(described, statement.text)
    return [f"{posixpath.relpath(part_path, path)}: {lines[part_path]}" for part_path in sorted(lines)]
