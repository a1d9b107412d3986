"""The calls about runs: a run that writes pages, its estimate, and the trajectories of its model."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from daemon import log
from daemon.app import targets
from daemon.app.calls.recall import RecallCalls
from daemon.app.targets import Ground
from daemon.control import answers, calls, view_answers
from daemon.control.answers import from_json, json_name
from daemon.control.calls import Progress
from daemon.errors import BadRequest, ReconstituteError
from daemon.files import Files
from daemon.ingest import LazyEmbedder
from daemon.model import Json, Target
from daemon.publish.edits import PageChangeCheck
from daemon.redact import known, redact, redact_value

if TYPE_CHECKING:
    from daemon.reconstitute import Answerer, Reconstitution
    from daemon.reconstitute.output import ChangeCheck
    from daemon.reconstitute.repeat import ShownPages

_LOG = log.get("chat")
_ALL = ""
"""Among the targets that are running: none may begin."""
_LOADING_S = 300.0
"""Pages wait longer than a question for an index that is being loaded."""


class _MakesWay(ReconstituteError):
    """Ends a run because something is to be forgotten; the run is repeated after that."""


class RunCalls(RecallCalls, ABC):
    """A part of the engine: it has the archive, the configuration and the recorded files.

    The first call that needs them imports the modules that make pages, because they are a third of all imports.
    """

    recorded: Files
    model_status: str = ""
    """Which model was chosen last and why; empty before the first time."""

    def __init__(self) -> None:
        super().__init__()
        self._running: set[str] = set()
        self._ended = threading.Condition()
        self.grounds: dict[str, Ground] = {}
        """The ground of each target's last run, by path."""
        self.looks: dict[str, ChangeCheck] = {}
        """Tells of each continuous target whether its pages or files changed on the disk, by path."""
        self.index_look: PageChangeCheck | None = None
        self._shown: ShownPages | None = None

    @abstractmethod
    def check_running(self) -> None:
        """See Engine."""

    @abstractmethod
    def ground(self) -> Ground:
        """See Engine."""

    def reconstitute(self, request: calls.Reconstitute, progress: Progress) -> answers.Run:
        """See calls.Reconstitute."""
        target = self._target(request.path, request.questions, request.output)
        return run_answer(self.run_target(target, self._step(progress), at=request.at))

    def estimate(self, request: calls.Estimate, progress: Progress) -> answers.Estimate:
        """See calls.Estimate."""
        target = self._target(request.path, request.questions)
        while True:
            with suppress(_MakesWay):
                estimate = self._estimate(target, self._step(progress), request.at)
                return from_json(with_json_names(estimate), answers.Estimate)

    def _estimate(self, target: Target, progress: Progress, at: str) -> Json:
        with known.only({}), self._exclusive_run(target.path, progress) as step, self.answerer() as answerer:
            return self._reconstitution(answerer, self.ground()).estimate(target, step, at=at)

    def page(self, request: calls.Page, progress: Progress) -> view_answers.Page:
        """See calls.Page.

        Raises:
            BadRequest: the path is not absolute, or `at` is no moment.
            NotRecorded: nothing is recorded of it.
        """
        from daemon.reconstitute import Answerer, parse_moment  # noqa: PLC0415 - see the class
        from daemon.reconstitute.repeat import ShownPages  # noqa: PLC0415 - see the class

        target, step = self._target(request.path, None), self._step(progress)
        warnings = self.current(progress)
        answerer = Answerer(why="no model is asked here; a run asks one", section=self.config.agent)
        with self._ended:
            shown = self._shown = self._shown or ShownPages()
        with known.only({}):
            page = self._reconstitution(answerer, self.ground(), shown=shown).page(target, step, at=request.at)
        return view_answers.Page(
            path=redact(request.path),
            at=parse_moment(request.at, time.time_ns() // 1_000_000),
            text=page.text,
            links=[
                view_answers.PageLink(href, redact(each.path), each.is_folder, each.session_id, each.message_id)
                for href, each in page.links.items()
            ],
            warnings=[redact(warning) for warning in warnings],
        )

    def trajectories(self, request: calls.Trajectories) -> answers.Trajectories:
        """See calls.Trajectories.

        Raises:
            BadRequest: no trajectory began at that time.
        """
        from daemon.reconstitute.agent import trajectory  # noqa: PLC0415 - see the class

        paths = [request.path] if request.path else self.archive.targets()
        heads = [(target, head) for target in paths for head in trajectory.read(self.archive, target)]
        if not request.started:
            listed = [_trajectory(*entry) for entry in heads]
            return answers.Trajectories(sorted(listed, key=lambda entry: entry.started))
        heads = [(target, head) for target, head in heads if head["started"] == request.started]
        if not heads:
            raise BadRequest(f"{request.started}: no trajectory began then; `trajectories()` lists those there are")
        matches = []
        for target, head in heads:
            matches.append(_trajectory(target, head))
            matches[-1].messages = redact_value(trajectory.messages(self.archive, target, request.started))
        return answers.Trajectories(matches)

    def run_target(self, target: Target, progress: Progress, at: str = "") -> Json:
        """One reconstitution, without a scan before it.

        Raises:
            BadRequest: the target makes no sense.
            OutputRefused: the output cannot be written.
        """
        while True:
            with suppress(_MakesWay):
                return self._run_target(target, progress, at)

    def _run_target(self, target: Target, progress: Progress, at: str) -> Json:
        with known.only({}), self._exclusive_run(target.path, progress) as step, self.answerer() as answerer:
            repeated = self._repeated(answerer, target, at)
            if repeated is not None:
                return repeated
            self.upkeep.load(within_s=_LOADING_S)
            ground = self.grounds[target.path] = self.ground()
            began = time.time_ns()
            reconstitution = self._reconstitution(answerer, ground)
            result = reconstitution.run(target, step, at=at)
            if target.refresh == "continuous" and reconstitution.change_check is not None:
                self.looks[target.path] = reconstitution.change_check
                self.index_look = PageChangeCheck(self.config.output_dir, "", began)
        pending = targets.pending_work(reconstitution.pending(target))
        if pending and target.refresh == "once":
            result["warnings"].append(f"made without {', '.join(pending)}; a later run may tell more")
        return result

    def _repeated(self, answerer: Answerer, target: Target, at: str) -> Json | None:
        """The last run's result, if nothing has changed since. It opens no index."""
        if target.refresh == "continuous" and target.path not in self.looks:
            return None  # only a run knows what to watch on the disk
        ground = self.ground()
        if not targets.waits_for_meaning(self.archive):
            ground["pending"].pop("meaning", None)  # nothing waits, the index is only not open
        return self._reconstitution(answerer, ground).repeated(target, at)

    @contextmanager
    def answerer(self) -> Iterator[Answerer]:
        """The model for one run, chosen anew each time, because a server may have started or stopped."""
        from daemon.reconstitute import Answerer  # noqa: PLC0415 - see the class

        if self.config.chat.provider == "none":
            self._note_model("no chat model: the pages are made from facts alone: chat.provider is none")
            yield Answerer(why=self.model_status)
            return
        # Late: the clients take half a second to import, which no other command needs.
        from daemon.chat.choose import choose  # noqa: PLC0415 - see above

        model, why = choose(self.config.chat, self.config.opencode)
        self._note_model(why)
        try:
            yield Answerer(model, why, self.config.agent)
        finally:
            if model is not None:
                model.close()

    def _note_model(self, why: str) -> None:
        if why != self.model_status:
            self.model_status = why
            _LOG.info("answers", model=why)

    @contextmanager
    def _exclusive_run(self, path: str, progress: Progress) -> Iterator[Progress]:
        """Wait for another run of the same target, which may be asking the model the same questions (J3).

        Gives the run its progress, which ends it (_MakesWay) when it is to make way for `_no_runs`.
        """

        def step(event: Json) -> None:
            if _ALL in self._running:
                raise _MakesWay(f"{path}: something is to be forgotten; this run is repeated after that")
            progress(event)

        with self._ended:
            while path in self._running or _ALL in self._running:
                progress({"phase": "waiting for another run of it", "done": 0, "total": None})
                self._ended.wait(0.5)
            self._running.add(path)
        try:
            yield step
        finally:
            self._end_run(path)

    @contextmanager
    def _no_runs(self, progress: Progress) -> Iterator[None]:
        """End all runs under way, each at its next step, and wait for that; none begins meanwhile."""
        with self._ended:
            while _ALL in self._running:
                self._ended.wait(0.5)
            self._running.add(_ALL)
            while len(self._running) > 1:
                progress({"phase": "waiting for the runs under way", "done": 0, "total": None})
                self._ended.wait(0.5)
        try:
            yield
        finally:
            self._end_run(_ALL)

    def _end_run(self, path: str) -> None:
        """The run of a target, or a forgetting, has ended: pages may show other answers of a model, or less."""
        with self._ended:
            if self._shown is not None:
                self._shown.clear()
            self._running.discard(path)
            self._ended.notify_all()

    def _target(self, path: str, questions: list[str] | None, output: str = "") -> Target:
        """The target, with the questions that are configured for its path first."""
        target = Target(path=path, questions=tuple(questions or ()), output=output)
        return targets.with_own_questions(target, targets.known(self.archive, self.config))

    def _step(self, progress: Progress) -> Progress:
        """`progress`, which also ends the work when the daemon stops."""

        def step(event: Json) -> None:
            self.check_running()
            progress(event)

        return step

    def _reconstitution(self, answerer: Answerer, ground: Ground, *, shown: ShownPages | None = None) -> Reconstitution:
        """One that publishes, or with `shown` one that only shows and stores nothing."""
        from daemon.reconstitute import Reconstitution  # noqa: PLC0415 - see the class
        from daemon.reconstitute.agent.notes import Notes  # noqa: PLC0415 - see the class

        notes = Notes(
            self.archive,
            lambda: self.upkeep.notes,
            LazyEmbedder(lambda: self.upkeep.embedder),
            on_failure=self.index_failed,
        )
        return Reconstitution(
            self.archive,
            self.searching(),
            self.recorded,
            self.config.output_dir,
            answerer=answerer,
            notes=notes if shown is None else None,
            stores=shown is None,
            shown=shown,
            pages=self.config.limits.pages,
            spare_mb=self.config.limits.free_mb,
            secret_files=self.config.output.secret_files,
            forbidden=(*self.config.opencode_dirs, self.config.archive_dir),
            ground=ground,
        )


def run_answer(result: Json) -> answers.Run:
    """The answer to a client for the result of a run."""
    fields = {"later_seconds" if name == "later_s" else name: value for name, value in result.items()}
    return from_json(with_json_names(fields), answers.Run)


def _trajectory(target: str, head: Json) -> answers.Trajectory:
    cleaned: dict[str, Any] = redact_value(head)
    return from_json({**cleaned, "target": redact(target)}, answers.Trajectory)


def with_json_names(value: object) -> Any:
    """JSON data with its keys renamed from snake_case to the API's camelCase."""
    if isinstance(value, dict):
        return {json_name(key): with_json_names(item) for key, item in value.items()}
    return [with_json_names(item) for item in value] if isinstance(value, list) else value
