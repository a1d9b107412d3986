"""All questions of a target, in a stable order: inner folders from the deepest up, then the target's own, which draw on
them, then round after round the paths that a model newly recorded, until a round adds none or the time is over.

A question is asked only when what it would be answered from has changed (`kept`). A model that goes away costs no
answer that was there: what is kept stays, marked where there is newer evidence.
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
from daemon.reconstitute.agent import about, trajectory
from daemon.reconstitute.agent.context.case import Case, Holdings
from daemon.reconstitute.agent.context.facts import keys
from daemon.reconstitute.agent.context.token_budget import total
from daemon.reconstitute.agent.estimate import Estimate
from daemon.reconstitute.agent.limits import Limits
from daemon.reconstitute.agent.outcomes import Kept, Outcome, merged
from daemon.reconstitute.agent.reply_cache import Cached
from daemon.reconstitute.agent.single_question import Asker, Opening
from daemon.reconstitute.agent.summaries import Summaries, size
from daemon.reconstitute.agent.tools.schemas import schemas
from daemon.reconstitute.answer import NOTHING, Record
from daemon.reconstitute.questions import Question

_PULSE_S = 1.0
_FAILURES = 2
_OVER = "the time for this target was over (agent.target_minutes)"
Progress = Callable[[Json], None]
_Done: TypeAlias = dict[str, tuple[Outcome, bool]]
"""By question id: its outcome, and whether that has seen all evidence there is."""


@dataclass(slots=True)
class Asked:
    """What came of it. `calls` are the model calls made, `unanswered` the questions to ask in `later_s` seconds."""

    record: Record = NOTHING
    calls: int = 0
    unanswered: int = 0
    later_s: float = 0.0
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Ask:
    """A question about a path, and what is known of the path's parts."""

    question: Question
    path: str
    parts: list[str]


