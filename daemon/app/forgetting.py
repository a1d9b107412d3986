"""The call that forgets, and what completes a forgetting that was ended in the middle.

Scans, index writers and runs hold still for the removal itself, because each may have read what goes. After it they go
on; the files are written anew beside them.
"""

from __future__ import annotations

import threading
import time
from abc import ABC
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from daemon.app import targets
from daemon.app.calls.runs import RunCalls, with_json_names
from daemon.app.scanning import Scanning
from daemon.archive.ids import whole_id
from daemon.control import answers, calls
from daemon.control.answers import from_json
from daemon.control.calls import Progress
from daemon.display import counted
from daemon.errors import BadRequest, OutputRefused, Retry
from daemon.forget import erasure, pages, preview, removal, selection
from daemon.forget.selection import Selection
from daemon.ingest import ScanResult
from daemon.model import Json
from daemon.moments import parse_time
from daemon.redact import redact_value

_SERVED = "the service goes on with it by itself"
_ALONE = "the next command, or the service, goes on with it"


class Forgetting(Scanning, RunCalls, ABC):
    """A part of the engine: it has the archive, the indexes and everything that reads them."""

    def __init__(self) -> None:
        super().__init__()
        self._forgetting = threading.Lock()
        self._keeping_results = threading.Lock()
        self.on_forgotten: Callable[[], None] = lambda: None
        """Called when pages are to be written anew."""

    def forget(self, request: calls.Forget, progress: Progress) -> answers.Forget:
        """See calls.Forget.

        Raises:
            BadRequest: not exactly one thing was named, or the archive does not have it.
            DiskFull: there is no room to write the archive anew; nothing was removed.
        """
        step = self._step(progress)
        warnings = self.current(step)
        chosen = self._selection(request)
        if not chosen:
            return answers.Forget(notes=[_nothing(request, chosen)], warnings=redact_value(warnings))
        if request.confirmed:
            with self._forgetting:
                fields = self._forget(request, step)
        else:
            plan = self._plan(chosen, step)
            fields = {"notes": [_nothing(request, chosen)]} if plan.is_empty else preview.of(self.archive, chosen, plan)
        fields["warnings"] = [*warnings, *fields.get("warnings", ())]
        return from_json(with_json_names(redact_value(fields)), answers.Forget)

    def _selection(self, request: calls.Forget) -> Selection:
        named = [value for value in (request.name, request.before, request.project) if value.strip()]
        if len(named) != 1:
            raise BadRequest("forget: name one thing: a session, a message, a path, `before` or `project`")
        if request.project:
            return selection.of_project(self.archive, request.project)
        if request.before:
            moment = parse_time(request.before, int(time.time() * 1000), "before")
            return selection.before(self.archive, moment or 0)
        if selection.is_path(request.name):
            return selection.by_path(self.archive, request.name)
        return selection.by_id(self.archive, whole_id(self.archive, request.name))

    def _plan(self, chosen: Selection, step: Progress) -> removal.Plan:
        def pulse(done: int) -> None:
            step({"phase": "looking for what else names it", "done": done, "total": None})

        return removal.plan(self.archive, chosen, self.recovery.evidence, self.config.requests_dir, pulse)

    def _forget(self, request: calls.Forget, step: Progress) -> Json:
        """Remove it, then complete what can be completed now; fields of the answer."""
        erasure.check_space(self.archive)
        with self._no_runs(step), self._scanning:
            chosen = self._selection(request)  # again, because a scan may have read more of it
            plan = self._plan(chosen, step)
            if plan.is_empty:
                return {"notes": [_nothing(request, chosen)]}
            fields = preview.of(self.archive, chosen, plan)
            with self._keeping_results, self._lexical_lock, self._semantic_lock:
                plan.results = removal.results(plan, self.config.requests_dir)
                while not plan.is_current:
                    plan = self._plan(chosen, step)
                plan.commit()
                step({"phase": "removed", "done": len(plan.messages), "total": len(plan.messages)})
                self.recovery.forget_known()
                self._delete_indexes()
            for target in plan.targets:
                self.grounds.pop(target, None)
                self.looks.pop(target, None)
        self.on_scanned(ScanResult(changed=len(plan.messages) + plan.shortened, places=plan.places))
        try:
            self._complete(step)
        except Retry as error:
            going_on = _SERVED if self.is_served else _ALONE
            later = f"it is forgotten, but the archive's files still hold its bytes: {error}; {going_on}"
            fields |= {"warnings": [later]}
        self.on_forgotten()
        return fields | {"forgotten": True}

    @contextmanager
    def keeping_results(self, known: int) -> Iterator[None]:
        """While results of a request are written, nothing is forgotten. `known`: how much was when they were made.

        Raises:
            Retry: something was forgotten since, so they may have it.
        """
        with self._keeping_results:
            if len(self.archive.forgotten) != known:
                raise Retry("something was forgotten while this request ran; it runs again")
            yield

    def complete_forgetting(self, progress: Progress) -> None:
        """Go on with a forgetting that was ended in the middle, unless a call is at it.

        Raises:
            Retry: not now; call it again.
        """
        if erasure.is_pending(self.archive) and self._forgetting.acquire(blocking=False):
            try:
                self._complete(self._step(progress))
            finally:
                self._forgetting.release()

    def write_pages_anew(self, progress: Progress) -> None:
        """Run the targets whose pages were made of what is forgotten. One that cannot be written is tried again."""
        for tree in pages.waiting(self.archive):
            target = pages.target_of(tree, targets.known(self.archive, self.config))
            try:
                self.run_target(target, progress)
            except OutputRefused as error:
                self.report(f"pages of {target.path}", error)
            else:
                pages.done(self.archive, tree)

    def delete_old_indexes(self) -> None:
        """At the start: delete indexes that have texts of what was removed, before anyone searches them."""
        if erasure.indexes_are_due(self.archive):
            with suppress(Retry):  # the Chroma server does not answer; `complete_forgetting` tries again
                self._delete_indexes()

    def _delete_indexes(self) -> None:
        self.upkeep.start_over()
        erasure.indexes_deleted(self.archive)

    def _complete(self, step: Progress) -> None:
        if erasure.indexes_are_due(self.archive):
            with self._lexical_lock, self._semantic_lock:
                self._delete_indexes()
        self.drain_lexical(step)
        step({"phase": "comparing files", "done": 0, "total": None})
        self.recorded.refresh(self.check_running)
        limits = self.config.limits
        erasure.complete(self.archive, (limits.indexed_kb, limits.embedded_kb), step)


def _nothing(request: calls.Forget, chosen: Selection) -> str:
    if chosen.places:
        return f"{chosen.places[0]}: nothing is recorded of it"
    if request.name:
        return f"{request.name}: was forgotten before"
    more = f"; {counted(chosen.later, 'session')} began before it and went on after it" if chosen.later else ""
    return f"no session ended before then{more}"
