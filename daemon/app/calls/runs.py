"""Who answers the questions about a folder, and the records of how it did: the model of the configuration, and
trajectories (control.calls.Service).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from daemon import log
from daemon.archive import Archive
from daemon.config import Config
from daemon.control.calls import Progress
from daemon.errors import BadRequest
from daemon.model import Json
from daemon.reconstitute import Who
from daemon.reconstitute.agent import trajectory
from daemon.redact import redact, redact_value

_LOG = log.get("chat")


class AnswerCalls:
    """A part of the engine: it has the archive and the configuration."""

    archive: Archive
    config: Config
    _running: set[str]
    _ended: threading.Condition
    answering: str = ""
    """Which model was picked last and why; empty before the first time."""

    @contextmanager
    def answerer(self) -> Iterator[Who]:
        """The model for one run, picked anew each time: a server may have come up, or gone."""
        if self.config.chat.provider == "none":
            self._picked("no chat model: the pages are made from facts alone: chat.provider is none")
            yield Who(why=self.answering)
            return
        # Late: the clients take half a second to import, which no other command needs.
        from daemon.chat.choose import choose  # noqa: PLC0415

        model, why = choose(self.config.chat, self.config.opencode)
        self._picked(why)
        try:
            yield Who(model, why, self.config.agent)
        finally:
            if model is not None:
                model.close()

    @contextmanager
    def alone(self, path: str, progress: Progress) -> Iterator[None]:
        """One run of a target at a time: a second one would put the same questions to the model (J3)."""
        with self._ended:
            while path in self._running:
                progress({"phase": "waiting for another run of it", "done": 0, "total": None})
                self._ended.wait(0.5)
            self._running.add(path)
        try:
            yield
        finally:
            with self._ended:
                self._running.discard(path)
                self._ended.notify_all()

    def _picked(self, why: str) -> None:
        if why != self.answering:
            self.answering = why
            _LOG.info("answers", model=why)

    def trajectories(self, path: str = "", *, started: int = 0) -> Json:
        """See control.calls.Service."""
        targets = [path] if path else self.archive.targets()
        heads = [(target, head) for target in targets for head in trajectory.read(self.archive, target)]
        if not started:
            return {"trajectories": sorted((_listed(*each) for each in heads), key=lambda each: each["started"])}
        found = [(target, head) for target, head in heads if head["started"] == started]
        if not found:
            raise BadRequest(f"{started}: no trajectory began then; `reconstitute trajectory` lists those there are")
        said = [redact_value(trajectory.messages(self.archive, target, started)) for target, _ in found]
        return {"trajectories": [_listed(*each) | {"messages": told} for each, told in zip(found, said, strict=True)]}


def _listed(target: str, head: Json) -> Json:
    """A head as it is shown."""
    shown: Json = redact_value({key: value for key, value in head.items() if key != "count"})
    return {"target": redact(target), **shown}