class Rounds:
    """Asks one model, or, with None, keeps what was answered before. `now` is epoch ms; `clock` counts seconds."""

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
        """`trouble` says why nothing is to be asked now: there is no model, or it is to wait."""
        self._holdings, self._archive, self._section = holdings, holdings.archive, section
        self._model = None if model is None else Cached(model, holdings.archive)
        self._trouble = self._reason = trouble
        self._failures = 0
        self._limits = Limits.of(section)
        self._now, self._progress, self._clock = now, progress, clock
        self._pulsed = clock()
        self._event: Json = {}

    def ask(self, case: Case) -> Asked:
        """Everything about it. Raises only what `progress` raises to break off."""
        kept, asker = Kept(self._archive, case.path, case.suffix), self._asker(case)
        deadline = self._clock() + self._section.target_minutes * 60
        done: _Done = {}
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
                record = merged(done.values())
                found = self._one(asker, kept, _Ask(question, path, _parts(case, path, record)), record)
                if found is not None:
                    done[question.id] = found
                else:
                    unasked[question.id] = self._reason
                unanswered += not found[1] if found is not None else self._model is not None
            pending = _recorded(case, done)
            if not pending:
                break
        trajectory.trim(self._archive, case.path, self._section.trajectories)
        summaries, left = self._summaries(case, merged(done.values()), deadline)
        warnings = list(dict.fromkeys(warning for outcome, _ in done.values() for warning in outcome.warnings))
        if unanswered:
            warnings.append(f"{counted(unanswered, 'question')} left for later: {self._reason}")
        if left:
            warnings.append(f"files and sessions left to be described in a later run: {left} (agent.summaries)")
        calls = self._model.asked if self._model is not None else 0
        record = merged(done.values())
        record = replace(record, descriptions=summaries.files | record.descriptions, summaries=summaries.sessions)
        known = keys(case.facts)
        struck = {key: reason for key, reason in record.struck.items() if key in known}
        return Asked(replace(record, unasked=unasked, struck=struck), calls, unanswered, warnings=warnings)

    def estimate(self, case: Case) -> Estimate:
        """What `ask` would cost now; the model is asked nothing.

        Raises:
            ModelUnavailable: the server must be asked which model it is, and is down.
        """
        made, model = Estimate(), self._model
        if model is None:
            return made
        kept, asker = Kept(self._archive, case.path, case.suffix), self._asker(case)
        done: _Done = {}
        for question, path in [*self._folders(case), *((question, case.path) for question in case.questions)]:
            was, ask = kept.get(question.id), _Ask(question, path, _parts(case, path, merged(done.values())))
            is_same = was is not None and self._is_same(asker, ask, was)
            found = self._standing(model, asker, ask, was, is_same=is_same)
            if isinstance(found, Outcome):
                made.questions.kept += 1
                done[question.id] = found, True
            else:
                made.question(total(found.messages, schemas()), self._limits)
        summaries = Summaries(self._archive, case)
        waiting = summaries.waiting(list(merged(done.values()).descriptions), model.fingerprint)
        for subject in waiting[: self._section.summaries]:
            made.summary(subject.kind, size(subject, model.context_tokens))
        made.files.kept, made.sessions.kept = summaries.kept.count("file"), summaries.kept.count("session")
        made.later = max(0, len(waiting) - self._section.summaries) if self._section.summaries else 0
        return made

    def _asker(self, case: Case) -> Asker:
        result_bytes = self._section.result_kb * 1024
        return Asker(self._holdings, case, result_bytes=result_bytes, now=self._now, clock=self._clock)

    def _is_same(self, asker: Asker, ask: _Ask, was: Outcome) -> bool:
        """Whether the evidence is what it was."""
        return was.evidence == asker.evidence(ask.question, ask.path) and was.is_as_read(self._archive)

    def _summaries(self, case: Case, record: Record, deadline: float) -> tuple[Summaries, int]:
        """What is kept of files and sessions, with as many new ones as one run may ask for; how many are left."""
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
        """The model's, or nothing where it is away."""
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
        several = [folder for folder in often if len(inside[folder]) > 1]
        busiest = sorted(several, key=lambda folder: (-often[folder], folder))[: self._section.folders]
        ordered = sorted(busiest, key=lambda folder: (-folder.count("/"), folder))
        return [(about.folder(folder), posixpath.join(case.path, folder)) for folder in ordered]

    def _one(self, asker: Asker, kept: Kept, ask: _Ask, record: Record) -> tuple[Outcome, bool] | None:
        """Its outcome, and whether that is current; None where there is none yet. `record` is what was found so far."""
        was = kept.get(ask.question.id)
        is_same = was is not None and self._is_same(asker, ask, was)
        if self._model is not None and not self._trouble:
            try:
                found = self._asked(self._model, asker, ask, record, was, is_same=is_same)
            except ModelUnavailable as error:
                self._failed(str(error))
            else:
                self._failures = 0
                kept.put(found)
                return found, True
        return None if was is None else (was, is_same)

    def _asked(
        self, model: Cached, asker: Asker, ask: _Ask, record: Record, was: Outcome | None, *, is_same: bool
    ) -> Outcome:
        """What was kept, where it may stand, else what the model says now."""
        found = self._standing(model, asker, ask, was, is_same=is_same)
        if isinstance(found, Outcome):
            return found
        taken_up = [path for path, _ in record.recorded]
        return asker.ask(model, ask.question, found, limits=self._limits, taken_up=taken_up, pulse=self._pulse)

    def _standing(
        self, model: Cached, asker: Asker, ask: _Ask, was: Outcome | None, *, is_same: bool
    ) -> Outcome | Opening:
        """What was kept, where it may stand, else how the question is to begin."""
        stands = was is not None and was.may_stand(model.fingerprint, str(self._limits), self._now())
        if was is not None and stands and is_same:
            return was
        opening = asker.opening(ask.question, ask.path, ask.parts, model.context_tokens)
        if was is not None and stands and was.key == opening.key and was.is_as_read(self._archive):
            return replace(was, evidence=opening.evidence)
        return opening

    def _failed(self, reason: str) -> None:
        """One question may be too much for a server; two in a row, and it is the server."""
        self._failures += 1
        self._reason = reason
        if self._failures >= _FAILURES:
            self._trouble = reason

    def _pulse(self, _text: str) -> None:
        """A model that talks is a sign of life; not every word of it."""
        if self._clock() - self._pulsed >= _PULSE_S:
            self._pulsed = self._clock()
            self._progress(self._event)


def _recorded(case: Case, done: _Done) -> list[tuple[Question, str]]:
    """What was newly recorded, and not described or asked about yet."""
    record = merged(done.values())
    asks = [(about.path(posixpath.relpath(path, case.path)), path) for path, _ in record.recorded]
    return [(q, path) for q, path in asks if path not in record.descriptions and q.id not in done]


def _parts(case: Case, path: str, record: Record) -> list[str]:
    """What was found out about inner folders of `path`, and about paths in it: one line each."""
    found: dict[str, str] = {}
    for question_id, answer in record.answers.items():
        folder = posixpath.join(case.path, question_id.partition(":")[2])
        if ":" in question_id and folder.startswith(path + "/") and answer.statements:
            found[folder] = " ".join(statement.text for statement in answer.statements[:2])
    for described, statement in record.descriptions.items():
        if described.startswith(path + "/"):
            found.setdefault(described, statement.text)
    return [f"{posixpath.relpath(each, path)}: {found[each]}" for each in sorted(found)]
